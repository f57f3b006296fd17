"""Serve ``/metrics`` and ``/health`` over HTTP, on loopback."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from shoal.errors import JobError, ParameterError, Problem, install_hint
from shoal.run.observe.access import Access, is_loopback, read_address
from shoal.run.observe.figures import Figures
from shoal.run.observe.health import Health, HealthMonitor
from shoal.run.observe.intervals import OncePerInterval
from shoal.run.observe.listener import Answer, Listener

__all__ = ["MetricsAnswer", "MetricsServer", "health_answer"]

_KEY = "--metrics"
#: The most seconds between two readings of a collector that a broken promise waits for: somewhat
#: more than the minute that Prometheus takes unless it is told otherwise.
COLLECTOR_SECONDS = 75.0


class MetricsServer:
    """Answer ``GET /metrics`` and ``GET /health`` during a run.

    The figures about rows in ``/metrics`` change once per interval, at fixed instants that don't
    depend on the stream: they are the last snapshot offered *before* the current interval began.
    Live figures would pair arrivals with releases. The same holds for the first snapshot: until the
    first instant after it, there are no figures at all.

    ``/health`` is always current, and says nothing about rows.

    Parameters
    ----------
    address
        Host and port, for example ``127.0.0.1:9464``. The host is loopback; port 0 is any free one.
    interval
        The seconds between two changes of the figures.
    clock
        Returns seconds; monotonic.

    Raises
    ------
    ParameterError
        If the address isn't loopback.
    JobError
        If `prometheus_client` isn't installed.
    ResourceError
        If it can't listen there, for example because the port is taken.

    >>> from shoal.metrics import Summary
    >>> with MetricsServer("127.0.0.1:0") as server:
    ...     server.offer(Figures.of(Summary(), algorithm="castle", k=10))
    ...     server.health(Health(n_written=0))
    ...     server.address.startswith("127.0.0.1:")
    True
    """

    def __init__(
        self,
        address: str,
        *,
        interval: float = 10.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        host, port = read_address(_KEY, address, "9464")
        if not is_loopback(host):
            raise ParameterError(
                _KEY,
                "must be on loopback, because figures reveal small numbers of people",
                got=address,
                fix="Use 127.0.0.1 or [::1], with a collector on the same machine",
            )
        self._figures: OncePerInterval[Figures] = OncePerInterval(interval, clock)
        self._health = HealthMonitor(clock=clock)
        self._metrics = MetricsAnswer(self._figures, self._health)
        answers: dict[str, Answer] = {
            "/metrics": self._metrics,
            "/health": health_answer(self._health),
        }
        self._listener = Listener(_KEY, (host, port), answers, Access())

    @property
    def address(self) -> str:
        """The host and the port where it listens."""
        return self._listener.address

    def offer(self, figures: Figures) -> None:
        """Offer the current figures; may be called at any rate."""
        self._figures.offer(figures)

    def health(self, health: Health) -> None:
        """Report the health; to be called in each round of the loop, with rows or without."""
        self._health.report(health)

    def fail(self, error: BaseException) -> None:
        """Record that the run failed; ``/health`` says so until the server is closed."""
        self._health.fail(error)

    def close(self) -> None:
        """Stop listening and disconnect all clients. May be called twice.

        After a broken promise a collector is waited for, see `MetricsAnswer.wait_for_collector`.
        """
        self._metrics.wait_for_collector()
        self._listener.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class MetricsAnswer:
    """What answers ``/metrics``, and sees to it that a broken promise doesn't go unseen.

    Raises
    ------
    JobError
        If `prometheus_client` isn't installed.
    """

    def __init__(self, figures: OncePerInterval[Figures], health: HealthMonitor) -> None:
        try:
            from shoal.run.observe.exposition import CONTENT_TYPE, Exposition
        except ModuleNotFoundError as error:
            if error.name is None or not error.name.startswith("prometheus_client"):
                raise
            what, fix = "needs prometheus_client", install_hint("metrics")
            raise JobError(Problem(_KEY, what, None, fix)) from None
        self._exposition, self._type = Exposition(figures.get, health.verdict), CONTENT_TYPE
        self._health = health
        self._read_at: float | None = None
        self._was_told = threading.Event()

    def __call__(self) -> tuple[int, str, bytes]:
        """Answer a request."""
        is_broken = self._health.verdict().breaks_promise
        body = self._exposition.text()
        self._read_at = time.monotonic()
        if is_broken:
            self._was_told.set()
        return 200, self._type, body

    def wait_for_collector(self) -> None:
        """After a broken promise, wait until a collector has read it.

        A run that ends is gone before the next reading: its metrics would never have told why. Only
        a collector that has read shortly before is waited for, and not for long.
        """
        read_at = self._read_at
        if self._health.verdict().breaks_promise and read_at is not None:
            self._was_told.wait(max(0.0, read_at + COLLECTOR_SECONDS - time.monotonic()))


def health_answer(health: HealthMonitor) -> Answer:
    """Return what answers ``/health``."""

    def answer() -> tuple[int, str, bytes]:
        verdict = health.verdict()
        body = json.dumps(verdict.as_dict()).encode() + b"\n"
        return (200 if verdict.ok else 503), "application/json", body

    return answer
