"""How long the first start takes: ``python -m benchmarks.start [ALGORITHM …]``.

For each algorithm the seconds of processor time of a process that runs it on a few rows: from an
empty cache of kernels, from a cache in which only CASTLE was compiled, and once more; and of one
that then adds a criterion measured against a window (t, beta or disclosure), whose kernels are
compiled for such jobs only. It counts user and system time. A busy machine makes that larger, by
half and more if its cores are shared by many processes. ``--shared FOLDER`` adds the start with a
cache that ``shoal warm --into FOLDER`` made, and an empty one of the user's own.

``--json FILE`` keeps the figures, and the report has all that are there, so that a few algorithms
can be measured at a time. ``--before FILE`` puts such figures of other sources beside the new ones;
``--sources FOLDER`` measures another checkout, such as that of an earlier commit.
``start_before.json`` has the figures of before kernels were compiled separately.
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
#: What is measured, and what the table calls it.
PLACES = {
    "empty": "empty cache",
    "next": "after another",
    "again": "all compiled",
    "measured": "then with t or beta",
    "shared": "shared kernels",
}
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
    parser.add_argument("--shared", type=Path, metavar="FOLDER", help="what shoal warm --into made")
    parser.add_argument(
        "--keep", type=Path, metavar="FOLDER", help="keep the caches of the other algorithms here"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="add all values to this file")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the results in this page")
    options = parser.parse_args()
    unknown = set(options.names) - set(algorithms.names())
    if unknown:
        parser.error(f"no such algorithm: {', '.join(sorted(unknown))}")
    before = json.loads(options.before.read_text(encoding="utf-8"))
    found: dict[str, dict[str, float]] = {}
    if options.json is not None and options.json.exists():
        found = json.loads(options.json.read_text(encoding="utf-8"))
    for name, figures in measure(
        options.names or list(algorithms.names()),
        options.sources,
        shared=options.shared,
        kept=options.keep,
        is_short=options.short,
    ):
        found[name] = figures
        if options.json is not None:
            options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    found = {name: found[name] for name in algorithms.names() if name in found}
    text = report(found, before)
    print(text)
    if options.write is not None:
        replace_section(options.write, "start", text)


def measure(
    names: list[str],
    sources: Path = ROOT,
    *,
    shared: Path | None = None,
    kept: Path | None = None,
    is_short: bool = False,
) -> Iterator[tuple[str, dict[str, float]]]:
    """Start each algorithm: cold, with all that it needs, with more promised, after another."""
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        after = {first: (kept or base) / first for first in (FIRST, OTHER)}
        for first in {FIRST if name != FIRST else OTHER for name in names}:
            if not after[first].exists():
                seconds_of(first, after[first], sources=sources)
        for name in names:
            cold = base / "cold"
            found = {}
            if shared is not None:
                found["shared"] = seconds_of(name, cold, sources=sources, shared=shared)
                shutil.rmtree(cold)
            found["empty"] = seconds_of(name, cold, sources=sources)
            if not is_short:
                found["again"] = seconds_of(name, cold, sources=sources)
                found["measured"] = seconds_of(name, cold, "measured", sources)
            shutil.rmtree(cold)
            shutil.copytree(after[FIRST if name != FIRST else OTHER], cold)
            found["next"] = seconds_of(name, cold, sources=sources)
            shutil.rmtree(cold)
            say(f"{name}: {found}")
            yield name, found


def seconds_of(
    name: str,
    cache: Path,
    promise: str = "basic",
    sources: Path = ROOT,
    shared: Path | None = None,
) -> float:
    """Return the processor time of a process that runs an algorithm with a cache of kernels."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(sources / "src"),
        "SHOAL_CACHE_DIR": str(cache),
        "NUMBA_DISABLE_JIT": "0",
    }
    # Bytecode is on disk, as pip leaves it: without it each start compiles all that it imports.
    for variable in ("SHOAL_SHARED_CACHE_DIR", "PYTHONDONTWRITEBYTECODE"):
        environment.pop(variable, None)
    if shared is not None:
        environment["SHOAL_SHARED_CACHE_DIR"] = str(shared.resolve())
    command = [sys.executable, "-c", WARM, str(RUN), name, promise]
    child = subprocess.Popen(command, cwd=sources, env=environment)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{name} failed")
    return used.ru_utime + used.ru_stime


def report(found: dict[str, Any], before: dict[str, Any]) -> str:
    """Return a table of the figures, and whether the targets are met."""
    columns = [
        (place, is_before)
        for place in PLACES
        for is_before in (True, False)
        if any(place in figures for figures in (before if is_before else found).values())
    ]
    rows = [
        [
            name,
            *(
                _shown((before.get(name, {}) if is_before else now).get(place))
                for place, is_before in columns
            ),
        ]
        for name, now in found.items()
    ]
    head = [f"{PLACES[place]}, before" if is_old else PLACES[place] for place, is_old in columns]
    on = machine()
    return "\n".join(
        [
            f"Seconds of processor time of a process that runs an algorithm on 300 rows, on "
            f"{on['processor']}, with Python {on['python']} and Numba {on['numba']}. *After "
            f"another*: only `{FIRST}` was compiled before (for `{FIRST}` itself: `{OTHER}`). "
            "*Then with t or beta*: the first job that adds t, beta or disclosure to that; "
            "tables have it in all columns. *Shared kernels*: with an empty cache of the user's "
            "own, and one that `shoal warm --cpu x86-64-v3 --into` made.",
            "",
            table(["algorithm", *head], rows),
            "",
            "; ".join(
                _most(found, place, target)
                for place, target in (("empty", MOST), ("next", MOST_NEXT), ("shared", MOST_NEXT))
                if any(place in figures for figures in found.values())
            )
            + ".",
        ]
    )


def _shown(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds:.1f}"


def _most(found: dict[str, Any], place: str, target: float) -> str:
    """Return the most seconds among all algorithms, and whether the target is met."""
    seconds = {name: figures[place] for name, figures in found.items() if place in figures}
    name = max(seconds, key=lambda name: seconds[name])
    n_met = sum(one <= target for one in seconds.values())
    return (
        f"{PLACES[place]}: at most {seconds[name]:.1f} s (`{name}`), target {target:.0f} s "
        f"{met(seconds[name] <= target)} ({n_met} of {len(seconds)} algorithms meet it)"
    )


if __name__ == "__main__":
    main()
