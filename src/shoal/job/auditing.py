"""Audit frames and files from Python: ``shoal.audit``. ``shoal audit`` calls it, too."""

from __future__ import annotations

import dataclasses
import itertools
import math
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.audit import Part, Report, Verdict, audit_parts, changes_in, without_changes
from shoal.audit.evidence import Loss, Order, Suppressed
from shoal.audit.labels import Numeric, public_columns
from shoal.audit.shape import unreadable
from shoal.audit.z import Count
from shoal.engine.kernels.arrays import Ints
from shoal.errors import CheckpointError, DataError, JobError, ParameterError, ResourceError
from shoal.io import Source, open_source
from shoal.io.files.connector import FileInput, FileOutput
from shoal.io.files.folder import COMPLETE, FolderSource, files_in, has_only_folders
from shoal.io.formats import file_type
from shoal.io.formats.jsonl import NoLinesError
from shoal.io.streams import STDIO, is_directory, refuse_address
from shoal.io.text.dialect import Dialect
from shoal.job.changes import changes_between
from shoal.job.changing import n_changes, newest_checkpoint
from shoal.job.file import Job
from shoal.job.running import AnyJob, job_of
from shoal.run.frame_kinds import FRAMES, chunks_of, is_frame, kind_of
from shoal.run.result import Result
from shoal.run.state.folder import CHECKPOINT, numbers_of
from shoal.run.state.private_files import EXAMPLE, is_sealed, numbered
from shoal.run.state.seal import Seal
from shoal.spec.policy import Policy
from shoal.spec.schema import Schema

__all__ = ["NO_TRACE", "Data", "audit", "read_published", "read_table", "read_trace"]

#: Rows in memory or in a file.
Data: TypeAlias = Any


# fmt: off
@overload
def audit(
    job: AnyJob, published: Data, /, *,
    original: Data = None, trace: Data = None, format: str | None = None,
) -> Report: ...
@overload
def audit(
    schema: Schema, policy: Policy, published: Data, /, *,
    original: Data = None, trace: Data = None, format: str | None = None,
    numeric: Numeric = "range", suppressed: Suppressed = "drop",
    order: Order | None = None, loss: Loss | None = None, reuse: bool | None = None,
    n_quarantined: int | None = None, count: Count = "residual", pseudonym: bool = False,
    rotate: float | None = None, time: float | None = None, may_hold: bool = False,
) -> Report: ...
# fmt: on
def audit(
    *what: Any,
    original: Data = None,
    trace: Data = None,
    format: str | None = None,  # noqa: A002
    **options: Any,
) -> Report:
    """Judge whether an output keeps what was promised.

    Call it with a job and the published rows, or with a schema, a policy and the published rows.

    Parameters
    ----------
    job
        A `Job`, the path of a job file, or its sections as a dictionary.
    schema, policy
        Instead of a job: what the columns are, and what was promised.
    published
        The output: a file or folder, a DataFrame of pandas or polars, a Table or RecordBatch of
        Arrow, a list of dicts; or a `Result`, which brings its trace.
    original, trace
        The input of the run and its private trace, as frames or files. Without them much can't be
        verified.
    format
        The format of a published file; None: by its name.
    options
        With a schema and a policy: how the output looks; see `shoal.audit.audit`. A `Result` knows
        it.

    Returns
    -------
    Report
        One verdict for each promise; ``print`` it, or ask ``report.verdict``.

    >>> from shoal import KAnonymity, Quasi, Range
    >>> schema = Schema(subject=None, quasi=[Quasi("age", Range(17, 90, step=1))])
    >>> rows = [{"age": "[20, 30]"}, {"age": "[20, 30]"}, {"age": "[31, 40]"}]
    >>> audit(schema, Policy(KAnonymity(2)), rows)["k-anonymity"].verdict
    'broken'
    """
    job = None
    if len(what) == 3 and isinstance(what[0], Schema):
        schema, policy, published = what
        names, dialect = schema.columns, None
        looks = published.publish if isinstance(published, Result) else None
        if looks is not None:
            options = {"numeric": looks.numeric, "suppressed": looks.suppressed} | options
    elif len(what) == 2 and not isinstance(what[0], Schema):
        job, _ = job_of(what[0])
        if options:
            raise ParameterError(
                next(iter(options)), "is set by the job", fix="Leave it out, or change the job"
            )
        schema, published = job.schema, what[1]
        names = _public(job)
        dialect = job.input.dialect if isinstance(job.input, FileInput) else None
    else:
        raise ParameterError(
            "audit",
            "takes a job and the published rows, or a schema, a policy and the published rows",
            got=", ".join(type(part).__name__ for part in what) or "nothing",
            fix='For example shoal.audit("job.toml", "published.csv")',
        )
    if isinstance(published, Result):
        trace = published.trace if trace is None else trace
        published = published.output if published.frame is None else published.frame
    if job is not None:
        format = _format_of(job, published, format)  # noqa: A001
    try:
        output = _table("published", published, None, format, otherwise=names)
    except NoLinesError:
        output = _Rows(_no_rows(names))
    given, rows = None, None
    if original is not None:
        given, rows, _ = _table("original", original, schema.columns, None, dialect=dialect)
    lines, changes, numbers = NO_TRACE if trace is None else read_trace(trace, job)
    if job is not None:
        parts, unknown = parts_of(job, changes)
    else:
        parts, unknown = [Part(policy, options)], _unjudged(len(changes))
    report = audit_parts(
        schema, parts, output.table, trace=lines, original=given, original_rows=rows,
        n_unreadable=output.n_bad, files=files_behind(published), numbers=numbers,
    )  # fmt: skip
    return dataclasses.replace(report, verdicts=(*report.verdicts, *unknown))


