"""The plane of a chart with two axes, and the marks in it."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from shoal.report.legend import WIDE, mark_class, shape_of
from shoal.report.markup import Markup, joined, tag
from shoal.report.scales import Axis, Scale

__all__ = [
    "Mark",
    "Plane",
    "Series",
    "around",
    "drawn_mark",
    "finite",
    "front_line",
    "label_beside",
    "together",
]

HIGH = 250
LEFT, RIGHT, TOP = 62, 12, 14


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


class Plane:
    """Two scales over a picture, from the values of series."""

    def __init__(self, x: Axis, y: Axis, series: Sequence[Series]) -> None:
        marks = [mark for each in series for mark in each.marks]
        self.x = Scale.of(x, [mark.x for mark in marks], LEFT + 8, WIDE - RIGHT - 8)
        self.y = Scale.of(y, [mark.y for mark in marks], TOP + HIGH, TOP + 26)
        self.bottom = TOP + HIGH + 44.0

    def place(self, mark: Mark) -> tuple[float, float]:
        """Return where a mark lies in the picture."""
        return self.x.place(mark.x), self.y.place(mark.y)

    def frame(self) -> Markup:
        """Return ticks, grid, axes and their titles."""
        left, right, floor = LEFT, WIDE - RIGHT, TOP + HIGH
        parts = [tag("text", self.y.axis.title, x=2, y=TOP)]
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


def drawn_mark(plane: Plane, mark: Mark, i: int, name: str) -> Markup:
    """Return a mark of the i-th series, with its figures under the pointer."""
    where = f"{plane.x.axis.title} {plane.x.axis.written(mark.x)}, "
    where += f"{plane.y.axis.title} {plane.y.axis.written(mark.y)}"
    said = f"{name}{mark.name + ', ' if mark.name else ''}{where}"
    at = f"translate({plane.x.place(mark.x)},{plane.y.place(mark.y)})"
    return tag("path", tag("title", said), d=shape_of(i), transform=at, class_=mark_class(i))


def front_line(plane: Plane, front: Sequence[Mark]) -> Markup:
    """Return the steps through the marks of a front."""
    if len(front) < 2:
        return Markup()
    path = f"M{plane.x.place(front[0].x)},{plane.y.place(front[0].y)}"
    path += "".join(f"H{plane.x.place(m.x)}V{plane.y.place(m.y)}" for m in front[1:])
    return tag("path", d=path, class_="front")


#: A rectangle: left, top, right, bottom.
_Box = tuple[float, float, float, float]


def around(x: float, y: float) -> _Box:
    """Return the place that a mark takes with its ring."""
    return x - 9, y - 9, x + 9, y + 9


def label_beside(text: str, x: float, y: float, taken: Sequence[_Box]) -> tuple[Markup, _Box]:
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
        if box[0] > LEFT and box[2] < WIDE and box[1] > TOP and box[3] < TOP + HIGH
    ]
    best = min(inside or boxes[3:4], key=lambda box: sum(_overlap(box, other) for other in taken))
    return tag("text", text, x=round(best[0], 1), y=round(best[3] - 3, 1), class_="name"), best


def _overlap(one: _Box, other: _Box) -> float:
    """Return the area that two rectangles share."""
    wide = min(one[2], other[2]) - max(one[0], other[0])
    high = min(one[3], other[3]) - max(one[1], other[1])
    return max(0.0, wide) * max(0.0, high)


def together(places: Iterable[tuple[str, Hashable]]) -> str:
    """Return a sentence with the names of series that hide each other, if there are any.

    >>> together([("fads", (1, 2)), ("idea", (1, 2)), ("tide", (1, 3))])
    'At the same place: fads, idea.'
    """
    found: dict[Hashable, dict[str, None]] = {}
    for name, place in places:
        found.setdefault(place, {})[name] = None
    every = dict.fromkeys(tuple(names) for names in found.values() if len(names) > 1)
    largest = [names for names in every if not any(set(names) < set(other) for other in every)]
    return f"At the same place: {'; '.join(map(', '.join, largest))}." if largest else ""


def finite(series: Sequence[Series], x: Axis, y: Axis, note: str) -> tuple[list[Series], str]:
    """Return what can be shown, and a note that says how many marks can't."""

    def fits(mark: Mark) -> bool:
        pairs = ((mark.x, x), (mark.y, y))
        return all(math.isfinite(value) and (value > 0 or not axis.log) for value, axis in pairs)

    shown = [Series(each.name, [mark for mark in each.marks if fits(mark)]) for each in series]
    n_all = sum(len(each.marks) for each in series)
    n_lost = n_all - sum(len(each.marks) for each in shown)
    if n_lost:
        note = f"{note} {n_lost} of {n_all} marks can't be shown here.".strip()
    return shown, note
