"""Pictures for the documentation: SVG files in the style of the reports, light and dark."""

from __future__ import annotations

import re
from collections.abc import Iterable

from shoal.report.legend import WIDE
from shoal.report.markup import Markup, tag
from shoal.report.style import STYLE

__all__ = ["WIDE", "chart_of", "drawn"]


def drawn(title: str, desc: str, parts: Iterable[Markup], high: float, extra: str = "") -> str:
    """Return a picture of its own: parts on a ground, with the style, a title and a text.

    ``desc`` says in words what the picture shows; ``extra`` is style that only this picture needs.
    """
    svg = tag(
        "svg", tag("title", title), tag("desc", desc), *parts,
        viewBox=f"0 0 {WIDE} {round(high)}", role="img", aria_label=title,
    )  # fmt: skip
    return _framed(svg, extra)


def chart_of(page: str, title: str) -> str:
    """Return the chart of a report with this beginning of a title, as a picture of its own."""
    charts = re.findall(r"<svg .*?</svg>", page, re.S)
    return _framed(next(each for each in charts if f"<title>{title}" in each))


def _framed(svg: str, extra: str = "") -> str:
    size = re.search(r'viewBox="0 0 (\d+) (\d+)"', svg)
    assert size is not None
    wide, high = size.groups()
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="shoal" width="{wide}" height="{high}" '
        f'viewBox="0 0 {wide} {high}"><style>{STYLE}{extra}</style>'
        f'<rect width="{wide}" height="{high}" fill="var(--back)"/>{svg}</svg>\n'
    )
