"""What is measured on, and whether twins and workers are told apart that decide differently."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
import pytest
from benchmarks.twin import _alike, compare
from benchmarks.workers import OneByOne, encoded, two_workers
from benchmarks.workloads import ADULT, adult_file, census_file

from benchmarks import workloads
from shoal.algorithms.fast import FastEngine

needs_adult = pytest.mark.skipif(not ADULT.exists(), reason="../shared/data/adult.csv isn't there")
N_ADULT = 30_162


@needs_adult
def test_adult_is_repeated_in_another_order_each_time(tmp_path):
    workload = adult_file(2 * N_ADULT + 10, tmp_path)
    table = pq.read_table(workload.path)
    assert table.num_rows == workload.n_rows == 2 * N_ADULT + 10
    assert workload.missing == "quarantine"
    first, second = (table["final_weight"].to_numpy()[i * N_ADULT :][:N_ADULT] for i in (0, 1))
    assert (first != second).mean() > 0.9
    assert (np.sort(first) == np.sort(second)).all()


@needs_adult
def test_as_many_rows_lack_no_value_as_lack_one_or_more(tmp_path):
    workload = adult_file(400, tmp_path, gaps=3)
    table = pq.read_table(workload.path)
    lacking = np.sum([column.is_null().to_numpy() for column in table.columns], axis=0)
    assert np.bincount(lacking).tolist() == [100, 100, 100, 100]
    assert workload.missing == "maybe"


def test_a_file_is_made_once(tmp_path, monkeypatch):
    first = census_file(30, tmp_path)
    monkeypatch.setattr(workloads, "pq", None)
    assert census_file(30, tmp_path).path == first.path


@pytest.mark.parametrize(("algorithm", "gaps"), [("castle", 0), ("fads", 0), ("idea", 3)])
def test_twins_decide_alike(algorithm, gaps):
    found = compare(algorithm, 60, k=4, delay=20, repeats=1, gaps=gaps)
    assert found.alike
    assert len(found.twin.values) == len(found.kernel.values) == 1


def test_twins_that_differ_are_detected():
    decided = {0: ("group", 0, 0.5), 1: ("group", 0, 0.5), 2: ("suppressed", None, 1.0)}
    assert _alike(decided, dict(reversed(decided.items())))
    for row, other in (
        (1, ("group", 1, 0.5)),
        (1, ("reuse", 0, 0.5)),
        (2, ("suppressed", None, 0.9)),
    ):
        assert not _alike(decided, decided | {row: other})
    assert not _alike(decided, {row: decided[row] for row in (0, 1)})


def test_workers_one_after_another_decide_as_at_once(tmp_path):
    workload = census_file(700, tmp_path)
    found = two_workers(workload.schema, encoded(workload), k=5, delay=300, kept=10, repeats=1)
    assert found["n_rows"] == 700
    assert found["alike"]
    assert found["met"] == (found["gain"]["median"] >= 1.5)


def test_workers_that_decide_differently_are_reported(tmp_path, monkeypatch):
    workload = census_file(300, tmp_path)
    monkeypatch.setattr(
        OneByOne,
        "__init__",
        lambda self, anonymizer, space, _: FastEngine.__init__(self, anonymizer, space, b"2"),
    )
    found = two_workers(workload.schema, encoded(workload), k=5, delay=100, kept=10, repeats=1)
    assert not found["alike"]
