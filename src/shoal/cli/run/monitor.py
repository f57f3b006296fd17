"""Show the figures of a running job: a line on the terminal, and metrics for collectors."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import Protocol

from shoal.cli.terminal import Progress, print_message
from shoal.job import Job
from shoal.metrics import Summary
from shoal.run.recovery import SavedCheckpoint

__all__ = ["Monitor", "Observed"]

#: The seconds between two updates of the metrics.
EVERY = 0.5


class Observed(Protocol):
    """What a monitor reads from a running job, beside its figures."""

    @property
    def saved(self) -> SavedCheckpoint | None:
        """The latest checkpoint."""
        ...

    @property
    def checkpoint_age(self) -> float | None:
        """The seconds since a checkpoint was taken or found unnecessary."""
        ...

    @property
    def lag(self) -> int | None:
        """How much waits unread in the source; None if unknown."""
        ...

    @property
    def is_connected(self) -> bool:
        """Whether source and sink are connected."""
        ...

    @property
    def n_waiting(self) -> int:
        """The number of batches that wait to be written."""
        ...

    @property
    def n_written(self) -> int:
        """The number of rows in the output."""
        ...


class Monitor:
    """Pass the figures of a run to the terminal and to the metrics server.

    Parameters
    ----------
    job
        The job that runs.
    progress
        The line on the terminal.
    address
        Where metrics and health are served; None: nowhere.
    stack
        Closes the server at the end.
    """

    def __init__(
        self, job: Job, progress: Progress, address: str | None, stack: ExitStack, *, quiet: bool
    ) -> None:
        self._job, self._progress = job, progress
        self._run: Observed | None = None
        self._offered = -EVERY
        self._server = None
        if address is not None:
            # A run without metrics doesn't import the server.
            from shoal.run.observe import MetricsServer

            self._server = stack.enter_context(MetricsServer(address))
            if not quiet:
                print_message(f"metrics: http://{self._server.address}/metrics")

    def observe(self, run: Observed) -> None:
        """Observe this run from now on."""
        self._run = run

    def show(self, summary: Summary) -> None:
        """Show the figures; called in each round of the loop."""
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
        """Record that the run failed."""
        if self._server is not None:
            self._server.fail(error)
