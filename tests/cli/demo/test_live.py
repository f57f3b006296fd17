import io

import pytest
from rich.console import Console

from shoal.cli.demo.live import FRESH, PALETTE, Plan, sparkline, view
from shoal.cli.demo.scene import Card, Figures, Followed, Scene

PLAN = Plan(k=20, n_diagnoses=3, delay=4000, rate=2000, seconds=20.0)
GAUGES = ("rows/s 2,003", "held 1,777", "delay 0.9 s", "loss 22 %", "smallest group 21 ≥ 20",
          "groups 412 18,253 out")  # fmt: skip


def followed(number: int, group: int | None, at: float | None) -> Followed:
    values = ("43", "Female", "Formerly married", "Construction labourer", "Generalized anxiety")
    return Followed(number, values, group, at)


def a_scene(n: int = 100) -> Scene:
    """A busy moment: more rows and cards than any terminal has lines."""
    came = [followed(i, i if i < n - 3 else None, 1.0 if i < n - 2 else None) for i in range(n)]
    box = ("[38, 47]", "Female", "Formerly married", "Clerical and sales")
    diagnoses = ("Asthma", "Gout", "Stroke", "Generalized anxiety", "Atrial fibrillation")
    cards = [Card(i, box, diagnoses, 23 if i % 2 else None, (i,), 1.0) for i in range(n)]
    figures = Figures(20_030, 18_253, 0, 1777, 412, 21, 0.22, 1800.0)
    losses = tuple(0.2 + i % 7 / 100 for i in range(90))
    return Scene(10.0, figures, 2003.0, tuple(came), tuple(cards), losses, tuple(range(90)))


def draw(scene: Scene, width: int, height: int, *, styles: bool = False) -> str:
    console = Console(
        width=width, height=height, record=True, file=io.StringIO(), color_system="truecolor",
        force_terminal=True,
    )  # fmt: skip
    console.print(view(scene, PLAN, width, height))
    return console.export_text(styles=styles)


@pytest.mark.parametrize(("width", "height"), [(80, 24), (81, 25), (100, 30), (160, 50), (240, 70)])
@pytest.mark.parametrize("scene", [Scene(0.0), a_scene()], ids=["at the start", "busy"])
def test_it_fits_the_terminal(scene, width, height):
    lines = draw(scene, width, height).splitlines()
    assert len(lines) == height
    assert all(len(line) <= width for line in lines)


@pytest.mark.parametrize(("width", "height"), [(80, 24), (160, 50)])
def test_everything_is_there(width, height):
    text = draw(a_scene(), width, height)
    for gauge in GAUGES:
        assert gauge in text
    assert "10 s left" in text
    assert " ".join(PLAN.words.split()) in " ".join(text.split())
    assert "coming in" in text
    assert "going out" in text
    assert "38–47" in text
    assert "23 people, 5 diagnoses: " in text
    assert "joins a group already out" in text


def test_before_the_first_group_it_says_why_nothing_is_there():
    assert "nothing yet" in draw(Scene(1.0, came=(followed(1, None, None),)), 80, 24)
    assert "nothing yet" not in draw(a_scene(), 80, 24)


def test_the_newest_are_shown():
    text = draw(a_scene(), 80, 24)
    assert "○ 99" in text
    assert "× 97" in text
    assert "● 96" in text
    assert "● 80" not in text


def test_a_wide_terminal_shows_more_columns():
    assert "status" not in draw(a_scene(), 80, 24)
    text = draw(a_scene(), 160, 50)
    assert "status" in text
    assert "Formerly married" in text
    assert "Generalized anxiety" in text


def test_a_row_and_its_group_have_one_colour():
    scene = Scene(9.0, came=(followed(1, 3, 1.0),), cards=a_scene().cards[3:4])
    red, green, blue = (int(PALETTE[3][i : i + 2], 16) for i in (1, 3, 5))
    assert draw(scene, 80, 24, styles=True).count(f"38;2;{red};{green};{blue}m●") == 2


@pytest.mark.parametrize(("since", "expected"), [(FRESH / 2, True), (FRESH * 2, False)])
def test_a_row_that_has_just_left_is_marked(since, expected):
    scene = Scene(5.0, came=(followed(1, 3, 5.0 - since),))
    assert ("\x1b[7;" in draw(scene, 80, 24, styles=True)) is expected


@pytest.mark.parametrize(
    ("numbers", "drawn"), [([], ""), ([5.0, 5.0], "▁▁"), ([0, 7, 3.5, 1], "▁█▅▂")]
)
def test_sparkline(numbers, drawn):
    assert sparkline(numbers, 10) == drawn
