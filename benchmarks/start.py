"""How long the first start takes: ``python -m benchmarks.start [ALGORITHM …]``.

For each algorithm the seconds of processor time of a process that runs it on a few rows: from an
empty cache of kernels, from a cache in which only CASTLE was compiled, and once more; and of one
that then adds a criterion measured against a window (t, beta or disclosure), whose kernels are
compiled for such jobs only. It counts user and system time. A busy machine makes that larger, by
half and more if its cores are shared by many processes. ``--before FILE`` puts the figures that
``--json FILE`` wrote for other sources beside the new ones. ``--sources FOLDER`` measures another
checkout, such as that of an earlier commit. ``start_before.json`` has the figures of before kernels
were compiled separately, measured in this way.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.markdown import met, replace_section, table
from benchmarks.measure import machine, say
from benchmarks.workloads import ROOT
from shoal import algorithms

__all__ = ["main"]

#: The most seconds from an empty cache, and after another algorithm.
MOST, MOST_NEXT = 20.0, 5.0
#: The algorithm that others are measured after; it itself comes after the other one.
FIRST, OTHER = "castle", "fads"
#: The figures of before kernels were compiled separately.
BEFORE = Path(__file__).with_name("start_before.json")
#: Earlier sources lack this file, and have all that it imports.
RUN = ROOT / "src" / "shoal" / "cli" / "small_run.py"
WARM = (
    "import runpy, sys; path, name, promise = sys.argv[1:]; "
    "runpy.run_path(path)['run_once'](name, measured=promise == 'measured')"
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="ALGORITHM", help="by default all")
    parser.add_argument(
        "--before", type=Path, default=BEFORE, metavar="FILE", help="figures of another commit"
    )
    parser.add_argument(
        "--sources", type=Path, default=ROOT, metavar="FOLDER", help="a checkout to measure"
    )
    parser.add_argument(
        "--short", action="store_true", help="only from an empty cache, and after another"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all values here")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the results in this page")
    options = parser.parse_args()
    unknown = set(options.names) - set(algorithms.names())
    if unknown:
        parser.error(f"no such algorithm: {', '.join(sorted(unknown))}")
    before = json.loads(options.before.read_text(encoding="utf-8"))
    found = dict(
        measure(options.names or list(algorithms.names()), options.sources, is_short=options.short)
    )
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    text = report(found, before)
    print(text)
    if options.write is not None:
        replace_section(options.write, "start", text)


def measure(
    names: list[str], sources: Path = ROOT, *, is_short: bool = False
) -> Iterator[tuple[str, dict[str, float]]]:
    """Start each algorithm: cold, with all that it needs, with more promised, after another."""
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        after = {first: base / first for first in (FIRST, OTHER)}
        for first in {FIRST if name != FIRST else OTHER for name in names}:
            seconds_of(first, after[first], sources=sources)
        for name in names:
            cold = base / "cold"
            found = {"empty": seconds_of(name, cold, sources=sources)}
            if not is_short:
                found["again"] = seconds_of(name, cold, sources=sources)
                found["measured"] = seconds_of(name, cold, "measured", sources)
            shutil.rmtree(cold)
            shutil.copytree(after[FIRST if name != FIRST else OTHER], cold)
            found["next"] = seconds_of(name, cold, sources=sources)
            shutil.rmtree(cold)
            say(f"{name}: {found}")
            yield name, found


def seconds_of(name: str, cache: Path, promise: str = "basic", sources: Path = ROOT) -> float:
    """Return the processor time of a process that runs an algorithm with a cache of kernels."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(sources / "src"),
        "SHOAL_CACHE_DIR": str(cache),
        "NUMBA_DISABLE_JIT": "0",
    }
    environment.pop("SHOAL_SHARED_CACHE_DIR", None)
    command = [sys.executable, "-c", WARM, str(RUN), name, promise]
    child = subprocess.Popen(command, cwd=sources, env=environment)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{name} failed")
    return used.ru_utime + used.ru_stime


def report(found: dict[str, Any], before: dict[str, Any]) -> str:
    """Return a table of the figures, and whether the targets are met."""
    places = ("empty", "next", "again", "measured")
    head = ["algorithm", "empty cache", "after another", "all compiled", "then with t or beta"]
    if before:
        head = [
            "algorithm",
            *(f"{word}, {when}" for word in head[1:] for when in ("before", "now")),
        ]
    rows = []
    for name, now in found.items():
        then = before.get(name, {})
        cells = []
        for place in places:
            both = (then, now) if before else (now,)
            cells += [f"{figures[place]:.1f}" if place in figures else "" for figures in both]
        rows.append([name, *cells])
    most = max(found, key=lambda name: found[name]["empty"])
    slowest = max(found, key=lambda name: found[name]["next"])
    on = machine()
    return "\n".join(
        [
            f"Seconds of processor time of a process that runs an algorithm on 300 rows, on "
            f"{on['processor']}, with Python {on['python']} and Numba {on['numba']}. *After "
            f"another*: only `{FIRST}` was compiled before (for `{FIRST}` itself: `{OTHER}`). "
            "*Then with t or beta*: the first job that adds t, beta or disclosure to that; "
            "tables have it in all columns.",
            "",
            table(head, rows),
            "",
            f"From an empty cache at most {found[most]['empty']:.1f} s (`{most}`), target "
            f"{MOST:.0f} s {met(found[most]['empty'] <= MOST)}; after another algorithm at most "
            f"{found[slowest]['next']:.1f} s (`{slowest}`), target {MOST_NEXT:.0f} s "
            f"{met(found[slowest]['next'] <= MOST_NEXT)}.",
        ]
    )


if __name__ == "__main__":
    main()
