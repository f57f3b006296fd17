"""Append public rows to an Iceberg table, each exactly once.

A commit to the table has, beside the rows, the number of rows of the job that the table then has
(`ROWS`), as a property of the snapshot. A commit is atomic, so rows and number can't differ. Few
rows aren't worth a commit, which makes a file and a snapshot: they wait, and a checkpoint has them
in the mark of the sink.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from shoal.errors import JobError, Problem, ResourceError, ShoalError, install_hint
from shoal.io.base import CommitMark
from shoal.io.files.append import wrong_output
from shoal.io.iceberg.settings import local_catalog, resolved

if TYPE_CHECKING:
    from shoal.io.iceberg.connector import IcebergOutput

__all__ = ["IcebergSink", "refuse_rows"]

#: The properties of a snapshot: how many rows of the job the table has, and the name of the job.
ROWS, JOB = "shoal-rows", "shoal-job"
#: How often a commit is tried while others change the table.
TRIES = 5
#: The library must not try by itself again: it doesn't look whose rows have come meanwhile.
NO_RETRIES = {"commit.retry.num-retries": "0"}
#: Without them a table that is appended to for months has ever more to write with each commit.
PROPERTIES = NO_RETRIES | {
    "commit.manifest-merge.enabled": "true",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "100",
}


class IcebergSink:
    """Rows of a job at the end of a table.

    Guarantee: a commit to the table has all of its rows or none, and the number of rows up to
    there. After a crash the table has every row up to the last commit; a resumed run appends what
    is missing, and nothing twice. Rows that wait are in the mark of the last checkpoint.

    Parameters
    ----------
    output
        The table.
    schema
        The columns.
    mark
        What `commit` returned; empty: from the beginning, where rows may exist already; None: a new
        job, for which the table must have no rows.
    job
        The name of the job.
    clock
        Returns the time in seconds.
    """

    def __init__(
        self,
        output: IcebergOutput,
        schema: pa.Schema,
        mark: CommitMark | None,
        *,
        job: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if mark and "held" not in mark:
            raise wrong_output(
                output.where, "isn't the kind of output that the checkpoint belongs to"
            )
        self._output, self._job, self._clock = output, job, clock
        self._schema = pa.schema([(field.name, _stored(field.type)) for field in schema])
        self._failure: BaseException | None = None
        with _explained(output):
            self._table = _open(output, self._schema)
            if mark is None and self._table.current_snapshot() is not None:
                raise _has_rows(output)
            there = self._rows_there()
        self._seq = int(mark["seq"]) if mark else 0
        held = _decoded(mark["held"], self._schema) if mark else []
        n_held: int = sum(batch.num_rows for batch in held)
        n_known = self._seq - n_held
        if there < n_known:
            raise wrong_output(
                output.where,
                f"has {there:,} rows of the job, and the checkpoint expects {n_known:,}: it was "
                "rolled back or replaced",
            )
        #: The number of rows of the job in the table.
        self._n_there = max(there, n_known)
        self._waiting = pa.Table.from_batches(held, self._schema).slice(
            min(n_held, there - n_known)
        )
        self._since = clock()

    @property
    def name(self) -> str:
        """The table, as messages call it."""
        return self._output.where

    @property
    def n_ahead(self) -> int:
        """The number of rows in the table that haven't been written again."""
        return max(0, self._n_there - self._seq)

    def write(self, batch: pa.RecordBatch) -> None:
        """Take some rows; those that the table has already are dropped."""
        self._check()
        n_known = min(batch.num_rows, self.n_ahead)
        self._seq += batch.num_rows
        batch = batch.slice(n_known)
        if not batch.num_rows:
            return
        if not self._waiting.num_rows:
            self._since = self._clock()
        arrays = [
            column.cast(field.type, safe=False)
            for column, field in zip(batch.columns, self._schema, strict=True)
        ]
        more = pa.Table.from_arrays(arrays, schema=self._schema)
        self._waiting = pa.concat_tables([self._waiting, more])
        if self._waiting.num_rows >= self._output.rows:
            self._append()

    def flush(self) -> None:
        """Commit the rows that wait, if they have waited for long enough."""
        if self._failure is None and self._is_due():
            self._append()

    def commit(self) -> CommitMark:
        """Make all rows so far durable, in the table or in the mark; return the mark."""
        self._check()
        if self._is_due():
            self._append()
        return {"seq": self._seq, "held": _encoded(self._waiting)}

    def abandon(self) -> None:
        """Append nothing more."""
        self._failure = ResourceError(f"{self._output.where}: was given up.")

    def close(self) -> None:
        """Append the rows that wait. Closing twice does no harm; after a failure it is silent."""
        if self._failure is None and self._waiting.num_rows:
            self._append()

    def _is_due(self) -> bool:
        n_rows = self._waiting.num_rows
        is_old = self._clock() - self._since >= self._output.seconds
        return bool(n_rows) and (is_old or n_rows >= self._output.rows)

    def _append(self) -> None:
        """Commit the rows that wait, with the number of rows up to there."""
        try:
            with _explained(self._output):
                self._try_to_append()
        except BaseException as error:
            # Whether the catalog has it is found out when the job resumes.
            self._failure = error
            raise
        self._n_there, self._waiting = self._seq, self._waiting.slice(0, 0)

    def _try_to_append(self) -> None:
        from pyiceberg.exceptions import CommitFailedException

        noted = {ROWS: str(self._seq), JOB: self._job}
        for attempt in range(TRIES):
            _keep_manifests(self._table.io)
            try:
                with self._table.transaction() as change:
                    change.append(self._waiting, snapshot_properties=noted)
                return
            except CommitFailedException:
                # Others may change the table, but nobody else may append rows of the job.
                self._table.refresh()
                if attempt == TRIES - 1 or self._rows_there() != self._n_there:
                    raise

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _rows_there(self) -> int:
        """Return how many rows of the job the table has, by its latest snapshot that tells so."""
        snapshot = self._table.current_snapshot()
        while snapshot is not None:
            noted = snapshot.summary.additional_properties if snapshot.summary else {}
            if ROWS in noted:
                if noted[JOB] != self._job:
                    raise wrong_output(self._output.where, "was written by a job of another name")
                return int(noted[ROWS])
            # Others may compact the table: what a row says doesn't change by that.
            parent = snapshot.parent_snapshot_id
            before = None if parent is None else self._table.snapshot_by_id(parent)
            # Where snapshots expire, some catalogs let the oldest one that is left have no parent.
            if before is None and (parent is not None or (snapshot.sequence_number or 1) > 1):
                raise wrong_output(
                    self._output.where,
                    "has no snapshot of the job any more: those with its number of rows "
                    "have expired, or the table was replaced",
                )
            snapshot = before
        return 0