def parts_of(
    job: Job, traced: Sequence[Mapping[str, Any]] = ()
) -> tuple[list[Part], tuple[Verdict, ...]]:
    """Return the parts of a job whose promise has changed, and verdicts about what isn't known.

    Its checkpoints tell, and if they can't be opened, the lines of its trace (``traced``). If
    neither do, although the checkpoints say in clear that it has changed, it is one part.

    Raises
    ------
    ParameterError
        If a line of the trace has a promise that no job can make.
    """
    kept = _kept_changes(job)
    changes, verdicts = _known_changes(kept, traced)
    jobs = [*(_former(job, change, kept.changes) for change in changes), job]
    parts, start = [], Part(job.policy)
    if any(
        not _is_among(change, kept.changes) and _promised_less(former, following)
        for change, former, following in zip(changes, jobs, jobs[1:], strict=False)
    ):
        verdicts = (*verdicts, _UNCONFIRMED)
    for change, former, following in zip(changes, jobs, jobs[1:], strict=False):
        parts.append(dataclasses.replace(start, policy=former.policy, options=_options(former)))
        start = Part(
            job.policy,
            what=_said(change, former, following, kept.changes),
            rows_in=int(change["rows_in"]),
            taken_in=int(change["taken_in"]),
            published=int(change["published"]),
            since=math.nan if change["latest"] is None else float(change["latest"]),
        )
    # Under the promises before nothing is held any more.
    options = _options(job) | {"may_hold": job.checkpoints is not None}
    return [*parts, dataclasses.replace(start, options=options)], verdicts


class _Kept(NamedTuple):
    """What the checkpoints of a job tell: its changes, as far as they can be read.

    ``n`` is how many there are, which the newest one says in clear; None if it doesn't.
    """

    changes: Sequence[Mapping[str, Any]] = ()
    n: int | None = None
    is_damaged: bool = False


def _kept_changes(job: Job) -> _Kept:
    if job.checkpoints is None:
        return _Kept()
    folder, is_there = job.checkpoints.folder, False
    try:
        is_there = bool(numbers_of(folder, CHECKPOINT))
        seal = None if job.checkpoints.seal is None else Seal.from_spec(job.checkpoints.seal)
        found = newest_checkpoint(folder, seal, fall_back=True)
    except (CheckpointError, JobError, ResourceError):
        found = None
    n = n_changes(folder)
    return _Kept(
        () if found is None else found.checkpoint.facts.get("changes", []),
        n,
        is_damaged=n is None and is_there,
    )


