"""Tables as Markdown that reads well in a terminal too, and pages with a part that is generated."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

__all__ = ["replace_section", "table"]


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table; all columns but the first are set to the right.

    >>> print(table(["k", "loss"], [["10", 0.25]]))
    | k  | loss |
    |----|-----:|
    | 10 | 0.25 |
    """
    lines = [[str(cell) for cell in line] for line in (head, *rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rule = ["-" * (widths[0] + 2), *("-" * (width + 1) + ":" for width in widths[1:])]
    return "\n".join(
        [
            _line(lines[0], widths),
            f"|{'|'.join(rule)}|",
            *(_line(line, widths) for line in lines[1:]),
        ]
    )


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    right = [cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True)]
    return f"| {' | '.join([cells[0].ljust(widths[0]), *right])} |"


def replace_section(path: Path, name: str, text: str) -> None:
    """Put text between the markers ``<!-- name:begin -->`` and ``<!-- name:end -->`` of a page."""
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    page = path.read_text(encoding="utf-8")
    if page.count(begin) != 1 or page.count(end) != 1 or page.index(begin) > page.index(end):
        raise SystemExit(f"{path}: has no lines '{begin}' and '{end}', in this order. Add them.")
    before, after = page.partition(begin)[0], page.partition(end)[2]
    path.write_text(f"{before}{begin}\n\n{text.strip()}\n\n{end}{after}", encoding="utf-8")
