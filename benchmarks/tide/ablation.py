"""What each part of TIDE gives: the loss over the effort of repair, and without some parts.

A part without a knob is a constant of the kernels. It is changed in a process of its own, before
they are compiled into a cache of their own:
``python -m benchmarks.tide.ablation MODULE CONSTANT VALUE METHOD CASES``.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from benchmarks.figures.model import Curve, Figure, Panel, Reading
from benchmarks.markdown import table
from benchmarks.measure import say
from benchmarks.tide.data import title_of
from benchmarks.tide.runs import Case, anonymizer_of, decide, measured
from benchmarks.tide.settings import Bench
from benchmarks.workloads import ROOT

__all__ = ["by_effort", "without"]

#: What is switched off, of which form: the module of the constant, its name, and a value.
PARTS = {
    "categories that all groups generalize count less in growth": ("tide", "start", "DISCOUNT", 0),
    "prices": ("tide rolling", "prices", "RATE", 1 << 40),
    "age": ("tide rolling", "rolling", "AGES", 0),
}


def by_effort(bench: Bench) -> Figure:
    """Vary the effort of repair; 0 is growth alone."""
    sizes = bench.sizes
    panels = [
        Panel(
            f"{title_of(data)}, delay {sizes.delay:,}", "effort", sizes.efforts,
            tuple(Curve(f"k = {k}", _over_effort(bench, data, k)) for k in sizes.effort_ks),
            what="Mean loss",
        )
        for data in bench.data
    ]  # fmt: skip
    return Figure(
        "effort", "loss over the effort of repair",
        f"{sizes.rows:,} rows in one order. Effort 0 is growth alone; the default is 20.",
        tuple(panels), (), page="tide", source="target", one_axis=False, heading="Ablation",
    )  # fmt: skip


def _over_effort(bench: Bench, data: str, k: int) -> list[Reading]:
    sizes, cells = bench.sizes, []
    for effort in sizes.efforts:
        case = Case(data, sizes.rows, k, sizes.delay)
        method = "tide" if effort == 20 else f"tide effort {effort}"
        seen = measured(bench.store, case, method, sizes.effort_repeats)
        assert seen is not None
        cells.append(Reading(seen.loss))
    return cells


def without(bench: Bench) -> str:
    """What is lost without some parts, in the first order of the rows."""
    sizes = bench.sizes
    cases = [Case(data, sizes.rows, k, sizes.delay) for data in bench.data for k in sizes.effort_ks]
    rows = []
    for part, (method, module, constant, value) in PARTS.items():
        found = bench.store.get(
            f"without {part}; {', '.join(bench.data)}, {sizes.rows:,} rows", method,
            lambda given=(module, constant, value, method): _in_child(*given, cases),
        )  # fmt: skip
        for case, lost in zip(cases, found, strict=True):
            seen = measured(bench.store, case, method, 1)
            assert seen is not None
            rows.append(
                [
                    f"`{method}`", part, title_of(case.data), str(case.k), f"{seen.loss[0]:.3f}",
                    f"{lost:.3f}", f"{100 * (lost / seen.loss[0] - 1):+.1f} %",
                ]
            )  # fmt: skip
    return "\n\n".join(
        [
            "## Ablation: without some parts",
            f"{sizes.rows:,} rows in one order, delay {sizes.delay:,}. What repair gives is above; "
            "what a batch gives compared with single groups is `tide` compared with `tide rolling` "
            "in the tables of streams.",
            table(["form", "without", "data", "k", "loss", "without it", "change"], rows),
        ]
    )


def _in_child(
    module: str, constant: str, value: int, method: str, cases: Sequence[Case]
) -> list[float]:
    say(f"tide: without {constant}")
    given = json.dumps([asdict(case) for case in cases])
    command = [sys.executable, "-m", "benchmarks.tide.ablation", module, constant, str(value)]
    with tempfile.TemporaryDirectory(prefix="shoal-cache-") as cache:
        env = dict(os.environ) | {"SHOAL_CACHE_DIR": cache}
        done = subprocess.run(
            [*command, method, given], cwd=ROOT, env=env, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"a run without {constant} failed:\n{done.stderr}")
    found: list[float] = json.loads(done.stdout)
    return found


def main(module: str, constant: str, value: str, method: str, given: str) -> None:
    found: Any = importlib.import_module(f"shoal.engine.tide.{module}")
    if not hasattr(found, constant):
        raise SystemExit(f"{found.__name__} has no {constant}")
    setattr(found, constant, int(value))
    cases = [Case(**one) for one in json.loads(given)]
    print(json.dumps([decide(anonymizer_of(method), c.stream(0), c.policy).loss for c in cases]))


if __name__ == "__main__":
    main(*sys.argv[1:])
