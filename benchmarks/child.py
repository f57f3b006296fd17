"""One run in a process of its own, so that its memory and its start can be measured.

``python -m benchmarks.child ALGORITHM DATA ROWS FOLDER`` runs an algorithm over ROWS rows of the
data, ``census`` or ``adult``, and prints what it took as JSON. ``--warm`` runs it over fewer rows
beforehand, which loads the kernels.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.workloads import ROOT, adult_file, census_file

__all__ = ["FILES", "call", "peak", "resident"]

#: The workloads that can be made of any length.
FILES = {"census": census_file, "adult": adult_file}


def call(
    algorithm: str, data: str, rows: int, folder: Path, *,
    k: int, delay: int, warm: int = 0, cache: str | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Run in a child process; give what it reports, and its whole wall time.

    ``warm`` is the number of rows of the run beforehand, ``cache`` the folder of compiled kernels.
    """
    env = dict(os.environ)
    if cache is not None:
        env["SHOAL_CACHE_DIR"] = cache
    command = [sys.executable, "-m", "benchmarks.child", algorithm, data, str(rows), str(folder)]
    command += ["--k", str(k), "--delay", str(delay), "--warm", str(warm)]
    begin = time.perf_counter()
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    wall = time.perf_counter() - begin
    if done.returncode:
        raise SystemExit(f"a run of {rows} rows failed:\n{done.stderr}")
    report: dict[str, Any] = json.loads(done.stdout)
    return report | {"wall": wall}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("algorithm")
    parser.add_argument("data", choices=FILES)
    parser.add_argument("rows", type=int)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--k", type=int, required=True)
    parser.add_argument("--delay", type=int, required=True)
    parser.add_argument("--warm", type=int, default=0, metavar="ROWS")
    options = parser.parse_args()

    from benchmarks.runs import publish

    output = options.folder / f"child-{options.rows}.parquet"
    run = partial(publish, options.algorithm, k=options.k, delay=options.delay)
    file = FILES[options.data]
    workload = file(options.rows, options.folder)
    if options.warm:
        run(file(options.warm, options.folder), output)
    residents: list[int] = []
    before = peak()
    begin = time.perf_counter()
    summary = run(workload, output, watch=lambda _: residents.append(resident()))
    seconds = time.perf_counter() - begin
    output.unlink()
    after = peak()
    report = {
        "n_rows": summary.n_in,
        "seconds": seconds,
        "peak": after,
        "growth": after - before,
        "steady": statistics.median(residents[len(residents) // 2 :]),
    }
    print(json.dumps(report))


def resident() -> int:
    """The memory that this process has now, in bytes; the most it had, where that isn't told."""
    status = Path("/proc/self/statm")
    if not status.exists():
        return peak()
    return resource.getpagesize() * int(status.read_text(encoding="utf-8").split()[1])


def peak() -> int:
    """The most memory that this process has had so far, in bytes.

    Linux counts what the parent had into the ``ru_maxrss`` of a child, which would hide all that
    the child needs; its own mark is elsewhere.
    """
    status = Path("/proc/self/status")
    if status.exists():
        lines = status.read_text(encoding="utf-8").splitlines()
        kilobytes = next(line.split()[1] for line in lines if line.startswith("VmHWM:"))
        return 1024 * int(kilobytes)
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    main()
