"""Whether warm runs got slower: ``python -m benchmarks.before_after FOLDER [ALGORITHM …]``.

FOLDER is a checkout of other sources, such as those of an earlier commit. Both anonymize the same
made-up people, each in a process of its own, in turn. A process runs an algorithm once, so that its
kernels are loaded, or compiled into a cache that is kept in ``--cache``, and then once more, of
which the processor time is taken. Ratios are taken repeat by repeat.
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

__all__ = ["main", "report"]

CODE = """
import hashlib, json, sys, time
from shoal import Delay, KAnonymity, Policy, anonymize
from shoal.algorithms import find
from shoal.datasets import census
name, n_rows = sys.argv[1], int(sys.argv[2])
made = census(n_rows, subjects=n_rows // 2, seed=0)
table = made.table()
kind = find(name)
delay = {"window": "all"} if kind.publishes == "table" else {"delay": Delay(rows=2000)}
policy = Policy(KAnonymity(20), **delay)
anonymize(table.slice(0, 3000), made.schema, policy, kind(), seed=0)
begin = time.process_time()
result = anonymize(table, made.schema, policy, kind(), seed=0)
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
    parser.add_argument("--cache", type=Path, required=True, help="where kernels are kept")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the results in this page")
    options = parser.parse_args()
    found = {
        name: compare(name, options.folder, options.rows, options.repeats, options.cache)
        for name in options.names
    }
    text = report(found, options.rows)
    print(text)
    if options.write is not None:
        replace_section(options.write, "before-after", text)


def compare(name: str, folder: Path, n_rows: int, repeats: int, cache: Path) -> dict[str, Any]:
    """Run an algorithm with both sources in turn; return the seconds, and whether they agree."""
    runs: dict[str, list[dict[str, Any]]] = {"before": [], "now": []}
    for _ in range(repeats):
        for when, sources in (("before", folder), ("now", ROOT)):
            environment = {
                **os.environ,
                "PYTHONPATH": str(sources.resolve() / "src"),
                "SHOAL_CACHE_DIR": str(cache.resolve() / when),
            }
            done = subprocess.run(
                [sys.executable, "-c", CODE, name, str(n_rows)],
                cwd=sources, env=environment, check=True, capture_output=True, text=True,
            )  # fmt: skip
            runs[when].append(json.loads(done.stdout))
            print(f"… {name}, {when}: {runs[when][-1]['seconds']:.2f} s", file=sys.stderr)
    outputs = {run["output"] for both in runs.values() for run in both}
    seconds = {when: [run["seconds"] for run in both] for when, both in runs.items()}
    return {**seconds, "same": len(outputs) == 1}


def report(found: dict[str, dict[str, Any]], n_rows: int) -> str:
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
    return "\n".join(
        [
            f"Processor time of {n_rows:,} made-up people in memory, k = 20, with "
            f"kernels loaded before, on {on['processor']}; medians, and ratios repeat by repeat.",
            "",
            table(["algorithm", "before, s", "now, s", "now / before", "output"], rows),
        ]
    )


if __name__ == "__main__":
    main()
