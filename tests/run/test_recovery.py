"""Runs that are cut off anywhere and go on: what was published is what one run would publish.

Source and sinks are in memory here and outlive the run, as files and topics do; journal and
checkpoints are real. What a run has written and not committed may be lost or not, as it falls.
"""

from __future__ import annotations

import contextlib
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.algorithms.castle import Castle
from shoal.algorithms.tide import Tide
from shoal.arrow.release import Publish
from shoal.audit import audit
from shoal.engine.tide import by_batch
from shoal.errors import CheckpointError, JobError, ParameterError, ResourceError
from shoal.io.base import BadRow, Chunk, CommitMark, Position, Span
from shoal.run.encoder import AHEAD
from shoal.run.pipeline import Pipeline, Run
from shoal.run.recovery import Checkpointer, Recovery
from shoal.run.state.folder import SEGMENT, numbers_of, path_of
from shoal.run.state.journal import Flush, Journal, Read, Tick, read_journal
from shoal.run.state.store import Store
from shoal.spec.policy import Delay, DistinctLDiversity, KAnonymity, Policy
from shoal.spec.schema import Quasi, Schema, Sensitive
from shoal.testing.clocks import ManualClock
from tests.examples import examples
from tests.run.test_pipeline import TOWN, policy_of, schema_of
from tests.world import people, with_gaps


class Cut(BaseException):
    """The end of a process, as far as a test in one process can have it."""


class Again:
    """Rows in memory that can be read again, in parts of given lengths, of some partitions.

    ``after`` chunks it ends the run by `Cut`, or stops it in good order.
    """

    def __init__(
        self,
        table: pa.Table,
        columns: Sequence[str],
        lengths: Iterator[int],
        n_partitions: int = 1,
        after: int | None = None,
        on_chunk: Callable[[int], None] | None = None,
    ) -> None:
        self.schema_names = tuple(columns)
        whole = table.select(columns).combine_chunks()
        self._parts = [
            whole.take(np.arange(p, len(whole), n_partitions)) for p in range(n_partitions)
        ]
        self._lengths, self._after, self._on_chunk = lengths, after, on_chunk
        self._at = [0] * n_partitions
        self._n_rows = 0
        self._draw = random.Random(5 if after is None else after)
        self.n_chunks = 0

    def __iter__(self) -> Iterator[Chunk]:
        while any(at < len(part) for at, part in zip(self._at, self._parts, strict=True)):
            if self._after is not None and self.n_chunks >= self._after:
                raise Cut
            n = next(self._lengths)
            # Which partition has something first is chance, as it is at a broker.
            ready = [p for p, at in enumerate(self._at) if at < len(self._parts[p])]
            chosen = sorted(self._draw.sample(ready, self._draw.randint(1, len(ready))))
            spans = [
                Span(str(p), self._at[p], min(self._at[p] + n, len(self._parts[p]))) for p in chosen
            ]
            self.n_chunks += 1
            if self._on_chunk is not None:
                self._on_chunk(self.n_chunks)
            yield self.replay(spans)

    def replay(self, spans: Sequence[Span]) -> Chunk:
        pieces = []
        for span in spans:
            p = int(span.stream)
            assert span.begin == self._at[p]
            pieces.append(self._parts[p].slice(span.begin, span.end - span.begin))
            self._at[p] = span.end
        table = pa.concat_tables(pieces).combine_chunks()
        batch = table.to_batches()[0]
        rows = np.arange(self._n_rows, self._n_rows + len(table))
        self._n_rows += len(table)
        position: Position = {"at": list(self._at), "rows": self._n_rows}
        return Chunk(batch, rows, [], tuple(spans), position)

    def begins_at(self) -> Position | None:
        return None

    def seek(self, position: Position) -> None:
        self._at, self._n_rows = list(position["at"]), position["rows"]

    def stop(self) -> None:
        pass

    def lag(self) -> int | None:
        return sum(len(part) for part in self._parts) - sum(self._at)

    def describe(self) -> str:
        return "rows in memory"

    def close(self) -> None:
        pass


