from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import numpy as np
import prometheus_client
import pytest
from prometheus_client.parser import text_string_to_metric_families

import shoal
from shoal.engine.decisions import ESTIMATE
from shoal.errors import BrokenPromiseError, PromiseError, ResourceError
from shoal.metrics import Summary
from shoal.metrics.z.counts import ZCounts
from shoal.run.observe import Figures, Health
from shoal.run.observe.exposition import Exposition
from shoal.run.observe.health import HealthMonitor
from tests.run.observe.figures import some_figures


def text(figures: Figures | None, health: Health | None = None) -> str:
    monitor = HealthMonitor(clock=lambda: 0.0)
    if health is not None:
        monitor.report(health)
    return Exposition(lambda: figures, monitor.verdict).text().decode()


def samples(found: str) -> dict[Any, float]:
    """All samples, as Prometheus's own parser reads them."""
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(found)
        for sample in family.samples
    }


def test_every_figure_is_shown() -> None:
    found = samples(text(some_figures(), Health(checkpoint_age=7.9)))
    buckets = {key: value for key, value in found.items() if key[0].endswith("_bucket")}
    assert {key[0]: value for key, value in found.items() if key not in buckets} == {
        "shoal_up": 1,
        "shoal_promise_broken": 0,
        "shoal_info": 1,
        "shoal_rows_in_total": 9,
        "shoal_rows_published_total": 4,
        "shoal_rows_suppressed_total": 2,
        "shoal_rows_quarantined_total": 1,
        "shoal_rows_late_total": 1,
        "shoal_rows_reused_total": 1,
        "shoal_rows_alone_total": 0,
        "shoal_messages_skipped_total": 0,
        "shoal_rows_held": 2,
        "shoal_loss": 0.1235,
        "shoal_source_lag": 77,
        "shoal_checkpoint_age_seconds": 7,
        "shoal_checkpoint_bytes": 1000,
        "shoal_checkpoint_seconds": 0.25,
    }
    assert buckets["shoal_delay_rows_bucket", "10.0"] == 3
    assert buckets["shoal_delay_rows_bucket", "+Inf"] == 4
    assert buckets["shoal_delay_seconds_bucket", "0.3"] == 3
    assert buckets["shoal_delay_seconds_bucket", "30.0"] == 4
    assert buckets["shoal_group_subjects_bucket", "20.0"] == 1
    assert buckets["shoal_group_subjects_bucket", "640.0"] == 2


def test_there_are_no_sums_that_would_tell_of_one_row_or_group() -> None:
    assert not [key for key in samples(text(some_figures())) if key[0].endswith(("_sum", "_count"))]


def test_the_job_is_shown_without_its_columns() -> None:
    about = f'shoal_info{{algorithm="castle",k="10",version="{shoal.__version__}"}} 1.0'
    assert about in text(some_figures()).splitlines()


def test_without_a_snapshot_there_are_no_figures() -> None:
    assert samples(text(None)) == {("shoal_up",): 0, ("shoal_promise_broken",): 0}
    assert samples(text(None, Health())) == {("shoal_up",): 1, ("shoal_promise_broken",): 0}


@pytest.mark.parametrize(
    ("error", "is_broken"), [(BrokenPromiseError, 1), (PromiseError, 1), (ResourceError, 0)]
)
def test_a_broken_promise_is_told(error: type[Exception], is_broken: int) -> None:
    health = HealthMonitor(clock=lambda: 0.0)
    health.fail(error("CANARY"))
    found = Exposition(lambda: None, health.verdict).text().decode()
    assert samples(found) == {("shoal_up",): 0, ("shoal_promise_broken",): is_broken}


def test_what_is_not_known_is_not_shown() -> None:
    figures = Figures.of(Summary(), algorithm="castle", k=2)
    names = {key[0] for key in samples(text(figures))}
    assert "shoal_rows_in_total" in names
    assert not names & {
        "shoal_loss", "shoal_source_lag", "shoal_checkpoint_bytes", "shoal_checkpoint_seconds",
        "shoal_checkpoint_age_seconds", "shoal_delay_seconds_bucket",
    }  # fmt: skip


def test_the_registry_is_its_own() -> None:
    before = prometheus_client.generate_latest()
    found = text(some_figures())
    assert "python_info" not in found
    assert b"shoal" not in before
    assert b"shoal" not in prometheus_client.generate_latest()


PAGE = (Path(__file__).parents[3] / "docs" / "monitoring.md").read_text(encoding="utf-8")


def test_every_metric_is_on_its_page_with_its_type() -> None:
    documented = dict(re.findall(r"^\| `(shoal_\w+)` \| (\w+) \|", PAGE, re.M))
    figures = dataclasses.replace(
        some_figures(), z=20, k_anonymous=0.9, n_audited=7, blocked_seconds=3
    )
    shown = re.findall(r"^# TYPE (\w+) (\w+)$", text(figures, Health(checkpoint_age=1.0)), re.M)
    assert documented == dict(shown)


def test_z_anonymity_has_a_z_and_no_k() -> None:
    cells = ZCounts([1], z=20)
    cells.look(np.array([(0, 0.0, 20, 25, 400, 0.9049, 1.2)], ESTIMATE))
    figures = Figures.of(Summary(cells=cells), algorithm="z-anonymity", k=1)
    found = text(figures)
    shown = samples(found)
    assert (shown["shoal_z",], shown["shoal_k_anonymous_share",]) == (25, 0.9)
    assert 'k="' not in found
    assert "shoal_z " not in text(some_figures())
