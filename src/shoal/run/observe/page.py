"""Serve a page about a running job: figures, their history, its state and its last events.

The page polls. Its figures change once an interval, like those of ``/metrics``; nothing is pushed
when rows come or leave.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from importlib import resources
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from shoal import __version__
from shoal.errors import ParameterError
from shoal.run.observe.access import Access, certificates, is_loopback, own_names, read_address
from shoal.run.observe.figures import Buckets, Figures
from shoal.run.observe.health import Health, HealthMonitor
from shoal.run.observe.history import RANGES, History
from shoal.run.observe.intervals import OncePerInterval
from shoal.run.observe.listener import Answer, Limits, Listener, Route
from shoal.run.observe.recent_events import RecentEvents
from shoal.run.observe.server import MetricsAnswer, health_answer

__all__ = ["PageServer"]

_KEY = "--page"
#: Where rows are taken in, a client may have to wait for the disk, and there are more of them.
SERVING = Limits(seconds=30.0, clients=128)
#: The files of the page in the package, and their types.
_FILES = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/charts.js": ("charts.js", "text/javascript; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
}


class PageServer:
    """Answer ``GET /`` with a page, and the data that it polls, during a run.

    Parameters
    ----------
    address
        Host and port, for example ``127.0.0.1:8800``; port 0 is any free one. A host other than
        loopback needs a token.
    job
        What the page tells about the job: names and numbers, no value of a person and no secret.
    style
        CSS before the page's own.
    interval
        The seconds between two changes of the figures.
    token
        What a browser must present as a password; see `shoal.run.observe.access.read_token`.
    certificate, key
        Files of PEM for TLS; None: plain HTTP.
    hosts
        Further names under which the page may be asked for.
    routes
        What else is answered there, by path: rows of a job that takes them by HTTP.
    with_metrics
        Whether ``/metrics`` is served there, too.
    activity
        Returns what the run does instead of running: ``compiling``, ``draining``, ``stopping``;
        else None.
    clock, wall
        Return seconds: a monotonic clock, and the time since the epoch.

    Raises
    ------
    ParameterError
        If the address isn't one, or isn't loopback and there is no token.
    ResourceError
        If it can't listen there, or the certificate can't be read.

    >>> from shoal.metrics import Summary
    >>> with PageServer("127.0.0.1:0", job={"name": "mine"}) as page:
    ...     page.offer(Figures.of(Summary(), algorithm="castle", k=10))
    ...     page.url.startswith("http://127.0.0.1:")
    True
    """

    def __init__(
        self,
        address: str,
        *,
        job: Mapping[str, Any],
        style: str = "",
        interval: float = 10.0,
        token: str | None = None,
        certificate: Path | None = None,
        key: Path | None = None,
        hosts: Sequence[str] = (),
        routes: Mapping[str, Route] | None = None,
        with_metrics: bool = False,
        activity: Callable[[], str | None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        host, port = read_address(_KEY, address, "8800")
        if not is_loopback(host) and token is None:
            raise ParameterError(
                _KEY,
                "must be on loopback unless there is a token, because figures reveal small "
                "numbers of people",
                got=address,
                fix="Use 127.0.0.1 or [::1], or add --page-token file:PATH",
            )
        self._job, self._activity = dict(job), activity
        self._wall = wall
        # Fixed for the run: a wall clock that is set must not move what was shown.
        self._epoch = wall() - clock()
        #: The figures of the last hours; saved with checkpoints.
        self.history = History(interval)
        self._figures: OncePerInterval[Figures] = OncePerInterval(interval, clock, self._remember)
        self._health = HealthMonitor(clock=clock)
        self._events = RecentEvents(interval, clock, self._epoch)
        self._last_state: str | None = None
        self._begun = self._failed = False
        self._batch_age: float | None = None
        answers: dict[str, Answer] = {
            path: _file(name, kind, style if name == "page.css" else "")
            for path, (name, kind) in _FILES.items()
        }
        answers |= {f"/{name}.json": partial(self._answer, name) for name in RANGES}
        answers["/health"] = health_answer(self._health)
        self._metrics = MetricsAnswer(self._figures, self._health) if with_metrics else None
        if self._metrics is not None:
            answers["/metrics"] = self._metrics
        tls = None if certificate is None else certificates(certificate, key)
        access = Access() if token is None else Access(token, own_names() | _lower(hosts))
        self._stack = ExitStack()
        self._listener = Listener(
            _KEY, (host, port), answers, access, tls,
            routes=routes, limits=SERVING if routes else None,
        )  # fmt: skip
        self._stack.callback(self._listener.close)
        self._stack.enter_context(self._events)
        self._scheme = "http" if tls is None else "https"
        self._state()

    @property
    def url(self) -> str:
        """Where the page is."""
        return f"{self._scheme}://{self._listener.address}/"

    def offer(self, figures: Figures) -> None:
        """Offer the current figures; may be called at any rate."""
        self._figures.offer(figures)

    def remembered(self) -> dict[str, Any]:
        """Return the history, with the figures of all intervals that are over, for a checkpoint."""
        self._figures.get()
        return self.history.state()

    def health(self, health: Health) -> None:
        """Report the health; to be called in each round of the loop, with rows or without."""
        self._begun = True
        self._health.report(health)
        self._state()

    def fail(self, error: BaseException) -> None:
        """Record that the run failed."""
        self._failed = True
        self._health.fail(error)
        self._state()

    def note(self, name: str, text: str | None = None, level: str = "info") -> None:
        """Add an event that isn't logged.

        The text is shown: it must not depend on the data, nor name files, topics or brokers.
        """
        self._events.note(name, text, level)

    def close(self) -> None:
        """Stop listening. May be called twice. A broken promise is told to a collector first."""
        if self._metrics is not None:
            self._metrics.wait_for_collector()
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _remember(self, figures: Figures, at: float) -> None:
        """Keep the figures in the history, under the time at which they began to be shown."""
        at += self._epoch
        self.history.add(figures, round(at, 1))
        self._batch_age = None
        if figures.batch_at is not None:
            # From a fixed instant, and in whole intervals: it doesn't tell when rows came.
            interval = self._figures.interval
            self._batch_age = max(0, math.floor((at - figures.batch_at) / interval)) * interval

    def _state(self) -> tuple[str, tuple[str, ...]]:
        """Return the state of the run in a word, and why it isn't well."""
        verdict = self._health.verdict()
        activity = self._activity()
        if self._failed:
            state = "failed"
        elif activity is not None:
            state = activity
        elif not self._begun:
            state = "starting"
        elif not self._health.is_connected:
            state = "broker away"
        else:
            state = "running" if verdict.ok else "unhealthy"
        if state != self._last_state:
            self._last_state = state
            level = "warning" if state in ("failed", "broker away", "unhealthy") else "info"
            self._events.note(state, level=level)
        # A run that compiles or has not begun can't be as quick as one that runs.
        quiet = state in ("starting", "compiling")
        return state, () if quiet else verdict.reasons

    def _answer(self, name: str) -> tuple[int, str, bytes]:
        """Return what the page shows, with the series of one range, as JSON."""
        figures = self._figures.get()
        state, reasons = self._state()
        verdict = self._health.verdict()
        age = verdict.checkpoint_age
        every = RANGES[name].every * self._figures.interval
        found = {
            "version": __version__,
            "interval": self._figures.interval,
            "now": int(self._wall()),
            "state": {
                "name": state,
                "reasons": reasons,
                "checkpoint_age": None if age is None else int(age),
            },
            "job": self._job,
            "figures": (
                None if figures is None else _shown(figures, self.history, self._batch_age)
            ),
            "range": {"name": name, "step": every, "seconds": every * RANGES[name].n_samples},
            "series": self.history.series(name),
            "events": self._events.shown(),
        }
        body = json.dumps(found, allow_nan=False, separators=(",", ":")).encode()
        return 200, "application/json", body