def refuse_rows(output: IcebergOutput) -> None:
    """Raise `JobError` if a table has rows already, to which a new job would add."""
    with _explained(output):
        from pyiceberg.exceptions import NoSuchTableError

        try:
            table = _catalog(output).load_table(output.table)
        except NoSuchTableError:
            return
        if table.current_snapshot() is not None:
            raise _has_rows(output)


def _has_rows(output: IcebergOutput) -> JobError:
    what = f"{output.where} has rows already, and the job starts from the beginning"
    fix = "Name another table, or drop this one; to resume it, keep the checkpoint folder that "
    return JobError(Problem("output.iceberg", what, None, f"{fix}belongs to it"))


def _catalog(output: IcebergOutput) -> Any:
    from pyiceberg.catalog import load_catalog

    properties = resolved(output.settings)
    if output.folder is not None:
        Path(output.folder).mkdir(parents=True, exist_ok=True)
        properties = local_catalog(output.folder) | properties
    return load_catalog("shoal", **properties)


def _open(output: IcebergOutput, schema: pa.Schema) -> Any:
    """Return the table, which is made if it isn't there."""
    catalog = _catalog(output)
    namespace = tuple(output.table.split(".")[:-1])
    catalog.create_namespace_if_not_exists(namespace)
    table = catalog.create_table_if_not_exists(output.table, schema, properties=PROPERTIES)
    names = tuple(field.name for field in table.schema().fields)
    if names != tuple(schema.names):
        raise wrong_output(output.where, "has other columns than the job publishes")
    if wrong := _wrong_types(table, schema):
        what = f"{output.where} can't have what the job publishes in {' and '.join(wrong)}"
        fix = "Name another table, or let these columns have the published types, and be optional"
        raise JobError(Problem("output.iceberg", what, None, fix))
    if any(table.properties.get(name) != value for name, value in NO_RETRIES.items()):
        with table.transaction() as change:
            change.set_properties(NO_RETRIES)
    there = tuple(field.name for field in table.spec().fields)
    if there != output.partition:
        if table.current_snapshot() is not None or there:
            raise wrong_output(
                output.where, "is partitioned by other columns than those of the job"
            )
        # A table that was just made, maybe by a run that was killed.
        with table.update_spec() as spec:
            for name in output.partition:
                spec.add_identity(name)
    return table


