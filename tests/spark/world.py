"""Jobs on Spark, and the input of a shard in an epoch, made without Spark."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from shoal.audit import Report, audit
from shoal.job import Job
from shoal.run.state.checkpoint import read_checkpoint_heading
from shoal.run.state.seal import Seal
from shoal.spark import shard
from shoal.spark.columns import CORRUPT, ROW, SHARD, TICK, order_column
from shoal.spark.commits import CommitLog, Epoch, Plan, shard_folder
from shoal.spark.shard import run_shard
from shoal.spark.shard_job import ShardJob
from shoal.spark.trace import merge_traces
from tests.world import write_job

SEED = (7).to_bytes(16, "big")
LIVE = "seed = 7\ncheckpoint = { folder = 'state' }"
COLUMNS = ["person", "age", "town", "illness", "ward"]


def job_of(
    folder: Path, *, name: str = "castle", more: str = "", run: str = LIVE, **options: str
) -> Job:
    """A job that keeps its state; ``name`` is of the algorithm, ``more`` are more sections."""
    folder.mkdir(parents=True, exist_ok=True)
    path = write_job(folder, run=run, **options)
    path.write_text(path.read_text().replace("name = 'castle'", f"name = '{name}'") + more)
    return Job.load(path)


def shard_job_of(job: Job, columns: pa.Schema, **options: Any) -> ShardJob:
    """What the driver sends to shards."""
    assert job.checkpoints is not None
    fields = {
        "schema": job.schema, "policy": job.policy, "anonymizer": job.anonymizer,
        "publish": job.publish, "columns": columns.empty_table().select(job.schema.columns).schema,
        "folder": job.checkpoints.folder, "digests": dict(job.digests),
        "seal": job.checkpoints.seal,
        "n_shards": 1, "quarantine": job.bad_rows.file, "traced": True,
    }  # fmt: skip
    return ShardJob(**fields | options)


def batches_of(
    table: pa.Table | None,
    columns: pa.Schema,
    cuts: list[int] | None = None,
    *,
    first: int = 0,
    number: int = 0,
    corrupt: dict[int, str] | None = None,
) -> list[pa.RecordBatch]:
    """Rows as Spark brings them to a shard: after a row that names it, with columns of ours."""
    if table is None:
        table = columns.empty_table()
    n = table.num_rows
    types = {
        **{field.name: field.type for field in table.schema},
        order_column(0): pa.int64(),
        **({} if corrupt is None else {CORRUPT: pa.string()}),
        TICK: pa.bool_(),
        ROW: pa.int64(),
        SHARD: pa.int32(),
    }
    ours = {
        order_column(0): range(first, first + n),
        CORRUPT: [None if corrupt is None else corrupt.get(i) for i in range(n)],
        TICK: [None] * n,
        ROW: range(first, first + n),
        SHARD: [number] * n,
    }
    arrays = {
        name: pa.array(ours[name], kind) if name in ours else table[name].combine_chunks()
        for name, kind in types.items()
    }
    schema = pa.schema(types.items())
    rows = pa.table(arrays, schema)
    control = pa.Table.from_pylist([{SHARD: number, TICK: True}], schema)
    whole = pa.concat_tables([control, rows]).combine_chunks().to_batches()[0]
    borders = sorted({0, n + 1, *(cut for cut in cuts or [] if cut <= n)})
    return [whole.slice(begin, end - begin) for begin, end in pairwise(borders)]


@dataclasses.dataclass
class ShardRun:
    """Run one shard epoch by epoch, as the driver does."""

    shard_job: ShardJob
    n_shards: int = 1
    number: int = 0
    is_fresh: bool = False
    """Whether each epoch is run by another process."""
    lead: float = 0.0
    """How much earlier what is due leaves."""

    def __post_init__(self) -> None:
        seal = None if self.shard_job.seal is None else Seal.from_spec(self.shard_job.seal)
        self.commits = CommitLog(self.shard_job.folder, job=self.shard_job.digests, seal=seal)
        self.plan = Plan(self.n_shards, None, SEED.hex())
        if self.commits.newest_plan is None:
            self.commits.add_plan(self.plan)
        self.last: Epoch | None = None
        self.n_rows = self.n_out = 0
        self.public: list[dict[str, Any]] = []
        self.lines: list[dict[str, Any]] = []

    def next(self, *, at: float = 0.0, is_end: bool = False, **more: Any) -> Epoch:
        """The epoch that comes next."""
        parent = None if self.last is None else self.last.number
        number = (
            (0 if parent is None else 2 * (parent // 2 + 1)) if not is_end else (parent or 0) + 1
        )
        epoch = Epoch(number, parent, 0, True, at, at + self.lead, None, self.n_rows, self.n_out)
        return dataclasses.replace(epoch, **more)

    def begin(
        self,
        epoch: Epoch,
        table: pa.Table | None = None,
        cuts: list[int] | None = None,
        **more: Any,
    ) -> Iterator[pa.RecordBatch]:
        """Begin an epoch with rows; the caller reads its result."""
        if self.is_fresh:
            shard._cached.clear()
        columns = self.shard_job.columns
        batches = batches_of(table, columns, cuts, first=epoch.n_in, number=self.number, **more)
        return run_shard(self.shard_job, epoch, 0, iter(batches))

    def take(
        self, table: pa.Table | None = None, cuts: list[int] | None = None, *,
        at: float = 0.0, is_end: bool = False, corrupt: dict[int, str] | None = None, **more: Any,
    ) -> list[dict[str, Any]]:  # fmt: skip
        """Run the next epoch, and return its public rows."""
        epoch = self.next(at=at, is_end=is_end, **more)
        more = {} if corrupt is None else {"corrupt": corrupt}
        found = rows_of(self.begin(epoch, table, cuts, **more))
        self.finish(epoch, 0 if table is None else table.num_rows, found)
        return found

    def finish(self, epoch: Epoch, n_rows: int, found: list[dict[str, Any]]) -> None:
        """Do what the driver does after an epoch, except deleting files."""
        self.n_rows += n_rows
        if self.shard_job.traced:
            figures = [{"n_out": len(found)}]
            trace = self.shard_job.folder / "trace"
            plan = dataclasses.replace(self.plan, first_shard=self.number)
            merge_traces(trace, self.shard_job.folder, epoch, plan, figures)
            path = trace / f"{epoch.name}.parquet"
            self.lines += pq.read_table(path).to_pylist() if path.exists() else []
        self.n_out += len(found)
        self.public += found
        self.last = epoch

    def state(self, epoch: Epoch | None = None) -> bytes:
        """The state after an epoch: the file but for its heading, which knows the time."""
        epoch = epoch or self.last
        assert epoch is not None
        path = shard_folder(self.shard_job.folder, self.number) / f"state-{epoch.number:010}"
        data = path.read_bytes()
        return data[len(read_checkpoint_heading(path, data, epoch.number).raw) : -32]

    def judge(self, table: pa.Table, unread: Collection[int] = ()) -> Report:
        """The audit of all of it; some rows of the table can't be read."""
        return judge(self.shard_job, self.public, self.lines, table, unread)


