"""Draw the demo on a terminal: incoming rows, the boxes they leave in, and figures.

`view` draws one moment; it depends only on that moment and the size of the terminal.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.cells import set_cell_size
from rich.console import Group, RenderableType
from rich.layout import Layout
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from shoal.cli.demo.scene import Card, Followed, Scene

__all__ = ["Plan", "sparkline", "view"]

#: Colours of groups, of medium lightness: readable on black and on white.
PALETTE = (
    "#d7605f", "#3f8fd8", "#4fa35a", "#a779d9", "#d08030",
    "#2fa0a0", "#d863a8", "#8f9a2f", "#7d86e8", "#b57a5c",
)  # fmt: skip
ACCENT, GOOD, BAD, FAINT = "#2fa0a0", "#4fa35a", "#d7605f", "#808080"
#: The seconds for which a row that leaves is highlighted in both panes.
FRESH = 0.8
#: The widths of a pane from which there is room for one more column, and for whole words.
ROOMY, WIDE = 52, 64
BARS = "▁▂▃▄▅▆▇█"
TITLE_LINES, GAUGE_LINES, WORD_LINES = 2, 6, 3


@dataclass(frozen=True, slots=True)
class Plan:
    """The policy of the demo, its rate, and its duration.

    >>> Plan(k=20, n_diagnoses=1, delay=4000, rate=2000, seconds=20.0).words
    'Each row waits for at most 4,000 others. It leaves only in a group of at least 20 people \
who look the same.'
    """

    k: int
    n_diagnoses: int
    delay: int
    rate: int
    seconds: float

    @property
    def words(self) -> str:
        """The policy in plain words."""
        diagnoses = ""
        if self.n_diagnoses > 1:
            diagnoses = f", with {self.n_diagnoses} or more diagnoses among them"
        return (
            f"Each row waits for at most {self.delay:,} others. It leaves only in a group of at "
            f"least {self.k:,} people who look the same{diagnoses}."
        )


def sparkline(numbers: Sequence[float], width: int) -> str:
    """Draw the latest numbers as a row of bars, scaled from the least to the largest.

    >>> sparkline([9, 1, 2, 8], width=3)
    '▁▂█'
    """
    latest = numbers[-width:]
    least, largest = min(latest, default=0.0), max(latest, default=0.0)
    span = (largest - least) or 1.0
    return "".join(BARS[round((number - least) / span * (len(BARS) - 1))] for number in latest)


def view(scene: Scene, plan: Plan, width: int, height: int) -> RenderableType:
    """Draw a moment for a terminal of at least 80 by 24."""
    pane_lines = height - TITLE_LINES - GAUGE_LINES - WORD_LINES
    left = width // 2 + 2
    # Each pane has a border above and below, and a line of column names.
    incoming = _incoming(scene, left - 4, pane_lines - 3)
    outgoing = _outgoing(scene, width - left - 4, pane_lines - 3)
    layout = Layout()
    layout.split_column(
        Layout(_title(scene, plan, width), size=TITLE_LINES),
        Layout(name="panes", size=pane_lines),
        Layout(_gauges(scene, plan, width), size=GAUGE_LINES),
        Layout(_words(plan), size=WORD_LINES),
    )
    layout["panes"].split_row(
        Layout(_pane(incoming, "coming in", "a few, as they are"), size=left),
        Layout(_pane(outgoing, "going out", "in these boxes"), size=width - left),
    )
    return layout


def _title(scene: Scene, plan: Plan, width: int) -> RenderableType:
    line = Table.grid(expand=True)
    line.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    line.add_column(no_wrap=True, justify="right")
    name = Text.assemble(
        ("><(((º> shoal", f"bold {ACCENT}"), ("  a live stream, nobody in it exposed", FAINT)
    )
    left = max(0.0, plan.seconds - scene.elapsed)
    line.add_row(name, Text(f"{left:.0f} s left", FAINT))
    return Group(line, _bar(scene.elapsed / plan.seconds, width, ACCENT))


def _words(plan: Plan) -> RenderableType:
    legend = Text.assemble(
        ("○", "bold"), " waiting   ", ("●", "bold"), " published, coloured by group   ",
        ("×", "bold"), " suppressed   Ctrl-C ends it",
        style=FAINT, no_wrap=True, overflow="ellipsis",
    )  # fmt: skip
    return Group(Text(plan.words), legend)


# -- the two panes -----------------------------------------------------------------------------


def _pane(lines: Iterable[Text], title: str, hint: str) -> Panel:
    heading = Text.assemble((title, "bold"), (f"  {hint}", FAINT))
    return Panel(
        Text("\n", no_wrap=True, overflow="crop").join(lines),
        title=heading,
        title_align="left",
        border_style=FAINT,
        padding=(0, 1),
    )


def _incoming(scene: Scene, width: int, n_lines: int) -> list[Text]:
    """Return lines of the followed rows, the newest last."""
    number = _number_width(scene)
    sex_width = 6 if width >= WIDE else 3
    rest = width - sum((1, number, 3, sex_width)) - 5
    status = 13 if width >= ROOMY else 0
    rest -= status + 1 if status else 0
    diagnosis = min(19, rest * 9 // 20)
    widths = (1, number, 3, sex_width, status, rest - diagnosis, diagnosis)
    names = ("", "no", "age", "sex", "status", "occupation", "diagnosis")
    lines = [_line(names, widths, FAINT)]
    for followed in scene.came[-n_lines:]:
        mark, style = _mark(scene, followed)
        age, sex, *others = followed.values
        cells = (mark, f"{followed.number:>{number}}", age, _word(sex, sex_width), *others)
        lines.append(_line(cells, widths, style))
    return lines


def _mark(scene: Scene, followed: Followed) -> tuple[str, str]:
    """Return the mark and the style of a row: held, published, or suppressed."""
    if followed.decided_at is None:
        return "○", ""
    if followed.hue is None:
        return "×", FAINT
    return "●", _style(scene, followed.hue, followed.decided_at)


def _style(scene: Scene, hue: int, since: float) -> str:
    fresh = " reverse" if scene.elapsed - since < FRESH else ""
    return PALETTE[hue % len(PALETTE)] + fresh


def _outgoing(scene: Scene, width: int, n_lines: int) -> list[Text]:
    """Return two lines for each group of a followed row, the newest last."""
    number = _number_width(scene)
    sex_width = 6 if width >= WIDE else 3
    status = 16 if width >= ROOMY - 4 else 0
    rest = width - sum((1, number, 5, sex_width)) - 4
    rest -= status + 1 if status else 0
    widths = (1, number, 5, sex_width, status, rest)
    lines = [_line(("", "no", "age", "sex", "status", "occupation"), widths, FAINT)]
    if not scene.cards:
        lines.append(Text("nothing yet: the first are waiting", FAINT))
    for card in scene.cards[-(n_lines // 2) :]:
        age, sex, *others = card.box
        of_whom = f"{card.numbers[-1]:>{number}}"
        cells = ("●", of_whom, _short_range(age), _word(sex, sex_width), *others)
        lines.append(_line(cells, widths, _style(scene, card.hue, card.shown_at)))
        lines.append(_company(card, number + 2, width))
    return lines


def _company(card: Card, indent: int, width: int) -> Text:
    """Return a line about the people a row is published with."""
    text = Text(" " * indent)
    if card.n_subjects is None:
        text.append("joins a group already out", FAINT)
    else:
        text.append(f"{card.n_subjects} people", "bold")
        text.append(f", {len(card.sensitive)} diagnoses: {', '.join(card.sensitive)}", FAINT)
    text.truncate(width, overflow="ellipsis")
    return text


def _number_width(scene: Scene) -> int:
    return max(2, len(str(scene.came[-1].number)) if scene.came else 0)


def _line(cells: Sequence[str], widths: Sequence[int], style: str) -> Text:
    """Join cells, cut to their widths; a cell of width 0 is left out."""
    fitted = [_fit(cell, width) for cell, width in zip(cells, widths, strict=True) if width]
    return Text(" ".join(fitted), style, no_wrap=True)


def _fit(cell: str, width: int) -> str:
    cut = f"{cell[: width - 1]}…" if len(cell) > width > 3 else cell
    return set_cell_size(cut, width)


def _word(word: str, width: int) -> str:
    """Return a word, or its first letter if it doesn't fit."""
    return word if len(word) <= width else word[:1]


