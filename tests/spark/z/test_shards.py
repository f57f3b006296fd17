"""z-anonymity on several shards decides as one engine does, to the last line of the trace."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.arrow.pseudonyms import Pseudonym
from shoal.arrow.release import Publish
from shoal.audit import audit
from shoal.errors import CheckpointError, PromiseError
from shoal.io.base import Chunk
from shoal.run.core import summary_of
from shoal.spark.z.decide import Decided
from shoal.spark.z.driver_state import DriverState
from shoal.spark.z.encode import EncodedRows
from shoal.spark.z.join import Joining, JoiningEngine
from shoal.spark.z.split import Slice, SplitRows, shards_of, split_rows
from shoal.spec.ladder import Path
from shoal.spec.policy import Policy, Window, ZAnonymity
from shoal.spec.schema import Quasi, Schema
from shoal.testing.z.codes import cell_codes
from tests.examples import examples
from tests.spark.z.world import Case, Found, Shards, cases, one_engine, story, tidy, types_of

CUTS = st.lists(st.integers(0, 30), max_size=4).map(sorted)
SITES = Schema("who", [Quasi("site", Path("/", levels=2))], keep=["note"], time="at")


def check_alike(one: Found, many: Found) -> None:
    assert many.public == one.public
    assert tidy(many.lines()) == tidy(one.lines())
    assert many.bad == one.bad


def check_kept(case: Case, found: Found) -> None:
    public, trace = found.tables(case)
    if not found.public or not found.trace:
        return
    pseudonym = case.publish.pseudonym
    report = audit(
        case.schema, case.policy, public, trace=trace, original=pa.table(case.table()),
        suppressed=case.publish.suppressed, n_quarantined=len(found.bad),
        count=case.knobs.get("count", "residual"), time=case.publish.time,
        pseudonym=pseudonym is not None, rotate=None if pseudonym is None else pseudonym.rotate,
    )  # fmt: skip
    # Only the run had the clock, so the audit can't verify rows from the future.
    verdicts = {v.name: v.verdict for v in report.verdicts if v.verdict != "kept"}
    assert verdicts in ({}, {"conservation": "unverifiable"}), str(report)
    assert not verdicts or case.policy.ahead is not None


@settings(deadline=None, max_examples=examples(60))
@given(cases(), st.integers(1, 5), CUTS)
def test_several_shards_decide_as_one_engine(case, n_shards, cuts):
    many = Shards(case, n_shards, cuts).run()
    check_alike(one_engine(case), many)
    check_kept(case, many)


@settings(deadline=None, max_examples=examples(40))
@given(cases(follows=True), st.integers(1, 5), CUTS)
def test_z_adapts_over_all_shards(case, n_shards, cuts):
    one, many = one_engine(case), Shards(case, n_shards, cuts).run()
    check_alike(one, many)
    # NaN equals nothing, so texts are compared.
    assert str(many.estimates) == str(one.estimates)


@settings(deadline=None, max_examples=examples(20))
@given(cases(), st.integers(1, 5), CUTS)
def test_figures_of_stretches_add_up(case, n_shards, cuts):
    (one,), many = one_engine(case).figures, Shards(case, n_shards, cuts).run().figures
    for name in ("n_in", "n_quarantined", "n_held", "n_late"):
        assert sum(part[name] for part in many) == one[name]
    total = summary_of(case.schema, case.policy)
    for state in many:
        part = summary_of(case.schema, case.policy)
        part.restore(state)
        total.merge(part)
    assert total.state()["cells"]["counts"] == one["cells"]["counts"]


def walk(n_rows: int, **more: object) -> Case:
    """Many sites of few people, so that values climb, and z moves where it may."""
    draw = np.random.default_rng(7)
    rows = [
        {"who": f"p{draw.integers(12)}", "site": f"{draw.integers(6)}/{draw.integers(3)}",
         "note": f"n{i}", "at": 0.5 * i}
        for i in range(n_rows)
    ]  # fmt: skip
    policy = Policy(ZAnonymity(3), window=Window(seconds=12))
    knobs = {"probability": 0.6, "estimates": 3}
    given = {"policy": policy, "knobs": knobs, "cuts": (50, 51, 130)} | more
    return Case(SITES, publish=Publish(), rows=rows, **given)  # type: ignore[arg-type]


def test_every_shard_has_its_share_of_a_stream_in_which_z_moves():
    case = walk(200)
    shards = Shards(case, 4, [20, 40])
    many = shards.run()
    check_alike(one_engine(case), many)
    assert {line["level"] for line in many.trace} == {None, 0, 1}
    assert {line["z"] for line in many.trace} == {3, 4}
    assert len(many.estimates) > 10
    assert all(count > 0 for count in shards.n_exposures)


# -- splitting -------------------------------------------------------------------------------------


def sites(*values: str | None) -> tuple[np.ndarray, np.ndarray]:
    codes = cell_codes(SITES, [[v] for v in values], np.arange(len(values)), np.zeros(len(values)))
    return codes, np.arange(float(len(values)))


def test_what_is_below_one_label_is_in_one_shard():
    codes, _ = sites(*(f"{top}/{leaf}" for top in range(40) for leaf in range(5)))
    homes = shards_of(codes.keys, [2], 4)[:, 0].reshape(40, 5)
    assert (homes == homes[:, :1]).all()
    assert set(homes[:, 0].tolist()) == {0, 1, 2, 3}


def test_a_missing_value_is_no_cell():
    codes, clock = sites("a/b", None, "c/d")
    parts = split_rows(codes, clock, 10, [2], 3)
    assert parts.rows.tolist() == [10, 12]
    assert parts.clock.tolist() == [0.0, 2.0]
    assert repr(parts) == "SplitRows(2 parts)"


def test_parts_and_what_is_decided_travel_as_batches():
    codes, clock = sites("a/b", "c/d")
    parts = split_rows(codes, clock, 0, [2], 3)
    for here, there in zip(parts, SplitRows.of_batch(parts.to_batch()), strict=True):
        assert np.array_equal(here, there)
        assert there.flags.writeable
    nothing = parts.of_shard(7)
    assert SplitRows.of_batch(nothing.to_batch()).keys.shape == (0, 2)
    decided = Decided(np.array([4, 9]), np.array([[0, -2], [1, -1]]), np.array([[5, 0], [3, 0]]))
    for here, there in zip(decided, Decided.of_batch(decided.to_batch()), strict=True):
        assert np.array_equal(here, there)
    assert repr(decided) == "Decided(2 parts)"


# -- joining ---------------------------------------------------------------------------------------


def decided(row: int, *levels: int) -> Decided:
    return Decided(np.array([row]), np.array([levels]), np.full((1, len(levels)), 9))


@pytest.mark.parametrize(
    ("pieces", "wrong"),
    [
        ([decided(7, 0, -2)], 1),
        ([decided(7, 0, -2), decided(7, 1, -1)], 1),
        ([decided(7, 0, -2), decided(7, -2, -1), decided(8, 0, -2)], 1),
        ([decided(6, 0, -2), decided(7, 0, -1)], 1),
        ([], 2),
    ],
)
def test_a_cell_that_isnt_decided_once_stops_all(pieces, wrong):
    with pytest.raises(PromiseError, match=f"^{wrong} values were not decided by one shard each"):
        Decided.joined(pieces, 7, np.array([[True, True]]))


def test_parts_of_rows_come_together():
    pieces = [decided(7, 0, -2), decided(8, -2, -1), decided(7, -2, 3)]
    joined = Decided.joined(pieces, 7, np.array([[True, True], [False, True]]))
    assert joined.rows.tolist() == [7, 8]
    assert joined.levels.tolist() == [[0, 3], [-2, -1]]


def test_a_joining_engine_counts_nothing():
    case = walk(0)
    engine = Joining().start(case.schema, case.policy, seed=bytes(16))
    assert isinstance(engine, JoiningEngine)
    assert [len(found) for found in engine.shown(3)] == [0, 0]
    assert (engine.n_exposures, engine.n_held) == (0, 0)


# -- what is kept ----------------------------------------------------------------------------------


def test_a_shard_of_another_job_is_refused():
    mine, other = (
        walk(0, policy=Policy(ZAnonymity(z), window=Window(rows=5))).tasks(2).shard()
        for z in (2, 3)
    )
    with pytest.raises(CheckpointError, match="another schema, policy or other knobs"):
        mine.restore(other.snapshot())


def test_no_repr_shows_a_value():
    case = walk(5)
    tasks = case.tasks(2)
    state = DriverState(tasks)
    batch = state.context(0.0, types_of(case), b"secret of a batch")
    chunk = Chunk(case.table().slice(0, 0), np.empty(0, np.int64), [])
    encoded = EncodedRows(chunk, tasks.encoder(batch, Slice()).encode_rows(chunk, 0.0))
    joined = tasks.join(batch, [encoded], Slice(), [])
    shown = f"{tasks!r} {state!r} {batch!r} {encoded!r} {joined!r} {tasks.shard()!r}"
    assert shown.endswith(
        "DriverState(0 rows) BatchContext(at=0.0) EncodedRows(0 good rows) "
        "JoinedSlice(0 rows, 0 bad) ZShard(0 exposures)"
    )
    assert "secret" not in shown


def test_rows_that_a_single_shard_has_counted_are_skipped():
    case = story(30, publish=Publish(pseudonym=Pseudonym(5)), cuts=())
    state = DriverState(case.tasks(2))
    state.advance([Slice(10, 9, 4.0, 1.0)], bytes(32))
    key = state.snapshot().arrays["names.key"]
    state.skip_to(25, 9.5)
    assert state.so_far == Slice(25, 25, 9.5, 9.5)
    assert state.begins([Slice(2, 2, 3.0, 3.0), Slice()])[1] == Slice(27, 27, 9.5, 9.5)
    # Its period may be over, so its key must be gone.
    assert key.any()
    assert not state.snapshot().arrays["names.key"].any()
    state.skip_to(25, None)
    assert state.so_far.latest == -np.inf
