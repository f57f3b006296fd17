"""Where the time of an engine goes, kernel by kernel: ``python -m benchmarks.by_kernel ALGORITHM``.

An engine alone decides encoded rows: of `acs-income-2018` for CASTLE, of government employees for
the R-tree family, of Adult for the others, on rows with gaps with ``--gaps``. Linux's ``perf``
samples it; kernels are told apart by their addresses. Without ``perf`` only the time is told.
"""

from __future__ import annotations

import argparse
import gc
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from numba.core.codegen import JITCodeLibrary

from benchmarks.markdown import table
from benchmarks.trees_runs import Sizes, employees_file, schema_of
from benchmarks.workers import encoded
from benchmarks.workloads import DATA, acs_income, adult_file
from shoal.algorithms import find
from shoal.engine.base import Anonymizer
from shoal.engine.space import Codes
from shoal.spec.policy import Delay, KAnonymity, Policy
from shoal.spec.schema import Schema

__all__ = ["main"]

TREES = ("min-delay", "tree-basic", "tree-density", "tree-full")
#: Samples a second; kernels with a smaller share aren't told.
FREQUENCY, LEAST_SHARE = 3000, 1.0

Case = tuple[Schema, list[Codes], Anonymizer, Policy]


def case_of(
    name: str, rows: int, k: int | None, delay: int | None, gaps: int, folder: Path
) -> Case:
    """What an algorithm is run on."""
    if name in TREES:
        sizes = Sizes(k=k or Sizes.k)
        batches = encoded(employees_file(rows, folder))
        return schema_of(subject=None), batches, sizes.anonymizer(name), sizes.policy
    workload, default = acs_income() if name == "castle" else None, (100, 10_000)
    if workload is None:
        workload, default = adult_file(rows, folder, gaps=gaps), (50, 2_000)
    promise = Delay(rows=delay or default[1])
    policy = Policy(KAnonymity(k or default[0]), delay=promise, missing=workload.missing)
    return workload.schema, first_rows(encoded(workload), rows), find(name)(), policy


def first_rows(batches: Sequence[Codes], rows: int) -> list[Codes]:
    """The first rows of some batches."""
    found = []
    for batch in batches:
        found.append(Codes(*(array[:rows] for array in batch[:4])))
        rows -= len(found[-1].subjects)
        if rows == 0:
            break
    return found


def decide(case: Case) -> float:
    """Run an engine alone; return its processor seconds."""
    schema, batches, anonymizer, policy = case
    engine = anonymizer.start(schema, policy, seed=b"by kernel")
    begin = time.process_time()
    for batch in batches:
        engine.push(batch)
    engine.flush()
    return time.process_time() - begin


def kernel_names() -> dict[int, str]:
    """The kernels that have been loaded, by their addresses."""
    libraries = {}
    for library in gc.get_objects():
        if isinstance(library, JITCodeLibrary):
            own = getattr(library, "own", None)
            names = ([own.symbol] if own else []) + [*getattr(library, "needs", {})]
            libraries |= dict.fromkeys(names, library)
    return {
        library.get_pointer_to_function(symbol): ".".join([*_words(symbol)][-2:])
        for symbol, library in libraries.items()
    }


def _words(symbol: str) -> Iterator[str]:
    """The words of a mangled name: their lengths stand before them."""
    at = len("_ZN")
    while number := re.match(r"\d+", symbol[at:]):
        at += number.end()
        yield symbol[at : at + int(number[0])]
        at += int(number[0])


def sampled(case: Case, repeats: int) -> list[tuple[float, str]]:
    """The share of each function in some runs, by ``perf``."""
    names = sorted(kernel_names().items())
    ends = [address for address, _ in names[1:]] + [names[-1][0] + 4096]
    # Where perf looks for the names of functions that are in no file.
    known = Path(f"/tmp/perf-{os.getpid()}.map")
    lines = [
        f"{address:x} {end - address:x} {name}\n"
        for (address, name), end in zip(names, ends, strict=True)
    ]
    known.write_text("".join(lines), encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        data = f"{folder}/perf.data"
        record = ["perf", "record", "-e", "cpu-clock", "-F", str(FREQUENCY), "-o", data]
        with subprocess.Popen(
            [*record, "-p", str(os.getpid())], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as perf:
            time.sleep(1.0)
            for _ in range(repeats):
                decide(case)
            perf.send_signal(signal.SIGINT)
        report = subprocess.run(
            ["perf", "report", "-i", data, "--stdio", "--sort", "symbol"],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
    known.unlink()
    shares = re.findall(r"^ +([\d.]+)%  \[.\] (\S+)", report.stdout, flags=re.MULTILINE)
    return [(float(share), name) for share, name in shares if float(share) >= LEAST_SHARE]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.by_kernel", description=__doc__)
    parser.add_argument("algorithm")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of generated files")
    parser.add_argument("--rows", type=int, default=300_000, help="rows (default 300,000)")
    parser.add_argument("--repeats", type=int, default=3, help="sampled runs (default 3)")
    parser.add_argument("--k", type=int, help="people of a group")
    parser.add_argument("--delay", type=int, help="the delay in rows")
    parser.add_argument("--gaps", type=int, default=0, help="the most values that a row lacks")
    options = parser.parse_args(arguments)
    case = case_of(
        options.algorithm, options.rows, options.k, options.delay, options.gaps, options.data
    )
    decide((case[0], first_rows(case[1], 3_000), *case[2:]))
    seconds = min(decide(case) for _ in range(options.repeats))
    print(f"{options.algorithm}: {1e6 * seconds / options.rows:.2f} µs a row of processor time")
    if shutil.which("perf") is None or not kernel_names():
        print("There is no perf or nothing is compiled, so that kernels aren't told apart.")
        return
    print(table(["kernel", "%"], [[name, share] for share, name in sampled(case, options.repeats)]))


if __name__ == "__main__":
    main()
