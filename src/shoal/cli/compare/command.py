"""``shoal compare``: run a grid of algorithms and promises on some data."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from shoal.audit.report import BY_ROWS
from shoal.cli.check.trial import Sample
from shoal.cli.compare.outputs import check_ending, check_targets, encoded, write_file
from shoal.cli.compare.progress import GridProgress
from shoal.cli.terminal import print_message, print_result
from shoal.compare.best_job import best_job
from shoal.compare.comparing import compare_cells
from shoal.compare.comparison import Comparison
from shoal.compare.job_grid import JobGrid, Values, grid_of, numbers_of
from shoal.compare.measure import Rows
from shoal.compare.repeats import repeated
from shoal.compare.sampling import about_tables, drawn
from shoal.compare.words import why_none
from shoal.errors import DataError, JobError, Problem
from shoal.io.connector import InputEndpoint
from shoal.io.files.connector import FileInput
from shoal.io.registry import resolve_input
from shoal.io.streams import STDIO
from shoal.job import Job
from shoal.job.toml import parse_toml

__all__ = ["CompareOptions", "compare"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareOptions:
    """The options of the command line; None where the job decides."""

    source: str | None = None
    from_format: str | None = None
    algorithms: str = "all"
    k: str | None = None
    l: str | None = None  # noqa: E741
    t: str | None = None
    delay: str | None = None
    sample: int | None = None
    seeds: int = 1
    jobs: int | None = None
    cache: bool = True
    output: Path | None = None
    report: Path | None = None
    best: Path | None = None
    force: bool = False
    as_json: bool = False

    @property
    def values(self) -> Values:
        """What is tried, by key of the policy."""
        return {key: numbers_of(key, getattr(self, key)) for key in ("k", "l", "t", "delay")}


def compare(job_path: Path, options: CompareOptions) -> int:
    """Run a grid; return the exit code."""
    job = Job.load(job_path)
    text = job_path.read_text(encoding="utf-8-sig")
    names = [name.strip() for name in options.algorithms.split(",") if name.strip()]
    grid = grid_of(job, parse_toml(text, str(job_path))["policy"], names, options.values)
    source = _input(job, options)
    _check_outputs(job, job_path, source, options)
    for warning in grid.warnings:
        print_message(f"warning: {warning}")
    rows = _sampled(job, grid, source, options.sample)
    jobs = options.jobs or len(os.sched_getaffinity(0))
    cells = repeated(grid.cells, options.seeds)
    with GridProgress(cells, jobs, quiet=options.as_json) as progress:
        found = compare_cells(
            rows, grid.cells, own=grid.own, jobs=jobs, seeds=options.seeds,
            cache=options.cache, watch=progress,
        )  # fmt: skip
    print_result(json.dumps(found.as_dict()) if options.as_json else repr(found))
    if job.schema.each_row:
        print_message(BY_ROWS)
    _write(job, job_path, text, grid, found, options)
    return _exit_code(found, is_kept=options.cache)


def _exit_code(found: Comparison, *, is_kept: bool) -> int:
    if found.interrupted:
        fate = ": finished runs are cached, and aren't repeated" if is_kept else ""
        print_message(f"interrupted{fate}")
        return 130
    if not found.n_done:
        print_message("shoal: no combination could run; the reasons are listed above")
        return DataError.exit_code
    broken = [run.cell.label for run in found.runs if run.figures and run.figures.audit == "broken"]
    if broken:
        names = ", ".join(dict.fromkeys(broken))
        print_message(f"shoal: the audit found a broken promise: {names}. Please report it.")
        return 1
    return 0


def _write(
    job: Job, job_path: Path, text: str, grid: JobGrid, found: Comparison, options: CompareOptions
) -> None:
    """Write what was asked for."""
    written = []
    if options.output is not None:
        write_file(options.output, encoded(found, options.output))
        written.append(options.output)
    if options.report is not None:
        from shoal.compare.page import page

        write_file(options.report, page(found, job_path.name).encode())
        written.append(options.report)
    chosen = found.recommended
    if options.best is not None and chosen is None:
        print_message(f"{options.best} isn't written: {why_none(found)}")
    elif options.best is not None and chosen is not None:
        cell = found.runs[chosen.place].cell
        section = grid.sections[cell.policy]
        made = best_job(text, job, cell, section, chosen.reason, options.best.absolute().parent)
        write_file(options.best, made.encode())
        written.append(options.best)
    for path in written:
        print_message(f"wrote {path}")


def _check_outputs(
    job: Job, job_path: Path, source: InputEndpoint, options: CompareOptions
) -> None:
    """Raise for outputs with which the command would end after all was run."""
    check_ending(options.output)
    read = [job_path, *job.files]
    if source.path not in (None, STDIO):
        data = Path(str(source.path))
        read += [data, *(data.iterdir() if data.is_dir() else ())]
    targets = [
        ("--output", options.output),
        ("--report", options.report),
        ("--write", options.best),
    ]
    check_targets(targets, read, force=options.force)
    if options.best is not None:
        folder, own = options.best.absolute().parent, job_path.absolute().parent
        if not folder.samefile(own):
            what = "must be in the folder of the job: its paths are relative to it"
            raise JobError(Problem("--write", what, None, f"Write {own / options.best.name}"))


def _input(job: Job, options: CompareOptions) -> InputEndpoint:
    """Return the file that is read; a stream that never ends can't be run twice."""
    source = resolve_input(job.input, options.source, options.from_format, follow=False)
    if not isinstance(source, FileInput):
        what = f"is {source.noun}, and a comparison reads a file"
        raise JobError(Problem("input", what, None, "Give a file of such rows with -i"))
    if source.path == STDIO and options.source is None:
        raise JobError(Problem("input", "isn't named in the job", None, "Give the data with -i"))
    source.check_run("input")
    return dataclasses.replace(source, follow=False)


