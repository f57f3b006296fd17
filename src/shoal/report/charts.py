"""Charts as inline SVG: scatter, lines, bars and histogram.

Each chart is a figure with a caption. Series differ by colour and by the shape of their marks, so
that they can be told apart without colour; where colours repeat, marks are open. The caption names
series that lie on each other. Colours are variables of the page's style. A screen
reader gets the title and ``desc``; a browser shows the figures of a mark under the pointer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from shoal.report.legend import (
    WIDE,
    box_key,
    colour_of,
    dash_of,
    figure,
    histogram_key,
    line_key,
    mark_key,
    shortened,
)
from shoal.report.markup import Markup, tag
from shoal.report.plane import (
    Mark,
    Plane,
    Series,
    around,
    drawn_mark,
    finite,
    front_line,
    label_beside,
    together,
)
from shoal.report.scales import Axis, Scale

__all__ = ["Axis", "Bar", "Mark", "Series", "bars", "histogram", "lines", "scatter"]


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
    shown, note = finite(series, x, y, note)
    plane = Plane(x, y, shown)
    front = sorted(
        (mark for each in shown for mark in each.marks if mark.front), key=lambda m: (m.x, m.y)
    )
    parts = [plane.frame(), front_line(plane, front)]
    for i, each in enumerate(shown):
        parts += [drawn_mark(plane, mark, i, f"{each.name}: ") for mark in each.marks]
    taken = [around(*plane.place(mark)) for each in shown for mark in each.marks]
    for mark in front:
        at_x, at_y = plane.place(mark)
        parts.append(tag("circle", cx=at_x, cy=at_y, r=8.5, class_="ring"))
        if mark.name:
            text, box = label_beside(mark.name, at_x, at_y, taken)
            parts.append(text)
            taken.append(box)
    names = [each.name for each in shown]
    places = [(each.name, plane.place(mark)) for each in shown for mark in each.marks]
    note = f"{note} {together(places)}".strip()
    return figure(title, desc, note, parts, names, mark_key, plane.bottom, front=bool(front))


def lines(
    title: str, series: Sequence[Series], x: Axis, y: Axis, *, desc: str = "", note: str = ""
) -> Markup:
    """Return lines through marks, from left to right."""
    shown, note = finite(series, x, y, note)
    plane = Plane(x, y, shown)
    parts = [plane.frame()]
    places = [(each.name, tuple(map(plane.place, each.marks))) for each in shown if each.marks]
    note = f"{note} {together(places)}".strip()
    for i, each in enumerate(shown):
        marks = sorted(each.marks, key=lambda mark: mark.x)
        path = " ".join(f"{plane.x.place(m.x)},{plane.y.place(m.y)}" for m in marks)
        parts.append(
            tag("polyline", points=path, class_=f"line {colour_of(i)}", stroke_dasharray=dash_of(i))
        )
        parts += [drawn_mark(plane, mark, i, f"{each.name}: ") for mark in marks]
    names = [each.name for each in shown]
    return figure(title, desc, note, parts, names, line_key, plane.bottom)


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
    scale = Scale.of(axis, [0.0, *known], 4, WIDE - 70)
    parts, top = [], 4.0
    for bar in values:
        parts.append(tag("text", shortened(bar.label, 52), x=4, y=top + 14))
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
                        class_=f"fill {colour_of(i)}",
                    )
                )
                parts.append(tag("text", text, x=round(wide + 9, 1), y=top + 12))
            top += 17
        top += 7
    parts.append(tag("text", axis.title, x=4, y=top + 14, class_="soft"))
    legend = [name for name in names if name]
    return figure(title, desc, note, parts, legend, box_key, top + 20)


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
    plane = Plane(ends, y, [Series("", marks)])
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
                        class_=f"fill {colour_of(i)}",
                    )
                )
        if i:
            parts.append(tag("path", d="".join(path) + f"V{floor}", class_=f"line {colour_of(i)}"))
    names = [name for name, _ in counts if name]
    return figure(title, desc, note, parts, names, histogram_key, plane.bottom)
