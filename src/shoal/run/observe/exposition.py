"""Expose the figures in the text format of Prometheus. Needs `prometheus_client`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from shoal import __version__
from shoal.run.observe.figures import Buckets, Figures
from shoal.run.observe.health import Verdict

__all__ = ["CONTENT_TYPE", "Exposition"]

CONTENT_TYPE: str = CONTENT_TYPE_LATEST


class Exposition(Collector):
    """Collect the metrics that may be shown now, in a registry of its own.

    Parameters
    ----------
    shown
        Returns the snapshot to show, None as long as there is none.
    verdict
        Returns the health of the run.
    """

    def __init__(self, shown: Callable[[], Figures | None], verdict: Callable[[], Verdict]) -> None:
        self._shown, self._verdict = shown, verdict
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)

    def text(self) -> bytes:
        """Return all metrics as text."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics, for the registry."""
        verdict = self._verdict()
        yield _gauge("shoal_up", "1 while /health returns 200, otherwise 0.", int(verdict.ok))
        yield _gauge(
            "shoal_promise_broken",
            "1 if the run has ended because a group broke a promise, otherwise 0.",
            int(verdict.breaks_promise),
        )
        if verdict.checkpoint_age is not None:
            # Whole seconds, as in /health.
            yield _gauge(
                "shoal_checkpoint_age_seconds",
                "Age of the last checkpoint, or of the run before its first.",
                int(verdict.checkpoint_age),
            )
        figures = self._shown()
        if figures is not None:
            yield from _of(figures)


def _of(figures: Figures) -> Iterator[Metric]:
    about = {"version": __version__, "algorithm": figures.algorithm}
    # Under z-anonymity there is no k; the current z is a metric of its own.
    about |= {"k": str(figures.k)} if figures.z is None else {}
    yield InfoMetricFamily("shoal", "Version of Shoal, algorithm and k.", about)
    for what, meaning, count in (
        ("in", "Rows read, including bad ones.", figures.n_in),
        ("published", "Rows published.", figures.n_published),
        (
            "suppressed",
            "Rows suppressed: they could not be published in time.",
            figures.n_suppressed,
        ),
        ("quarantined", "Rows quarantined: they could not be used.", figures.n_quarantined),
        ("late", "Published rows that were held longer than promised.", figures.n_late),
        ("reused", "Published rows that joined an earlier group.", figures.n_reused),
        ("alone", "Reused rows that left with fewer people than a group needs.", figures.n_alone),
    ):
        yield CounterMetricFamily(f"shoal_rows_{what}", meaning, count)
    yield CounterMetricFamily(
        "shoal_messages_skipped",
        "Messages that aren't rows, such as deletes of a change stream.",
        figures.n_skipped,
    )
    if figures.n_audited is not None:
        yield CounterMetricFamily(
            "shoal_groups_audited", "Groups checked by the live audit.", figures.n_audited
        )
    if figures.blocked_seconds is not None:
        yield CounterMetricFamily(
            "shoal_sink_blocked_seconds",
            "Seconds that the run has waited for its sink without reading.",
            figures.blocked_seconds,
        )
    for name, meaning, value in (
        ("rows_held", "Rows held at the moment.", figures.n_held),
        ("loss", "Mean information loss of published rows, from 0 to 1.", figures.loss),
        ("source_lag", "Lag of the source, in offsets or bytes, as far as known.", figures.lag),
        ("checkpoint_bytes", "Size of the last checkpoint.", figures.checkpoint_bytes),
        ("checkpoint_seconds", "Duration of the last checkpoint.", figures.checkpoint_seconds),
        ("z", "The z in force.", figures.z),
        (
            "k_anonymous_share",
            "Share of subjects, at the latest estimate, that look like k - 1 others.",
            figures.k_anonymous,
        ),
    ):
        if value is not None:
            yield _gauge(f"shoal_{name}", meaning, value)
    yield _histogram(
        "shoal_delay_rows", "Number of rows for which a row was held.", figures.delay_rows
    )
    if figures.delay_seconds is not None:
        yield _histogram(
            "shoal_delay_seconds", "Seconds for which a row was held.", figures.delay_seconds
        )
    yield _histogram(
        "shoal_group_subjects", "Subjects of a group at its release.", figures.group_subjects
    )


def _gauge(name: str, meaning: str, value: float) -> Metric:
    return GaugeMetricFamily(name, meaning, value)


def _histogram(name: str, meaning: str, buckets: Buckets) -> Metric:
    counts = [
        ("+Inf" if math.isinf(bound) else str(float(bound)), float(count))
        for bound, count in buckets
    ]
    return HistogramMetricFamily(name, meaning, counts, sum_value=None)