def _sampled(job: Job, grid: JobGrid, source: InputEndpoint, n_rows: int | None) -> Rows:
    """Read rows: of a stream the first, of a table people who are drawn; say if not all are taken.

    A stream that is thinned out has another delay than the whole: its sample is consecutive.
    """
    at_random = about_tables(grid.cells)
    rows, is_whole = _rows(job, source, None if at_random else n_rows)
    n_all, what = rows.table.num_rows, "the first rows of the stream"
    if at_random and n_rows is not None and n_rows < n_all:
        rows = dataclasses.replace(rows, table=drawn(rows.table, job.schema, n_rows, rows.seed))
        is_whole, what = False, f"people drawn at random, of {n_all:,} rows"
    if not is_whole:
        print_message(f"{rows.table.num_rows:,} rows are compared: {what}; --all takes all rows")
    return rows


def _rows(job: Job, spec: InputEndpoint, n_rows: int | None) -> tuple[Rows, bool]:
    """Read the first rows; return them, and whether there are no more."""
    with contextlib.ExitStack() as stack:
        source = spec.open(job.schema.columns, replay=False)
        stack.callback(source.close)
        sample = Sample(source, n_rows)
        n_bad, tables = 0, []
        for chunk in sample:
            n_bad += len(chunk.bad)
            tables.append(_decoded(chunk.batch))
        name = source.describe()
    if n_bad:
        print_message(f"{n_bad:,} rows can't be read, and are skipped")
    try:
        table = pa.concat_tables(tables, promote_options="permissive") if tables else pa.table({})
    except pa.ArrowException:
        raise DataError(f"{name}: the type of a column changes between batches.") from None
    if not table.num_rows:
        raise DataError(f"{name}: has no rows, so nothing can be compared.")
    return Rows(job.schema, table, job.seed or 0), sample.is_whole


def _decoded(batch: pa.RecordBatch) -> pa.Table:
    """Return a batch with plain columns, since dictionaries may differ between batches."""
    columns = {
        name: column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    }
    return pa.table(columns)
