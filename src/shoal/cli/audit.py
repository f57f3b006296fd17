"""``shoal audit``: was the promise kept?"""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.audit import audit as judge
from shoal.audit.labels import public_columns
from shoal.cli.terminal import tell
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
    """Judge what was published; give the exit code."""
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
        **_of_cells(job),
    )
    tell(json.dumps(report.as_dict()) if as_json else str(report))
    return report.exit_code


def _of_cells(job: Job) -> dict[str, Any]:
    """What a job with z says of how cells are counted and what is published beside them."""
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
    """What was published; JSON lines without rows name no columns, but the job does."""
    names = _public(job)
    try:
        return _table(path, None, from_format, otherwise=names)[0]
    except NoLinesError:
        return _no_rows(names)


def _public(job: Job) -> tuple[str, ...]:
    if job.policy.per_value:
        said = _of_cells(job)
        first = ["pseudonym"] if said["pseudonym"] else []
        last = [job.schema.time] if said["time"] is not None and job.schema.time else []
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
    """All rows of a file or folder that can be read, and their positions in it.

    A folder that has nothing but folders, such as one for each batch, is read with all in them.
    ``otherwise`` are the columns where there are no rows, and nothing that names columns.
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
            raise ResourceError(f"{path}: its columns change their type on the way") from None
        return table, np.concatenate(rows)
    finally:
        source.close()


def _open(path: str, columns: tuple[str, ...] | None, from_format: str | None) -> Source:
    folder = Path(path)
    if folder.is_dir() and has_only_folders(folder):
        return FolderSource(folder, columns, format=from_format, nested=True)
    return open_source(path, columns, format=from_format)


def _alike(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Give batches in which a column is a dictionary in all or in none, as files may differ."""
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
