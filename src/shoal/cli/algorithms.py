"""``shoal algorithms``: list the anonymizers."""

from __future__ import annotations

import dataclasses
import inspect
import json

from shoal.algorithms import registry
from shoal.cli.terminal import print_result
from shoal.engine import Anonymizer
from shoal.spec.criteria import described

__all__ = ["algorithms", "summary"]


def algorithms(*, as_json: bool) -> int:
    """List the anonymizers: what each enforces, its knobs and where it comes from."""
    found = [entry.load() for entry in registry.entries()]
    if as_json:
        print_result(json.dumps([_as_dict(anonymizer) for anonymizer in found]))
        return 0
    for anonymizer in found:
        knobs = (_toml(field.name, field.default) for field in dataclasses.fields(anonymizer))
        print_result(f"{anonymizer.name}: {summary(anonymizer)}")
        print_result(f"  enforces   {', '.join(map(described, anonymizer.enforces))}")
        print_result(f"  knobs      {', '.join(knobs)}")
        print_result(f"  reference  {anonymizer.reference}")
    return 0


def _as_dict(anonymizer: type[Anonymizer]) -> dict[str, object]:
    return {
        "name": anonymizer.name,
        "summary": summary(anonymizer),
        "enforces": [described(criterion) for criterion in anonymizer.enforces],
        "needs_delay": anonymizer.needs_delay,
        "knobs": {field.name: field.default for field in dataclasses.fields(anonymizer)},
        "reference": anonymizer.reference,
    }


def summary(anonymizer: type[Anonymizer]) -> str:
    """Return the first line of an anonymizer's docstring."""
    return (inspect.getdoc(anonymizer) or "").partition("\n")[0]


def _toml(knob: str, value: object) -> str:
    # TOML has no null: what has no default is left out of a job.
    return f"{knob} unset" if value is None else f"{knob} = {json.dumps(value)}"
