"""What TIDE reaches beside the others: ``python -m benchmarks.tide [PARTS…] [--quick]``.

Losses are the same on any machine. Results are kept in ``bench-data/tide.json``, run by run: what
is there isn't measured again, but for the methods named by ``--again``. The page
``docs/figures/tide.md`` is made of the same by ``python -m benchmarks.figures tide``.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from benchmarks.figures.model import Figure
from benchmarks.figures.page import figure_text
from benchmarks.tide.data import names
from benchmarks.tide.page import PARTS
from benchmarks.tide.settings import Bench, Sizes
from benchmarks.workloads import DATA

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tide", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)} (all)")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: does it work at all?")
    parser.add_argument("--data-set", action="append", help="only this (default all there are)")
    parser.add_argument(
        "--again", action="append", default=[], metavar="METHOD",
        help="measure the methods again whose names begin with this, for example tide",
    )  # fmt: skip
    parser.add_argument("--data", type=Path, default=DATA, help="folder of files and results")
    options = parser.parse_args(arguments)
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"there is no {', '.join(sorted(unknown))}; choose from {', '.join(PARTS)}")
    bench = Bench(
        Sizes.quick() if options.quick else Sizes(),
        None if options.quick else options.data,
        tuple(options.data_set or names()),
        tuple(options.again),
    )
    for part in options.parts or PARTS:
        for make in PARTS[part].values():
            found = make(bench)
            print(figure_text(found) if isinstance(found, Figure) else found, end="\n\n")


if __name__ == "__main__":
    main()
