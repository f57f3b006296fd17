"""The tasks of a turn with several shards of cells, run as Spark does, but without it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path as File
from typing import Any

import pyarrow as pa
import pytest

from shoal.arrow.codec import Codec, Encoded
from shoal.errors import ShoalError
from shoal.spark.columns import CORRUPT, TICK
from shoal.spark.ledger import Turn, shard_folder
from shoal.spark.shard_io import lines_path
from shoal.spark.z.encode import SLICE, EncodedRows
from shoal.spark.z.head import CellHead
from shoal.spark.z.join import JoinedTurn as ZTurn
from shoal.spark.z.shard import PART, CellTurn, Kept, Segment, tasks_of
from shoal.spark.z.split import Stretch
from shoal.spark.z.tasks import Moment
from shoal.spec.policy import Policy, Window, ZAnonymity
from tests.spark.z.world import Case, Found, one_engine, settled, story, tidy

N_SHARDS = 2


def table(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_batches(list(batches), schema)


def control(lines: pa.Table, name: str, number: int) -> pa.Table:
    """Lines after one that names the shard or the stretch."""
    told = {name: [number], TICK: [True]}
    first = pa.table({key: told[key] for key in told if key in lines.schema.names})
    return pa.concat_tables([first, lines], promote_options="permissive")


def cut(case: Case, rows: pa.RecordBatch, at: int) -> list[pa.Table]:
    """Two stretches of a batch."""
    found = []
    for i, (a, b) in enumerate(pairwise([0, at, rows.num_rows])):
        part = pa.table(rows.slice(a, b - a))
        part = part.append_column(TICK, pa.nulls(len(part), pa.bool_()))
        part = part.append_column(CORRUPT, pa.nulls(len(part), pa.string()))
        found.append(part.append_column(SLICE, pa.array([i] * len(part), pa.int32())))
    return found


class Turns:
    """What the driver does, with one look at the window where it is due."""

    def __init__(self, folder: File, case: Case) -> None:
        self._case = case
        self.ledger, self.recipe, self.plan = settled(folder, case, N_SHARDS, traced=True)
        self._head = CellHead(tasks_of(self.recipe, self.plan))
        self.found = Found()

    def live(self, number: int, rows: pa.RecordBatch) -> None:
        head, parent = self._head, 2 * number - 2 if number else None
        turn = Turn(2 * number, parent, 0, False, self._case.at(number), 0.0, None)
        at = CellTurn(self.recipe, turn, self.plan, head.batch(turn.at, self.recipe.types))
        stretches = [
            table(at.encode(rows.to_batches(max_chunksize=7)), EncodedRows.schema())
            for rows in cut(self._case, rows, rows.num_rows // 3)
        ]
        for _ in range(2):
            surveyed = [Stretch()] * N_SHARDS
            for stretch in stretches:
                for line in table(at.survey(stretch.to_batches()), at.survey_schema).to_pylist():
                    which = line.pop("stretch")
                    surveyed[which] = Stretch(**line)
            at = dataclasses.replace(at, begins=head.begins(surveyed))
        parts = pa.concat_tables(
            table(at.parts(stretch.to_batches()), at.parts_schema) for stretch in stretches
        )
        decided, at = self._decided(at, stretches, parts, surveyed)
        for i, stretch in enumerate(stretches):
            mine = decided.filter(pa.compute.equal(decided.column(SLICE), i))
            lines = control(
                pa.concat_tables([mine, stretch], promote_options="permissive"), SLICE, i
            )
            public = table(at.publish(lines.to_batches()), self.recipe.public)
            self.found.public += public.to_pylist()
            folder = shard_folder(self.recipe.folder, i)
            if data := lines_path(folder, turn).read_bytes():
                self.found.trace += pa.ipc.open_stream(data).read_all().to_pylist()
        self.found.figures = self.ledger.figures(turn, self.plan)
        head.resume(surveyed)

    def _decided(
        self, at: CellTurn, stretches: list[pa.Table], parts: pa.Table, surveyed: list[Stretch]
    ) -> tuple[pa.Table, CellTurn]:
        number, head = at.turn.number, self._head
        before = None if at.turn.parent is None else Kept("state", at.turn.parent)
        looks: list[Moment] = []
        if head.looks:
            told = (
                table(at.moments(head.origin(surveyed), s.to_batches()), at.moments_schema)
                for s in stretches
            )
            looks = head.due(Moment(**line) for t in told for line in t.to_pylist())
        found, estimates, turns, first, z = [], [], list(at.batch.turns), 0, None
        for i, look in enumerate(looks):
            kept = Kept("look", 1000 * number + i)
            segment = Segment(before, kept, z, look.clock)
            found += self._of_shards(at, segment, parts, first, look.row)
            estimates.append(
                head.look(look, lambda z, kept=kept: [self._shown(at, kept, z, i) for i in (0, 1)])
            )
            before, first, z = kept, look.row, head.z
            turns.append(ZTurn(look.row, z))
        segment = Segment(before, Kept("state", number), z)
        found += self._of_shards(at, segment, parts, first, 2**62)
        batch = at.batch._replace(turns=tuple(turns))
        return pa.concat_tables(found), dataclasses.replace(at, batch=batch, looks=estimates)

    def _of_shards(
        self, at: CellTurn, segment: Segment, parts: pa.Table, first: int, after: int
    ) -> list[pa.Table]:
        found = []
        for i in range(N_SHARDS):
            row = parts.column("row")
            here = pa.compute.and_(pa.compute.less(row, after), pa.compute.less_equal(first, row))
            mine = parts.filter(pa.compute.and_(here, pa.compute.equal(parts.column("shard"), i)))
            lines = control(mine, "shard", i).cast(at.parts_schema)
            found.append(table(at.decide(segment, lines.to_batches()), at.decided_schema))
        return found

    def _shown(self, at: CellTurn, kept: Kept, z: int, shard: int) -> tuple[Any, Any]:
        told = table(at.shown(kept, z, pa.table({"shard": [shard]}).to_batches()), at.shown_schema)
        return told.column("subject").to_numpy(), told.column("shown").to_numpy()


@pytest.mark.parametrize(
    ("window", "knobs"),
    [
        (Window(seconds=8), {}),
        (Window(rows=12), {"probability": 0.7, "estimates": 1}),
        (Window(seconds=5), {"probability": 0.5, "estimates": 2}),
    ],
)
def test_tasks_do_what_one_engine_does(window, knobs, tmp_path):
    policy = Policy(ZAnonymity(3), window=window, missing="maybe", lateness=2.0)
    case = story(60, policy=policy, knobs=knobs, cuts=(35, 36))
    turns = Turns(tmp_path, case)
    for number, rows in enumerate(case.batches()):
        turns.live(number, rows)
    one = one_engine(case)
    assert turns.found.public == one.public
    told = [{n: v for n, v in line.items() if n != "seq"} for line in turns.found.lines()]
    assert tidy(told) == tidy([{n: v for n, v in x.items() if n != "seq"} for x in one.lines()])
    assert sum(shard["summary"]["n_in"] for shard in turns.found.figures) == 60
    looks = [shard["summary"]["cells"]["n_estimates"] for shard in turns.found.figures]
    assert looks == [len(one.estimates) if knobs else 0, 0]
    assert bool(knobs) == (len({line["z"] for line in one.trace if line["z"]}) > 1)
    assert (tmp_path / "bad").is_dir()


def test_a_line_that_cant_be_read_counts_as_a_row(tmp_path):
    case = story(8, cuts=())
    turns = Turns(tmp_path, case)
    at = CellTurn(
        turns.recipe, Turn(0, None, 0, False, 0.0, 0.0, None), turns.plan,
        CellHead(tasks_of(turns.recipe, turns.plan)).batch(0.0, turns.recipe.types),
    )  # fmt: skip
    (_, rows) = cut(case, case.table(), 0)
    torn = rows.set_column(
        rows.schema.get_field_index(CORRUPT), CORRUPT, pa.array([None] * 7 + ["{"], pa.string())
    )
    (line,), (whole,) = (
        table(at.survey(at.encode(given.to_batches())), at.survey_schema).to_pylist()
        for given in (torn, rows)
    )
    assert (line["n_inputs"], line["n_valid"]) == (8, whole["n_valid"] - 1)
    (packed,) = table(at.encode(torn.to_batches()), EncodedRows.schema()).to_pylist()
    (bad,) = EncodedRows.of_line(packed).chunk.bad
    assert (bad.row, bad.reason, bad.raw) == (7, "it can't be read as a row", b"{")


def test_each_row_is_encoded_once(tmp_path, monkeypatch):
    case = story(60, knobs={"probability": 0.5, "estimates": 2}, cuts=(35,))
    turns, sizes = Turns(tmp_path, case), []
    encode = Codec.encode

    def counted(codec: Codec, batch: pa.RecordBatch) -> Encoded:
        sizes.append(batch.num_rows)
        return encode(codec, batch)

    monkeypatch.setattr(Codec, "encode", counted)
    for number, rows in enumerate(case.batches()):
        turns.live(number, rows)
    assert sum(sizes) == 60


@pytest.mark.parametrize("debug", [False, True])
def test_what_fails_in_a_task_tells_no_value(debug, tmp_path, monkeypatch):
    monkeypatch.setenv("SHOAL_DEBUG", "1") if debug else monkeypatch.delenv("SHOAL_DEBUG", False)
    _, recipe, plan = settled(tmp_path, story(3), N_SHARDS, traced=False)

    def task(batches: object) -> Any:
        yield from {"p7": 1}["p8"]  # type: ignore[misc]

    at = CellTurn(recipe, Turn(0, None, 0, False, 0.0, 0.0, None), plan, None)  # type: ignore[arg-type]
    expected = (KeyError, "p8") if debug else (ShoalError, r"^KeyError in .*, line \d+, in a shard")
    with pytest.raises(expected[0], match=expected[1]):
        list(at.quietly(task)(iter([])))


def test_an_error_of_ours_is_told_as_it_is(tmp_path):
    _, recipe, plan = settled(tmp_path, story(3), N_SHARDS, traced=False)
    at = CellTurn(recipe, Turn(0, None, 0, False, 0.0, 0.0, None), plan, None)  # type: ignore[arg-type]

    def task(batches: object) -> Any:
        raise ShoalError("ours")
        yield

    with pytest.raises(ShoalError, match=r"^ours$"):
        list(at.quietly(task)(iter([])))


def test_decided_lines_are_told_from_rows(tmp_path):
    _, recipe, plan = settled(tmp_path, story(3), N_SHARDS, traced=False)
    at = CellTurn(recipe, Turn(0, None, 0, False, 0.0, 0.0, None), plan, None)  # type: ignore[arg-type]
    assert at.decided_schema.names[:2] == [SLICE, PART]
