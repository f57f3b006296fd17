"""What a run shows of itself while it goes on: a line on the terminal, figures for collectors."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import Protocol

from shoal.cli.terminal import Progress, say
from shoal.job import Job
from shoal.metrics import Summary
from shoal.run.recovery import Saved

__all__ = ["Monitor", "Seen"]

#: How often, in seconds, figures are offered to whoever collects them.
EVERY = 0.5


class Seen(Protocol):
    """What there is to see of a job that runs, beside its figures."""

    @property
    def saved(self) -> Saved | None:
        """The latest checkpoint."""
        ...

    @property
    def checkpoint_age(self) -> float | None:
        """For how many seconds there has been no checkpoint, though it was time."""
        ...

    @property
    def lag(self) -> int | None:
        """How much waits unread."""
        ...

    @property
    def is_connected(self) -> bool:
        """Whether source and sink are reached."""
        ...

    @property
    def n_waiting(self) -> int:
        """How many batches wait to be written."""
        ...

    @property
    def n_written(self) -> int:
        """How many rows are in the output."""
        ...


class Monitor:
    """Pass the figures of a run on.

    Parameters
    ----------
    job
        What runs.
    progress
        The line on the terminal.
    address
        Where figures and health are served; None for nowhere.
    stack
        Closes the server at the end.
    """

    def __init__(
        self, job: Job, progress: Progress, address: str | None, stack: ExitStack, *, quiet: bool
    ) -> None:
        self._job, self._progress = job, progress
        self._run: Seen | None = None
        self._offered = -EVERY
        self._server = None
        if address is not None:
            # A run that isn't watched imports nothing of it.
            from shoal.run.observe import MetricsServer

            self._server = stack.enter_context(MetricsServer(address))
            if not quiet:
                say(f"metrics: http://{self._server.address}/metrics")

    def look_at(self, run: Seen) -> None:
        """Look at this run from now on."""
        self._run = run

    def show(self, summary: Summary) -> None:
        """The loop of the run has turned over."""
        self._progress.show(summary)
        now = time.monotonic()
        if self._server is None or self._run is None or now - self._offered < EVERY:
            return
        self._offered = now
        from shoal.run.observe import Figures, Health

        saved = self._run.saved
        checkpoints = self._job.checkpoints
        self._server.offer(
            Figures.of(
                summary,
                algorithm=self._job.anonymizer.name,
                k=self._job.policy.k,
                lag=self._run.lag,
                checkpoint_bytes=None if saved is None else saved.n_bytes,
                checkpoint_seconds=None if saved is None else saved.seconds,
            )
        )
        self._server.health(
            Health(
                checkpoint_age=self._run.checkpoint_age,
                checkpoint_every=None if checkpoints is None else checkpoints.every,
                connected=self._run.is_connected,
                n_waiting=self._run.n_waiting,
                n_written=self._run.n_written,
            )
        )

    def fail(self, error: BaseException) -> None:
        """The run has failed."""
        if self._server is not None:
            self._server.fail(error)