#: Types that the values of another one fit into, and those that are two forms of one.
_WIDER = {
    (pa.int32(), pa.int64()), (pa.float32(), pa.float64()), (pa.string(), pa.large_string()),
    (pa.large_string(), pa.string()), (pa.binary(), pa.large_binary()),
    (pa.large_binary(), pa.binary()),
}  # fmt: skip


def _wrong_types(table: Any, schema: pa.Schema) -> list[str]:
    """Return the columns of a table that can't have the published values; each may be missing."""
    from pyiceberg.io.pyarrow import schema_to_pyarrow

    there = schema_to_pyarrow(table.schema())
    return [
        f"column {wanted.name}"
        for wanted, found in zip(schema, there, strict=True)
        if not found.nullable
        or (wanted.type != found.type and (wanted.type, found.type) not in _WIDER)
    ]


def _stored(kind: pa.DataType) -> pa.DataType:
    """Return the type of Iceberg that holds the values of another."""
    if pa.types.is_dictionary(kind):
        return _stored(kind.value_type)
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", None if kind.tz is None else "UTC")
    if pa.types.is_null(kind):
        return pa.string()
    if pa.types.is_uint64(kind):
        return pa.decimal128(20, 0)
    if pa.types.is_uint32(kind):
        return pa.int64()
    if pa.types.is_integer(kind) and kind.bit_width < 32:
        return pa.int32()
    if pa.types.is_float16(kind):
        return pa.float32()
    if pa.types.is_date64(kind):
        return pa.date32()
    return pa.time64("us") if pa.types.is_time(kind) else kind


def _encoded(rows: pa.Table) -> str:
    """Return rows as a text."""
    if not rows.num_rows:
        return ""
    data = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(data, rows.schema, options=options) as stream:
        stream.write_table(rows.combine_chunks())
    return base64.b64encode(data.getvalue()).decode()


def _decoded(text: str, schema: pa.Schema) -> list[pa.RecordBatch]:
    if not text:
        return []
    rows = pa.ipc.open_stream(base64.b64decode(text)).read_all()
    batches: list[pa.RecordBatch] = rows.cast(schema).to_batches()
    return batches


def _keep_manifests(files: Any) -> None:
    """Let no manifest be deleted: the library does so after a commit that was refused.

    What was refused may be the repetition, by a proxy, of a commit that was taken. Without its
    manifests nobody could read the table. Those of others do no harm.
    """
    delete = type(files).delete

    def delete_others(location: Any) -> None:
        path = location if isinstance(location, str) else location.location
        if not path.endswith(".avro"):
            delete(files, location)

    files.delete = delete_others


@contextmanager
def _explained(output: IcebergOutput) -> Iterator[None]:
    """Turn what the client library raises into errors that quote nothing."""
    try:
        import pyiceberg.exceptions as iceberg
    except ImportError:
        what = "needs pyiceberg, which isn't installed"
        raise JobError(Problem("output.iceberg", what, None, install_hint("iceberg"))) from None
    try:
        yield
    except ShoalError:
        raise
    except iceberg.CommitFailedException:
        raise ResourceError(
            f"{output.where}: another process changes it at the same time. Start the job again: "
            "it resumes, and appends nothing twice."
        ) from None
    except Exception as error:
        # Messages of the library may quote addresses with passwords, or values.
        raise ResourceError(
            f"{output.where}: the catalog or its files can't be used ({type(error).__name__}). "
            "Check output.path or output.settings, and the permissions there."
        ) from None
