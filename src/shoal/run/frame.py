"""Anonymize a complete table: a frame of pandas, polars or Arrow in, one of the same kind out.

It goes through the same pipeline as a stream, with a source and a sink in memory. pandas and polars
are never imported here: a caller who passes their frame has done so.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Literal, TypedDict, TypeVar, Unpack, get_args, overload

import numpy as np
import pyarrow as pa

from shoal import algorithms
from shoal.algorithms.registry import check_support
from shoal.arrow.labels import Numeric
from shoal.arrow.release import Publish, Suppressed
from shoal.engine.base import Anonymizer
from shoal.errors import DataError, JobError, ParameterError, Problem, did_you_mean
from shoal.io.base import BATCH_ROWS, BadRow, Chunk, choose_columns
from shoal.metrics import Summary
from shoal.run.pipeline import Pipeline
from shoal.spec.policy import Policy
from shoal.spec.schema import Schema

__all__ = ["anonymize"]

F = TypeVar("F")
BadRows = Literal["stop", "drop"]


class _Options(TypedDict, total=False):
    """The options that don't change the type of the result."""

    seed: int | None
    numeric: Numeric
    suppressed: Suppressed
    bad_rows: BadRows


# fmt: off
@overload
def anonymize(
    frame: F, schema: Schema, policy: Policy, algorithm: Anonymizer | str, *,
    report: Literal[False] = False, trace: Literal[False] = False, **options: Unpack[_Options],
) -> F: ...
@overload
def anonymize(
    frame: F, schema: Schema, policy: Policy, algorithm: Anonymizer | str, *,
    report: Literal[True], trace: Literal[False] = False, **options: Unpack[_Options],
) -> tuple[F, Summary]: ...
@overload
def anonymize(
    frame: F, schema: Schema, policy: Policy, algorithm: Anonymizer | str, *,
    report: Literal[False] = False, trace: Literal[True], **options: Unpack[_Options],
) -> tuple[F, pa.Table]: ...
@overload
def anonymize(
    frame: F, schema: Schema, policy: Policy, algorithm: Anonymizer | str, *,
    report: Literal[True], trace: Literal[True], **options: Unpack[_Options],
) -> tuple[F, Summary, pa.Table]: ...
# fmt: on
def anonymize(
    frame: Any,
    schema: Schema,
    policy: Policy,
    algorithm: Anonymizer | str,
    *,
    seed: int | None = None,
    numeric: Numeric = "range",
    suppressed: Suppressed = "drop",
    bad_rows: BadRows = "stop",
    report: bool = False,
    trace: bool = False,
) -> Any:
    """Anonymize a table: return its public columns, in groups that keep the policy.

    Rows come group by group, shuffled inside each, never in the order of the input. A pandas index
    is dropped, since it would undo that; the categories of a categorical column are dropped, since
    they may name values of suppressed rows.

    Parameters
    ----------
    frame
        A DataFrame of pandas or polars, or a Table or RecordBatch of Arrow. It isn't changed.
    schema, policy
        The columns and their roles, and what is promised.
    algorithm
        An anonymizer, or the name of one with its default knobs. One for whole tables needs
        ``Policy(..., window="all")``; one for streams takes the rows in their order, and needs a
        delay.
    seed
        For repeatable results, in tests only; by default from the operating system.
    numeric, suppressed
        How numbers are published, and whether suppressed rows are; see `Publish`.
    bad_rows
        What happens if rows can't be used, for example because a value is missing: ``"stop"``
        raises an error with their number and the reasons, ``"drop"`` leaves them out.
    report
        Whether to also return the figures of the run, as a `shoal.metrics.Summary`.
    trace
        Whether to also return a line for each input row: its group, and its place in the result.
        It undoes the anonymization: it is for evaluation, and must not be published.

    Returns
    -------
    frame
        A frame of the same kind; or a tuple of it, the report and the trace, as requested.

    Raises
    ------
    JobError
        If the schema, the policy and the frame don't fit together.
    DataError
        If rows can't be used, and ``bad_rows`` is ``"stop"``.

    >>> from shoal import Delay, KAnonymity, Quasi, Range
    >>> people = pa.table({"name": ["Ann", "Bob", "Cem", "Dan"], "age": [31, 33, 64, 68]})
    >>> schema = Schema(subject="name", quasi=[Quasi("age", Range(0, 120, step=1))])
    >>> policy = Policy(KAnonymity(2), delay=Delay(rows=100))
    >>> anonymize(people, schema, policy, "castle")["age"].to_pylist()
    ['[31, 33]', '[31, 33]', '[64, 68]', '[64, 68]']
    """
    anonymizer = _anonymizer(algorithm)
    check_support(anonymizer, policy)
    _check_choices(schema, policy, bad_rows, seed)
    publish = Publish(numeric=numeric, suppressed=suppressed)
    table, from_arrow = _to_arrow(frame, schema)
    published, lines = _Gathered(), _Gathered()
    bad = _BadRowCounter(table.num_rows, bad_rows)
    warned: list[str] = []
    summary = (
        Pipeline(schema, policy, anonymizer, publish, _seed(seed))
        .run(
            _TableSource(table),
            published.open,
            on_bad=bad.add,
            open_trace=lines.open if trace else None,
            watch=bad.check,
            warn=warned.append,
        )
        .execute()
    )
    for text in warned:
        warnings.warn(text, UserWarning, stacklevel=2)
    result = from_arrow(published.table())
    extras = [*([summary] if report else []), *([lines.table()] if trace else [])]
    return (result, *extras) if extras else result