class StoredRows:
    """What outlives a run: the rows that a sink has, and how many of them are committed."""

    def __init__(self, *, forgets: bool) -> None:
        self.rows: list[dict[str, Any]] = []
        self.n_committed = 0
        self._forgets = forgets

    def check(self) -> None:
        if self.rows:
            raise JobError(())

    def open(self, schema: pa.Schema, mark: CommitMark | None) -> StoredRowsSink:
        if self._forgets:
            # What wasn't committed is gone, as in an aborted transaction.
            del self.rows[self.n_committed :]
        assert mark is not None
        assert len(self.rows) >= mark.get("rows", 0)
        return StoredRowsSink(self, mark.get("rows", 0))


class StoredRowsSink:
    """A durable sink into stored rows; what is there already must be what is written again."""

    def __init__(self, stored: StoredRows, at: int) -> None:
        self._stored, self._at = stored, at

    def write(self, batch: pa.RecordBatch) -> None:
        for row in batch.to_pylist():
            if self._at < len(self._stored.rows):
                assert self._stored.rows[self._at] == row, "a row was published in two ways"
            else:
                self._stored.rows.append(row)
            self._at += 1

    def flush(self) -> None:
        pass

    def commit(self) -> CommitMark:
        self._stored.n_committed = max(self._stored.n_committed, self._at)
        return {"rows": self._at}

    @property
    def n_ahead(self) -> int:
        return max(0, len(self._stored.rows) - self._at)

    def abandon(self) -> None:
        pass

    def close(self) -> None:
        self.commit()


class Bin:
    """A quarantine that outlives a run."""

    def __init__(self) -> None:
        self.rows: list[BadRow] = []
        self._at = 0

    def __call__(self, bad: list[BadRow]) -> None:
        for row in bad:
            if self._at < len(self.rows):
                assert self.rows[self._at] == row
            else:
                self.rows.append(row)
            self._at += 1

    def check(self) -> None:
        if self.rows:
            raise JobError(())

    def resume(self, mark: CommitMark) -> None:
        self._at = mark.get("rows", 0)

    def commit(self) -> CommitMark:
        return {"rows": self._at}

    @property
    def n_ahead(self) -> int:
        return len(self.rows) - self._at


class World:
    """A job whose process ends again and again."""

    def __init__(
        self,
        folder: Path,
        table: pa.Table,
        *,
        schema: Schema | None = None,
        policy: Policy | None = None,
        publish: Publish | None = None,
        clock: Callable[[], float] | None = None,
        every: float = 1e-9,
        n_partitions: int = 1,
        forgets: bool = False,
        lengths: Callable[[], Iterator[int]] | None = None,
    ) -> None:
        self.folder, self.table = folder, table
        self.schema = schema or schema_of()
        self.policy = policy or policy_of(Delay(rows=20))
        options = {} if clock is None else {"clock": clock}
        self.pipeline = Pipeline(
            self.schema, self.policy, Castle(), publish or Publish(), b"seed", **options
        )
        self.output, self.trace, self.bin = (
            StoredRows(forgets=forgets),
            StoredRows(forgets=forgets),
            Bin(),
        )
        self._every, self._n_partitions = every, n_partitions
        self._lengths = lengths or (lambda: iter(lambda: 7, 0))
        self.code = "1"

    def run(self, after: int | None = None, **options: Any) -> Run:
        """Prepare a run whose process ends ``after`` this many chunks."""
        on_chunk = options.pop("on_chunk", None)
        source = Again(
            self.table, self.schema.columns, self._lengths(), self._n_partitions, after, on_chunk
        )
        recovery = Recovery(self.folder, {"policy": "1"}, code=self.code, every=self._every)
        return self.pipeline.run(
            source, self.output, on_bad=self.bin, open_trace=self.trace,
            recovery=options.pop("recovery", recovery), **options,
        )  # fmt: skip

    def cut(self, after: int) -> bool:
        """Run until the process ends; whether it did before the rows did."""
        try:
            self.run(after).execute()
        except Cut:
            return True
        return False

    def judge(self, *, late: bool = False, ahead: bool = False) -> None:
        """All rows are accounted for, once, and the promise holds, but maybe for the delay.

        Why a row lay ahead of the clock is in no file: such rows can't be judged again.
        """
        lines = pa.Table.from_pylist(self.trace.rows)
        assert sorted(lines["row"].to_pylist()) == list(range(len(self.table)))
        if self._n_partitions > 1:
            return
        published = pa.Table.from_pylist(self.output.rows)
        original = self.table.select(self.schema.columns)
        report = audit(
            self.schema, self.policy, published, trace=lines, original=original,
            suppressed=self.pipeline.publish.suppressed,
        )  # fmt: skip
        verdicts = {v.name: v.verdict for v in report.verdicts if v.verdict != "kept"}
        if ahead:
            assert verdicts.pop("conservation") == "unverifiable"
        assert set(verdicts) <= ({"delay"} if late else set()), str(report)


