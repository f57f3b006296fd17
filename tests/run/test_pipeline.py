"""Whole runs in memory: what comes in goes out, in groups, however it is cut into batches."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.algorithms.castle import Castle
from shoal.arrow.release import Publish, Release
from shoal.audit import Report, audit
from shoal.engine.base import Anonymizer, Decisions, Engine, Out
from shoal.engine.space import Codes, Space
from shoal.errors import PromiseError, ResourceError
from shoal.io import BadRow
from shoal.io.base import Chunk
from shoal.metrics import Summary
from shoal.run.pipeline import Pipeline, Run
from shoal.spec.hierarchy import Hierarchy, Range
from shoal.spec.policy import Delay, DistinctLDiversity, KAnonymity, Policy
from shoal.spec.schema import Quasi, Schema, Sensitive
from shoal.testing.clocks import ManualClock
from tests.examples import examples
from tests.world import Kept, Rows, people, with_gaps

TOWN = Hierarchy.from_rows(
    [
        ["berlin", "east", "any"],
        ["dresden", "east", "any"],
        ["bonn", "west", "any"],
        ["koeln", "west", "any"],
    ]
)


def schema_of(time: str | None = None, subject: str | None = "person") -> Schema:
    return Schema(
        subject=subject,
        quasi=[Quasi("age", Range(0, 120, step=1)), Quasi("town", TOWN)],
        sensitive=[Sensitive("illness", None)],
        keep=["ward"],
        time=time,
    )


def policy_of(delay: Delay, k: int = 3, l: int = 2) -> Policy:  # noqa: E741
    return Policy(KAnonymity(k), DistinctLDiversity(l), delay=delay)


SCHEMA = schema_of()
POLICY = policy_of(Delay(rows=20))


class Story:
    """A run in memory with all that came of it."""

    def __init__(
        self,
        pipeline: Pipeline,
        table: pa.Table,
        cuts: list[int] | None = None,
        source: Any = None,
        **options: Any,
    ) -> None:
        self.pipeline, self._table = pipeline, table
        self.bad: list[BadRow] = []
        self.sink = self.trace = Kept(pa.schema([]))
        rows = source or Rows(table, pipeline.schema.columns, cuts or [])
        self.run: Run = pipeline.run(
            rows, self._open_sink, on_bad=self.bad.extend, open_trace=self._open_trace, **options
        )

    def _open_sink(self, schema: pa.Schema) -> Kept:
        self.sink = Kept(schema)
        return self.sink

    def _open_trace(self, schema: pa.Schema) -> Kept:
        self.trace = Kept(schema)
        return self.trace

    def execute(self) -> Story:
        self.run.execute()
        return self

    @property
    def output(self) -> pa.Table:
        return self.sink.table

    def judge(self, n_rows: int | None = None) -> Report:
        publish = self.pipeline.publish
        return audit(
            self.pipeline.schema,
            self.pipeline.policy,
            self.output,
            numeric=publish.numeric,
            suppressed=publish.suppressed,
            trace=self.trace.table,
            original=self._table.slice(0, n_rows).select(self.pipeline.schema.columns),
        )


def pipeline_of(schema: Schema = SCHEMA, policy: Policy = POLICY, **options: Any) -> Pipeline:
    anonymizer = options.pop("anonymizer", Castle())
    return Pipeline(schema, policy, anonymizer, Publish(**options), b"seed")


def n_accounted(summary: Summary) -> int:
    return summary.n_published + summary.suppression.count + summary.n_quarantined + summary.n_held


@settings(max_examples=examples(25), deadline=None)
@given(
    n_rows=st.integers(1, 80),
    seed=st.integers(0, 1000),
    n_people=st.integers(1, 30),
    cuts=st.lists(st.integers(1, 79), max_size=8),
    order=st.sampled_from(["released", "shuffled", "arrival"]),
    suppressed=st.sampled_from(["drop", "root"]),
    delay=st.integers(3, 30),
)
def test_any_batching_gives_the_same_rows_and_keeps_the_promise(
    n_rows, seed, n_people, cuts, order, suppressed, delay
):
    table = people(n_rows, seed, n_people)
    pipeline = pipeline_of(policy=policy_of(Delay(rows=delay)), order=order, suppressed=suppressed)
    whole = Story(pipeline, table).execute()
    cut = Story(pipeline, table, cuts).execute()
    assert whole.output.equals(cut.output)
    report = cut.judge()
    assert report.verdict == "kept", str(report)
    assert "person" not in cut.output.schema.names
    values = {value for column in cut.output.to_pydict().values() for value in column}
    assert not values & set(table["person"].to_pylist())
    summary = cut.run.summary
    assert summary.n_in == n_rows == n_accounted(summary)
    assert summary.n_held == 0


@pytest.mark.parametrize("order", ["released", "shuffled", "arrival"])
def test_figures_add_up_after_every_batch_and_at_the_end(order):
    seen: list[tuple[int, int, int]] = []

    def watch(summary: Summary) -> None:
        seen.append((summary.n_in, n_accounted(summary), summary.n_held))

    table = people(100)
    Story(pipeline_of(order=order), table, list(range(7, 100, 7)), watch=watch).execute()
    assert len(seen) == 16
    assert all(n_in == n_told for n_in, n_told, _ in seen)
    assert any(n_held for *_, n_held in seen)
    assert seen[-1] == (100, 100, 0)


def test_releases_follow_each_other_and_have_public_columns_only():
    releases: list[Release] = []
    story = Story(pipeline_of(), people(100), [30, 60], on_release=releases.append).execute()
    assert [release.first for release in releases] == [
        sum(before.n_rows for before in releases[:i]) for i in range(len(releases))
    ]
    assert sum(release.n_rows for release in releases) == story.output.num_rows == 100
    for release in releases:
        assert release.batch.schema.names == ["age", "town", "illness", "ward"]


def test_the_order_of_arrival_is_kept_within_the_delay():
    table = people(100)
    story = Story(pipeline_of(order="arrival"), table, [13, 50]).execute()
    trace = story.trace.table.sort_by("seq")
    out = trace.filter(pa.compute.is_valid(trace["seq"]))
    assert out["arrived"].to_pylist() == sorted(out["arrived"].to_pylist())
    waited = np.asarray(out["published"]) - np.asarray(out["arrived"])
    assert 0 < waited.max() <= 20
    assert story.judge().verdict == "kept"


def test_released_order_is_not_the_order_of_arrival():
    story = Story(pipeline_of(), people(100)).execute()
    arrived = story.trace.table.sort_by("seq")["arrived"].to_pylist()
    assert arrived != sorted(arrived)


class Endless(Rows):
    """A source that yields its rows and then blocks until it is released."""

    def __init__(self, table: pa.Table, cuts: list[int]) -> None:
        super().__init__(table, SCHEMA.columns, cuts)
        self.given, self.released = threading.Event(), threading.Event()

    def __iter__(self):  # type: ignore[no-untyped-def]
        yield from super().__iter__()
        self.given.set()
        self.released.wait(30)


@pytest.mark.parametrize("order", ["released", "shuffled", "arrival"])
def test_a_stopped_run_has_whole_groups_out_and_lists_what_is_held(order):
    table = people(100)
    source = Endless(table, [40, 80])

    def watch(summary: Summary) -> None:
        if summary.n_in == 100:
            story.run.stop()

    story = Story(pipeline_of(order=order), table, source=source, watch=watch)
    story.execute()
    source.released.set()
    summary = story.run.summary
    assert story.run.interrupted
    assert summary.n_in == 100 == n_accounted(summary)
    assert summary.n_held > 0
    outcomes = story.trace.table["outcome"].to_pylist()
    assert outcomes.count("held") == summary.n_held
    assert len(outcomes) == 100
    assert story.output.num_rows == summary.n_published
    report = story.judge()
    assert report.verdict == "kept", str(report)


# -- the last look ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Careless(Anonymizer):
    """Publish every row alone, whatever was promised."""

    name: ClassVar[str] = "careless"
    enforces: ClassVar[tuple[type, ...]] = (KAnonymity, DistinctLDiversity)
    reference: ClassVar[str] = "none"

    def _start(self, space: Space, seed: bytes) -> Engine:
        return CarelessEngine(space)


class CarelessEngine:
    """Stands in for an engine: what the pipeline asks of one, and no more."""

    n_held = 0
    next_deadline = None

    def __init__(self, space: Space) -> None:
        self._space, self._n = space, 0

    def push(self, codes: Codes) -> Decisions:
        n = len(codes.subjects)
        rows = np.arange(self._n, self._n + n)
        self._n += n
        ones = np.ones(n, np.int64)
        return Decisions(
            rows, np.zeros(n, np.int64), np.arange(n), rows, np.full(n, np.nan), rows,
            np.zeros(n, np.int64), np.zeros(n),
            codes.values, codes.values, np.zeros(n), rows, ones, ones, np.zeros(n, np.int64), -ones,
        )  # fmt: skip

    def flush(self) -> Decisions:
        return Out.room(0, 2).decisions()


def test_a_group_of_one_is_stopped_before_anything_is_written():
    table = people(10)
    story = Story(pipeline_of(anonymizer=Careless()), table)
    with pytest.raises(PromiseError, match="fewer than 3 subjects") as raised:
        story.run.execute()
    assert story.output.num_rows == 0
    assert story.trace.table["outcome"].to_pylist() == ["held"] * 10
    assert story.run.summary.n_held == 10
    assert not any(value in str(raised.value) for value in table["person"].to_pylist())


# -- seconds ---------------------------------------------------------------------------------------


def test_deadlines_in_stream_time_follow_the_time_column():
    schema = schema_of(time="at")
    pipeline = pipeline_of(schema, policy_of(Delay(seconds=9.5)))
    story = Story(pipeline, people(60), [7, 31]).execute()
    assert story.judge().verdict == "kept"
    trace = story.trace.table
    waited = np.asarray(trace["published_s"]) - np.asarray(trace["arrived_s"])
    assert 5 < waited.max() <= 9.5
    whole = Story(pipeline, people(60)).execute()
    assert whole.output.equals(story.output)


def test_a_clock_ticks_in_silence():
    clock = ManualClock(1000.0)
    table = people(12, n_people=12)
    out = threading.Event()
    pipeline = Pipeline(
        SCHEMA, policy_of(Delay(seconds=60)), Castle(), Publish(), b"seed", clock=clock
    )
    source = Endless(table, [])
    story = Story(pipeline, table, source=source, on_release=lambda release: out.set())
    thread = threading.Thread(target=story.run.execute)
    thread.start()
    try:
        assert source.given.wait(600)
        assert not out.wait(0.3)
        clock.advance(59.9)
        assert out.wait(600)
    finally:
        source.released.set()
        thread.join(600)
    assert story.trace.table.num_rows == 12
    assert set(story.trace.table["published_s"].to_pylist()) == {1059.9}
    assert story.judge().verdict == "kept"


# -- warnings and failures -------------------------------------------------------------------------


def test_a_kept_column_that_identifies_people_is_warned_about_once_and_without_values():
    table = people(300).set_column(4, "ward", pa.array([f"CANARY-{i}" for i in range(300)]))
    warnings: list[str] = []
    Story(pipeline_of(), table, [100, 200], warn=warnings.append).execute()
    assert len(warnings) == 1
    assert "column ward has 100 different values in 100 rows" in warnings[0]
    assert "CANARY" not in warnings[0]
    Story(pipeline_of(), people(300), [100, 200], warn=warnings.append).execute()
    assert len(warnings) == 1


class Breaking(Rows):
    """An input that breaks off."""

    def __iter__(self):  # type: ignore[no-untyped-def]
        yield from super().__iter__()
        raise ResourceError("rows in memory: cut off.")


@pytest.mark.parametrize("order", ["released", "arrival"])
def test_an_input_that_breaks_off_leaves_whole_groups_and_says_what_is_held(order):
    table = people(50)
    source = Breaking(table, SCHEMA.columns, [])
    story = Story(pipeline_of(order=order), table, source=source)
    with pytest.raises(ResourceError, match="cut off"):
        story.run.execute()
    summary = story.run.summary
    assert summary.n_held > 0
    assert summary.n_in == n_accounted(summary) == 50
    assert story.judge().verdict == "kept"


def test_a_sink_that_fails_ends_the_run_with_its_error():
    class Full(Kept):
        def write(self, batch: pa.RecordBatch) -> None:
            raise ResourceError("out: can't be written: the disk is full.")

    pipeline = pipeline_of()
    table = people(100)
    run = pipeline.run(Rows(table, SCHEMA.columns, list(range(5, 100, 5))), Full, on_bad=[].extend)
    with pytest.raises(ResourceError, match="disk is full"):
        run.execute()
    assert run.n_written == 0


def test_a_sink_that_can_not_be_opened_ends_the_run_with_its_error():
    def refuse(schema: pa.Schema) -> Kept:
        raise ResourceError("out: can't be written.")

    with pytest.raises(ResourceError, match="can't be written"):
        pipeline_of().run(
            Rows(people(10), SCHEMA.columns, []), refuse, on_bad=[].extend, open_trace=Kept
        ).execute()


def test_an_input_without_rows_gives_an_output_without_rows():
    class Empty(Rows):
        def __iter__(self):  # type: ignore[no-untyped-def]
            return iter(())

    story = Story(pipeline_of(), people(1), source=Empty(people(1), SCHEMA.columns, [])).execute()
    assert story.output.num_rows == 0
    assert story.output.schema.names == ["age", "town", "illness", "ward"]
    assert story.run.summary.n_in == 0


def test_bad_rows_are_handed_over_in_order_and_traced():
    table = people(40)
    ages = table["age"].to_pylist()
    ages[5], ages[9] = 500, None
    persons = table["person"].to_pylist()
    persons[9] = "person-bad"
    persons[20] = None
    table = table.set_column(1, "age", pa.array(ages)).set_column(0, "person", pa.array(persons))

    class Torn(Rows):
        """Rows 7 and 30 couldn't be read at all."""

        def __iter__(self):  # type: ignore[no-untyped-def]
            for chunk in super().__iter__():
                good = np.isin(chunk.rows, [7, 30], invert=True)
                bad = [BadRow(int(row), "torn", b"x") for row in chunk.rows[~good]]
                yield Chunk(chunk.batch.filter(pa.array(good)), chunk.rows[good], bad)

    source = Torn(table, SCHEMA.columns, [10])
    story = Story(pipeline_of(), table, source=source).execute()
    assert [bad.row for bad in story.bad] == [5, 7, 9, 20, 30]
    assert [bad.reason for bad in story.bad] == [
        "age is out of its range", "torn", "age is missing", "person is missing", "torn",
    ]  # fmt: skip
    assert b"person-bad" in story.bad[2].raw
    lines = {line["row"]: line for line in story.trace.table.to_pylist()}
    assert sorted(lines) == list(range(40))
    assert {row for row, line in lines.items() if line["outcome"] == "quarantined"} == {
        5, 7, 9, 20, 30,
    }  # fmt: skip
    assert lines[9]["subject"] == "person-bad"
    assert lines[7]["subject"] is None
    assert lines[5]["arrived"] is None
    summary = story.run.summary
    assert (summary.n_in, summary.n_quarantined) == (40, 5)
    assert n_accounted(summary) == 40