def _anonymizer(algorithm: object) -> Anonymizer:
    if isinstance(algorithm, str):
        return algorithms.find(algorithm)()
    if not isinstance(algorithm, Anonymizer):
        is_class = isinstance(algorithm, type)
        raise ParameterError(
            "algorithm",
            "must be an anonymizer or the name of one",
            got="a class" if is_class else type(algorithm).__name__,
            fix="Call it, for example Castle()" if is_class else 'For example "castle"',
        )
    return algorithm


def _check_choices(schema: Schema, policy: Policy, bad_rows: str, seed: object) -> None:
    known = get_args(BadRows)
    if bad_rows not in known:
        raise ParameterError(
            "bad_rows",
            f"must be one of {', '.join(known)}",
            got=repr(bad_rows),
            fix=did_you_mean(str(bad_rows), known),
        )
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int)):
        raise ParameterError("seed", "must be a whole number", got=type(seed).__name__)
    if policy.delay is not None and policy.delay.by_wall(schema):
        raise ParameterError(
            "policy.delay.seconds",
            "are measured by the wall clock, and a table has no arrival times",
            fix="Give the delay in rows, or name the column of the times as Schema.time",
        )


def _seed(seed: int | None) -> bytes | None:
    """Return the seed as a job has it, so that both decide alike."""
    return None if seed is None else (seed % 2**128).to_bytes(16, "big")


# -- the ends of the pipeline ----------------------------------------------------------------------


