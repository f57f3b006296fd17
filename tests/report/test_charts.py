"""Charts show all values, say their units, and escape every text."""

import math
import xml.etree.ElementTree as ET

import pytest

from shoal.report.charts import Axis, Bar, Mark, Series, bars, histogram, lines, scatter
from shoal.report.scales import Scale

EVIL = '</svg><script>alert("1")</script>'


def parsed(figure: str) -> ET.Element:
    return ET.fromstring(figure)


def texts(figure: str) -> list[str]:
    return [element.text or "" for element in parsed(figure).iter("text")]


def of_class(figure: str, name: str) -> list[ET.Element]:
    return [each for each in parsed(figure).iter() if name in each.get("class", "").split()]


TWO = [
    Series("castle", [Mark(0.4, 0.1, "k = 10"), Mark(0.6, 0.05, "k = 20")]),
    Series("tide", [Mark(0.2, 0.2, "k = 5", front=True), Mark(0.5, 0.05, "k = 20", front=True)]),
]


def every_chart(name: str = "a") -> list[str]:
    x, y = Axis(name, name), Axis(name, name)
    two = [Series(name, [Mark(1, 2, name, front=True)]), Series(name, [Mark(2, 3, name)])]
    return [
        scatter(name, two, x, y, desc=name, note=name),
        lines(name, two, x, y, desc=name, note=name),
        bars(name, [Bar(name, [1.0, None])], x, names=[name, name], desc=name, note=name),
        histogram(name, [0, 1, 2], [(name, [1, 2]), (name, [2, 1])], x, y, desc=name, note=name),
    ]


@pytest.mark.parametrize("figure", every_chart())
def test_a_chart_has_a_title_and_a_description_for_screen_readers(figure: str) -> None:
    svg = parsed(figure).find("svg")
    assert svg is not None
    assert svg.get("role") == "img"
    assert svg.get("aria-label")
    assert [child.tag for child in svg][:2] == ["title", "desc"]


@pytest.mark.parametrize("figure", every_chart(EVIL))
def test_every_text_is_escaped(figure: str) -> None:
    assert "<script" not in figure
    assert not list(parsed(figure).iter("script"))


def test_a_scatter_marks_each_point_by_shape_and_colour_and_rings_the_front() -> None:
    figure = scatter("Loss and risk", TWO, Axis("loss"), Axis("risk", "%"))
    marks = [each for each in of_class(figure, "mark") if each.find("title") is not None]
    assert len(marks) == 4
    assert len({mark.get("d") for mark in marks}) == 2
    assert len({mark.get("class") for mark in marks}) == 2
    assert len(of_class(figure, "ring")) == 2
    assert {"loss", "risk (%)", "castle", "tide", "Pareto front", "k = 5"} <= set(texts(figure))
    assert "20 %" in texts(figure)


def test_every_series_looks_different_in_colour_shape_and_dash() -> None:
    many = [Series(f"a{i}", [Mark(i, i), Mark(i + 1, i)]) for i in range(14)]
    for figure in (
        scatter("t", many, Axis("x"), Axis("y")),
        lines("t", many, Axis("x"), Axis("y")),
    ):
        marks = [each for each in of_class(figure, "mark") if each.find("title") is not None]
        assert len({(mark.get("class"), mark.get("d")) for mark in marks}) == 14
        assert all(mark.get("stroke-dasharray") is None for mark in marks)
        first, seventh = marks[0], marks[12]
        assert "s1" in (first.get("class") or "")
        assert seventh.get("class") == f"{first.get('class')} open"
    assert "At the same place" not in figure


def test_the_caption_names_series_that_hide_each_other() -> None:
    same = [Mark(1, 1), Mark(2, 2)]
    some = [Series("fads", same), Series("idea", same), Series("tide", [Mark(1, 1), Mark(2, 1)])]
    assert "At the same place: fads, idea, tide." in scatter("t", some, Axis("x"), Axis("y"))
    assert "At the same place: fads, idea.<" in lines("t", some, Axis("x"), Axis("y"))


def test_the_name_of_a_mark_is_beside_all_marks() -> None:
    near = [Mark(x / 100, 0.5) for x in range(30, 50, 2)]
    figure = scatter("t", [Series("a", [Mark(0.5, 0.5, "k = 3", front=True)]), Series("b", near)],
                     Axis("x", lo=0.0, hi=1.0), Axis("y", lo=0.0, hi=1.0))  # fmt: skip
    (name,) = of_class(figure, "name")
    left, low = float(name.get("x", "")), float(name.get("y", ""))
    for mark in of_class(figure, "mark"):
        if mark.find("title") is not None:
            x, y = map(float, mark.get("transform", "")[10:-1].split(","))
            beside = x + 6 < left or x - 6 > left + 38
            assert beside or y + 6 < low - 12 or y - 6 > low + 3


def test_marks_without_a_place_are_counted() -> None:
    bad = [Series("a", [Mark(0.0, 1.0), Mark(1.0, math.inf), Mark(2.0, 2.0)])]
    figure = lines("t", bad, Axis("k", log=True), Axis("loss"))
    assert len([each for each in of_class(figure, "mark") if each.find("title") is not None]) == 1
    assert "2 of 3 marks can't be shown here." in figure


def test_bars_are_as_long_as_their_values() -> None:
    figure = bars("t", [Bar("age", [0.5]), Bar("sex", [1.0]), Bar("town", [0.0])], Axis("loss"))
    half, whole, none = (float(each.get("width", "")) for each in of_class(figure, "fill"))
    assert whole == pytest.approx(2 * half)
    assert none == 0
    assert {"age", "sex", "0.5", "1"} <= set(texts(figure))


def test_a_histogram_is_as_high_as_its_counts() -> None:
    figure = histogram("t", [5, 6, 8], [("", [10, 20])], Axis("people"), Axis("groups"))
    one, two = (float(each.get("height", "")) for each in of_class(figure, "fill"))
    assert two == pytest.approx(2 * one)


def test_a_histogram_says_what_is_withheld_and_draws_no_bar() -> None:
    counts = [("original", [0.5, None]), ("published", [0.5, 0.5])]
    figure = histogram("t", [5, 6, 8], counts, Axis("age"), Axis("rows", "%", lo=0))
    assert len(of_class(figure, "fill")) == 2  # a bar, and the legend
    assert "original 6 to 8: withheld" in figure
    assert "w: withheld." in figure
    assert histogram("t", [5, 6], [("", [None])], Axis("age"), Axis("rows", lo=0))


@pytest.mark.parametrize(
    ("axis", "values", "ticks"),
    [
        (Axis(""), [0.1, 0.93], (0, 0.2, 0.4, 0.6, 0.8, 1)),
        (Axis(""), [990, 1000], (990, 992, 994, 996, 998, 1000)),
        (Axis(""), [-3, 5], (-4, -2, 0, 2, 4, 6)),
        (Axis("", log=True), [5, 50], (5, 10, 20, 50)),
        (Axis("", log=True), [1, 1e5], (1, 10, 100, 1e3, 1e4, 1e5)),
        (Axis(""), [7], (0, 2, 4, 6, 8)),
        (Axis(""), [], (0, 0.2, 0.4, 0.6, 0.8, 1)),
    ],
)
def test_ticks_are_round_and_enclose_the_values(
    axis: Axis, values: list[float], ticks: tuple[float, ...]
) -> None:
    assert Scale.of(axis, values, 0, 100).ticks == pytest.approx(ticks)