def _known_changes(
    kept: _Kept, traced: Sequence[Mapping[str, Any]]
) -> tuple[Sequence[Mapping[str, Any]], tuple[Verdict, ...]]:
    """Return the changes by which an output is judged, and verdicts about others."""
    others = [each for each in traced if not _is_among(each, kept.changes)]
    if kept.n is None:
        # What came last is in the trace alone.
        unknown = kept.is_damaged and not traced
        return [*kept.changes, *others], (_UNREADABLE,) if unknown else ()
    if kept.n > len(kept.changes):
        # Without the key of the seal, or damaged: an older one doesn't know the last change.
        if len(traced) == kept.n:
            return traced, ()
        return [], (_FORGED,) if len(traced) > kept.n else _unjudged(kept.n)
    return kept.changes, (_FORGED,) if others else ()


_FORGED = Verdict(
    "change of the job",
    "broken",
    "the trace tells of a change that the checkpoints don't know, or know otherwise",
)
_UNREADABLE = Verdict(
    "change of the job",
    "unverifiable",
    "the newest checkpoint can't be read, and no trace tells of a change: whether the job has "
    "changed before it isn't known",
)


_UNCONFIRMED = Verdict(
    "change of the job",
    "unverifiable",
    "that the job promised less, or something else, before a change is known from the trace alone, "
    "and who can write the trace can choose what rows are judged by: audit where the checkpoints "
    "of the job can be read",
)


def _promised_less(former: Job, following: Job) -> bool:
    """Return whether a former promise doesn't have all that the following one has."""
    return any(each.direction == "weaker" for each in changes_between(following, former))


def _former(job: Job, change: Mapping[str, Any], kept: Sequence[Mapping[str, Any]]) -> Job:
    """Return the job before a change."""
    try:
        return job.under(change["sections"], job.digests)
    except JobError:
        if _is_among(change, kept):
            raise
        raise ParameterError(
            "trace",
            "has a line about a change of the job whose former promise can't be read",
            fix="Give the file as the run wrote it with --trace",
        ) from None


def _said(
    change: Mapping[str, Any], former: Job, following: Job, kept: Sequence[Mapping[str, Any]]
) -> str:
    """Return what has changed, in words.

    The words in a trace aren't believed: what is shown is how the promises differ that each part is
    judged by.
    """
    what, is_weaker = change["what"], change["weaker"]
    if not _is_among(change, kept) and (found := changes_between(former, following)):
        what = [each.text for each in found]
        is_weaker = any(each.direction == "weaker" for each in found)
    return f"{', '.join(what)}{' (weaker, which was accepted)' if is_weaker else ''}"


def _is_among(traced: Mapping[str, Any], kept: Sequence[Mapping[str, Any]]) -> bool:
    return any(_same(traced, one) for one in kept)


def _same(traced: Mapping[str, Any], kept: Mapping[str, Any]) -> bool:
    """Return whether a line of a trace and a checkpoint tell of the same change."""
    return all(traced[name] == kept[name] for name in ("rows_in", "published", "sections"))


def _unjudged(n_changes: int) -> tuple[Verdict, ...]:
    """Return a verdict about changes of a job whose former promises aren't known here, if any."""
    if not n_changes:
        return ()
    detail = (
        f"the job has changed {n_changes:,} times, and neither its checkpoints nor the lines of a "
        "trace can be read here with the job: all rows were judged by the present promise"
    )
    return (Verdict("change of the job", "unverifiable", detail),)


def _options(job: Job) -> dict[str, Any]:
    """Return what the audit must know of how a job publishes."""
    publish, pseudonym = job.publish, job.publish.pseudonym
    options: dict[str, Any] = {"numeric": publish.numeric, "suppressed": publish.suppressed}
    if not job.policy.per_value:
        kept = getattr(job.anonymizer, "kept", None)
        return options | {
            "order": publish.order,
            "loss": getattr(job.anonymizer, "loss", None),
            "reuse": None if kept is None else kept > 0,
        }
    return options | {
        "count": getattr(job.anonymizer, "count", "residual"),
        "pseudonym": pseudonym is not None,
        "rotate": None if pseudonym is None else pseudonym.rotate,
        "time": publish.time,
    }


def files_behind(published: Data) -> list[Path]:
    """Return the files that published data are read from; none for frames and stdin."""
    if not isinstance(published, str | Path):
        return []
    place = Path(published)
    if is_directory(place):
        return sorted(
            file for file in place.rglob("*") if file.is_file() and not file.name.startswith(".")
        )
    return [place] if str(place) != STDIO and _is_file(place) else []


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False


