"""Streams with z, decided by one engine and by several shards: both must publish the same.

`Shards` does in one process what a cluster does: tasks know their arguments only, and after every
batch everything but snapshots is discarded.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence
from itertools import chain, pairwise
from pathlib import Path as File
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from shoal.algorithms.z_anonymity import ZAnonymizer
from shoal.arrow.hold import ARRIVED_S, ROW
from shoal.arrow.order import Departures
from shoal.arrow.pseudonyms import Pseudonym
from shoal.arrow.publishing import make_publisher, subject_type, subjects_in
from shoal.arrow.release import Publish
from shoal.arrow.z.trace import ZTracer
from shoal.io.base import Chunk
from shoal.run.core import RunCore
from shoal.run.encoder import EncodedChunk, codec_for
from shoal.spark.commits import CommitLog, Plan
from shoal.spark.shard_job import ShardJob
from shoal.spark.z.decide import Decided, ZShard
from shoal.spark.z.driver_state import DriverState
from shoal.spark.z.encode import EncodedRows, joined_codes
from shoal.spark.z.join import ZChange
from shoal.spark.z.split import Slice, SplitRows
from shoal.spark.z.tasks import BatchContext, EstimatePoint, ZTasks
from shoal.spec.hierarchy import Hierarchy, Range
from shoal.spec.ladder import Grid, Open, Path
from shoal.spec.policy import Policy, Window, ZAnonymity
from shoal.spec.schema import Quasi, Schema
from shoal.testing.base_strategies import batch_cuts, row_lists

Row = dict[str, Any]
SEED = bytes(range(16))
FOODS = Hierarchy.from_dict(
    {"*": {"fruit": {"citrus": ["lime", "yuzu"], "fig": None}, "oat": None, "rye": None}}
)
#: Each attribute with values that it may have: few, so that they meet; one of them can't be used.
ATTRIBUTES: list[tuple[Quasi, list[Any]]] = [
    (Quasi("page", Open()), ["a", "b", "c"]),
    (Quasi("area", Path("/", levels=3)), ["x/1/a", "x/1/b", "x/2", "y/1/a"]),
    (Quasi("food", FOODS), ["lime", "yuzu", "fig", "oat", "rye", "brick"]),
    (Quasi("age", Range(0, 99, step=10)), [5.0, 15.0, 16.0, 200.0]),
    (Quasi("cell", Grid("lat", "lon", [500, 50_000])), [(45.0, 7.0), (45.002, 7.0), (45.3, 7.1)]),
]
TEXT = {"lat": pa.float64(), "lon": pa.float64(), "age": pa.float64(), "at": pa.float64()}


@dataclasses.dataclass(frozen=True)
class Case:
    """A job and its input, cut into batches."""

    schema: Schema
    policy: Policy
    knobs: dict[str, Any]
    publish: Publish
    rows: list[Row]
    cuts: tuple[int, ...]

    def batches(self) -> list[pa.RecordBatch]:
        return cut(self.table(), self.cuts)

    def table(self) -> pa.RecordBatch:
        kinds = [(name, TEXT.get(name, pa.string())) for name in self.schema.columns]
        return pa.RecordBatch.from_pylist(self.rows, schema=pa.schema(kinds))

    def secret(self, batch: int) -> bytes:
        return bytes([batch] * 32) if self.publish.pseudonym is not None else b""

    def at(self, batch: int) -> float:
        return 10.0 * batch

    def tasks(self, n_shards: int) -> ZTasks:
        return ZTasks(
            self.schema, self.policy, ZAnonymizer(**self.knobs), self.publish, SEED, n_shards, True
        )


def cut(batch: pa.RecordBatch, cuts: Sequence[int]) -> list[pa.RecordBatch]:
    return [batch.slice(a, b - a) for a, b in pairwise([0, *cuts, batch.num_rows])]


@st.composite
def cases(draw: st.DrawFn, *, follows: bool = False, max_rows: int = 60) -> Case:
    """Draw a job, with a z that follows the stream or not, and its rows."""
    chosen = draw(st.lists(st.sampled_from(range(5)), min_size=1, max_size=4, unique=True))
    gappy = draw(st.booleans())
    timed = draw(st.booleans())
    by_seconds = timed and draw(st.booleans())
    quasi = [ATTRIBUTES[i][0] for i in chosen]
    schema = Schema("who", quasi, keep=["note"], time="at" if timed else None)
    window = (
        Window(seconds=draw(st.sampled_from([4.0, 0.5, 20.0, 1e6])))
        if by_seconds
        else Window(rows=draw(st.sampled_from([7, 1, 2, 20, 1000])))
    )
    allowed = st.sampled_from([None, 1.0, 3.0]) if timed else st.none()
    policy = Policy(
        ZAnonymity(draw(st.sampled_from([2, 1, 3, 4]))), window=window,
        missing="maybe" if gappy else draw(st.sampled_from(["quarantine", "maybe"])),
        lateness=draw(allowed), ahead=draw(allowed),
    )  # fmt: skip
    knobs: dict[str, Any] = {"count": draw(st.sampled_from(["residual", "residual", "plain"]))}
    if follows:
        chance = draw(st.sampled_from([0.8, 0.5, 1.0]))
        knobs = {"probability": chance, "estimates": draw(st.integers(1, 4))}
    publish = Publish(
        suppressed=draw(st.sampled_from(["drop", "root"])),
        time=draw(st.sampled_from([None, 0, 2.5])) if timed else None,
        pseudonym=Pseudonym(draw(st.sampled_from([5, 25]))) if draw(st.booleans()) else None,
    )
    row = st.tuples(
        st.integers(0, draw(st.sampled_from([5, 2, 15]))),
        st.sampled_from([0.0, 0.5, 2.0, -1.5, 0.0, 0.25, 30.0]),
        st.tuples(
            *(st.sampled_from(ATTRIBUTES[i][1] + [None] * (2 * gappy)) for i in chosen)
        ),
    )  # fmt: skip
    at = 0.0
    rows: list[Row] = []
    for who, later, values in draw(row_lists(row, max_rows)):
        at += later
        values_of_row: Row = {"who": f"p{who}" if who else None, "at": at, "note": f"n{len(rows)}"}
        for attribute, value in zip(quasi, values, strict=True):
            given = value if isinstance(value, tuple) else (value,) * len(attribute.columns)
            values_of_row |= dict(zip(attribute.columns, given, strict=True))
        rows.append({name: values_of_row[name] for name in schema.columns})
    return Case(schema, policy, knobs, publish, rows, draw(batch_cuts(len(rows))))


class Found:
    """What came of a run."""

    def __init__(self) -> None:
        self.public: list[Row] = []
        self.trace: list[Row] = []
        self.bad: list[tuple[int, str, bytes | None]] = []
        self.estimates: list[tuple[Any, ...]] = []
        self.figures: list[dict[str, Any]] = []

    def lines(self) -> list[Row]:
        """The trace in the order of the input; cells of a row stay in theirs."""
        return sorted(self.trace, key=lambda line: line["row"])

    def tables(self, case: Case) -> tuple[pa.Table, pa.Table]:
        """The output and the trace as tables."""
        schema = {"arrived_s": pa.float64(), "published_s": pa.float64(), "loss": pa.float64()}
        names = list(self.trace[0]) if self.trace else []
        text = {"subject", "attribute", "outcome"}
        kinds = [(n, pa.string() if n in text else schema.get(n, pa.int64())) for n in names]
        return pa.Table.from_pylist(self.public), pa.Table.from_pylist(
            self.lines(), schema=pa.schema(kinds)
        )


def tidy(rows: list[Row]) -> list[Row]:
    """NaN is equal to nothing, not even to itself."""
    return [{n: None if v != v else v for n, v in row.items()} for row in rows]


class _Lines:
    def __init__(self, found: Found) -> None:
        self._found = found

    def write(self, batch: pa.RecordBatch) -> None:
        self._found.trace += batch.to_pylist()


class Outputs:
    """Where releases, lines and bad rows go."""

    def __init__(self, case: Case, found: Found) -> None:
        self._schema, self._found = case.schema, found
        kind = types_of(case)
        self._publisher = make_publisher(case.schema, case.publish, kind, per_value=True)
        self._tracer = ZTracer(_Lines(found), subject_type(case.schema, kind), case.schema)

    def write(self, taken: EncodedChunk, departures: Departures | None) -> None:
        self._found.bad += [(row.row, row.reason, row.raw) for row in taken.bad]
        if taken.bad:
            inputs = np.array([row.row for row in taken.bad])
            self._tracer.quarantined(inputs, pa.array(taken.bad_subjects, pa.string()))
        if departures is not None:
            release, seq = self._publisher.release(departures)
            self._found.public += release.batch.to_pylist()
            payload = departures.payload
            inputs, arrived_s = (np.asarray(payload.column(name)) for name in (ROW, ARRIVED_S))
            subjects = subjects_in(self._schema, payload)
            self._tracer.decided(departures, inputs, arrived_s, subjects, seq)


def core_of(case: Case) -> RunCore:
    return RunCore(
        case.schema, case.policy, ZAnonymizer(**case.knobs), case.publish, SEED,
        by_clock=False, with_subject=True,
    )  # fmt: skip


def types_of(case: Case) -> pa.Schema:
    codec = codec_for(case.schema, case.policy, case.publish, key=bytes(8), with_subject=True)
    codec.encode(case.table().slice(0, 0))
    return codec.types


def one_engine(case: Case) -> Found:
    """Decide as the embedded runner does."""
    found = Found()
    core = core_of(case)
    encoder = core.encoder()
    outputs = Outputs(case, found)
    n_inputs = 0
    looked = core._engine.push

    def push(codes: Any) -> Any:
        decisions = looked(codes)
        found.estimates += [tuple(look) for look in decisions.estimates.tolist()]
        return decisions

    core._engine.push = push  # type: ignore[method-assign]
    for number, batch in enumerate(case.batches()):
        rows = np.arange(n_inputs, n_inputs + batch.num_rows)
        n_inputs += batch.num_rows
        taken = encoder.encode(Chunk(batch, rows, []), case.at(number))
        outputs.write(taken, core.take_in(taken, case.at(number), case.secret(number)))
    found.figures.append(core.summary.state())
    return found


class Shards:
    """Decide in several shards, batches being cut into slices.

    Parameters
    ----------
    case
        What is decided about.
    n_shards
        How many there are.
    cuts
        Where each batch is cut into slices, as far as it reaches.
    """

    def __init__(self, case: Case, n_shards: int, cuts: Sequence[int]) -> None:
        self._case, self._tasks, self._cuts = case, case.tasks(n_shards), cuts
        self.found = Found()
        self._state = DriverState(self._tasks).snapshot()
        self._blobs = [self._tasks.shard().snapshot() for _ in range(n_shards)]
        self._types, self._outputs = types_of(case), Outputs(case, self.found)

    def run(self) -> Found:
        for number, rows in enumerate(self._case.batches()):
            self._step(number, rows)
        return self.found

    @property
    def n_exposures(self) -> list[int]:
        """How much each shard has counted."""
        found = []
        for blob in self._blobs:
            shard = self._tasks.shard()
            shard.restore(blob)
            found.append(shard.n_exposures)
        return found

    def _step(self, number: int, rows: pa.RecordBatch) -> None:
        tasks, state = self._tasks, DriverState(self._tasks)
        state.restore(self._state)
        secret = self._case.secret(number)
        batch = state.context(self._case.at(number), self._types, secret)
        cuts = [0, *(c for c in self._cuts if c <= rows.num_rows), rows.num_rows]
        encoded = [self._encoded(batch, rows.slice(a, b - a)) for a, b in pairwise(cuts)]
        codes = [joined_codes(line.encoded.codes for line in lines) for lines in encoded]
        n_rows = [b - a for a, b in pairwise(cuts)]
        begins = [Slice()] * len(encoded)
        for _ in range(2):
            slices = [tasks.measure(batch, *one) for one in zip(n_rows, codes, begins, strict=True)]
            begins = state.begins(slices)
        both = list(zip(codes, begins, strict=True))
        parts = [SplitRows.of_batch(tasks.split(batch, *one).to_batch()) for one in both]
        shards = []
        for blob in self._blobs:
            shards.append(tasks.shard())
            shards[-1].restore(blob)
        points: list[EstimatePoint] = []
        if state.adapts_z:
            origin = state.origin(slices)
            found = [tasks.estimate_points(batch, *one, origin) for one in both]
            points = state.due(chain.from_iterable(found))
        decided: list[Decided] = []
        changes: list[ZChange] = []
        first = 0
        for point in points:
            decided += _decide(shards, parts, first, point.row)
            for shard in shards:
                shard.forget(point.clock)
            estimate = state.estimate(point, lambda z: [shard.shown(z) for shard in shards])
            self.found.estimates.append(estimate)
            for shard in shards:
                shard.follow(state.z)
            changes.append(ZChange(point.row, state.z))
            first = point.row
        decided += _decide(shards, parts, first, 2**62)
        batch = batch._replace(changes=(*batch.changes, *changes))
        for lines, begin, one in zip(encoded, begins, slices, strict=True):
            mine = [_within(d, begin.n_valid, begin.n_valid + one.n_valid) for d in decided]
            joined = tasks.join(batch, lines, begin, mine)
            self._outputs.write(joined.taken, joined.departures)
            self.found.figures.append(joined.figures)
        state.advance(slices, secret)
        self._state, self._blobs = state.snapshot(), [shard.snapshot() for shard in shards]

    def _encoded(self, batch: BatchContext, rows: pa.RecordBatch) -> list[EncodedRows]:
        """The rows of a slice as two lines, packed and unpacked."""
        encoder, found = self._tasks.encoder(batch, Slice()), []
        late = self._case.policy.lateness is not None
        for a, b in pairwise([0, rows.num_rows // 3, rows.num_rows]):
            chunk = Chunk(rows.slice(a, b - a), np.arange(a, b), [])
            encoded = EncodedRows(chunk, encoder.encode_rows(chunk, batch.at))
            (line,) = encoded.to_batch(0, len(found), with_source=late).to_pylist()
            found.append(EncodedRows.of_line(line))
        return found


def _decide(
    shards: list[ZShard], parts: list[SplitRows], first: int, after: int
) -> list[Decided]:  # fmt: skip
    """Let each shard decide its parts of the rows from one row to before another."""
    found = []
    for number, shard in enumerate(shards):
        mine = [piece.of_shard(number) for piece in parts]
        whole = SplitRows(*map(np.concatenate, zip(*mine, strict=True)))
        here = (whole.rows >= first) & (whole.rows < after)
        decided = shard.decide(SplitRows(*(column[here] for column in whole)))
        found.append(Decided.of_batch(decided.to_batch()))
    return found


def _within(decided: Decided, first: int, after: int) -> Decided:
    here = (decided.rows >= first) & (decided.rows < after)
    return Decided(*(column[here] for column in decided))


# -- a job on Spark --------------------------------------------------------------------------------

STORY = Schema("who", [ATTRIBUTES[i][0] for i in (0, 1, 4)], keep=["note"], time="at")


def story(n_rows: int, **more: Any) -> Case:
    """Rows of all kinds: late ones, ones without a subject, with gaps."""
    draw = random.Random(11)
    rows = []
    at = 0.0
    for i in range(n_rows):
        at += draw.choice([0.0, 0.25, 0.5, 1.0, -3.0 if i % 9 == 0 else 0.0])
        lat, lon = draw.choice(ATTRIBUTES[4][1])
        values_of_row: Row = {
            "who": f"p{draw.randrange(9)}" if i % 17 else None, "page": draw.choice("abc"),
            "area": draw.choice([*ATTRIBUTES[1][1], None]), "lat": lat, "lon": lon, "at": at,
            "note": f"n{i}",
        }  # fmt: skip
        rows.append({name: values_of_row[name] for name in STORY.columns})
    policy = Policy(ZAnonymity(3), window=Window(seconds=8), missing="maybe", lateness=2.0)
    given = {"policy": policy, "knobs": {}, "publish": Publish(), "cuts": (30, 30)} | more
    return Case(STORY, rows=rows, **given)  # type: ignore[arg-type]


def settled(
    folder: File, case: Case, n_shards: int, *, traced: bool
) -> tuple[CommitLog, ShardJob, Plan]:
    """A job that is about to begin."""
    job = {"policy": "ab"}
    commits, plan = (
        CommitLog(folder / "state", job=job, seal=None),
        Plan(n_shards, None, SEED.hex()),
    )
    shard_job = ShardJob(
        case.schema, case.policy, ZAnonymizer(**case.knobs), case.publish, case.table().schema,
        commits.folder, job, None, n_shards, folder / "bad", traced,
    )  # fmt: skip
    commits.add_plan(plan)
    return commits, shard_job, plan
