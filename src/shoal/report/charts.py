"""Charts as inline SVG: scatter, lines, bars and histogram.

Each chart is a figure with a caption. Series differ by colour and by the shape of their marks, so
that they can be told apart without colour; where colours repeat, marks are open. The caption names
series that lie on each other. Colours are variables of the page's style. A screen
reader gets the title and ``desc``; a browser shows the figures of a mark under the pointer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass

from shoal.report.markup import Markup, joined, tag
from shoal.report.scales import Axis, Scale
from shoal.report.style import PALETTE_SIZE

__all__ = ["Axis", "Bar", "Mark", "Series", "bars", "histogram", "lines", "scatter"]

# Small enough that text of 14 units is readable on a phone.
_WIDE, _HIGH = 440, 250
_LEFT, _RIGHT, _TOP = 62, 12, 14
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


@dataclass(frozen=True, slots=True)
class Mark:
    """A point of a scatter or of a line.

    ``name`` is shown under the pointer, and beside the mark if it is on the ``front``.
    """

    x: float
    y: float
    name: str = ""
    front: bool = False


@dataclass(frozen=True, slots=True)
class Series:
    """Marks that belong together, under one name in the legend."""

    name: str
    marks: Sequence[Mark]


@dataclass(frozen=True, slots=True)
class Bar:
    """A label with a bar for each series; None where there is no value."""

    label: str
    values: Sequence[float | None]


def scatter(
    title: str, series: Sequence[Series], x: Axis, y: Axis, *, desc: str = "", note: str = ""
) -> Markup:
    """Return marks in a plane; those on the front are ringed, named and joined by a dashed line.

    The line goes by steps: between two marks of the front nothing is reached. Less is better on
    both axes.
    """
    shown, note = _finite(series, x, y, note)
    plane = _Plane(x, y, shown)
    front = sorted(
        (mark for each in shown for mark in each.marks if mark.front), key=lambda m: (m.x, m.y)
    )
    parts = [plane.frame(), _front_line(plane, front)]
    for i, each in enumerate(shown):
        parts += [_mark(plane, mark, i, f"{each.name}: ") for mark in each.marks]
    taken = [_around(*plane.place(mark)) for each in shown for mark in each.marks]
    for mark in front:
        at_x, at_y = plane.place(mark)
        parts.append(tag("circle", cx=at_x, cy=at_y, r=8.5, class_="ring"))
        if mark.name:
            text, box = _label(mark.name, at_x, at_y, taken)
            parts.append(text)
            taken.append(box)
    names = [each.name for each in shown]
    places = [(each.name, plane.place(mark)) for each in shown for mark in each.marks]
    note = f"{note} {_together(places)}".strip()
    return _figure(title, desc, note, parts, names, _mark_key, plane.bottom, front=bool(front))


def lines(
    title: str, series: Sequence[Series], x: Axis, y: Axis, *, desc: str = "", note: str = ""
) -> Markup:
    """Return lines through marks, from left to right."""
    shown, note = _finite(series, x, y, note)
    plane = _Plane(x, y, shown)
    parts = [plane.frame()]
    places = [(each.name, tuple(map(plane.place, each.marks))) for each in shown if each.marks]
    note = f"{note} {_together(places)}".strip()
    for i, each in enumerate(shown):
        marks = sorted(each.marks, key=lambda mark: mark.x)
        path = " ".join(f"{plane.x.place(m.x)},{plane.y.place(m.y)}" for m in marks)
        parts.append(
            tag("polyline", points=path, class_=f"line {_colour(i)}", stroke_dasharray=_dash(i))
        )
        parts += [_mark(plane, mark, i, f"{each.name}: ") for mark in marks]
    names = [each.name for each in shown]
    return _figure(title, desc, note, parts, names, _line_key, plane.bottom)


def bars(
    title: str,
    values: Sequence[Bar],
    axis: Axis,
    *,
    names: Sequence[str] = ("",),
    desc: str = "",
    note: str = "",
    missing: str = "none",
) -> Markup:
    """Return horizontal bars, each under its label and with its value; one colour for each name.

    ``missing`` is written where there is no value.
    """
    known = [v for bar in values for v in bar.values if v is not None and math.isfinite(v)]
    scale = Scale.of(axis, [0.0, *known], 4, _WIDE - 70)
    parts, top = [], 4.0
    for bar in values:
        parts.append(tag("text", _shortened(bar.label, 52), x=4, y=top + 14))
        top += 20
        for i, value in enumerate(bar.values):
            if value is None or not math.isfinite(value):
                parts.append(tag("text", missing, x=4, y=top + 12, class_="soft"))
            else:
                wide = scale.place(value) - scale.start
                text = axis.written(value)
                name = f"{bar.label}, {names[i]}" if names[i] else bar.label
                box = tag("title", f"{name}: {text}")
                parts.append(
                    tag(
                        "rect",
                        box,
                        x=4,
                        y=top,
                        width=round(wide, 1),
                        height=14,
                        class_=f"fill {_colour(i)}",
                    )
                )
                parts.append(tag("text", text, x=round(wide + 9, 1), y=top + 12))
            top += 17
        top += 7
    parts.append(tag("text", axis.title, x=4, y=top + 14, class_="soft"))
    legend = [name for name in names if name]
    return _figure(title, desc, note, parts, legend, _box_key, top + 20)


def histogram(
    title: str,
    edges: Sequence[float],
    counts: Sequence[tuple[str, Sequence[float | None]]],
    x: Axis,
    y: Axis,
    *,
    desc: str = "",
    note: str = "",
) -> Markup:
    """Return named counts between edges: the first as filled bars, others as outlines over it.

    A count of None is withheld: a "w" stands in its place, and the note says what it means.
    """
    known = [value for _, column in counts for value in column if value is not None]
    marks = [Mark(edge, value) for value in known or [0.0] for edge in edges]
    if any(value is None for _, column in counts for value in column):
        note = f"{note} w: withheld.".strip()
    ends = Axis(x.label, x.unit, x.lo or edges[0], x.hi or edges[-1], x.log)
    plane = _Plane(ends, y, [Series("", marks)])
    parts = [plane.frame()]
    floor = plane.y.place(plane.y.lo)
    for i, (name, column) in enumerate(counts):
        path = [f"M{plane.x.place(edges[0])},{floor}"]
        for lo, hi, value in zip(edges, edges[1:], column, strict=False):
            left, right = plane.x.place(lo), plane.x.place(hi)
            if value is None:
                path.append(f"V{floor}H{right}")
                said = tag("title", f"{name} {x.written(lo)} to {x.written(hi)}: withheld".strip())
                at = round((left + right) / 2, 1)
                parts.append(tag("text", said, "w", x=at, y=floor - 4, text_anchor="middle"))
                continue
            top = plane.y.place(value)
            path.append(f"V{top}H{right}")
            if i == 0:
                shown = f"{name} {x.written(lo)} to {x.written(hi)}: {y.written(value)}"
                parts.append(
                    tag(
                        "rect",
                        tag("title", shown.strip()),
                        x=left,
                        y=top,
                        width=max(0.8, round(right - left - 0.8, 1)),
                        height=round(floor - top, 1),
                        class_=f"fill {_colour(i)}",
                    )
                )
        if i:
            parts.append(tag("path", d="".join(path) + f"V{floor}", class_=f"line {_colour(i)}"))
    names = [name for name, _ in counts if name]
    return _figure(title, desc, note, parts, names, _histogram_key, plane.bottom)


# -- the plane and what is in it -------------------------------------------------------------------


class _Plane:
    """Two scales over a picture, from the values of series."""

    def __init__(self, x: Axis, y: Axis, series: Sequence[Series]) -> None:
        marks = [mark for each in series for mark in each.marks]
        self.x = Scale.of(x, [mark.x for mark in marks], _LEFT + 8, _WIDE - _RIGHT - 8)
        self.y = Scale.of(y, [mark.y for mark in marks], _TOP + _HIGH, _TOP + 26)
        self.bottom = _TOP + _HIGH + 44.0

    def place(self, mark: Mark) -> tuple[float, float]:
        """Return where a mark lies in the picture."""
        return self.x.place(mark.x), self.y.place(mark.y)

    def frame(self) -> Markup:
        """Return ticks, grid, axes and their titles."""
        left, right, floor = _LEFT, _WIDE - _RIGHT, _TOP + _HIGH
        parts = [tag("text", self.y.axis.title, x=2, y=_TOP)]
        for tick in self.y.ticks:
            at = self.y.place(tick)
            parts.append(tag("line", x1=left, x2=right, y1=at, y2=at, class_="grid"))
            text = self.y.axis.written(tick)
            parts.append(tag("text", text, x=left - 6, y=at + 5, text_anchor="end", class_="soft"))
        for tick in _apart(self.x):
            at = self.x.place(tick)
            parts.append(tag("line", x1=at, x2=at, y1=floor, y2=floor + 5, class_="axis"))
            text = self.x.axis.written(tick)
            parts.append(tag("text", text, x=at, y=floor + 20, text_anchor="middle", class_="soft"))
        parts.append(tag("line", x1=left, x2=right, y1=floor, y2=floor, class_="axis"))
        middle = (left + right) / 2
        parts.append(tag("text", self.x.axis.title, x=middle, y=floor + 40, text_anchor="middle"))
        return joined(*parts)


def _apart(scale: Scale) -> list[float]:
    """Return the ticks whose labels don't run into the one before."""
    shown: list[float] = []
    for tick in scale.ticks:
        room = 8 * len(scale.axis.written(tick)) + 10
        if not shown or scale.place(tick) - scale.place(shown[-1]) >= room:
            shown.append(tick)
    return shown


