"""One run on Spark from folder to folder: anonymized, passed through, and without any Python."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.runs import DELAY_ROWS, K
from benchmarks.workloads import Workload
from shoal.algorithms import find
from shoal.arrow.release import Publish
from shoal.io.files.connector import FileInput, FileOutput
from shoal.job import BadRows, Job
from shoal.job.endpoints import Checkpoints, Cluster
from shoal.metrics import Summary
from shoal.run.state.versions import Versions
from shoal.spark import query
from shoal.spark.columns import SHARD
from shoal.spark.commits import Epoch, shard_folder
from shoal.spark.driver import Driver
from shoal.spark.shard_job import ShardJob
from shoal.spec.policy import Delay, KAnonymity, Policy

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["BARE", "KINDS", "OURS", "PASSED", "Files", "Ran", "cut", "job_of", "run"]

OURS, PASSED, BARE = "anonymized", "passed through", "without Python"
SEED = 2011
#: The state of a figure that counts nothing.
NOTHING = {"latest": None, "deadline": None, "n_out": 0, "n_bytes": 0}


@dataclass(frozen=True)
class Files:
    """A workload as a folder of files, of which Spark reads some with each batch."""

    workload: Workload
    folder: Path = field(repr=False)
    #: The same rows in one file.
    whole: Path = field(repr=False)
    per_batch: int

    @property
    def n_rows(self) -> int:
        return self.workload.n_rows


@dataclass(frozen=True)
class Ran:
    """What came of a run."""

    summary: Summary
    #: The bytes of all states after each epoch.
    n_bytes: tuple[int, ...]
    #: How many seconds each batch took.
    seconds: tuple[float, ...]
    #: The bytes of the output.
    n_out_bytes: int


def cut(workload: Workload, folder: Path, rows: int, file_rows: int, per_batch: int) -> Files:
    """The first rows of a file, in one, and in files of this many rows; texts are plain in them."""
    name = f"{workload.name}-{rows}"
    whole, inside = folder / f"{name}-plain.parquet", folder / f"{name}-by-{file_rows}"
    if not inside.exists():
        table = pq.read_table(workload.path, columns=[*workload.schema.columns]).slice(0, rows)
        kinds = {
            f.name: f.type.value_type if pa.types.is_dictionary(f.type) else f.type
            for f in table.schema
        }
        table = table.cast(pa.schema(kinds.items()))
        unfinished = inside.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        for i, begin in enumerate(range(0, table.num_rows, file_rows)):
            pq.write_table(table.slice(begin, file_rows), unfinished / f"{i:05}.parquet")
        pq.write_table(table, whole, row_group_size=file_rows)
        unfinished.rename(inside)
    n_rows = pq.read_metadata(whole).num_rows
    return Files(dataclasses.replace(workload, n_rows=n_rows), inside, whole, per_batch)


def job_of(
    name: str, files: Files, folder: Path, *, k: int = K, delay: int = DELAY_ROWS, shards: int = 2
) -> Job:
    """An algorithm with its default knobs, as a job for Spark."""
    policy = Policy(KAnonymity(k), delay=Delay(rows=delay), missing=files.workload.missing)
    return Job(
        files.workload.schema, policy, find(name)(), Publish(),
        FileInput(str(files.folder), "parquet"), FileOutput(str(folder / "published")),
        BadRows("stop", folder / "bad"), SEED, "benchmark",
        Checkpoints(folder / "state", 10.0, None), Cluster(shards), {}, (),
    )  # fmt: skip


def run(session: SparkSession, job: Job, files: Files, kind: str) -> Ran:
    """Read all files and publish them, batch by batch, from an empty folder."""
    assert job.checkpoints is not None
    folder = job.checkpoints.folder.parent
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    schema = session.read.parquet(str(files.folder)).schema
    stream = (
        session.readStream.schema(schema)
        .option("maxFilesPerTrigger", files.per_batch)
        .parquet(str(files.folder))
    )
    running: list[query.Publishing] = []
    n_bytes: list[int] = []
    with _driven_by(KINDS[kind]):
        running.append(
            query.publish(
                stream, job, until_end=True,
                watch=lambda _: n_bytes.extend(
                    one.saved.n_bytes for one in running if one.saved is not None
                ),
            )
        )  # fmt: skip
        running[0].wait()
    seconds = (one["durationMs"]["triggerExecution"] for one in running[0].query.recentProgress)
    written = (folder / "published").rglob("*.parquet")
    return Ran(
        running[0].summary,
        tuple(n_bytes),
        tuple(each / 1000 for each in seconds),
        sum(path.stat().st_size for path in written),
    )


# -- the limits ------------------------------------------------------------------------------------


class _Passing(Driver):
    """The same epochs, with a step that gives rows as they come."""

    def _run(self, epoch: Epoch, rows: DataFrame | None) -> None:
        from pyspark.sql.pandas.types import from_arrow_schema

        plan = self._commits.plan(epoch.plan)
        shard_job = self._job
        names = [*(quasi.name for quasi in shard_job.schema.quasi), *shard_job.schema.payload]
        public = from_arrow_schema(pa.schema([shard_job.columns.field(name) for name in names]))
        dealt = self._routed(epoch, plan, rows)
        self._write(
            dealt.mapInArrow(partial(_passed, shard_job, epoch, plan.first_shard, names), public),
            epoch.name,
        )
        self._finish(epoch, plan, self._commits.figures(epoch, plan))


class _Bare(Driver):
    """The same epochs, without any Python: read, dealt out, in order, written."""

    def _run(self, epoch: Epoch, rows: DataFrame | None) -> None:
        schema = self._job.schema
        names = [*(quasi.name for quasi in schema.quasi), *schema.payload]
        plan = self._commits.plan(epoch.plan)
        self._write(self._routed(epoch, plan, rows).select(*names), epoch.name)
        self._finish(epoch, plan, [])


#: What a run may be, and who drives it.
KINDS: dict[str, type[Driver]] = {OURS: Driver, PASSED: _Passing, BARE: _Bare}


def _passed(
    shard_job: ShardJob,
    epoch: Epoch,
    first_shard: int,
    names: list[str],
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Give rows as they come, and leave the outputs of a shard that has decided nothing."""
    from shoal.run.core import summary_of

    first = next(batches)
    number = first_shard + int(first.column(SHARD)[0].as_py())
    summary = summary_of(shard_job.schema, shard_job.policy)
    for batch in _chained(first, batches):
        summary.n_in += batch.num_rows
        yield batch.select(names)
    folder = shard_folder(shard_job.folder, number)
    for kind in ("state", "figures"):
        Versions(folder, kind, job=shard_job.digests, seal=shard_job.open_seal()).save(
            epoch.number, NOTHING | {"summary": summary.state()}
        )


def _chained(first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from rest


@contextmanager
def _driven_by(kind: type[Driver]) -> Iterator[None]:
    before = query.Driver
    query.Driver = kind  # type: ignore[misc]
    try:
        yield
    finally:
        query.Driver = before  # type: ignore[misc]
