"""The text of the demo: a line per second, and the result at the end."""

from __future__ import annotations

import errno
import sys
import textwrap
from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from shoal.audit import Report
from shoal.cli.demo.live import ACCENT, BAD, FAINT, GOOD
from shoal.cli.demo.scene import Card, Followed, Scene
from shoal.cli.terminal import output_failed
from shoal.metrics import Summary

__all__ = ["print_ending", "progress_line"]

#: The largest width of lines, and the width without a terminal.
LINE_WIDTH = 100
#: The most diagnoses of a group that are listed; the rest is counted.
MOST_LISTED = 4
CONCLUSIONS = {
    "kept": "Every promise is kept.",
    "broken": "A promise is broken.",
    "unverifiable": "The audit can't tell whether every promise is kept.",
}
COLOURS = {"kept": GOOD, "broken": BAD, "unverifiable": "bold"}


def progress_line(scene: Scene) -> str:
    """Return a moment as one line.

    >>> progress_line(Scene(elapsed=2.1))
    '  2 s: 0 rows in, 0 published in 0 groups, 0 held'
    """
    figures = scene.figures
    text = (
        f"{scene.elapsed:3.0f} s: {figures.n_in:,} rows in, {figures.n_published:,} published in "
        f"{figures.n_groups:,} groups, {figures.n_held:,} held"
    )
    if figures.loss is not None and figures.smallest is not None:
        text += f"; loss {100 * figures.loss:.0f} %, smallest group {figures.smallest:,} people"
    return text


class _Console(Console):
    """A console that leaves a closed pipe to its caller, instead of exiting with 1."""

    def on_broken_pipe(self) -> None:
        """Raise what was caught."""
        raise BrokenPipeError(errno.EPIPE, "the reader closed the pipe")


def print_ending(
    summary: Summary,
    example: tuple[Followed, Card] | None,
    report: Report,
    *,
    in_colour: bool,
    problem: str | None = None,
) -> None:
    """Print the result: the figures, an example of one person, and the audit.

    A problem says why nothing was published; there is no audit to tell about then. If the reader
    of the output goes away, that ends the command as it does others.
    """
    try:
        _print_ending(summary, example, report, in_colour=in_colour, problem=problem)
        sys.stdout.flush()
    except OSError as error:
        raise output_failed(error) from None


def _print_ending(
    summary: Summary,
    example: tuple[Followed, Card] | None,
    report: Report,
    *,
    in_colour: bool,
    problem: str | None,
) -> None:
    console = _Console(
        file=sys.stdout, color_system="auto" if in_colour else None, highlight=False, markup=False
    )
    console.width = min(LINE_WIDTH, console.width) if in_colour else LINE_WIDTH
    console.print(Text("what was published", f"bold {ACCENT}"))
    for text in summary.lines():
        console.print(f"  {text}")
    if problem is not None:
        return
    if example is not None:
        console.print(Text("\none of the people", f"bold {ACCENT}"))
        console.print(*_example(*example), sep="\n")
    console.print(Text("\nthe audit", f"bold {ACCENT}"))
    console.print(*_verdicts(report, console.width), sep="\n")
    conclusion = Text(CONCLUSIONS[report.verdict], f"bold {COLOURS[report.verdict]}")
    conclusion.append(
        " The audit checked the published rows on its own, knowing the subject of each.", "not bold"
    )
    console.print(conclusion)


def _example(followed: Followed, card: Card) -> Iterator[Text]:
    *quasi, diagnosis = followed.values
    listed = ", ".join(card.sensitive[:MOST_LISTED])
    if len(card.sensitive) > MOST_LISTED:
        listed += f" and {len(card.sensitive) - MOST_LISTED} more"
    yield Text(f"  came in as   {', '.join(quasi)}: {diagnosis}")
    yield Text(f"  went out as  {', '.join(card.box)}")
    yield Text(f"               among {card.n_subjects} people with {listed}", FAINT)


def _verdicts(report: Report, width: int) -> Iterator[Text]:
    for verdict in report.verdicts:
        judged = f"  {verdict.verdict}  "
        name = f"{verdict.name}: "
        indent = " " * len(judged)
        # The name is wrapped with the rest, and cut off again to have its own colour.
        lines = textwrap.wrap(name + verdict.detail, width - len(indent))
        yield Text.assemble(
            (judged, COLOURS[verdict.verdict]), name, (lines[0][len(name) :], FAINT)
        )
        for text in lines[1:]:
            yield Text(indent + text, FAINT)