def rows_of(batches: Iterator[pa.RecordBatch]) -> list[dict[str, Any]]:
    """All rows of batches."""
    return [row for batch in batches for row in batch.to_pylist()]


def judge(
    job: Job | ShardJob,
    public: list[dict[str, Any]],
    lines: list[dict[str, Any]],
    table: pa.Table,
    unread: Collection[int] = (),
) -> Report:
    """What the audit says of a release; some rows of the table can't be read."""
    rows = np.setdiff1d(np.arange(table.num_rows), list(unread)).astype(np.int64)
    columns = [name for name in table.schema.names if name in job.schema.columns]
    return audit(
        job.schema, job.policy, pa.Table.from_pylist(public), numeric=job.publish.numeric,
        suppressed=job.publish.suppressed, trace=pa.Table.from_pylist(lines),
        original=table.select(columns).take(rows), original_rows=rows,
    )  # fmt: skip


def by_row(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Lines of a trace in the order of the input."""
    return sorted(lines, key=lambda line: line["row"])


def unsharded(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Lines of a single shard as those of a run on its own: groups are with_read_order from 0."""
    plain = []
    for line in by_row(lines):
        line = dict(line)
        assert line.pop("shard") == 0
        if line["group"] is not None:
            line["group"] >>= 20
        plain.append(line)
    return plain


def cuts_of(n_rows: int, seed: int) -> list[int]:
    """Random positions at which rows are cut."""
    draw = np.random.default_rng(seed)
    return sorted(draw.choice(np.arange(1, n_rows), size=5, replace=False).tolist())
