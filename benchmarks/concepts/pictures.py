"""The pictures of docs/ten-people.md, from what is computed about the ten."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from benchmarks.concepts.people import (
    AGES,
    ARRIVALS,
    ATTACKS,
    DIAGNOSES,
    DISTRICTS,
    PARTS,
    PEOPLE,
    PROMISES,
    Group,
    Stay,
    diagnoses_of,
    published,
    seen_of,
    stays,
    values_at_once,
)
from benchmarks.picture import WIDE, drawn
from shoal.report.legend import mark_class, shape_of
from shoal.report.markup import Markup, joined, tag

__all__ = ["pictures"]

#: Where ages and districts are drawn.
LEFT, RIGHT, TOP, ROW = 104, WIDE - 12, 34, 38
LINE = 25
EXTRA = """
.shoal .group { fill: var(--c6); fill-opacity: .12; stroke: var(--ink); stroke-width: 1.5; }
.shoal svg text.bold { font-weight: 600; }
.shoal svg text.small { font-size: 12.5px; }
.shoal .held { fill: var(--c1); } .shoal .lost { fill: var(--bad); }
.shoal .hidden { fill: none; stroke: var(--soft); stroke-dasharray: 3 3; }
.shoal .ground { fill: var(--rule); }
.shoal .tick { stroke: var(--ink); stroke-width: 2; }
"""
DASHES = (None, "6 3", "2 3")
#: Whom the attacker looks for.
VICTIMS = ("Ben", "Hana")


def pictures() -> dict[str, str]:
    """All pictures, by the name of their file."""
    found = {
        "ten-box": _box(),
        "ten-wait": _wait(),
        "ten-z": _values(),
        "ten-seen": _seen(),
        "ten-attacks": _attacks(),
    }
    for promise in PROMISES:
        if promise != "nothing":
            found[f"ten-{promise.partition(' ')[0]}"] = _groups(promise)
    return found


# -- parts -----------------------------------------------------------------------------------------


def _text(x: float, y: float, text: str, style: str = "", anchor: str | None = None) -> Markup:
    return tag("text", text, x=x, y=y, class_=style or None, text_anchor=anchor)


def _x(age: float) -> float:
    return round(LEFT + (RIGHT - LEFT) * (age - AGES[0]) / (AGES[1] - AGES[0]), 1)


def _mark(diagnosis: str, x: float, y: float) -> Markup:
    i = DIAGNOSES.index(diagnosis)
    return tag("path", d=shape_of(i), transform=f"translate({x},{y})", class_=mark_class(i))


def _marks(counts: Mapping[str, int], x: float, y: float) -> Markup:
    """The diagnoses of a group, one mark for each person."""
    values = [value for value, n in counts.items() for _ in range(n)]
    return joined(*(_mark(value, x + 17 * i, y) for i, value in enumerate(values)))


def _legend(y: float) -> Markup:
    parts, x = [], 14.0
    for diagnosis in DIAGNOSES:
        parts += [_mark(diagnosis, x, y - 5), _text(x + 12, y, diagnosis)]
        x += 42 + 8 * len(diagnosis)
    return joined(*parts)


def _plane() -> Iterator[Markup]:
    """Ages from left to right, districts from top to bottom with their parts of the city."""
    bottom = TOP + ROW * len(DISTRICTS)
    for i in range(len(DISTRICTS) + 1):
        yield tag("line", x1=LEFT, x2=RIGHT, y1=TOP + ROW * i, y2=TOP + ROW * i, class_="grid")
    for i, district in enumerate(DISTRICTS):
        yield _text(LEFT - 8, TOP + ROW * (i + 0.5) + 5, district, anchor="end")
    for i, (part, inside) in enumerate(PARTS.items()):
        y = TOP + ROW * len(inside) * (i + 0.5)
        yield tag(
            "text", part, transform=f"translate(22,{y}) rotate(-90)", text_anchor="middle",
            class_="soft",
        )  # fmt: skip
        yield tag("path", d=f"M36,{y - ROW + 6}h-6v{2 * ROW - 12}h6", class_="axis")
    for age in range(AGES[0], AGES[1] + 1, 10):
        yield tag("line", x1=_x(age), x2=_x(age), y1=bottom, y2=bottom + 4, class_="axis")
        yield _text(_x(age), bottom + 18, str(age), "soft", "middle")
    yield _text(LEFT, TOP - 14, "age, from left to right", "soft")


def _people() -> Iterator[Markup]:
    for person in PEOPLE:
        x, y = _x(person.age), TOP + ROW * (DISTRICTS.index(person.district) + 0.5)
        yield _mark(person.diagnosis, x, y + 8)
        yield _text(x, y - 2, person.name[0], "small name", "middle")


def _outline(group: Group, i: int) -> Markup:
    """The box of a group, numbered, a little smaller than the one before."""
    (low, high), (first, last) = group.ages, group.districts
    inset = 1 + 2 * i
    x, y = _x(low) - 11, TOP + ROW * first + inset
    wide, tall = _x(high) - _x(low) + 22, ROW * (last - first + 1) - 2 * inset
    box = tag(
        "rect", x=round(x, 1), y=y, width=round(wide, 1), height=tall, rx=4, class_="group",
        stroke_dasharray=DASHES[i % len(DASHES)],
    )  # fmt: skip
    return joined(box, _text(round(x + wide + 5, 1), y + 14, str(i + 1), "bold name"))


def _label(group: Group) -> str:
    return f"{group.age}, {group.district}"


# -- pictures --------------------------------------------------------------------------------------


def _box() -> str:
    groups = published("k = 3").groups
    parts = [*_plane(), *(_outline(group, i) for i, group in enumerate(groups)), *_people()]
    y = TOP + ROW * len(DISTRICTS) + 46
    for i, group in enumerate(groups):
        parts += [
            _text(10, y, f"{i + 1}", "bold"),
            _text(28, y, _label(group)),
            _text(WIDE - 12, y, f"{len(group.people)} people, loss {group.loss:.2f}", anchor="end"),
        ]
        y += LINE
    parts.append(_legend(y))
    said = "; ".join(f"{_label(g)} with {', '.join(g.people)}" for g in groups)
    return drawn("Ten people and three boxes", said, parts, y + 14, EXTRA)


def _groups(promise: str) -> str:
    release = published(promise)
    parts = [
        *_plane(),
        *(_outline(group, i) for i, group in enumerate(release.groups)),
        *_people(),
    ]
    y = TOP + ROW * len(DISTRICTS) + 46
    parts += [_text(28, y, "everybody"), _marks(diagnoses_of(ARRIVALS), 182, y - 5)]
    for i, group in enumerate(release.groups):
        y += LINE
        parts += [
            _text(10, y, f"{i + 1}", "bold"),
            _text(28, y, _label(group)),
            _marks(group.diagnoses, 182, y - 5),
        ]
    parts.append(_legend(y + LINE + 4))
    said = "; ".join(
        f"{_label(g)}: " + ", ".join(f"{n} {value}" for value, n in g.diagnoses.items() if n)
        for g in release.groups
    )
    return drawn(f"Groups under {promise}", said, parts, y + LINE + 18, EXTRA)


def _wait() -> str:
    parts, y = [], 20.0
    for delay in (2, 6):
        found = stays(delay)
        rows = sorted(found, key=lambda stay: stay.arrived)
        loss = sum(stay.loss for stay in found) / len(found)
        parts.append(_text(8, y, f"a delay of {delay} rows: mean loss {loss:.2f}", "bold"))
        for stay in rows:
            y += 19
            parts += _stay(stay, y)
        y += 36
    parts.append(_text(8, y - 8, "a bar: from the row's arrival until it leaves", "soft small"))
    said = "; ".join(
        f"with a delay of {delay}: "
        + ", ".join(f"{s.name} came {s.arrived} left {s.left}" for s in stays(delay))
        for delay in (2, 6)
    )
    return drawn("How long rows are held, and with whom they leave", said, parts, y + 4, EXTRA)


def _stay(stay: Stay, y: float) -> Iterator[Markup]:
    unit = 25
    x = 56 + unit * stay.arrived
    yield _text(8, y, stay.name)
    style = "held" if stay.group is not None else "lost"
    wide = unit * (stay.left - stay.arrived) + 8
    yield tag("rect", x=x, y=y - 11, width=wide, height=12, rx=3, class_=style)
    end = f"group {stay.group + 1}" if stay.group is not None else "suppressed"
    yield _text(x + wide + 6, y, end, "small")


def _values() -> str:
    columns = [(8, "who"), (52, "comes with"), (172, "z = 2"), (306, "z = 3")]
    parts = [_text(x, 20, head, "bold") for x, head in columns]
    y = 20.0
    for i, name in enumerate(ARRIVALS):
        y += LINE
        person = next(person for person in PEOPLE if person.name == name)
        parts += [_text(8, y, name), _text(52, y, f"{person.district} · {person.diagnosis}")]
        for (x, _), z in zip(columns[2:], (2, 3), strict=True):
            parts += _cells(values_at_once(z)[i], x, y)
    said = "; ".join(
        f"{name}: " + ", ".join(str(values_at_once(z)[i]) for z in (2, 3))
        for i, name in enumerate(ARRIVALS)
    )
    return drawn("Values that are published at once", said, parts, y + 14, EXTRA)


def _cells(cells: Sequence[str | None], x: float, y: float) -> Iterator[Markup]:
    for i, cell in enumerate(cells):
        if cell is None:
            yield tag("rect", x=x + 70 * i, y=y - 12, width=48, height=15, rx=3, class_="hidden")
        else:
            yield _text(x + 70 * i, y, cell)


def _seen() -> str:
    parts, y = [], 20.0
    for name in VICTIMS:
        person = next(person for person in PEOPLE if person.name == name)
        head = f"knows that {name} is {person.age} and lives in {person.district}"
        parts.append(_text(8, y, head, "bold"))
        for promise in PROMISES:
            group = seen_of(name, promise)
            y += LINE
            parts += [
                _text(8, y, promise),
                _text(86, y, _label(group)),
                _marks(group.diagnoses, 240, y - 5),
            ]
        y += 40
    parts.append(_legend(y - 4))
    said = "; ".join(
        f"{name}, {promise}: {_label(seen_of(name, promise))}, "
        + " ".join(f"{n} {value}" for value, n in seen_of(name, promise).diagnoses.items() if n)
        for name in VICTIMS
        for promise in PROMISES
    )
    return drawn("What an attacker sees of two people", said, parts, y + 10, EXTRA)


def _attacks() -> str:
    first, wide = 106, 67
    parts = [
        _text(first + wide * i, 18, promise, "bold small") for i, promise in enumerate(PROMISES)
    ]
    y, said = 14.0, []
    for name in ATTACKS:
        y += 34
        parts.append(_text(8, y, name))
        for i, promise in enumerate(PROMISES):
            result, x = published(promise).attacks[name], first + wide * i
            if result.success is None or not result.success.attempts:
                parts.append(_text(x, y, "–", "soft"))
                continue
            share = result.success.successes / result.success.attempts
            full = wide - 12
            parts += [
                tag("rect", x=x, y=y + 5, width=full, height=6, class_="ground"),
                tag("rect", x=x, y=y + 5, width=round(full * share, 1), height=6, class_="held"),
            ]
            if result.baseline:
                at = round(x + full * result.baseline, 1)
                parts.append(tag("line", x1=at, x2=at, y1=y + 2, y2=y + 14, class_="tick"))
            told = f"{result.success.successes:.2g} of {result.success.attempts}"
            parts.append(_text(x, y, told, "small"))
            said.append(f"{name}, {promise}: {told}")
    parts.append(
        _text(8, y + 36, "bar: successes; upright line: guessing without the groups", "soft small")
    )
    return drawn("What attacks achieve", "; ".join(said), parts, y + 48, EXTRA)