class _TableSource:
    """Yield a table in batches; at least one, so that the types of its columns are known."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table
        self.schema_names: tuple[str, ...] = tuple(table.column_names)

    def __iter__(self) -> Iterator[Chunk]:
        first = 0
        empty = pa.RecordBatch.from_pylist([], schema=self._table.schema)
        for batch in self._table.to_batches(max_chunksize=BATCH_ROWS) or [empty]:
            yield Chunk(batch, np.arange(first, first + batch.num_rows), bad=[])
            first += batch.num_rows

    def describe(self) -> str:
        return "frame"

    def close(self) -> None:
        """Do nothing: there is nothing to close."""


class _Gathered:
    """A sink that keeps batches in memory, as plain columns."""

    def __init__(self) -> None:
        self._schema = pa.schema([])
        self._tables: list[Any] = []

    def open(self, schema: pa.Schema) -> _Gathered:
        self._schema = schema
        return self

    def write(self, batch: pa.RecordBatch) -> None:
        self._tables.append(pa.Table.from_batches([batch]).cast(self._schema))

    def flush(self) -> None:
        """Do nothing: nothing is buffered."""

    def close(self) -> None:
        """Do nothing: the table is complete."""

    def table(self) -> Any:
        return pa.concat_tables([self._schema.empty_table(), *self._tables])


class _BadRowCounter:
    """Count bad rows; to stop the run, raise when all of them are known."""

    def __init__(self, n_rows: int, action: str) -> None:
        self._n_rows = n_rows
        self._stops = action == "stop"
        self._reasons: Counter[str] = Counter()
        self._first = -1

    def add(self, bad: list[BadRow]) -> None:
        if not self._reasons:
            self._first = bad[0].row
        self._reasons.update(row.reason for row in bad)

    def check(self, summary: Summary) -> None:
        """Raise once the whole table was read, before the rows held to the end are decided."""
        if self._stops and self._reasons and summary.n_in == self._n_rows:
            why = ", ".join(f"{reason} ({n:,})" for reason, n in self._reasons.most_common())
            raise DataError(
                f"frame: {self._reasons.total():,} of {self._n_rows:,} rows can't be used: {why}. "
                f"The first is row {self._first}, counted from 0. Fix them, or leave them out "
                'with bad_rows="drop".'
            )


# -- kinds of frames -------------------------------------------------------------------------------


def _to_arrow(frame: Any, schema: Schema) -> tuple[Any, Callable[[Any], Any]]:
    """Return the columns that the schema names, and a conversion back to the kind of the frame."""
    table: Any
    from_arrow: Callable[[Any], Any]
    pandas, polars = sys.modules.get("pandas"), sys.modules.get("polars")
    if isinstance(frame, pa.RecordBatch):
        table, from_arrow = pa.Table.from_batches([_chosen(frame, schema)]), _as_batch
    elif isinstance(frame, pa.Table):
        table, from_arrow = _chosen(frame, schema), _unchanged
    elif pandas is not None and isinstance(frame, pandas.DataFrame):
        table, from_arrow = _from_pandas(frame, schema), _to_pandas(frame, schema)
    elif polars is not None and isinstance(frame, polars.DataFrame):
        columns = choose_columns(frame.columns, schema.columns, "frame")
        table, from_arrow = frame.select(columns).to_arrow(), polars.from_arrow
    else:
        raise ParameterError(
            "frame",
            "must be a DataFrame of pandas or polars, or a Table or RecordBatch of Arrow",
            got=f"{type(frame).__module__}.{type(frame).__qualname__}",
            fix="Call collect() first" if hasattr(frame, "collect") else None,
        )
    return table.replace_schema_metadata(None), from_arrow


def _chosen(frame: Any, schema: Schema) -> Any:
    return frame.select([*choose_columns(frame.schema.names, schema.columns, "frame")])


def _unchanged(table: Any) -> Any:
    return table


def _as_batch(table: Any) -> Any:
    columns = [column.combine_chunks() for column in table.columns]
    return pa.RecordBatch.from_arrays(columns, schema=table.schema)


def _from_pandas(frame: Any, schema: Schema) -> Any:
    names = [str(name) for name in frame.columns]
    lost = [name for name in schema.columns if name not in names and name in frame.index.names]
    if lost:
        fix = "Make it a column, with frame.reset_index()"
        problems = [Problem(f"column {name}", "is the index", None, fix) for name in lost]
        raise JobError(problems, where="frame")
    places = {name: names.index(name) for name in choose_columns(names, schema.columns, "frame")}
    return pa.table({name: _column(frame.iloc[:, at], name) for name, at in places.items()})


def _column(series: Any, name: str) -> Any:
    try:
        return pa.array(series, from_pandas=True)
    except (pa.ArrowException, OverflowError):
        # Arrow's messages quote values.
        raise DataError(
            f"frame: column {name} has values of several types, or of one that Arrow doesn't know. "
            f'Make them one type, for example with frame["{name}"].astype(str).'
        ) from None


def _to_pandas(frame: Any, schema: Schema) -> Callable[[Any], Any]:
    """Return a conversion to pandas in which columns published as they are keep their types."""
    # These pandas types can be made from Arrow. A categorical one can't, and must not: its
    # categories may be values of rows that aren't published.
    dtypes = {str(name): dtype for name, dtype in zip(frame.columns, frame.dtypes, strict=True)}
    kept = {n: dtypes[n] for n in schema.payload if hasattr(dtypes[n], "__from_arrow__")}

    def convert(table: Any) -> Any:
        result = table.to_pandas()
        for name, dtype in kept.items():
            result[name] = dtype.__from_arrow__(table.column(name))
        return result

    return convert
