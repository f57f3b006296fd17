"""``shoal init``: draft a job from a data file."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from shoal.cli.init.draft import draft
from shoal.cli.terminal import print_message, print_result
from shoal.errors import JobError, Problem, ResourceError
from shoal.io import open_source

__all__ = ["init"]


def init(data: str, output: Path, *, rows: int, from_format: str | None, force: bool) -> int:
    """Write a job and its hierarchies; return the exit code."""
    sample, is_whole = _sample(data, rows, from_format)
    drafted = draft(sample, name=Path(data).name, total_rows=sample.num_rows if is_whole else None)
    files = {output: drafted.job}
    files |= {output.parent / name: text for name, text in drafted.files.items()}
    there = [str(path) for path in files if path.exists()]
    if there and not force:
        raise JobError(
            Problem("output", f"{', '.join(there)} would be overwritten", None, "Use --force")
        )
    try:
        for path, text in files.items():
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ResourceError(f"{output.parent}: can't be written: {error.strerror}") from None
    for warning in drafted.warnings:
        print_message(f"warning: {warning}")
    names = ", ".join(str(path) for path in files)
    print_message(f"wrote {names} from {sample.num_rows:,} rows; review them, then:")
    print_result(f"shoal run {output} -i {data} -o published.csv")
    return 0


def _sample(data: str, rows: int, from_format: str | None) -> tuple[pa.Table, bool]:
    """Read the first rows of a file; return them, and whether there are no more."""
    source = open_source(data, format=from_format)
    try:
        tables, n = [], 0
        for chunk in source:
            tables.append(pa.Table.from_batches([chunk.batch]))
            n += chunk.batch.num_rows
            if n >= rows:
                break
        if n == 0:
            raise ResourceError(f"{data}: has no rows")
        table = pa.concat_tables(tables, promote_options="permissive")
        return table.slice(0, rows), n < rows
    finally:
        source.close()
