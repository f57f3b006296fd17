"""The options that commands have in common, and what becomes of what they found."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.markdown import replace_parts, replace_section
from benchmarks.workloads import DATA

__all__ = ["add_common", "add_options", "add_parts", "sizes_of", "tell", "tell_parts"]

#: A data class whose ``quick`` gives tiny sizes.
Sizes = TypeVar("Sizes", bound=Any)


def add_options(parser: argparse.ArgumentParser, *, rows: str, repeats: int = 5) -> None:
    """Let a command take sizes, and places for its results and for generated files.

    ``rows`` says of what it has them, ``repeats`` how often it measures if it isn't told.
    """
    parser.add_argument("--repeats", type=int, help=f"counted repeats (default {repeats})")
    add_common(parser, rows=rows)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of generated files")


def add_common(parser: argparse.ArgumentParser, *, rows: str | None = None) -> None:
    """Let a command that measures once take a size, and places for its results."""
    if rows is not None:
        parser.add_argument("--rows", type=int, help=f"rows of {rows}")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: does it work at all?")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all values here")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the results in this page")


def add_parts(parser: argparse.ArgumentParser, parts: Iterable[str]) -> None:
    """Let a command measure some of its parts alone; the others stay on a page as they are."""
    parser.add_argument("--only", nargs="+", choices=[*parts], help="these parts alone")


def sizes_of(
    kind: type[Sizes], parser: argparse.ArgumentParser, options: argparse.Namespace
) -> Sizes:
    """The sizes that were asked for; those that make no sense are refused.

    An option that is called as one of the sizes is that size.
    """
    known = {field.name for field in fields(kind)}
    given = {
        name: value
        for name, value in vars(options).items()
        if name in known and isinstance(value, int) and not isinstance(value, bool)
    }
    for name, value in given.items():
        if value < 1:
            parser.error(f"--{name} must be at least 1")
    return replace(kind.quick() if options.quick else kind(), **given)


def tell(options: argparse.Namespace, section: str, results: dict[str, Any], report: str) -> None:
    """Print a report, and put results and report where they were asked for."""
    print(report)
    if options.json is not None:
        options.json.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    if options.write is not None:
        replace_section(options.write, section, report)


def tell_parts(
    options: argparse.Namespace, section: str, results: dict[str, Any], parts: Mapping[str, str]
) -> None:
    """Do the same with a report in parts, of which those that weren't measured stay on a page."""
    report = "\n\n".join(f"### {title}\n\n{text}" for title, text in parts.items())
    page = options.write if options.only else None
    if page is not None:
        options.write = None
    tell(options, section, results, report)
    if page is not None:
        replace_parts(page, section, parts)
