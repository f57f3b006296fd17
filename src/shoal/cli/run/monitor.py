"""Show the figures of a running job: on the terminal, to collectors, and on a page."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Protocol

from shoal.cli.logs import is_logging, is_on_stderr
from shoal.cli.run.page import PageOptions, described_job, open_page
from shoal.cli.terminal import Progress, print_message
from shoal.engine.compile_watch import CompileWatch
from shoal.events import sentence
from shoal.job import Job
from shoal.job.live_audit import LiveAudit
from shoal.metrics import Summary
from shoal.run.recovery import SavedCheckpoint

if TYPE_CHECKING:
    from shoal.run.observe import MetricsServer, PageServer
    from shoal.run.observe.listener import Route

__all__ = ["WAITING", "Monitor", "Observed"]

log = logging.getLogger("shoal.run")

WAITING = (
    "stopping when the output has taken the rows that were decided; a second Ctrl-C ends at once"
)
#: The seconds between two updates of the metrics.
EVERY = 0.5
#: The seconds that a stopped run waits for its output before it says so.
LONG = 0.5


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
        """The number of batches that are decided and not yet written."""
        ...

    @property
    def blocked_seconds(self) -> float | None:
        """The seconds for which the run has waited for its sink; None if unknown."""
        ...

    @property
    def n_written(self) -> int:
        """The number of rows in the output."""
        ...

    @property
    def journal_entries(self) -> int | None:
        """The number of journal entries since the latest checkpoint; None without recovery."""
        ...

    @property
    def ending(self) -> str | None:
        """What it does after a stop, ``draining`` or ``stopping``; None as long as it runs."""
        ...

    @property
    def batch_at(self) -> float | None:
        """When the last committed batch began, in seconds since 1970; None without batches."""
        ...

    @property
    def shards(self) -> Sequence[Summary]:
        """The figures of each shard; none where there is one engine."""
        ...


class Monitor:
    """Pass the figures of a run to the terminal, to the metrics server and to the page.

    Parameters
    ----------
    job
        The job that runs.
    progress
        The line on the terminal.
    metrics
        Where metrics and health are served; None: nowhere.
    page
        Where a page is served; None: nowhere. At the address of the metrics it serves both.
    stack
        Closes the servers at the end.
    ends
        What the input and the output are, in words, for the page.
    checkpoints
        When checkpoints are taken, in words, if it isn't as the job says.
    routes
        What else is answered at the address of the page.
    """

    def __init__(
        self,
        job: Job,
        progress: Progress,
        metrics: str | None,
        stack: ExitStack,
        *,
        quiet: bool,
        page: PageOptions | None = None,
        ends: tuple[str, str] = ("", ""),
        checkpoints: str | None = None,
        routes: Mapping[str, Route] | None = None,
    ) -> None:
        self._job, self._progress = job, progress
        # Whether it is still to be said that a stopped run waits for its output, and for how long
        # it had waited when it was stopped.
        self._is_to_say = not quiet
        self._blocked: float | None = None
        self._run: Observed | None = None
        self._compiling: CompileWatch | None = None
        self._audited: LiveAudit | None = None
        self._offered = -EVERY
        self._page: PageServer | None = None
        self._servers: list[MetricsServer | PageServer] = []
        # A run without metrics and page doesn't import the servers.
        if page is not None:
            is_shared = metrics == page.address
            metrics = None if is_shared else metrics
            self._page = stack.enter_context(
                open_page(
                    page,
                    described_job(job, ends, checkpoints),
                    with_metrics=is_shared,
                    routes=routes,
                    activity=self._activity,
                )
            )
            self._servers.append(self._page)
            if not quiet:
                print_message(f"page: {self._page.url}")
                for path, route in (routes or {}).items():
                    print_message(f"{route.method}: {self._page.url}{path[1:]}")
                if is_shared:
                    print_message(f"metrics: {self._page.url}metrics")
        if metrics is not None:
            from shoal.run.observe import MetricsServer

            server = stack.enter_context(MetricsServer(metrics))
            self._servers.append(server)
            if not quiet:
                print_message(f"metrics: http://{server.address}/metrics")

    def observe(
        self,
        run: Observed,
        compiling: CompileWatch | None = None,
        audited: LiveAudit | None = None,
    ) -> None:
        """Observe this run from now on, what compiles its kernels, and what audits its groups."""
        self._run, self._compiling, self._audited = run, compiling, audited

    def show(self, summary: Summary) -> None:
        """Show the figures; called in each round of the loop."""
        self._progress.show(summary)
        self._say_that_it_waits()
        now = time.monotonic()
        if not self._servers or self._run is None or now - self._offered < EVERY:
            return
        self._offered = now
        from shoal.run.observe import Figures, Health

        saved = self._run.saved
        checkpoints = self._job.checkpoints
        figures = Figures.of(
            summary,
            algorithm=self._job.anonymizer.name,
            k=self._job.policy.k,
            lag=self._run.lag,
            checkpoint_bytes=None if saved is None else saved.n_bytes,
            checkpoint_seconds=None if saved is None else saved.seconds,
            journal_entries=self._run.journal_entries,
            blocked_seconds=self._run.blocked_seconds,
            n_audited=None if self._audited is None else self._audited.n_groups,
            shards=self._run.shards,
            batch_at=self._run.batch_at,
        )
        health = Health(
            checkpoint_age=self._run.checkpoint_age,
            checkpoint_every=None if checkpoints is None else checkpoints.every,
            connected=self._run.is_connected,
            n_waiting=self._run.n_waiting,
            n_written=self._run.n_written,
        )
        for server in self._servers:
            server.offer(figures)
            server.health(health)

    def _say_that_it_waits(self) -> None:
        """Say once that a stopped run waits for its output."""
        if not self._is_to_say or self._run is None or self._run.ending is None:
            return
        seconds = self._run.blocked_seconds
        if seconds is None:
            return
        if self._blocked is None:
            self._blocked = seconds
        elif seconds - self._blocked > LONG:
            self._is_to_say = False
            if is_logging():
                sentence(log, logging.INFO, "stopping", WAITING)
            if not is_on_stderr():
                self._progress.print_message(WAITING)

    def fail(self, error: BaseException) -> None:
        """Record that the run failed."""
        for server in self._servers:
            server.fail(error)

    def warn(self, text: str) -> None:
        """Show a warning about the job among the events of the page.

        It names columns and settings, never a file or a value.
        """
        if self._page is not None:
            self._page.note("warning", text, "warning")

    def state(self) -> dict[str, Any] | None:
        """Return the history of the page, for a checkpoint; None without one."""
        return None if self._page is None else self._page.remembered()

    def restore(self, state: object) -> None:
        """Continue the history of a checkpoint."""
        if self._page is not None:
            self._page.history.restore(state)

    def _activity(self) -> str | None:
        """Return what the run does instead of running."""
        if self._compiling is not None and self._compiling.is_compiling:
            return "compiling"
        return None if self._run is None else self._run.ending
