"""``shoal audit``: check published data against the policy."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.audit import audit as judge
from shoal.audit.labels import public_columns
from shoal.cli.terminal import print_result
from shoal.engine.kernels.arrays import Ints
from shoal.errors import ResourceError
from shoal.io import Source, open_source
from shoal.io.files.folder import FolderSource, has_only_folders
from shoal.io.formats.jsonl import NoLinesError
from shoal.job import Job

__all__ = ["audit"]


def audit(
    job_path: Path,
    published: str,
    *,
    original: str | None,
    trace: Path | None,
    from_format: str | None,
    as_json: bool,
) -> int:
    """Audit published data; return the exit code."""
    job = Job.load(job_path)
    output = _published(job, published, from_format)
    given, rows = None, None
    if original is not None:
        given, rows = _table(original, job.schema.columns, None)
    lines = None if trace is None else _table(str(trace), None, None)[0]
    report = judge(
        job.schema,
        job.policy,
        output,
        numeric=job.publish.numeric,
        suppressed=job.publish.suppressed,
        trace=lines,
        original=given,
        original_rows=rows,
        **_z_options(job),
    )
    print_result(json.dumps(report.as_dict()) if as_json else str(report))
    return report.exit_code


def _z_options(job: Job) -> dict[str, Any]:
    """Return what the audit must know of a job with z: how it counts, and what it publishes."""
    if not job.policy.per_value:
        return {}
    pseudonym = job.publish.pseudonym
    return {
        "count": getattr(job.anonymizer, "count", "residual"),
        "pseudonym": pseudonym is not None,
        "rotate": None if pseudonym is None else pseudonym.rotate,
        "time": job.publish.time,
    }


def _published(job: Job, path: str, from_format: str | None) -> pa.Table:
    """Read the published data; JSON lines without rows have the columns of the job."""
    names = _public(job)
    try:
        return _table(path, None, from_format, otherwise=names)[0]
    except NoLinesError:
        return _no_rows(names)


def _public(job: Job) -> tuple[str, ...]:
    if job.policy.per_value:
        options = _z_options(job)
        first = ["pseudonym"] if options["pseudonym"] else []
        last = [job.schema.time] if options["time"] is not None and job.schema.time else []
        quasi = [attribute.name for attribute in job.schema.quasi]
        return (*first, *quasi, *job.schema.payload, *last)
    sides = (public_columns(attribute, job.publish.numeric) for attribute in job.schema.quasi)
    return (*itertools.chain.from_iterable(sides), *job.schema.payload)


def _no_rows(names: tuple[str, ...]) -> pa.Table:
    return pa.table({name: pa.array([], pa.string()) for name in names})


def _table(
    path: str,
    columns: tuple[str, ...] | None,
    from_format: str | None,
    *,
    otherwise: tuple[str, ...] = (),
) -> tuple[pa.Table, Ints]:
    """Read all rows of a file or folder that can be used, and their positions in it.

    A folder that has only folders, such as one for each batch, is read with all of them.
    ``otherwise`` are the columns if there are no rows and no other names of columns.
    """
    source = _open(path, columns, from_format)
    try:
        batches, rows = [], []
        for chunk in source:
            batches.append(chunk.batch)
            rows.append(chunk.rows)
        if not batches:
            names = columns or source.schema_names or otherwise
            return _no_rows(names), np.empty(0, np.int64)
        try:
            table = pa.concat_tables(
                [pa.Table.from_batches([batch]) for batch in _alike(batches)],
                promote_options="permissive",
            )
        except pa.ArrowException:
            raise ResourceError(f"{path}: the type of a column changes between batches") from None
        return table, np.concatenate(rows)
    finally:
        source.close()


def _open(path: str, columns: tuple[str, ...] | None, from_format: str | None) -> Source:
    folder = Path(path)
    if folder.is_dir() and has_only_folders(folder):
        return FolderSource(folder, columns, format=from_format, nested=True)
    return open_source(path, columns, format=from_format)


def _alike(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Decode dictionaries if a column is one in some batches only, since files may differ."""
    kinds = [
        {batch.schema.field(name).type for batch in batches} for name in batches[0].schema.names
    ]
    if all(len(found) == 1 for found in kinds):
        return batches
    return [
        pa.record_batch(
            {
                name: column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
                for name, column in zip(batch.schema.names, batch.columns, strict=True)
            }
        )
        for batch in batches
    ]