def _mark(plane: _Plane, mark: Mark, i: int, name: str) -> Markup:
    where = f"{plane.x.axis.title} {plane.x.axis.written(mark.x)}, "
    where += f"{plane.y.axis.title} {plane.y.axis.written(mark.y)}"
    said = f"{name}{mark.name + ', ' if mark.name else ''}{where}"
    at = f"translate({plane.x.place(mark.x)},{plane.y.place(mark.y)})"
    return tag("path", tag("title", said), d=_shape(i), transform=at, class_=_mark_class(i))


def _front_line(plane: _Plane, front: Sequence[Mark]) -> Markup:
    if len(front) < 2:
        return Markup()
    path = f"M{plane.x.place(front[0].x)},{plane.y.place(front[0].y)}"
    path += "".join(f"H{plane.x.place(m.x)}V{plane.y.place(m.y)}" for m in front[1:])
    return tag("path", d=path, class_="front")


#: A rectangle: left, top, right, bottom.
_Box = tuple[float, float, float, float]


def _around(x: float, y: float) -> _Box:
    """Return the place that a mark takes with its ring."""
    return x - 9, y - 9, x + 9, y + 9


def _label(text: str, x: float, y: float, taken: Sequence[_Box]) -> tuple[Markup, _Box]:
    """Return the name of a mark beside it, where it covers least of what is there; and its place.

    Before the mark is best: there the front has nothing.
    """
    wide = 7.6 * len(text)
    corners = [(x - 12 - wide, y + 5.0), (x - 10 - wide, y - 10), (x - 10 - wide, y + 21),
               (x - wide / 2, y - 13), (x + 12, y + 5), (x + 10, y - 10), (x + 10, y + 21),
               (x - wide / 2, y + 24)]  # fmt: skip
    boxes = [(left, low - 12, left + wide, low + 3) for left, low in corners]
    inside = [
        box
        for box in boxes
        if box[0] > _LEFT and box[2] < _WIDE and box[1] > _TOP and box[3] < _TOP + _HIGH
    ]
    best = min(inside or boxes[3:4], key=lambda box: sum(_overlap(box, other) for other in taken))
    return tag("text", text, x=round(best[0], 1), y=round(best[3] - 3, 1), class_="name"), best