def _short_range(label: str) -> str:
    """Shorten a published range: ``[38, 47]`` becomes ``38–47``."""
    low, _, high = label.strip("[]").partition(", ")
    return low if low == high else f"{low}–{high}"


# -- the gauges --------------------------------------------------------------------------------


def _gauges(scene: Scene, plan: Plan, width: int) -> Panel:
    """Draw six figures, each with a bar or a curve beneath."""
    figures = scene.figures
    each = (width - 4 - 2 * 3) // 3
    waited = figures.waited_rows or 0.0
    seconds = waited / scene.rows_per_second if scene.rows_per_second else 0.0
    is_kept = figures.smallest is None or figures.smallest >= plan.k
    smallest = "–" if figures.smallest is None else f"{figures.smallest:,}"
    loss = "–" if figures.loss is None else f"{100 * figures.loss:.0f} %"
    out = f"{figures.n_published:,} out"
    if figures.n_suppressed:
        out = f"{figures.n_suppressed:,} suppressed"
    table = Table.grid(padding=(0, 3, 0, 0))
    for _ in range(3):
        table.add_column(width=each, no_wrap=True, overflow="ellipsis")
    table.add_row(
        _figure("rows/s", f"{scene.rows_per_second:,.0f}", f"{figures.n_in:,} in"),
        _figure("held", f"{figures.n_held:,}", f"of {plan.delay:,}"),
        _figure("delay", f"{seconds:.1f} s", f"{waited:,.0f} rows"),
    )
    table.add_row(
        _bar(scene.rows_per_second / plan.rate, each, ACCENT),
        _bar(figures.n_held / plan.delay, each, ACCENT),
        _bar(waited / plan.delay, each, ACCENT),
    )
    table.add_row(
        _figure("loss", loss, "of detail"),
        _figure("smallest group", smallest, f"{'≥' if is_kept else '<'} {plan.k:,}"),
        _figure("groups", f"{figures.n_groups:,}", out),
    )
    table.add_row(
        Text(sparkline(scene.losses, each), ACCENT),
        _against(figures.smallest or 0, plan.k, each, GOOD if is_kept else BAD),
        Text(sparkline(scene.groups, each), ACCENT),
    )
    return Panel(table, border_style=FAINT, padding=(0, 1))


def _figure(name: str, value: str, hint: str) -> Text:
    return Text.assemble((f"{name} ", FAINT), (value, "bold"), (f" {hint}", FAINT))


def _bar(share: float, width: int, colour: str) -> Text:
    n_full = round(min(max(share, 0.0), 1.0) * width)
    return Text.assemble(("━" * n_full, colour), ("─" * (width - n_full), FAINT))


def _against(number: int, least: int, width: int, colour: str) -> Text:
    """Draw a bar with a mark in the middle, which it must reach."""
    bar = _bar(number / (2 * least), width, colour)
    middle = width // 2
    return Text.assemble(bar[:middle], ("╋", "bold"), bar[middle + 1 :])
