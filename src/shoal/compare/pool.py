"""Run many cells, in this process or in several; a cell that fails doesn't end the others."""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Literal, Protocol

from shoal.algorithms.registry import check_support
from shoal.compare.cells import Cell
from shoal.compare.measure import Figures, Rows, measure
from shoal.errors import JobError, ShoalError

__all__ = ["Outcome", "Status", "Watch", "refusal_of", "run_cells"]

Status = Literal["done", "unsupported", "failed", "not run"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a cell: its figures, or why there are none."""

    status: Status
    figures: Figures | None = None
    reason: str = ""
    cached: bool = False


class Watch(Protocol):
    """What is told about the progress of a grid."""

    def begun(self, place: int) -> None:
        """Take note that the cell at this place is being run."""

    def ended(self, place: int, outcome: Outcome) -> None:
        """Take note of what came of the cell at this place."""


def run_cells(
    rows: Rows, cells: Sequence[tuple[int, Cell]], watch: Watch, *, jobs: int = 1
) -> None:
    """Run cells, each with its place in the grid, and tell what came of each.

    Parameters
    ----------
    rows
        The data.
    cells
        What to run.
    watch
        Is told of the beginning and the end of each.
    jobs
        In how many processes; 1: in this one.
    """
    if jobs == 1 or len(cells) < 2:
        for place, cell in cells:
            watch.begun(place)
            watch.ended(place, _attempt(rows, cell))
        return
    waiting = list(reversed(cells))
    workers: list[_Worker] = []
    try:
        with _ctrl_c_held():
            workers += [_Worker(rows) for _ in range(min(jobs, len(cells)))]
        for worker in workers:
            worker.give(waiting, watch.begun)
        while busy := [worker for worker in workers if worker.place is not None]:
            ready = wait([worker.connection for worker in busy])
            for i, worker in enumerate(workers):
                if worker.place is None or worker.connection not in ready:
                    continue
                place, outcome = worker.place, worker.take()
                if outcome is None:
                    # It was killed, most likely for its memory: another one goes on.
                    worker.end()
                    with _ctrl_c_held():
                        workers[i] = worker = _Worker(rows)
                    outcome = Outcome("failed", reason=_KILLED)
                watch.ended(place, outcome)
                worker.give(waiting, watch.begun)
    finally:
        for worker in workers:
            worker.end()


_KILLED = "its process was killed, maybe because the memory isn't enough; try a smaller sample"


def refusal_of(cell: Cell) -> Outcome | None:
    """Return why a cell can't be run, as far as that shows without data."""
    try:
        check_support(cell.anonymizer, cell.policy)
    except JobError as error:
        return Outcome("unsupported", reason="; ".join(_words(error)))
    return None


def _attempt(rows: Rows, cell: Cell) -> Outcome:
    """Measure a cell; turn failures into reasons, which have no value of a person."""
    try:
        return Outcome("done", measure(rows, cell))
    except JobError as error:
        return Outcome("unsupported", reason="; ".join(_words(error)))
    except ShoalError as error:
        return Outcome("failed", reason=str(error))
    except MemoryError:
        return Outcome("failed", reason="the memory isn't enough; try a smaller sample")
    except Exception as error:
        # Its message may quote the data.
        return Outcome("failed", reason=f"{type(error).__name__}: a bug in Shoal, please report it")


def _words(error: JobError) -> list[str]:
    """Return the problems of a job without their keys, which the caller hasn't written."""
    return [
        f"{problem.what}. {problem.fix or ''}".strip().rstrip(".") for problem in error.problems
    ]


@contextlib.contextmanager
def _ctrl_c_held() -> Iterator[None]:
    """Hold Ctrl-C back while processes are started; this one gets it at the end.

    They inherit the mask, and so never see it: not even while Python starts and they import.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    # Its own start would let Ctrl-C through again.
    resource_tracker.ensure_running()
    came: list[int] = []
    handler = signal.getsignal(signal.SIGINT)
    # Threads without the mask take the signal, too; the main thread then handles it.
    held = handler is not None and threading.current_thread() is threading.main_thread()
    if held:
        signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if held:
            signal.signal(signal.SIGINT, handler)
        if came:
            signal.raise_signal(signal.SIGINT)


class _Worker:
    """A process that measures one cell after another."""

    def __init__(self, rows: Rows) -> None:
        # A forked process would share locks of threads that aren't there any more.
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.place: int | None = None
        self._process = context.Process(target=_serve, args=(theirs, rows), daemon=True)
        self._process.start()
        theirs.close()

    def give(self, waiting: list[tuple[int, Cell]], begun: Callable[[int], None]) -> None:
        """Give it the next cell, if there is one."""
        self.place = None
        if waiting:
            self.place, cell = waiting.pop()
            begun(self.place)
            # If the process has died already, that shows when its answer is asked for.
            with contextlib.suppress(OSError):
                self.connection.send(cell)

    def take(self) -> Outcome | None:
        """Return what came of its cell, or None if the process has ended."""
        try:
            outcome: Outcome = self.connection.recv()
        except (EOFError, OSError):
            return None
        return outcome

    def end(self) -> None:
        """End the process: it writes nothing that could be left half done."""
        self.connection.close()
        self._process.kill()
        self._process.join()


def _serve(connection: Connection, rows: Rows) -> None:
    """Measure cells until nobody asks any more; Ctrl-C is for the process that asks."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        try:
            cell: Cell = connection.recv()
        except (EOFError, OSError):
            return
        alike = replace(cell, anonymizer=cell.anonymizer.beside_others())
        connection.send(_attempt(rows, alike))