def _overlap(one: _Box, other: _Box) -> float:
    """Return the area that two rectangles share."""
    wide = min(one[2], other[2]) - max(one[0], other[0])
    high = min(one[3], other[3]) - max(one[1], other[1])
    return max(0.0, wide) * max(0.0, high)


def _together(places: Iterable[tuple[str, Hashable]]) -> str:
    """Return a sentence with the names of series that hide each other, if there are any.

    >>> _together([("fads", (1, 2)), ("idea", (1, 2)), ("tide", (1, 3))])
    'At the same place: fads, idea.'
    """
    found: dict[Hashable, dict[str, None]] = {}
    for name, place in places:
        found.setdefault(place, {})[name] = None
    every = dict.fromkeys(tuple(names) for names in found.values() if len(names) > 1)
    largest = [names for names in every if not any(set(names) < set(other) for other in every)]
    return f"At the same place: {'; '.join(map(', '.join, largest))}." if largest else ""


def _finite(series: Sequence[Series], x: Axis, y: Axis, note: str) -> tuple[list[Series], str]:
    """Return what can be shown, and a note that says how many marks can't."""

    def fits(mark: Mark) -> bool:
        pairs = ((mark.x, x), (mark.y, y))
        return all(math.isfinite(value) and (value > 0 or not axis.log) for value, axis in pairs)

    shown = [Series(each.name, [mark for mark in each.marks if fits(mark)]) for each in series]
    n_all = sum(len(each.marks) for each in series)
    n_lost = n_all - sum(len(each.marks) for each in shown)
    if n_lost:
        note = f"{note} {n_lost} of {n_all} marks have no place here.".strip()
    return shown, note


