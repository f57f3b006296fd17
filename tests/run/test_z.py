"""z-anonymity from file to file: what is published, what must not be, and the audit of it."""

from __future__ import annotations

import datetime as dt
import json
import random
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path as File
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shoal.algorithms.z_anonymity import ZAnonymizer
from shoal.arrow.pseudonyms import Pseudonym
from shoal.arrow.release import Publish
from shoal.audit import Report, audit
from shoal.errors import JobError, ParameterError, PromiseError
from shoal.io import BadRow, open_sink, open_source
from shoal.metrics import Summary
from shoal.run.clock import steady
from shoal.run.encoder import AHEAD, LATE
from shoal.run.pipeline import Pipeline
from shoal.spec.ladder import Open
from shoal.spec.policy import Policy, Window, ZAnonymity
from shoal.spec.schema import Quasi, Schema
from shoal.testing.clocks import ManualClock
from tests.audit.z.world import SCHEMA, CellWorld, stream
from tests.world import Kept, Rows

QUASI = [quasi.name for quasi in SCHEMA.quasi]
MINUTE = Policy(ZAnonymity(2), window=Window(seconds=10))


class Story:
    """A run from a file to a file, with a trace, and all that came of it."""

    def __init__(
        self,
        folder: File,
        rows: list[dict[str, Any]] | pa.Table,
        ending: str = "jsonl",
        *,
        policy: Policy = MINUTE,
        schema: Schema = SCHEMA,
        publish: Publish | None = None,
        trace: bool = True,
        seed: bytes = bytes(16),
        clock: Callable[[], float] = steady,
        **knobs: Any,
    ) -> None:
        table = rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(rows)
        self._input, self.output = folder / f"in.{ending}", folder / f"out.{ending}"
        self._trace = folder / "trace.parquet"
        self._write(table)
        self._publish = publish or Publish()
        self._pipeline = Pipeline(schema, policy, ZAnonymizer(**knobs), self._publish, seed, clock)
        self.bad: list[BadRow] = []
        # Chunks of a few rows, so that what is decided together changes.
        source = open_source(self._input, schema.columns, batch_rows=7)
        run = self._pipeline.run(
            source,
            lambda columns: open_sink(self.output, columns),
            on_bad=self.bad.extend,
            open_trace=(lambda columns: open_sink(self._trace, columns)) if trace else None,
            undo_pseudonyms=trace,
        )
        try:
            self.summary: Summary = run.execute()
        finally:
            source.close()

    def _write(self, table: pa.Table) -> None:
        sink = open_sink(self._input, table.schema)
        for batch in table.to_batches():
            sink.write(batch)
        sink.close()

    def _read(self, path: File) -> pa.Table:
        source = open_source(path)
        rows = [row for chunk in source for row in chunk.batch.to_pylist()]
        source.close()
        return pa.Table.from_pylist(rows)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """What was published; an empty text of CSV is nothing."""
        found = self._read(self.output).to_pylist()
        return [{n: None if v == "" else v for n, v in row.items()} for row in found]

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The trace; of a chunk, bad rows are traced first."""
        return sorted(pq.read_table(self._trace).to_pylist(), key=lambda line: line["row"])

    def report(self) -> Report:
        pseudonym = self._publish.pseudonym
        return audit(
            self._pipeline.schema,
            self._pipeline.policy,
            self._read(self.output),
            trace=pq.read_table(self._trace),
            original=self._read(self._input),
            suppressed=self._publish.suppressed,
            n_quarantined=len(self.bad),
            count=self._pipeline.anonymizer.count,  # type: ignore[attr-defined]
            pseudonym=pseudonym is not None,
            rotate=None if pseudonym is None else pseudonym.rotate,
            time=self._publish.time,
        )

    def check(self) -> None:
        """The audit keeps all that it judges."""
        report = self.report()
        assert {verdict.verdict for verdict in report.verdicts} == {"kept"}, str(report)


def twin(rows: list[dict[str, Any]], policy: Policy = MINUTE, **settings: Any) -> CellWorld:
    return CellWorld(policy=policy, original=rows, settings=settings).run()


# -- what comes out --------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet", "arrow"])
def test_from_file_to_file_as_the_slowest_reading_of_the_rule_has_it(ending, tmp_path):
    policy = Policy(ZAnonymity(4), window=Window(seconds=10))
    story = Story(tmp_path, stream(1, 80), ending, policy=policy)
    expected = twin(stream(1, 80), policy)
    assert story.rows == expected.published
    assert list(story.rows[0]) == [*QUASI, "note"]
    columns = {
        "row",
        "subject",
        "attribute",
        "outcome",
        "arrived",
        "published",
        "level",
        "z",
        "seq",
    }
    assert [{n: line[n] for n in columns} for line in story.lines] == [
        {n: line[n] for n in columns} for line in expected.trace
    ]
    assert [line["loss"] for line in story.lines] == pytest.approx(
        [line["loss"] for line in expected.trace]
    )
    # Every level is used, or this would show little.
    assert {line["level"] for line in story.lines} == {None, 0, 1, 2}
    story.check()


CASES = [
    ({"missing": "quarantine"}, {}, {"gaps": 0.2}),
    ({"missing": "maybe"}, {}, {"gaps": 0.2}),
    ({"missing": "maybe"}, {"suppressed": "root"}, {"gaps": 0.4}),
    ({"lateness": 2.0}, {}, {"jitter": 6.0}),
    ({"lateness": 0.0, "missing": "maybe"}, {"time": 0}, {"jitter": 3.0, "gaps": 0.1}),
    ({}, {}, {"jitter": 6.0}),
    ({"window": Window(rows=12)}, {}, {}),
    ({"window": Window(rows=12), "missing": "maybe"}, {"suppressed": "root"}, {"gaps": 0.3}),
]


@pytest.mark.parametrize(("promised", "how", "data"), CASES)
@pytest.mark.parametrize("count", ["residual", "plain"])
def test_every_kind_of_stream_is_decided_by_the_rule(promised, how, data, count, tmp_path):
    policy = Policy(ZAnonymity(3), **({"window": Window(seconds=15)} | promised))
    rows = stream(5, 100, **data)
    story = Story(tmp_path, rows, policy=policy, publish=Publish(**how), count=count)
    expected = twin(rows, policy, count=count, **how)
    cells = ("row", "attribute", "outcome", "level", "seq")
    assert [[line[n] for n in cells] for line in story.lines] == [
        [line[n] for n in cells] for line in expected.trace
    ]
    shown = [{n: v for n, v in row.items() if n != "at"} for row in story.rows]
    assert shown == [{n: v for n, v in row.items() if n != "at"} for row in expected.published]
    story.check()
    n_bad = sum(line["outcome"] == "quarantined" for line in expected.trace)
    assert len(story.bad) == story.summary.n_quarantined == n_bad
    assert (n_bad > 0) == (promised.get("missing") == "quarantine" or "lateness" in promised)


def test_late_rows_are_quarantined_and_expose_nothing(tmp_path):
    page = Schema("who", [Quasi("page", Open())], time="at")
    policy = Policy(ZAnonymity(2), window=Window(seconds=10), lateness=5)
    rows = [
        {"who": who, "page": "x", "at": at}
        for who, at in [("a", 100.0), ("b", 94.9), ("a", 101.0), ("c", 96.0), ("d", 95.9)]
    ]
    story = Story(tmp_path, rows, schema=page, policy=policy)
    # b and d are too late. c isn't, and is decided against the latest time.
    assert [bad.row for bad in story.bad] == [1, 4]
    assert [line["outcome"] for line in story.lines] == [
        "suppressed", "quarantined", "suppressed", "group", "quarantined",
    ]  # fmt: skip
    assert story.rows == [{"page": "x"}]
    assert story.lines[3]["arrived_s"] == story.lines[3]["published_s"] == 101.0
    assert {bad.reason for bad in story.bad} == {LATE}


#: One stamp of b is a year ahead.
YEAR = 365 * 86_400.0
ONE_AHEAD = [
    {"who": who, "page": "x", "at": at}
    for who, at in [("a", 100.0), ("b", 100.0 + YEAR), ("c", 101.0), ("d", 102.0), ("e", 120.0)]
]
PAGE = Schema("who", [Quasi("page", Open())], time="at")


def test_a_row_from_the_future_is_quarantined_and_moves_no_window(tmp_path):
    policy = Policy(ZAnonymity(3), window=Window(seconds=10), lateness=5, ahead=20)
    story = Story(tmp_path, ONE_AHEAD, schema=PAGE, policy=policy, clock=ManualClock(100.0))
    # b isn't believed, and counts for nobody; e is ahead by exactly what is allowed.
    assert [(bad.row, bad.reason) for bad in story.bad] == [(1, AHEAD)]
    assert [line["outcome"] for line in story.lines] == [
        "suppressed", "quarantined", "suppressed", "group", "suppressed",
    ]  # fmt: skip
    assert [line["arrived_s"] for line in story.lines] == [100.0, None, 101.0, 102.0, 120.0]
    # By which clock a row came from the future isn't in the trace, and all else is kept.
    report = story.report()
    assert {v.name for v in report.verdicts if v.verdict != "kept"} == {"conservation"}
    assert report["conservation"].verdict == "unverifiable"


@pytest.mark.parametrize("lateness", [None, 5])
def test_without_a_bound_one_stamp_stops_the_window_or_makes_all_rows_late(tmp_path, lateness):
    policy = Policy(ZAnonymity(3), window=Window(seconds=10), lateness=lateness)
    story = Story(tmp_path, ONE_AHEAD, schema=PAGE, policy=policy, clock=ManualClock(100.0))
    later = [line["outcome"] for line in story.lines[2:]]
    if lateness is None:
        # 18 seconds after d, e still has b, c and d beside it: nothing leaves any more.
        assert later == ["suppressed", "group", "group"]
        assert story.lines[-1]["arrived_s"] == 100.0 + YEAR
    else:
        assert later == ["quarantined"] * 3
        assert {bad.reason for bad in story.bad} == {LATE}


def test_rows_of_nothing_and_batches_of_bad_rows(tmp_path):
    rows = stream(2, 40)
    for i, row in enumerate(rows):
        if i < 21 or i > 30:
            row["who"] = None
    publish = Publish(pseudonym=Pseudonym(5), time=0)
    story = Story(tmp_path, rows, publish=publish)
    assert story.summary.n_quarantined == 30
    story.check()
    empty = Story(tmp_path, [row | {"who": None} for row in rows], "parquet", publish=publish)
    assert pq.read_table(empty.output).num_rows == 0
    assert pq.read_table(empty.output).schema.names == ["pseudonym", *QUASI, "note", "at"]


# -- what must not come out ------------------------------------------------------------------------


def rare(n_rows: int = 120) -> tuple[list[dict[str, Any]], list[str], list[str]]:
    """Rows with values of one person each, of everybody's, and the names of the people."""
    draw = random.Random(3)

    def word() -> str:
        return "".join(draw.choice("ghjkmnpqrstvwxyz") for _ in range(12))

    people, hidden, rows = [word() for _ in range(6)], [], []
    for i in range(n_rows):
        page, part = ("common", "it*to") if i % 3 else (word(), f"it*{word()}")
        if not i % 3:
            hidden += [page, part.removeprefix("it*")]
        rows.append({"who": people[i % 6], "page": page, "area": part, "at": float(i)})
    return rows, hidden, people


