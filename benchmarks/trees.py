"""How fast the R-tree family is: ``python -m benchmarks.trees [--quick] [--only PART ...]``.

The family counts delay as loss: min-delay, tree-basic, tree-density and tree-full. Five parts:
``files``, how much slower than a run that decides nothing; ``engines``, what holding costs beside
density alone; ``twins``, how much faster than the naive twins; ``lengths``, is the time linear in
the rows; ``memory``, does ten times the stream take no more of it. Targets are reported as met or
not, and never enforced: a busy machine isn't a bug.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.figures.trees.data import NEEDS
from benchmarks.machine_use import Use
from benchmarks.markdown import parts
from benchmarks.measure import machine, say
from benchmarks.options import add_options, add_parts, sizes_of, tell_parts
from benchmarks.trees_runs import Sizes, engines, files, lengths, memory
from benchmarks.trees_text import SECTIONS
from benchmarks.trees_twins import twins
from benchmarks.workloads import ADULT

__all__ = ["PARTS", "main"]

#: What can be measured by itself, and the files that it needs.
PARTS: dict[str, tuple[Callable[[Sizes, Path], Any], tuple[Path, ...]]] = {
    "files": (files, NEEDS),
    "engines": (engines, NEEDS),
    "twins": (twins, NEEDS),
    "lengths": (lengths, NEEDS),
    "memory": (memory, (ADULT,)),
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.trees", description=__doc__)
    add_options(parser, rows="government employees (default 300,000)", repeats=Sizes().repeats)
    add_parts(parser, PARTS)
    options = parser.parse_args(arguments)
    sizes = sizes_of(Sizes, parser, options)
    results: dict[str, Any] = {"machine": machine(), "others": {}}
    for part in options.only or PARTS:
        measure, needs = PARTS[part]
        if missing := [path.name for path in needs if not path.exists()]:
            say(f"R-trees, {part}: left out, for ../shared/data has no {', '.join(missing)}")
            continue
        say(f"R-trees: {part}")
        use = Use.now()
        results[part] = measure(sizes, options.data)
        results["others"][part] = use.since().others
    tell_parts(options, "trees", results, parts(results, SECTIONS))


if __name__ == "__main__":
    main()