# -- legend and figure -----------------------------------------------------------------------------


def _colour(i: int) -> str:
    return f"s{i % PALETTE_SIZE + 1}"


def _mark_class(i: int) -> str:
    """Return the style of a mark: open where the colour is that of an earlier series."""
    return f"mark {_colour(i)}{' open' if i // PALETTE_SIZE % 2 else ''}"


def _shape(i: int) -> str:
    return _SHAPES[i % len(_SHAPES)]


def _dash(i: int) -> str | None:
    return _DASHES[i % len(_DASHES)]


def _mark_key(i: int, x: float, y: float) -> Markup:
    return tag("path", d=_shape(i), transform=f"translate({x + 9},{y})", class_=_mark_class(i))


def _line_key(i: int, x: float, y: float) -> Markup:
    line = tag(
        "line", x1=x - 2, x2=x + 20, y1=y, y2=y,
        class_=f"line {_colour(i)}", stroke_dasharray=_dash(i),
    )  # fmt: skip
    return joined(line, _mark_key(i, x, y))


def _box_key(i: int, x: float, y: float) -> Markup:
    return tag("rect", x=x + 2, y=y - 6, width=14, height=12, class_=f"fill {_colour(i)}")


def _histogram_key(i: int, x: float, y: float) -> Markup:
    if i == 0:
        return _box_key(i, x, y)
    return tag("line", x1=x, x2=x + 18, y1=y, y2=y, class_=f"line {_colour(i)}")


def _figure(
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
        viewBox=f"0 0 {_WIDE} {round(bottom)}", role="img", aria_label=said,
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
        if x > 8 and x + wide > _WIDE:
            x, y = 8.0, y + 22
        if front and i == len(entries) - 1:
            parts.append(tag("line", x1=x - 2, x2=x + 20, y1=y, y2=y, class_="front"))
        else:
            parts.append(key(i, x, y))
        parts.append(tag("text", name, x=x + 26, y=y + 5))
        x += wide
    return joined(*parts), y + 14 if entries else top + 4


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
