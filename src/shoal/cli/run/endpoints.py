"""What a run reads and where it writes, as the job and the command line say."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from shoal.errors import DataError, JobError, Problem
from shoal.io import BadRow, QuarantineWriter, Sink, Source, open_sink, open_source
from shoal.io.base import CommitMark, DurableSink
from shoal.io.files.durable import check_new, has_bytes, is_folder, open_durable
from shoal.io.files.open import make_sink
from shoal.io.files.private import open_private
from shoal.io.files.replayable import open_replayable
from shoal.io.formats import file_type
from shoal.job import Job
from shoal.job.endpoints import Input, Output
from shoal.run.writer import SinkFactory

__all__ = ["BadRowsOutlet", "input_of", "open_input", "outlet_of", "output_of", "trace_outlet"]


#: For how long a file of a folder is open, where there are no checkpoints to end it.
PART_SECONDS = 10.0


def input_of(job: Job, path: str | None, form: str | None, *, follow: bool) -> Input:
    """The input of a job, or what the command line says instead."""
    source = job.input
    if path is not None:
        source = Input(path)
    if source.kafka is not None:
        _refuse_with_kafka("--follow", follow)
        _refuse_with_kafka("--from", form is not None)
        return source
    if source.table is not None:
        return dataclasses.replace(source, follow=follow)
    return dataclasses.replace(source, format=form or source.format, follow=follow or source.follow)


def output_of(job: Job, path: str | None, form: str | None) -> Output:
    """The output of a job, or what the command line says instead."""
    sink = job.output
    if path is not None:
        sink = Output(path, rows=sink.rows, seconds=sink.seconds)
    if sink.kafka is not None:
        _refuse_with_kafka("--to", form is not None)
        return sink
    if sink.table is not None:
        return sink
    return dataclasses.replace(sink, format=form or sink.format)


def _refuse_with_kafka(flag: str, is_given: bool) -> None:
    if is_given:
        raise JobError(Problem(flag, "doesn't go with a topic", None, "Leave it out"))


def open_input(job: Job, source: Input) -> Source:
    """Open what is read."""
    columns = job.schema.columns
    if source.kafka is not None:
        from shoal.io.kafka.source import KafkaSource

        return KafkaSource(source.kafka, columns)
    reads_folder = source.path != "-" and Path(source.path).is_dir()
    if job.checkpoints is not None or source.follow or reads_folder:
        return open_replayable(source.path, columns, format=source.format, follow=source.follow)
    return open_source(source.path, columns, format=source.format)


class _Files:
    """An outlet of files that a job goes on with."""

    def __init__(self, sink: Output, *, private: bool) -> None:
        self._sink, self._private = sink, private

    def check(self) -> None:
        """Refuse if there are rows already."""
        check_new(self._sink.path, self._sink.format)

    def open(self, schema: pa.Schema, mark: CommitMark | None) -> DurableSink:
        """Open it at a mark, or anew."""
        sink = self._sink
        return open_durable(
            sink.path, schema, mark, format=sink.format, private=self._private,
            part_rows=sink.rows, part_seconds=sink.seconds,
        )  # fmt: skip


class _Topic:
    """An outlet to Kafka."""

    def __init__(self, job: Job, sink: Output) -> None:
        self._job, self._sink = job, sink

    def check(self) -> None:
        """Refuse if there are rows of this job already."""
        from shoal.io.kafka.sink import refuse_started

        assert self._sink.kafka is not None
        refuse_started(self._sink.kafka, self._job.name)

    def open(self, schema: pa.Schema, mark: CommitMark | None) -> DurableSink:
        """Open it at a mark, or anew."""
        from shoal.io.kafka.sink import KafkaSink

        assert self._sink.kafka is not None
        return KafkaSink(self._sink.kafka, schema, mark, job=self._job.name)


def outlet_of(job: Job, sink: Output) -> SinkFactory | Callable[[pa.Schema], Sink]:
    """What rows are published through."""
    if sink.kafka is not None:
        return _Topic(job, sink)
    if job.checkpoints is not None:
        return _Files(sink, private=False)
    if sink.path != "-" and is_folder(sink.path):
        # Nothing else would ever finish a file.
        seconds = PART_SECONDS if sink.seconds is None else sink.seconds
        return _Files(dataclasses.replace(sink, seconds=seconds), private=False)
    return lambda schema: open_sink(sink.path, schema, format=sink.format)


def trace_outlet(job: Job, path: str) -> SinkFactory | Callable[[pa.Schema], Sink]:
    """What the lines of a trace go through."""
    if job.checkpoints is not None or is_folder(path):
        form = "parquet" if is_folder(path) else None
        return _Files(Output(path, form), private=True)
    return lambda schema: make_sink(open_private(path), schema, file_type(path))


class BadRowsOutlet:
    """Where bad rows go; the file is made when the first one comes."""

    def __init__(self, job: Job, source: Source) -> None:
        self._job, self._source = job, source
        self._writer: QuarantineWriter | None = None
        self._mark: CommitMark | None = None

    def __call__(self, bad: list[BadRow]) -> None:
        """Write bad rows to the quarantine file, or stop the run."""
        if self._job.bad_rows.action == "stop":
            first = bad[0]
            raise DataError(
                f"{self._source.describe()}: row {first.row}: {first.reason}. The job says to "
                'stop at a bad row; bad_rows.action = "quarantine" sets them apart and goes on.'
            )
        if self._writer is None:
            self._writer = self._open()
        self._writer.write(bad)

    def check(self) -> None:
        """Refuse if there are rows already."""
        check_new(self._job.bad_rows.file)

    def resume(self, mark: CommitMark) -> None:
        """Go on from a mark."""
        self._mark = mark
        # One that isn't there any more is told now, and not when the next bad row comes.
        if mark or has_bytes(self._job.bad_rows.file):
            self._writer = self._open()

    def commit(self) -> CommitMark:
        """Make all rows so far durable."""
        if self._writer is None:
            return self._mark or {}
        return self._writer.commit()

    @property
    def n_ahead(self) -> int:
        """How much the file has that wasn't written again."""
        return 0 if self._writer is None else self._writer.n_ahead

    def _open(self) -> QuarantineWriter:
        path = self._job.bad_rows.file
        return QuarantineWriter(path) if self._mark is None else QuarantineWriter(path, self._mark)

    def close(self) -> None:
        """Finish the file, if there is one."""
        if self._writer is not None:
            self._writer.close()