def _public(job: Job) -> tuple[str, ...]:
    """Return the columns that a job publishes."""
    if job.policy.per_value:
        options = _options(job)
        first = ["pseudonym"] if options["pseudonym"] else []
        last = [job.schema.time] if options["time"] is not None and job.schema.time else []
        quasi = [attribute.name for attribute in job.schema.quasi]
        return (*first, *quasi, *job.schema.payload, *last)
    sides = (public_columns(attribute, job.publish.numeric) for attribute in job.schema.quasi)
    return (*itertools.chain.from_iterable(sides), *job.schema.payload)


def _format_of(job: Job, published: Data, given: str | None) -> str | None:
    """Return the format that was given, or that of the job where the name says none."""
    form = job.output.format if isinstance(job.output, FileOutput) else None
    if given is not None or form is None or not isinstance(published, str | Path):
        return given
    try:
        file_type(published)
    except ParameterError:
        return form
    return form if str(published) == STDIO else None


def _no_rows(names: tuple[str, ...]) -> pa.Table:
    return pa.table({name: pa.array([], pa.string()) for name in names})


# -- frames and files ------------------------------------------------------------------------------


def read_published(job: Job, published: Data, form: str | None = None) -> pa.Table:
    """Return the rows that a job published, from a frame or file.

    Raises
    ------
    DataError
        If there is something else between them: nobody knows what it holds.
    """
    names, form = _public(job), _format_of(job, published, form)
    try:
        found = _table("published", published, None, form, otherwise=names)
    except NoLinesError:
        return _no_rows(names)
    if found.n_bad:
        name = published if isinstance(published, str | Path) else "published"
        raise DataError(
            f"{name}: {unreadable(found.n_bad)}. Remove files that aren't part of the "
            "output, or use the output as the run wrote it."
        )
    return found.table


class TraceLines(NamedTuple):
    """The lines of a trace that are about rows, and the changes of the job in it.

    ``numbers`` are those of its files, if they are private files: the oldest may be removed.
    """

    rows: pa.Table | None
    changes: Sequence[Mapping[str, Any]] = ()
    numbers: Sequence[int] = ()

    def is_whole(self, published: pa.Table) -> bool:
        """Return whether it has its oldest files, and lines of all published rows."""
        if self.rows is None or "seq" not in self.rows.column_names:
            return False
        n_rows = int(pc.count_distinct(self.rows["seq"]).as_py())
        return min(self.numbers, default=1) <= 1 and n_rows >= int(published.num_rows)


NO_TRACE = TraceLines(None)


def read_trace(trace: Data, job: Job | None = None) -> TraceLines:
    """Read a trace, from a frame or file.

    Raises
    ------
    JobError
        If it is sealed, or a folder without files that could be a trace.
    ResourceError
        If it doesn't exist.
    """
    numbers: Sequence[int] = ()
    if isinstance(trace, str | Path) and str(trace) != STDIO:
        _check_trace(Path(trace), job)
        numbers = list(numbered(Path(trace))) if is_directory(trace) else ()
    lines = _table("trace", trace, None, None).table
    return TraceLines(without_changes(lines), changes_in(lines), numbers)


def _check_trace(path: Path, job: Job | None) -> None:
    """Raise if a path has no trace that can be read as it is."""
    refuse_address(path)
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        what = "can't be read as a trace: it doesn't exist"
        fix = "Give the file or folder that the run wrote with --trace"
        raise ResourceError(f"{path}: {what}. {fix}.") from None
    except (OSError, ValueError):
        return  # who opens it says why
    if is_sealed(path):
        spec = None if job is None or job.checkpoints is None else job.checkpoints.seal
        # What is no place may be the key itself.
        seal = spec if spec is not None and spec.startswith(("env:", "file:")) else "KEY"
        # A folder keeps the numbers of the files: the oldest may have been removed.
        opened = "opened/" if path.is_dir() else "opened.jsonl"
        command = f"shoal unseal {shlex.quote(str(path))} --seal {shlex.quote(seal)} -o {opened}"
        fix = f"Open it with {command} and give {opened} instead"
        raise ParameterError("trace", "is sealed", got=str(path), fix=fix)
    if path.is_dir() and not _has_data(path):
        what = f"has no file of a trace, such as part-0000000001.parquet or {EXAMPLE}"
        fix = "Give the file or folder that the run wrote with --trace"
        raise ParameterError("trace", what, got=str(path), fix=fix)