def test_each_row_may_be_a_person_of_its_own():
    table = people(40)
    story = Story(pipeline_of(schema_of(subject=None)), table).execute()
    assert sorted(story.trace.table["subject"].to_pylist()) == list(range(40))
    assert story.judge().verdict == "kept"


def test_runs_differ_without_a_seed():
    pipeline = Pipeline(SCHEMA, POLICY, Castle())
    table = people(100)
    outputs = [Story(pipeline, table).execute().output for _ in range(2)]
    assert not outputs[0].equals(outputs[1])
    assert sorted(outputs[0]["illness"].to_pylist()) == sorted(outputs[1]["illness"].to_pylist())


# -- missing values --------------------------------------------------------------------------------


@settings(max_examples=examples(30), deadline=None)
@given(
    n_rows=st.integers(1, 80),
    every=st.fixed_dictionaries({"age": st.integers(1, 4), "town": st.integers(1, 4)}),
    cuts=st.lists(st.integers(1, 79), max_size=3),
    missing=st.sampled_from(["maybe", "extended"]),
    order=st.sampled_from(["released", "arrival", "shuffled"]),
    numeric=st.sampled_from(["range", "bounds", "midpoint"]),
    suppressed=st.sampled_from(["drop", "root"]),
)
def test_whatever_missing_means_the_audit_finds_it_kept(
    n_rows, every, cuts, missing, order, numeric, suppressed
):
    policy = Policy(KAnonymity(3), delay=Delay(rows=20), missing=missing)
    table = with_gaps(people(n_rows), every)
    looks = {"order": order, "numeric": numeric, "suppressed": suppressed}
    story = Story(pipeline_of(policy=policy, **looks), table, cuts).execute()
    assert not story.bad
    report = story.judge()
    assert report.verdict == "kept", str(report)
    assert report["missing"].figures["n_compared"] == story.run.summary.n_published


