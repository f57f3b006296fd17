"""``shoal algorithms``: what there is."""

from __future__ import annotations

import dataclasses
import inspect
import json

from shoal import algorithms as registry
from shoal.cli.terminal import tell
from shoal.spec.criteria import described

__all__ = ["algorithms"]


def algorithms(*, as_json: bool) -> int:
    """List the anonymizers."""
    entries = []
    for name in registry.names():
        recipe = registry.find(name)
        entries.append(
            {
                "name": name,
                "summary": (inspect.getdoc(recipe) or "").partition("\n")[0],
                "enforces": [described(criterion) for criterion in recipe.enforces],
                "needs_delay": recipe.needs_delay,
                "knobs": {field.name: field.default for field in dataclasses.fields(recipe)},
                "reference": recipe.reference,
            }
        )
    if as_json:
        tell(json.dumps(entries))
        return 0
    for entry in entries:
        tell(f"{entry['name']}: {entry['summary']}")
        tell(f"  enforces   {', '.join(entry['enforces'])}")  # type: ignore[arg-type]
        knobs = entry["knobs"].items()  # type: ignore[attr-defined]
        tell(f"  knobs      {', '.join(_toml(knob, value) for knob, value in knobs)}")
        tell(f"  reference  {entry['reference']}")
    return 0


def _toml(knob: str, value: object) -> str:
    # TOML has no word for nothing: what has no default is left out of a job.
    return f"{knob} unset" if value is None else f"{knob} = {json.dumps(value)}"