def _has_data(folder: Path) -> bool:
    """Return whether a folder, or one of its folders, has a file of a known format."""
    for name in files_in(folder, nested=True):
        with suppress(ParameterError):
            file_type(name)
            return True
    # One that is marked as complete may have none.
    return any(folder.rglob(COMPLETE))


def read_table(
    key: str, data: Data, columns: tuple[str, ...] | None, *, job: Job | None = None
) -> tuple[pa.Table, Ints]:
    """Return all rows of a frame or file that can be used, and their positions in it.

    ``key`` names it in messages. The input of a ``job`` is read in its dialect.
    """
    given = None if job is None else job.input
    dialect = given.dialect if isinstance(given, FileInput) else None
    return _table(key, data, columns, None, dialect=dialect)[:2]


class _Rows(NamedTuple):
    """The rows that can be used, their positions, and how many others there are."""

    table: pa.Table
    numbers: Ints = np.empty(0, np.int64)
    n_bad: int = 0


def _table(
    key: str,
    data: Data,
    columns: tuple[str, ...] | None,
    form: str | None,
    *,
    otherwise: tuple[str, ...] = (),
    dialect: Dialect | None = None,
) -> _Rows:
    """Return all rows of a frame or file that can be used, and their positions in it.

    ``otherwise`` are the columns if there are no rows and no other names of columns. Published
    data and traces have no dialect.
    """
    if isinstance(data, str | Path):
        return _file(str(data), columns, form, otherwise, dialect)
    if is_frame(data):
        table = kind_of(data, columns, key=key)[1]
        return _Rows(table, np.arange(table.num_rows))
    if isinstance(data, list | tuple):
        rows = [row for row in data if isinstance(row, Mapping)]
        named = columns or tuple(dict.fromkeys(name for row in rows for name in row)) or otherwise
        chunks = list(chunks_of(data, named, key=key)[1])
        n_bad = sum(len(chunk.bad) for chunk in chunks)
        found = [chunk for chunk in chunks if len(chunk.rows)]
        if not found:
            return _Rows(_no_rows(named), n_bad=n_bad)
        numbers = np.concatenate([chunk.rows for chunk in found])
        return _Rows(_joined(key, [chunk.batch for chunk in found]), numbers, n_bad)
    raise ParameterError(
        key,
        f"must be a file, {FRAMES}, or a list of dicts",
        got=f"{type(data).__module__}.{type(data).__qualname__}",
        fix="Call collect() first" if hasattr(data, "collect") else None,
    )


def _file(
    path: str,
    columns: tuple[str, ...] | None,
    form: str | None,
    otherwise: tuple[str, ...],
    dialect: Dialect | None,
) -> _Rows:
    source = _open(path, columns, form, dialect)
    try:
        batches, rows, n_bad = [], [], 0
        for chunk in source:
            n_bad += len(chunk.bad)
            batches.append(chunk.batch)
            rows.append(chunk.rows)
        if not batches:
            return _Rows(_no_rows(columns or source.schema_names or otherwise), n_bad=n_bad)
        return _Rows(_joined(path, batches), np.concatenate(rows), n_bad)
    finally:
        source.close()


def _open(
    path: str, columns: tuple[str, ...] | None, form: str | None, dialect: Dialect | None
) -> Source:
    """Open a file or folder; one that has only folders, one for each batch, with all of them."""
    folder = Path(path)
    if is_directory(folder) and has_only_folders(folder):
        return FolderSource(folder, columns, format=form, dialect=dialect, nested=True)
    return open_source(path, columns, format=form, dialect=dialect)


def _joined(where: str, batches: list[pa.RecordBatch]) -> pa.Table:
    tables = [pa.Table.from_batches([batch]) for batch in _alike(batches)]
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException:
        raise ResourceError(f"{where}: the type of a column changes between batches") from None


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