def test_under_maybe_a_cell_is_null_exactly_where_nothing_was():
    policy = Policy(KAnonymity(3), delay=Delay(rows=20), missing="maybe")
    table = with_gaps(people(120))
    story = Story(pipeline_of(policy=policy, numeric="bounds"), table).execute()
    lines = story.trace.table.filter(pa.compute.is_valid(story.trace.table["seq"])).to_pylist()
    shown, original = story.output.to_pylist(), table.to_pylist()
    assert len(lines) > 100
    for line in lines:
        row, given_row = shown[line["seq"]], original[line["row"]]
        assert (row["age_min"] is None) == (row["age_max"] is None) == (given_row["age"] is None)
        assert (row["town"] is None) == (given_row["town"] is None)


def test_under_extended_nothing_is_null_and_under_quarantine_nothing_comes():
    table = with_gaps(people(120))
    for missing in ("extended", "quarantine"):
        policy = Policy(KAnonymity(3), delay=Delay(rows=20), missing=missing)
        story = Story(pipeline_of(policy=policy), table).execute()
        assert story.output["age"].null_count == story.output["town"].null_count == 0
        lost = sum(row["age"] is None or row["town"] is None for row in table.to_pylist())
        assert len(story.bad) == (lost if missing == "quarantine" else 0)


