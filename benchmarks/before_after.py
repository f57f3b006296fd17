"""Whether warm runs got slower: ``python -m benchmarks.before_after FOLDER [ALGORITHM …]``.

FOLDER is a checkout of other sources, such as those of an earlier commit. Both anonymize the same
made-up people, each in a process of its own, in turn. A process runs an algorithm once, so that its
kernels are loaded, or compiled into a cache that is kept in ``--cache``, and then once more, of
which the processor time is taken. Ratios are taken repeat by repeat. With ``--cpu LEVEL`` these
sources are compiled for a level of processors instead of this one: ``python -m
benchmarks.before_after . --cpu x86-64-v3 --cache FOLDER`` tells what kernels for all users cost.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.markdown import replace_section, table
from benchmarks.measure import Sample, machine
from benchmarks.workloads import ROOT
from shoal.engine.cpu_levels import LEVELS, environment

__all__ = ["main", "report"]

CODE = """
import hashlib, json, sys, time
from shoal import Delay, KAnonymity, Policy, Quasi, Schema, Window, ZAnonymity, anonymize
from shoal.algorithms import find
from shoal.datasets import census
from shoal.spec.ladder import Open
name, n_rows = sys.argv[1], int(sys.argv[2])
made = census(n_rows, subjects=n_rows // 2, seed=0)
table = made.table()
kind, schema = find(name), made.schema
if kind.publishes == "values":
    schema = Schema(schema.subject, [Quasi("postcode", Open())])
    policy = Policy(ZAnonymity(20), window=Window(rows=2000))
elif kind.publishes == "table":
    policy = Policy(KAnonymity(20), window="all")
else:
    policy = Policy(KAnonymity(20), delay=Delay(rows=2000))
anonymize(table.slice(0, 3000), schema, policy, kind(), seed=0)
begin = time.process_time()
result = anonymize(table, schema, policy, kind(), seed=0)
seconds = time.process_time() - begin
text = repr(result.frame.to_pydict()).encode()
print(json.dumps({"seconds": seconds, "output": hashlib.blake2b(text).hexdigest()}))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="a checkout of other sources")
    parser.add_argument("names", nargs="*", metavar="ALGORITHM", default=["castle"])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--cpu", choices=LEVELS, help="compile these sources for this level")
    parser.add_argument("--cache", type=Path, required=True, help="where kernels are kept")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the results in this page")
    options = parser.parse_args()
    of_level = {} if options.cpu is None else environment(options.cpu)
    found = {
        name: compare(name, options.folder, options.rows, options.repeats, options.cache, of_level)
        for name in options.names
    }
    text = report(found, options.rows, options.cpu)
    print(text)
    if options.write is not None:
        section = "before-after" if options.cpu is None else "cpu-level"
        replace_section(options.write, section, text)


def compare(
    name: str, folder: Path, n_rows: int, repeats: int, cache: Path, of_level: dict[str, str]
) -> dict[str, Any]:
    """Run an algorithm with both sources in turn; return the seconds, and whether they agree."""
    runs: dict[str, list[dict[str, Any]]] = {"before": [], "now": []}
    for _ in range(repeats):
        for when, sources in (("before", folder), ("now", ROOT)):
            variables = {
                **os.environ,
                **(of_level if when == "now" else {}),
                "PYTHONPATH": str(sources.resolve() / "src"),
                "SHOAL_CACHE_DIR": str(cache.resolve() / when),
                "SHOAL_SHIPPED_KERNELS": "off",
            }
            done = subprocess.run(
                [sys.executable, "-c", CODE, name, str(n_rows)],
                cwd=sources, env=variables, check=True, capture_output=True, text=True,
            )  # fmt: skip
            runs[when].append(json.loads(done.stdout))
            print(f"… {name}, {when}: {runs[when][-1]['seconds']:.2f} s", file=sys.stderr)
    outputs = {run["output"] for both in runs.values() for run in both}
    seconds = {when: [run["seconds"] for run in both] for when, both in runs.items()}
    return {**seconds, "same": len(outputs) == 1}


def report(found: dict[str, dict[str, Any]], n_rows: int, cpu: str | None = None) -> str:
    """Return a table of the ratios."""
    rows = []
    for name, runs in found.items():
        before, now = Sample(tuple(runs["before"])), Sample(tuple(runs["now"]))
        ratio = now.per(before)
        rows.append(
            [
                name,
                f"{before.median:.2f}",
                f"{now.median:.2f}",
                f"{ratio.median:.2f} ({ratio.least:.2f} to {ratio.most:.2f})",
                "same" if runs["same"] else "another",
            ]
        )
    on = machine()
    first, then = ("before", "now") if cpu is None else ("this processor", cpu)
    return "\n".join(
        [
            f"Processor time of {n_rows:,} made-up people in memory, k = 20, with "
            f"kernels loaded before, on {on['processor']}; medians, and ratios repeat by repeat.",
            "",
            table(["algorithm", f"{first}, s", f"{then}, s", f"{then} / {first}", "output"], rows),
        ]
    )


if __name__ == "__main__":
    main()
