"""How figures are written for a terminal and for a notebook."""

from __future__ import annotations

import html
from collections.abc import Sequence

__all__ = ["html_lines", "percent", "short"]


def short(number: float | None) -> str:
    """Write three figures, which are enough to read; a large number keeps all of its places.

    >>> short(0.12345), short(12345.6), short(None)
    ('0.123', '12,346', 'none')
    """
    if number is None:
        return "none"
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def percent(share: float | None) -> str:
    """Write a share in percent.

    >>> percent(0.3333), percent(None)
    ('33.3 %', 'none')
    """
    return "none" if share is None else f"{100 * share:.1f} %"


def html_lines(lines: Sequence[str]) -> str:
    """Write lines as a table for a notebook: the first as its caption, then ``name: text``.

    >>> html_lines(["2 rows in", "loss: 0.1 < 0.2"])
    '<table><caption>2 rows in</caption><tr><th>loss</th><td>0.1 &lt; 0.2</td></tr></table>'
    """
    caption, *others = (html.escape(line) for line in lines)
    cells = (line.partition(": ") for line in others)
    rows = "".join(f"<tr><th>{name}</th><td>{text}</td></tr>" for name, _, text in cells)
    return f"<table><caption>{caption}</caption>{rows}</table>"