@settings(max_examples=examples(30), deadline=None)
@given(
    n_rows=st.integers(1, 120),
    seed=st.integers(0, 99),
    cuts=st.lists(st.integers(0, 6), max_size=6),
    length=st.integers(1, 40),
    order=st.sampled_from(["released", "shuffled", "arrival"]),
    forgets=st.booleans(),
    often=st.booleans(),
    missing=st.sampled_from(["quarantine", "maybe", "extended"]),
)
def test_a_run_cut_off_anywhere_publishes_what_one_run_would(
    tmp_path_factory, n_rows, seed, cuts, length, order, forgets, often, missing
):
    table = people(n_rows, seed, n_people=max(1, n_rows // 3))
    if missing != "quarantine":
        table = with_gaps(table)
    promised = policy_of(Delay(rows=20))
    policy = Policy(*promised.criteria, delay=promised.delay, missing=missing)
    publish = Publish(order=order, suppressed="root")
    lengths = {"lengths": lambda: iter(lambda: length, 0)}
    whole = World(tmp_path_factory.mktemp("whole"), table, policy=policy, publish=publish)
    whole.run().execute()
    world = World(
        tmp_path_factory.mktemp("cut"), table, policy=policy, publish=publish, forgets=forgets,
        every=1e-9 if often else 1e6, **lengths,
    )  # fmt: skip
    for after in cuts:
        world.cut(after)
    run = world.run()
    summary = run.execute()
    assert world.output.rows == whole.output.rows
    assert sorted(map(str, world.trace.rows)) == sorted(map(str, whole.trace.rows))
    assert summary.n_in == n_rows
    assert summary.n_held == 0
    world.judge()


def test_bad_rows_are_set_apart_once(tmp_path):
    table = people(200)
    ages = pa.array([None if i % 9 == 4 else a for i, a in enumerate(table["age"].to_pylist())])
    table = table.set_column(1, "age", ages)
    world = World(tmp_path, table)
    for after in (3, 0, 5, 8, 1):
        assert world.cut(after)
    world.run().execute()
    assert [row.row for row in world.bin.rows] == list(range(4, 200, 9))
    world.judge()


def seconds(delay: float, **options: Any) -> Policy:
    return Policy(KAnonymity(3), DistinctLDiversity(2), delay=Delay(seconds=delay, **options))


class Ticking:
    """A clock that moves by a random step with each call, and sometimes goes back."""

    def __init__(self, seed: int, begin: float) -> None:
        self._draw, self._now = random.Random(seed), begin

    def __call__(self) -> float:
        self._now += self._draw.choice([0.01, 0.3, 0.5, -5.0 if self._draw.random() < 0.05 else 0])
        return self._now


@pytest.mark.parametrize("n_chunks", [9, 10, 12])
def test_rows_that_come_too_late_are_too_late_after_a_crash_as_well(tmp_path, n_chunks):
    # The clock tells when rows leave, and their stamps which of them come too late.
    stamps = [float(i) if i < 60 else i - 50.0 for i in range(200)]
    table = people(200)
    table = table.set_column(table.schema.get_field_index("at"), "at", pa.array(stamps))
    policy = Policy(
        KAnonymity(3), DistinctLDiversity(2),
        delay=Delay(rows=20, seconds=1e6, clock="wall"), lateness=5.0,
    )  # fmt: skip
    world = World(
        tmp_path, table, schema=schema_of(time="at"), policy=policy, clock=ManualClock(0.0)
    )
    for after in (n_chunks, 1, 1):
        assert world.cut(after)
    world.run().execute()
    assert [row.row for row in world.bin.rows] == list(range(60, 104))
    world.judge()


@pytest.mark.parametrize("n_partitions", [1, 3])
@pytest.mark.parametrize("seed", range(4))
def test_with_a_clock_the_output_is_that_of_the_journal(tmp_path, monkeypatch, seed, n_partitions):
    monkeypatch.setattr(Store, "_drop_before", lambda *_: None)
    draw = random.Random(seed)
    world = World(
        tmp_path / "state", people(300, seed, 80), policy=seconds(6), n_partitions=n_partitions,
        clock=Ticking(seed, 1000.0), every=1e6, forgets=seed % 2 == 0,
    )  # fmt: skip
    for _ in range(5):
        world.cut(draw.randint(0, 12))
    world.run().execute()
    # The clock goes on whatever happens, and an outage is an outage.
    world.judge(late=True)
    # The journal since the start, lived through by a run of its own, gives the same rows.
    entries = list(read_journal(tmp_path / "state", 0, None))
    assert {type(entry) for entry in entries} == {Read, Tick, Flush}
    other = World(
        tmp_path / "other", world.table, policy=world.policy, n_partitions=n_partitions, every=1e6
    )
    run = other.run()
    run._recover(run._checkpointer)
    run._replay(entries)
    run._close(failed=False)
    assert other.output.rows == world.output.rows


def test_a_clock_that_goes_back_holds_nothing_longer(tmp_path):
    clock = ManualClock(1000.0)

    def on_chunk(n: int) -> None:
        clock.set(1000.0 + n if n < 10 else 500.0 + n)

    world = World(
        tmp_path, people(300), policy=seconds(5), clock=clock,
        lengths=lambda: iter(lambda: 10, 0),
    )  # fmt: skip
    world.run(on_chunk=on_chunk).execute()
    assert numbers_of(tmp_path, SEGMENT)
    waits = [line["published_s"] - line["arrived_s"] for line in world.trace.rows]
    assert min(waits) >= 0


def test_rows_overdue_after_an_outage_leave_first_and_are_counted_as_late(tmp_path):
    clock = ManualClock(1000.0)
    world = World(
        tmp_path, people(60, n_people=60), policy=seconds(5), clock=clock,
        lengths=lambda: iter(lambda: 20, 0),
    )  # fmt: skip
    assert world.cut(1)
    assert world.output.rows == []
    clock.set(5000.0)
    summary = world.run().execute()
    late = [line for line in world.trace.rows if line["published_s"] - line["arrived_s"] > 5]
    assert len(late) == summary.n_late == 20
    assert {line["arrived"] for line in late} == set(range(20))
    seqs = [line["seq"] for line in late if line["seq"] is not None]
    assert sorted(seqs) == list(range(len(seqs)))
    assert summary.as_dict()["rows"]["late"] == 20


def stopping_after(world: World, n_turns: int, **options: Any) -> Run:
    """A run that is stopped after some rounds of its loop."""
    turns = iter(range(1, 10**6))

    def watch(summary: Any) -> None:
        if next(turns) == n_turns:
            run.stop()

    run = world.run(watch=watch, **options)
    return run


def test_a_stop_leaves_held_rows_held_and_the_next_run_resumes(tmp_path):
    table = people(200)
    whole = World(tmp_path / "whole", table)
    whole.run().execute()
    world = World(tmp_path / "state", table)
    for _ in range(3):
        run = stopping_after(world, 4)
        summary = run.execute()
        assert run.interrupted
        assert summary.n_held > 0
        assert run.saved is not None
        assert list(read_journal(tmp_path / "state", run.saved.number, None)) == []
    world.run().execute()
    assert world.output.rows == whole.output.rows


def test_a_run_resumes_with_another_number_of_threads_and_publishes_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(by_batch, "WORTH_A_THREAD", 1)
    table = people(200)

    def world(name: str) -> World:
        made = World(tmp_path / name, table, lengths=lambda: iter(lambda: 40, 0))
        made.pipeline = replace(made.pipeline, anonymizer=Tide(workers=1))
        return made

    whole, cut = world("whole"), world("cut")
    whole.run().execute()
    for workers in (1, 2, 0):
        cut.pipeline = replace(cut.pipeline, anonymizer=Tide(workers=workers))
        assert cut.cut(1)
    cut.run().execute()
    assert cut.output.rows == whole.output.rows
    assert cut.trace.rows == whole.trace.rows


def test_draining_publishes_what_is_held_under_the_promise(tmp_path):
    world = World(tmp_path, people(200))
    run = stopping_after(world, 4, drain=True)
    summary = run.execute()
    assert run.interrupted
    assert summary.n_held == 0
    assert summary.n_in == summary.n_published + summary.suppression.count > 0
    world.run().execute()
    world.judge()


def test_a_stop_while_the_journal_is_replayed_changes_nothing(tmp_path):
    table = people(200)
    whole = World(tmp_path / "whole", table)
    whole.run().execute()
    world = World(tmp_path / "state", table, every=1e6)
    world.cut(9)
    run = stopping_after(world, 3, drain=True)
    run.execute()
    assert run.interrupted
    world.run().execute()
    assert world.output.rows == whole.output.rows


@pytest.mark.parametrize("every", [1e-9, 1e6])
def test_rows_of_the_runs_before_count_as_written_once(tmp_path, every):
    world = World(tmp_path, people(200), every=every)
    for after in (9, 3):
        assert world.cut(after)
    run = world.run(on_chunk=lambda n: run.stop() if n > 2 else None)
    summary = run.execute()
    assert run.interrupted
    assert not run.is_behind
    assert run.n_written == summary.n_published == len(world.output.rows) > 0


@pytest.mark.parametrize("fails", [False, True])
def test_a_run_that_ends_in_a_replay_says_that_it_is_behind(tmp_path, fails):
    world = World(tmp_path, people(200), every=1e6)
    assert world.cut(9)
    run = world.run()

    def end(spans: Sequence[Span]) -> Chunk:
        if not fails:
            run.stop()
        raise ResourceError("the disk is gone")

    run._reader.source.replay = end
    with pytest.raises(ResourceError, match="the disk") if fails else contextlib.nullcontext():
        run.execute()
    assert run.is_behind
    last = world.run()
    last.execute()
    assert not last.is_behind


def test_another_version_resumes_only_after_an_orderly_stop(tmp_path):
    world = World(tmp_path, people(200), every=1e6)
    world.cut(5)
    world.code = "2"
    with pytest.raises(CheckpointError, match="another version"):
        world.run().execute()
    world.code = "1"
    run = world.run()
    run.stop()
    run.execute()
    # Stopped at once it hasn't caught up: the refusal stands until a run has come to an end.
    world.code = "2"
    with pytest.raises(CheckpointError, match="another version"):
        world.run().execute()
    world.code = "1"
    world.run().execute()
    world.code = "2"
    world.run().execute()
    world.judge()


def test_a_journal_that_is_gone_is_noticed(tmp_path):
    world = World(tmp_path, people(200), every=1e6)
    world.cut(8)
    path_of(tmp_path, SEGMENT, 0).unlink()
    with pytest.raises(CheckpointError, match="journal that followed checkpoint 0 is missing"):
        world.run().execute()


def test_a_journal_cut_short_is_noticed_by_what_is_published(tmp_path):
    world = World(tmp_path, people(200), every=1e6)
    world.cut(8)
    assert len(world.output.rows) > 0
    segment = path_of(tmp_path, SEGMENT, 0)
    data = segment.read_bytes()
    segment.write_bytes(data[: len(data) // 2])
    with pytest.raises(CheckpointError, match="neither the checkpoint nor the journal"):
        world.run().execute()


def test_an_output_with_rows_isnt_started_again(tmp_path):
    world = World(tmp_path / "one", people(100))
    world.run().execute()
    world.folder = tmp_path / "two"
    with pytest.raises(JobError):
        world.run().execute()


def test_a_checkpoint_that_cant_be_saved_is_reported_and_the_run_continues(
    tmp_path, monkeypatch, caplog
):
    world = World(tmp_path, people(200))
    run = world.run()
    assert run._checkpointer is not None
    store = run._checkpointer._store
    real, n_tries = store.save, 0

    def full(checkpoint: Any) -> int:
        nonlocal n_tries
        n_tries += 1
        if n_tries in (3, 4):
            raise ResourceError("state: can't be written: the disk is full.")
        return real(checkpoint)

    monkeypatch.setattr(store, "save", full)
    run.execute()
    assert n_tries > 4
    assert [r.message for r in caplog.records].count("checkpoint failed") == 2
    world.judge()


def test_a_last_checkpoint_that_cant_be_saved_is_an_error(tmp_path, monkeypatch):
    world = World(tmp_path, people(200), every=1e6)
    run = world.run()
    assert run._checkpointer is not None
    store = run._checkpointer._store
    real = store.save

    def full(checkpoint: Any) -> int:
        if checkpoint.number:
            raise ResourceError("state: can't be written: the disk is full.")
        return real(checkpoint)

    monkeypatch.setattr(store, "save", full)
    with pytest.raises(ResourceError, match="disk is full"):
        run.execute()
    world.run().execute()
    world.judge()


def test_what_cant_be_recovered_is_refused_before_anything_is_read(tmp_path):
    world = World(tmp_path, people(10))
    recovery = Recovery(tmp_path, {})
    with pytest.raises(ParameterError, match="on_bad"):
        world.pipeline.run(
            Again(world.table, world.schema.columns, iter([1])), world.output,
            on_bad=[].extend, recovery=recovery,
        )  # fmt: skip
    with pytest.raises(ParameterError, match="source"):
        world.pipeline.run([], world.output, on_bad=world.bin, recovery=recovery)  # type: ignore
    with pytest.raises(ParameterError, match="every"):
        Recovery(tmp_path, {}, every=0)


def test_late_rows_are_set_apart_alike_after_a_cut(tmp_path):
    draw = random.Random(3)
    table = people(300)
    at = [i - (40.0 if draw.random() < 0.1 else draw.random() * 5) for i in range(300)]
    table = table.set_column(5, "at", pa.array(at))
    schema = Schema(
        subject="person", quasi=[Quasi("town", TOWN)], sensitive=[Sensitive("illness", None)],
        time="at",
    )  # fmt: skip
    policy = Policy(KAnonymity(3), delay=Delay(seconds=30), lateness=10)
    whole = World(tmp_path / "whole", table, schema=schema, policy=policy)
    whole.run().execute()
    world = World(tmp_path / "cut", table, schema=schema, policy=policy)
    for after in (2, 9, 5):
        world.cut(after)
    world.run().execute()
    assert world.output.rows == whole.output.rows
    assert world.bin.rows == whole.bin.rows
    latest = np.maximum.accumulate(at)
    expected = [i for i in range(1, 300) if at[i] < latest[i - 1] - 10]
    assert [row.row for row in world.bin.rows] == expected
    assert {row.reason for row in world.bin.rows} == {"it comes later than the allowed lateness"}


def test_rows_from_the_future_are_set_apart_alike_after_a_cut(tmp_path):
    draw = random.Random(4)
    table = people(300)
    at = [1000.0 + (50.0 if draw.random() < 0.1 else draw.random() * 5) for _ in range(300)]
    table = table.set_column(5, "at", pa.array(at))
    schema = Schema(
        subject="person", quasi=[Quasi("town", TOWN)], sensitive=[Sensitive("illness", None)],
        time="at",
    )  # fmt: skip
    policy = Policy(KAnonymity(3), delay=Delay(rows=30), ahead=20)
    clock = ManualClock(1000.0)
    world = World(tmp_path, table, schema=schema, policy=policy, clock=clock, every=1e6)
    assert world.cut(20)
    # By now nothing lies ahead, but what was set apart stays so: the journal says when it came.
    clock.advance(100.0)
    world.run().execute()
    expected = [i for i in range(20 * 7) if at[i] > 1020.0]
    assert expected
    assert [row.row for row in world.bin.rows] == expected
    assert {row.reason for row in world.bin.rows} == {AHEAD}
    world.judge(ahead=True)


def test_a_stop_after_a_replay_spares_the_next_run_the_replay(tmp_path):
    world = World(tmp_path, people(200), every=1e6)
    assert world.cut(5)
    stopped = world.run(on_chunk=lambda _: stopped.stop())
    stopped.execute()
    assert stopped.interrupted
    # Another version may go on from a checkpoint, and from nothing else.
    world.code = "2"
    world.run().execute()
    world.judge()


def test_a_source_that_gives_up_when_it_is_stopped_ends_a_replay_in_good_order(tmp_path):
    world = World(tmp_path, people(200), every=1e6)
    assert world.cut(5)
    run = world.run()
    source = run._reader.source

    def give_up(spans: Sequence[Span]) -> Chunk:
        run.stop()
        raise ResourceError("stopped while reading again")

    source.replay = give_up
    run.execute()
    assert run.interrupted
    world.run().execute()
    world.judge()


def test_a_source_that_fails_in_a_replay_ends_the_run(tmp_path):
    world = World(tmp_path, people(200), every=1e6)
    assert world.cut(5)
    run = world.run()

    def fail(spans: Sequence[Span]) -> Chunk:
        raise ResourceError("the disk is gone")

    run._reader.source.replay = fail
    with pytest.raises(ResourceError, match="the disk is gone"):
        run.execute()


def test_the_age_of_a_checkpoint_reveals_nothing_about_rows(tmp_path, monkeypatch):
    clock = ManualClock(0.0)
    monkeypatch.setattr("shoal.run.recovery.time.monotonic", clock)
    ages = []
    for n_rows in (0, 1):
        folder = tmp_path / str(n_rows)
        checkpointer = Checkpointer(Recovery(folder, {}, every=10.0), "1")
        assert checkpointer.begin() is None
        checkpointer.resume()
        checkpointer.save(0, {}, {}, {})
        found = []
        for second in range(45):
            clock.advance(1.0)
            if second == 33 and n_rows:
                checkpointer.append(Flush(0.0))
            if checkpointer.is_due():
                checkpointer.save(checkpointer.cut(), {}, {}, {})
            found.append(checkpointer.age)
        checkpointer.close()
        ages.append(found)
    assert ages[0] == ages[1]
    assert max(ages[0]) < 10.0


def test_a_checkpoint_that_cant_be_saved_is_old_and_asked_for_again(tmp_path, monkeypatch):
    clock = ManualClock(0.0)
    monkeypatch.setattr("shoal.run.recovery.time.monotonic", clock)
    checkpointer = Checkpointer(Recovery(tmp_path, {}, every=10.0), "1")
    checkpointer.begin()
    checkpointer.resume()
    checkpointer.save(0, {}, {}, {})
    checkpointer.append(Flush(0.0))
    save = Store.save

    def fail(*_: object) -> int:
        raise ResourceError("the disk is full")

    monkeypatch.setattr(Store, "save", fail)
    for _ in range(3):
        clock.advance(10.0)
        assert checkpointer.is_due()
        with pytest.raises(ResourceError):
            checkpointer.save(checkpointer.cut(), {}, {}, {})
    assert checkpointer.age == 30.0
    assert checkpointer.has_news
    monkeypatch.setattr(Store, "save", save)
    checkpointer.save(checkpointer.cut(), {}, {}, {})
    assert checkpointer.age == 0.0
    assert not checkpointer.has_news
    checkpointer.close()


class Slow(StoredRows):
    """A sink that takes ten seconds for everything that it is given."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(forgets=False)
        self._clock = clock

    def open(self, schema: pa.Schema, mark: CommitMark | None) -> StoredRowsSink:
        sink = super().open(schema, mark)
        write = sink.write

        def slowly(batch: pa.RecordBatch) -> None:
            self._clock.advance(10.0)
            write(batch)

        sink.write = slowly  # type: ignore[method-assign]
        return sink


def test_rows_that_a_slow_sink_is_handed_too_late_are_counted_as_late(tmp_path):
    clock = ManualClock(0.0)
    policy = Policy(
        KAnonymity(3), DistinctLDiversity(2), delay=Delay(rows=20, seconds=5.0, clock="wall")
    )
    world = World(tmp_path, people(60), policy=policy, clock=clock, every=1e6)
    world.output = Slow(clock)
    # All rows come, and are decided, at one instant; they are handed over seconds later.
    world._lengths = lambda: iter(lambda: 60, 0)
    summary = world.run().execute()
    assert clock() >= 10.0
    assert summary.n_late > 0


class Waiting(StoredRows):
    """A sink that waits for its broker until it is stopped."""

    def __init__(self) -> None:
        super().__init__(forgets=False)
        self.waits, self.stop_called = threading.Event(), threading.Event()

    def open(self, schema: pa.Schema, mark: CommitMark | None) -> Any:
        sink: Any = super().open(schema, mark)

        def wait(batch: pa.RecordBatch) -> None:
            self.waits.set()
            assert self.stop_called.wait(600)
            raise OSError

        sink.write, sink.stop = wait, self.stop_called.set
        return sink


def test_a_stop_reaches_a_sink_that_waits_for_its_broker(tmp_path, monkeypatch):
    monkeypatch.setattr("shoal.run.runner.GRACE", 0.2)
    world = World(tmp_path, people(60), every=1e6)
    world.output = Waiting()
    run = world.run()

    def go() -> None:
        try:
            run.execute()
        except OSError:
            return

    thread = threading.Thread(target=go, daemon=True)
    thread.start()
    assert world.output.waits.wait(600)
    run.stop()
    thread.join(600)
    assert not thread.is_alive()


def test_a_journal_that_begins_with_many_ticks_is_replayed(tmp_path, monkeypatch):
    # Room for one task only, so that a writer that isn't at work yet is noticed.
    monkeypatch.setattr("shoal.run.writer.QUEUE", 1)
    clock = ManualClock(0.0)
    world = World(
        tmp_path, people(600, n_people=600), policy=seconds(100), clock=clock,
        lengths=lambda: iter(lambda: 10, 0),
    )  # fmt: skip
    turns = iter(range(1, 10**6))

    def watch(summary: Any) -> None:
        clock.advance(1.0)
        if next(turns) == 50:
            run.stop()

    run = world.run(watch=watch)
    assert run.execute().n_held > 80
    # Several of these release something, before any row comes again.
    journal = Journal(tmp_path, numbers_of(tmp_path, SEGMENT)[-1], None)
    for i in range(50):
        journal.append(Tick(until=101.0 + i, now=101.0 + i))
    journal.close()
    run = world.run()
    thread = threading.Thread(target=run.execute, daemon=True)
    thread.start()
    thread.join(600)
    assert not thread.is_alive()
    world.judge(late=True)