RARE = Schema("who", [Quasi("page", Open()), Quasi("area", SCHEMA.quasi[1].domain)], time="at")


def everything(path: File) -> bytes:
    """The bytes of a file, and all that dictionaries in it have."""
    found = path.read_bytes()
    if path.suffix == ".parquet":
        names = pq.read_schema(path).names
        for column in pq.read_table(path, read_dictionary=names).columns:
            for chunk in column.chunks:
                values = chunk.dictionary if pa.types.is_dictionary(chunk.type) else chunk
                found += repr(values.to_pylist()).encode()
    if path.suffix == ".arrow":
        with pa.ipc.open_stream(path.read_bytes()) as batches:
            for column in (column for batch in batches for column in batch.columns):
                values = column.dictionary if pa.types.is_dictionary(column.type) else column
                found += repr(values.to_pylist()).encode()
    return found


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet", "arrow"])
@pytest.mark.parametrize("suppressed", ["drop", "root"])
def test_what_is_hidden_is_nowhere(ending, suppressed, tmp_path, caplog):
    rows, hidden, people = rare()
    caplog.set_level("DEBUG")
    story = Story(
        tmp_path, rows, ending, schema=RARE, publish=Publish(suppressed=suppressed, time=0),
        policy=Policy(ZAnonymity(3), window=Window(seconds=30)),
    )  # fmt: skip
    outcomes = [line["outcome"] for line in story.lines]
    assert outcomes.count("suppressed") > 50
    output, trace = everything(story.output), everything(tmp_path / "trace.parquet")
    assert b"common" in output
    assert people[0].encode() in trace
    for value in hidden:
        assert value.encode() not in output
        assert value.encode() not in trace
    for person in people:
        assert person.encode() not in output
    logged = caplog.text + repr(story.summary.as_dict())
    assert not any(value in logged for value in [*hidden, *people])
    story.check()