def _shown(figures: Figures, history: History, batch_age: float | None) -> dict[str, Any]:
    """Return the figures as values for JSON; an infinite bound is null."""
    by_seconds = figures.delay_seconds is not None
    lately = history.lately(figures)
    names = (
        "algorithm", "k", "n_in", "n_published", "n_suppressed", "n_quarantined", "n_late",
        "n_reused", "n_alone", "n_held", "loss", "lag", "checkpoint_bytes", "checkpoint_seconds",
        "journal_entries", "blocked_seconds", "n_audited", "z", "k_anonymous", "suppressed_for",
        "quarantined_for", "shards",
    )  # fmt: skip
    return {name: getattr(figures, name) for name in names} | {
        "since": lately["since"],
        "groups": _bounded(lately["groups"]),
        "delay": _bounded(lately["delay"]),
        "delay_unit": "seconds" if by_seconds else "rows",
        "batch_age": batch_age,
        "shards_lately": lately["shards"],
    }


def _bounded(buckets: Buckets) -> list[tuple[float | None, int]]:
    """Return the count in each bucket, not up to it."""
    found, before = [], 0
    for bound, count in buckets:
        found.append((None if math.isinf(bound) else bound, count - before))
        before = count
    return found


def _file(name: str, kind: str, before: str) -> Answer:
    """Return what answers with a file of the package, which is read once."""
    text = (resources.files("shoal.run.observe") / "live_page" / name).read_text("utf-8")
    body = (before + text).encode()
    return lambda: (200, kind, body)


def _lower(names: Sequence[str]) -> frozenset[str]:
    return frozenset(name.lower() for name in names)