@pytest.mark.parametrize("missing", ["maybe", "extended"])
def test_what_is_missing_is_counted_before_and_after(missing):
    policy = Policy(KAnonymity(3), delay=Delay(rows=20), missing=missing)
    table = with_gaps(people(120))
    story = Story(pipeline_of(policy=policy, numeric="bounds"), table).execute()
    lines = [line for line in story.trace.table.to_pylist() if line["group"] is not None]
    rows = table.to_pylist()
    gaps = {
        (line["group"], name)
        for line in lines
        for name in ("age", "town")
        if line["outcome"] == "group" and rows[line["row"]][name] is None
    }
    before = after = 0
    for line in lines:
        for name in ("age", "town"):
            lacks = rows[line["row"]][name] is None
            before += lacks
            after += lacks or (missing == "extended" and (line["group"], name) in gaps)
    found = story.run.summary.as_dict()["missing"]
    n_cells = 2 * len(lines)
    assert found == pytest.approx(
        {"before": before / n_cells, "after": after / n_cells, "rate": (after - before) / n_cells}
    )
    assert (found["rate"] == 0) == (missing == "maybe")
    assert any(line.startswith("missing: ") for line in story.run.summary.lines())


@pytest.mark.parametrize("order", ["released", "arrival"])
@pytest.mark.parametrize("missing", ["maybe", "extended"])
def test_the_reported_loss_is_that_of_rows_where_they_have_values(missing, order):
    policy = Policy(KAnonymity(3), delay=Delay(rows=20), missing=missing)
    table = with_gaps(people(120))
    story = Story(pipeline_of(policy=policy, order=order, numeric="bounds"), table).execute()
    shown, total, n = story.output.to_pylist(), 0.0, 0
    for line in story.trace.table.to_pylist():
        if line["outcome"] == "suppressed":
            continue
        row, sides = shown[line["seq"]], []
        if table["age"][line["row"]].is_valid:
            sides.append((row["age_max"] - row["age_min"]) / 120)
        if table["town"][line["row"]].is_valid:
            sides.append({"any": 1.0, "east": 0.5, "west": 0.5}.get(row["town"], 0.0))
        loss = sum(sides) / len(sides) if sides else 0.0
        assert line["loss"] == pytest.approx(loss)
        total, n = total + loss, n + 1
    assert story.run.summary.loss.published == pytest.approx(total / n)