# -- times -----------------------------------------------------------------------------------------

BEGIN = dt.datetime(2024, 5, 1, 12, 0, 0, tzinfo=dt.UTC)


def as_moments(rows: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    def as_time(seconds: float) -> Any:
        moment = BEGIN + dt.timedelta(seconds=seconds)
        return {
            "number": BEGIN.timestamp() + seconds,
            "timestamp": moment,
            "iso": moment.isoformat(),
            "plain": moment.replace(tzinfo=None).isoformat(sep=" "),
        }[kind]

    return [row | {"at": as_time(row["at"])} for row in rows]


@pytest.mark.parametrize("kind", ["number", "timestamp", "iso", "plain"])
@pytest.mark.parametrize("step", [0, 15])
@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_the_time_of_a_row_is_published_rounded_down(kind, step, ending, tmp_path):
    rows = as_moments(stream(3, 60, jitter=0.0), kind)
    story = Story(tmp_path, rows, ending, publish=Publish(time=step))
    assert [*story.rows[0]] == [*QUASI, "note", "at"]
    by_note = {row["note"]: row for row in story.rows}
    assert len(by_note) > 20
    for i, row in enumerate(rows):
        if row["note"] in by_note:
            second = i // step * step if step else i
            shown = by_note[row["note"]]["at"]
            if kind == "number":
                assert float(shown) == BEGIN.timestamp() + second
            else:
                if isinstance(shown, str):
                    shown = dt.datetime.fromisoformat(shown)
                if shown.tzinfo is None:
                    shown = shown.replace(tzinfo=dt.UTC)
                assert shown == BEGIN + dt.timedelta(seconds=second)
    story.check()


def test_without_being_asked_for_the_time_isnt_published(tmp_path):
    assert [*Story(tmp_path, stream(3)).rows[0]] == [*QUASI, "note"]


# -- pseudonyms ------------------------------------------------------------------------------------


def whose(story: Story, rotate: float, *, by_rows: bool = False) -> dict[str, set[tuple[str, int]]]:
    """The subjects and periods of each pseudonym."""
    shown = [row["pseudonym"] for row in story.rows]
    found = defaultdict(set)
    for line in story.lines:
        if line["seq"] is not None and shown[line["seq"]] is not None:
            clock = line["arrived"] if by_rows else line["arrived_s"]
            found[shown[line["seq"]]].add((line["subject"], int(clock // rotate)))
    return dict(found)


@pytest.mark.parametrize("by_rows", [False, True])
@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_a_subject_has_one_pseudonym_in_a_period_and_no_two_periods_share_one(
    by_rows, ending, tmp_path
):
    window = Window(rows=12) if by_rows else Window(seconds=12)
    publish = Publish(pseudonym=Pseudonym(25))
    rows = [row | {"at": row["at"] + 10} for row in stream(7, 115, jitter=4.0)]
    story = Story(
        tmp_path, rows, ending, policy=Policy(ZAnonymity(2), window=window), publish=publish
    )
    assert [*story.rows[0]] == ["pseudonym", *QUASI, "note"]
    owners = whose(story, 25, by_rows=by_rows)
    assert all(len(found) == 1 for found in owners.values())
    pairs = [pair for found in owners.values() for pair in found]
    assert len(set(pairs)) == len(pairs)
    assert {period for _, period in pairs} == {0, 1, 2, 3, 4}
    assert not {subject for subject, _ in pairs} & set(owners)
    story.check()


def test_pseudonyms_dont_depend_on_the_seed(tmp_path):
    shown = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        story = Story(
            tmp_path / name, stream(7, 60), publish=Publish(pseudonym=Pseudonym(25)), seed=bytes(16)
        )
        shown.append(story.rows)
    names = [{row.pop("pseudonym") for row in rows} for rows in shown]
    assert names[0].isdisjoint(names[1])
    assert shown[0] == shown[1]


@pytest.mark.parametrize("suppressed", ["drop", "root"])
def test_a_row_of_which_nothing_is_published_has_no_pseudonym(suppressed, tmp_path):
    publish = Publish(suppressed=suppressed, pseudonym=Pseudonym(25), time=5)
    story = Story(tmp_path, stream(7, 60), publish=publish, policy=Policy(
        ZAnonymity(4), window=Window(seconds=10)
    ))  # fmt: skip
    for row in story.rows:
        has_any = any(row[name] is not None for name in QUASI)
        assert (row["pseudonym"] is not None) == (row["at"] is not None) == has_any
    assert any(row["pseudonym"] is None for row in story.rows) == (suppressed == "root")
    story.check()


def test_a_trace_would_undo_pseudonyms_and_is_refused():
    pipeline = Pipeline(SCHEMA, MINUTE, ZAnonymizer(), Publish(pseudonym=Pseudonym(60)), bytes(16))
    table = pa.Table.from_pylist(stream(1, 10))

    def prepare(**options: Any) -> None:
        source = Rows(table, SCHEMA.columns, [])
        pipeline.run(source, Kept, on_bad=[].extend, **options)

    with pytest.raises(ParameterError, match="would undo the pseudonyms") as raised:
        prepare(open_trace=Kept)
    assert "undo_pseudonyms=True" in str(raised.value)
    prepare(open_trace=Kept, undo_pseudonyms=True)
    prepare()


def test_what_doesnt_go_with_z_is_refused_before_a_run():
    for publish in (Publish(order="arrival"), Publish(numeric="midpoint")):
        pipeline = Pipeline(SCHEMA, MINUTE, ZAnonymizer(), publish, bytes(16))
        with pytest.raises(JobError, match="isn't used by z-anonymity"):
            pipeline.run(
                Rows(pa.Table.from_pylist(stream(1, 5)), SCHEMA.columns, []), Kept, on_bad=[].extend
            )


# -- z that moves ----------------------------------------------------------------------------------


def moody(n_rows: int = 400) -> list[dict[str, Any]]:
    """Everybody looks at a page of a few friends; after a while all look at one page."""
    draw = random.Random(5)
    rows = []
    for i in range(n_rows):
        who = draw.randrange(40)
        page = f"page-{(who + draw.randrange(3)) % 20}" if i < n_rows // 2 else "all"
        rows.append({"who": f"p{who}", "page": page, "at": float(i)})
    return rows


@pytest.mark.parametrize("window", [Window(seconds=60), Window(rows=60)])
def test_z_moves_with_the_stream_and_is_reported(window, tmp_path, caplog):
    caplog.set_level("INFO", logger="shoal")
    page = Schema("who", [Quasi("page", Open())], time="at")
    policy = Policy(ZAnonymity(2), window=window)
    story = Story(tmp_path, moody(), schema=page, policy=policy, probability=0.9, k=2, estimates=4)
    in_force = [line["z"] for line in story.lines]
    assert in_force[0] == 2
    assert max(in_force) > 4
    assert min(in_force) == 2
    assert in_force[-1] == 2
    reported: dict[str, Any] = story.summary.as_dict()["values"]  # type: ignore[assignment]
    changes = np.count_nonzero(np.diff(in_force))
    assert reported["z"] == {"now": 2, "least": 2, "most": max(in_force), "changes": changes}
    assert reported["window"]["k_anonymous"] >= 0.9
    assert caplog.text.count("z changed") == changes
    assert any("changed" in line for line in story.summary.lines())
    # What is published under a larger z keeps the smaller one, too.
    story.check()
    published = sum(line["outcome"] == "group" for line in story.lines)
    calm = Story(tmp_path, moody(), schema=page, policy=policy)
    assert {line["z"] for line in calm.lines} == {2}
    assert sum(line["outcome"] == "group" for line in calm.lines) > published


def test_figures_count_what_the_trace_shows(tmp_path):
    policy = Policy(ZAnonymity(3), window=Window(seconds=15), missing="maybe")
    story = Story(tmp_path, stream(5, 100, gaps=0.2), policy=policy)
    reported: dict[str, Any] = story.summary.as_dict()["values"]  # type: ignore[assignment]
    lines = [line for line in story.lines if line["outcome"] != "missing"]
    assert reported["cells"] == len(lines)
    assert reported["published"] == sum(line["outcome"] == "group" for line in lines)
    for j, quasi in enumerate(SCHEMA.quasi):
        mine = [line for line in lines if line["attribute"] == quasi.name]
        n_each = [
            sum(line["level"] == i for line in mine) for i in range(len(reported["by_rung"][j]))
        ]
        assert reported["by_rung"][j] == pytest.approx([n / len(mine) for n in n_each])


# -- the last look ---------------------------------------------------------------------------------


def test_an_engine_that_breaks_the_promise_publishes_nothing(tmp_path, monkeypatch):
    from shoal.engine.z.base import ZEngine

    push = ZEngine.push

    def careless(self: Any, codes: Any) -> Any:
        decisions = push(self, codes)
        return decisions._replace(levels=np.where(decisions.levels == -1, 0, decisions.levels))

    monkeypatch.setattr(ZEngine, "push", careless)
    with pytest.raises(PromiseError, match="fewer than 2 subjects behind it"):
        Story(tmp_path, stream(1, 30))
    assert json.dumps((tmp_path / "out.jsonl").read_text()) == '""'
