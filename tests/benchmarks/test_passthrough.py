"""The yardstick: everything that a run does, and no decision."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
import pytest
from benchmarks.incomplete import missing_places
from benchmarks.passthrough import POLICY, PassThrough, row_by_row
from benchmarks.runs import pass_through
from benchmarks.workloads import ADULT, adult_file, census_file

from shoal.arrow.codec import Codec
from shoal.datasets import census
from shoal.engine.kernels.boxes import mean_loss, row_loss
from shoal.spec.hierarchy import Range


def test_every_row_leaves_at_once_in_its_own_box():
    data = census(120, seed=3, batch_rows=50)
    engine = PassThrough().start(data.schema, POLICY, seed=b"1")
    codec = Codec(data.schema, key=bytes(8))
    n = 0
    for batch in data.batches():
        codes = codec.encode(batch).codes
        decided = engine.push(codes)
        rows = np.arange(n, n + batch.num_rows)
        assert decided.rows.tolist() == rows.tolist() == decided.published.tolist()
        assert decided.groups.tolist() == rows.tolist()
        assert set(decided.n_subjects) == {1}
        assert np.all(decided.lo <= codes.values)
        assert np.all(decided.hi >= codes.values)
        losses = [engine.space.loss(*box) for box in zip(decided.lo, decided.hi, strict=True)]
        np.testing.assert_allclose(decided.loss, losses, rtol=1e-12)
        assert decided.loss.max() > 0  # income is widened to its step
        n += batch.num_rows
        assert engine.n_held == 0
    assert len(engine.flush().rows) == 0
    assert len(engine.advance(1.0).rows) == 0


@pytest.mark.parametrize("missing", ["maybe", "extended"])
def test_what_a_row_lacks_is_known_and_costs_what_it_should(missing):
    data = census(60, seed=3)
    engine = PassThrough().start(data.schema, row_by_row(missing), seed=b"1")
    codes = Codec(data.schema, key=bytes(8)).encode(next(data.batches())).codes
    places = missing_places(*codes.values.shape, 10, np.random.default_rng(1))
    assert places.all(axis=1).any()  # somebody has nothing at all
    decided = engine.push(codes._replace(values=np.where(places, np.nan, codes.values)))
    sides = engine.space.sides
    bits = places @ (1 << np.arange(10))
    assert decided.gaps.tolist() == decided.box_gaps.tolist() == bits.tolist()
    assert ((decided.lo > decided.hi) == (places & (missing == "maybe"))).all()
    boxes = list(zip(decided.lo, decided.hi, strict=True))
    np.testing.assert_allclose(decided.loss, [mean_loss(sides, *box) for box in boxes], atol=1e-12)
    losses = [row_loss(sides, *box, gaps) for box, gaps in zip(boxes, bits, strict=True)]
    np.testing.assert_allclose(decided.losses, losses, rtol=1e-12)


@pytest.mark.skipif(not ADULT.exists(), reason="../shared/data/adult.csv isn't there")
def test_gaps_come_out_as_they_went_in(tmp_path):
    workload = adult_file(80, tmp_path, gaps=3)
    assert pass_through(workload, tmp_path / "out.parquet").n_published == 80
    before, after = pq.read_table(workload.path), pq.read_table(tmp_path / "out.parquet")
    for quasi in workload.schema.quasi:
        assert after[quasi.name].null_count == before[quasi.name].null_count > 0


def test_a_file_comes_out_as_it_went_in(tmp_path):
    workload = census_file(150, tmp_path)
    summary = pass_through(workload, tmp_path / "out.parquet")
    assert (summary.n_in, summary.n_published) == (150, 150)
    before, after = pq.read_table(workload.path), pq.read_table(tmp_path / "out.parquet")
    for quasi in workload.schema.quasi:
        if not isinstance(quasi.domain, Range):
            assert after[quasi.name].to_pylist() == before[quasi.name].to_pylist()
    assert after["diagnosis"].to_pylist() == before["diagnosis"].to_pylist()
