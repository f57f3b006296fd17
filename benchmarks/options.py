"""The options that commands have in common, and what becomes of what they found."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.markdown import replace_section
from benchmarks.workloads import DATA

__all__ = ["add_options", "sizes_of", "tell"]

#: A data class whose ``quick`` gives tiny sizes.
Sizes = TypeVar("Sizes", bound=Any)


def add_options(parser: argparse.ArgumentParser, *, rows: str, repeats: int = 5) -> None:
    """Let a command take sizes, and places for its results.

    ``rows`` says of what it has them, ``repeats`` how often it measures if it isn't told.
    """
    parser.add_argument("--rows", type=int, help=f"rows of {rows}")
    parser.add_argument("--repeats", type=int, help=f"counted repeats (default {repeats})")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: does it work at all?")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all values here")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the results in this page")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of generated files")


def sizes_of(
    kind: type[Sizes], parser: argparse.ArgumentParser, options: argparse.Namespace
) -> Sizes:
    """The sizes that were asked for; those that make no sense are refused."""
    chosen = {name: getattr(options, name) for name in ("rows", "repeats")}
    given = {name: value for name, value in chosen.items() if value is not None}
    if any(value < 1 for value in given.values()):
        parser.error("--rows and --repeats must be at least 1")
    return replace(kind.quick() if options.quick else kind(), **given)


def tell(options: argparse.Namespace, section: str, results: dict[str, Any], report: str) -> None:
    """Print a report, and put results and report where they were asked for."""
    print(report)
    if options.json is not None:
        options.json.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    if options.write is not None:
        replace_section(options.write, section, report)
