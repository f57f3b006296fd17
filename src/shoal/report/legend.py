"""How the series of a chart look, its legend, and the figure around it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from shoal.report.markup import Markup, joined, tag
from shoal.report.style import PALETTE_SIZE

__all__ = [
    "WIDE",
    "box_key",
    "colour_of",
    "dash_of",
    "figure",
    "histogram_key",
    "line_key",
    "mark_class",
    "mark_key",
    "shape_of",
    "shortened",
]

#: The width of a picture: small enough that text of 14 units is readable on a phone.
WIDE = 440
_SHAPES = (
    "M-5,0a5,5 0 1,0 10,0a5,5 0 1,0 -10,0z",  # circle
    "M-4.5,-4.5h9v9h-9z",  # square
    "M0,-6L5.5,4.5H-5.5z",  # triangle
    "M0,-6L6,0L0,6L-6,0z",  # diamond
    "M0,6L5.5,-4.5H-5.5z",  # triangle, upside down
    "M-6,-2h4v-4h4v4h4v4h-4v4h-4v-4h-4z",  # plus
    "M-5.5,-5.5H5.5L-5.5,5.5H5.5z",  # hourglass
)
_DASHES = (None, "7 3", "2 3", "9 3 2 3", "14 4")


def colour_of(i: int) -> str:
    """Return the class that colours a series."""
    return f"s{i % PALETTE_SIZE + 1}"


def mark_class(i: int) -> str:
    """Return the style of a mark: open where the colour is that of an earlier series."""
    return f"mark {colour_of(i)}{' open' if i // PALETTE_SIZE % 2 else ''}"


def shape_of(i: int) -> str:
    """Return the path of the marks of a series."""
    return _SHAPES[i % len(_SHAPES)]


def dash_of(i: int) -> str | None:
    """Return how the line of a series is dashed, if it is."""
    return _DASHES[i % len(_DASHES)]


def mark_key(i: int, x: float, y: float) -> Markup:
    """Return the mark of a series, for a legend."""
    return tag("path", d=shape_of(i), transform=f"translate({x + 9},{y})", class_=mark_class(i))


def line_key(i: int, x: float, y: float) -> Markup:
    """Return a piece of the line of a series with a mark, for a legend."""
    line = tag(
        "line", x1=x - 2, x2=x + 20, y1=y, y2=y,
        class_=f"line {colour_of(i)}", stroke_dasharray=dash_of(i),
    )  # fmt: skip
    return joined(line, mark_key(i, x, y))


def box_key(i: int, x: float, y: float) -> Markup:
    """Return a small box in the colour of a series, for a legend."""
    return tag("rect", x=x + 2, y=y - 6, width=14, height=12, class_=f"fill {colour_of(i)}")


def histogram_key(i: int, x: float, y: float) -> Markup:
    """Return a box for the first series, which is filled, and a line for others."""
    if i == 0:
        return box_key(i, x, y)
    return tag("line", x1=x, x2=x + 18, y1=y, y2=y, class_=f"line {colour_of(i)}")


def figure(
    title: str,
    desc: str,
    note: str,
    parts: Iterable[Markup],
    names: Sequence[str],
    key: Callable[[int, float, float], Markup],
    top: float,
    *,
    front: bool = False,
) -> Markup:
    """Return a figure with its caption, and a legend below the picture."""
    keys, bottom = _legend(names, key, top, front=front)
    said = ". ".join(text.rstrip(".") for text in (title, desc) if text)
    svg = tag(
        "svg", tag("title", title), tag("desc", desc or title), *parts, keys,
        viewBox=f"0 0 {WIDE} {round(bottom)}", role="img", aria_label=said,
    )  # fmt: skip
    caption = tag("figcaption", title, *([tag("span", note)] if note else []))
    return tag("figure", caption, svg, class_="chart")


def _legend(
    names: Sequence[str], key: Callable[[int, float, float], Markup], top: float, *, front: bool
) -> tuple[Markup, float]:
    entries = [*names] if len(names) > 1 else []
    if front:
        entries.append("Pareto front")
    parts, x, y = [], 8.0, top + 16
    for i, name in enumerate(entries):
        wide = 34 + 7.6 * len(name)
        if x > 8 and x + wide > WIDE:
            x, y = 8.0, y + 22
        if front and i == len(entries) - 1:
            parts.append(tag("line", x1=x - 2, x2=x + 20, y1=y, y2=y, class_="front"))
        else:
            parts.append(key(i, x, y))
        parts.append(tag("text", name, x=x + 26, y=y + 5))
        x += wide
    return joined(*parts), y + 14 if entries else top + 4


def shortened(text: str, most: int) -> str:
    """Return a text of at most so many characters."""
    return text if len(text) <= most else text[: most - 1] + "…"
