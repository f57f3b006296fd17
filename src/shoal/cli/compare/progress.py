"""Show how far a grid is: a bar with the time left, on a terminal only."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from shoal.cli.terminal import COMPILING, print_message
from shoal.compare.cells import Cell
from shoal.compare.pool import Outcome
from shoal.engine.compile_watch import is_cold

__all__ = ["GridProgress", "time_left"]


class GridProgress:
    """A bar on stderr with the cells that are run, and the time left.

    Cells that can't be run don't count.
    """

    def __init__(self, cells: Sequence[Cell], jobs: int, *, quiet: bool) -> None:
        stderr: Any = sys.stderr
        self._on = stderr is not None and stderr.isatty() and not quiet
        self._quiet = quiet
        self._cells, self._jobs = cells, jobs
        self._begun: dict[int, float] = {}
        self._seconds: list[float] = []
        self._n_all, self._n_ended = len(cells), 0
        self._said: set[str] = set()
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Self:
        if self._on:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn

            self._bar = Progress(
                BarColumn(20), TextColumn("{task.completed} of {task.total} runs"),
                TextColumn("{task.description}", markup=False),
                console=Console(stderr=True), transient=True,
            )  # fmt: skip
            self._task = self._bar.add_task("", total=self._n_all)
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def begun(self, place: int) -> None:
        """Take note that the cell at this place is being run."""
        self._begun[place] = time.perf_counter()
        self._warn_of_compiling(place)
        self._draw()

    def ended(self, place: int, outcome: Outcome) -> None:
        """Take note of what came of the cell at this place."""
        if outcome.status == "unsupported":
            self._n_all -= 1
        else:
            self._n_ended += 1
        since = self._begun.pop(place, None)
        if since is not None and outcome.figures is not None:
            self._seconds.append(time.perf_counter() - since)
        self._draw()

    def _warn_of_compiling(self, place: int) -> None:
        """Say once for each algorithm that its kernels are compiled first."""
        kind = type(self._cells[place].anonymizer)
        if self._quiet or kind.name in self._said or not is_cold(kind.__module__):
            return
        self._said.add(kind.name)
        text = f"{kind.name}: {COMPILING}, up to a minute or two"
        if self._bar is None:
            print_message(text)
        else:
            self._bar.console.print(text, highlight=False, markup=False)

    def _draw(self) -> None:
        if self._bar is None:
            return
        now = [self._cells[place] for place in self._begun]
        # Short, so that the bar and the time left fit on a narrow terminal.
        running = ", ".join(dict.fromkeys(cell.anonymizer.name for cell in now))
        left = time_left(self._seconds, self._n_all - self._n_ended, self._jobs)
        self._bar.update(
            self._task, completed=self._n_ended, total=self._n_all, description=f"{left}{running}"
        )


def time_left(seconds: Sequence[float], n_left: int, jobs: int) -> str:
    """Return in words how long the rest will take, by the mean of what was run.

    >>> time_left([10.0, 20.0], n_left=12, jobs=2), time_left([], n_left=3, jobs=1)
    ('about 90 s left: ', '')
    """
    if not seconds or not n_left:
        return ""
    left = sum(seconds) / len(seconds) * n_left / min(jobs, n_left)
    return f"about {left:.0f} s left: " if left < 100 else f"about {left / 60:.0f} min left: "
