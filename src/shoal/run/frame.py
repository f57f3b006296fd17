"""Publish a table that is all there: a frame of pandas, polars or Arrow in, one of its kind out.

It goes through the same pipeline as a stream does, with a source and a sink in memory. pandas and
polars are never imported here: whoever has a frame of theirs has done so.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Literal, TypeVar, get_args, overload

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


@overload
def anonymize(
    frame: F,
    schema: Schema,
    policy: Policy,
    algorithm: Anonymizer | str,
    *,
    seed: int | None = None,
    numeric: Numeric = "range",
    suppressed: Suppressed = "drop",
    bad_rows: BadRows = "stop",
    report: Literal[False] = False,
    trace: Literal[False] = False,
) -> F: ...
@overload
def anonymize(
    frame: F,
    schema: Schema,
    policy: Policy,
    algorithm: Anonymizer | str,
    *,
    seed: int | None = None,
    numeric: Numeric = "range",
    suppressed: Suppressed = "drop",
    bad_rows: BadRows = "stop",
    report: Literal[True],
    trace: Literal[False] = False,
) -> tuple[F, Summary]: ...
@overload
def anonymize(
    frame: F,
    schema: Schema,
    policy: Policy,
    algorithm: Anonymizer | str,
    *,
    seed: int | None = None,
    numeric: Numeric = "range",
    suppressed: Suppressed = "drop",
    bad_rows: BadRows = "stop",
    report: Literal[False] = False,
    trace: Literal[True],
) -> tuple[F, pa.Table]: ...
@overload
def anonymize(
    frame: F,
    schema: Schema,
    policy: Policy,
    algorithm: Anonymizer | str,
    *,
    seed: int | None = None,
    numeric: Numeric = "range",
    suppressed: Suppressed = "drop",
    bad_rows: BadRows = "stop",
    report: Literal[True],
    trace: Literal[True],
) -> tuple[F, Summary, pa.Table]: ...
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
    """Anonymize a table: give its public columns, in groups that keep the policy.

    Rows leave in the order in which groups do, shuffled inside each: never in that of the input.
    An index of pandas is dropped, since it would undo that, and so are the categories of a
    categorical column, since they may name values of suppressed rows.

    Parameters
    ----------
    frame
        A DataFrame of pandas or polars, or a Table or RecordBatch of Arrow. It isn't changed.
    schema, policy
        The columns and their roles, and what is promised.
    algorithm
        What keeps it: an anonymizer, or the name of one with its default knobs. One for whole
        tables wants ``Policy(..., window="all")``; one for streams takes the rows in their order,
        and wants a delay.
    seed
        For repeatable results, in tests only; without it randomness is the operating system's.
    numeric, suppressed
        How numbers are published, and whether suppressed rows are; see `Publish`.
    bad_rows
        What happens if rows can't be used, for example for want of a value: ``"stop"`` refuses the
        table and tells how many there are and why, ``"drop"`` leaves them out.
    report
        Whether to give the figures of the run as well, as a `shoal.metrics.Summary`.
    trace
        Whether to give a line for each input row as well: which group it went to, and where it is
        in the result. It undoes the anonymization: it is for evaluation, and not to be published.

    Returns
    -------
    frame
        Of the same kind; or a tuple of it, the report and the trace, as far as they are asked for.

    Raises
    ------
    JobError
        If the schema, the policy and the frame don't fit together.
    DataError
        If there are rows that can't be used, and they aren't to be dropped.

    >>> from shoal import Delay, KAnonymity, Quasi, Range
    >>> people = pa.table({"name": ["Ann", "Bob", "Cem", "Dan"], "age": [31, 33, 64, 68]})
    >>> schema = Schema(subject="name", quasi=[Quasi("age", Range(0, 120, step=1))])
    >>> policy = Policy(KAnonymity(2), delay=Delay(rows=100))
    >>> anonymize(people, schema, policy, "castle")["age"].to_pylist()
    ['[31, 33]', '[31, 33]', '[64, 68]', '[64, 68]']
    """
    anonymizer = _recipe(algorithm)
    check_support(anonymizer, policy)
    _check_choices(schema, policy, bad_rows, seed)
    publish = Publish(numeric=numeric, suppressed=suppressed)
    table, as_given = _arrow(frame, schema)
    published, lines = _Gathered(), _Gathered()
    bad = _BadRows(table.num_rows, bad_rows)
    told: list[str] = []
    summary = (
        Pipeline(schema, policy, anonymizer, publish, _seed(seed))
        .run(
            _TableSource(table),
            published.open,
            on_bad=bad.take,
            open_trace=lines.open if trace else None,
            watch=bad.look,
            warn=told.append,
        )
        .go()
    )
    for text in told:
        warnings.warn(text, UserWarning, stacklevel=2)
    result = as_given(published.table())
    extras = [*([summary] if report else []), *([lines.table()] if trace else [])]
    return (result, *extras) if extras else result


def _recipe(algorithm: object) -> Anonymizer:
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
            "are those of the wall's clock, by which a table doesn't come",
            fix="Give the delay in rows, or name the column with the times as Schema.time",
        )


def _seed(seed: int | None) -> bytes | None:
    """The seed as a job has it, so that both decide alike."""
    return None if seed is None else (seed % 2**128).to_bytes(16, "big")


# -- the ends of the pipeline ----------------------------------------------------------------------


class _TableSource:
    """A table, piece by piece; at least one, so that the types of its columns are known."""

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
        """There is nothing to let go of."""


class _Gathered:
    """A sink that keeps what it is given, as plain columns."""

    def __init__(self) -> None:
        self._schema = pa.schema([])
        self._tables: list[Any] = []

    def open(self, schema: pa.Schema) -> _Gathered:
        self._schema = schema
        return self

    def write(self, batch: pa.RecordBatch) -> None:
        self._tables.append(pa.Table.from_batches([batch]).cast(self._schema))

    def flush(self) -> None:
        """All of it is there already."""

    def close(self) -> None:
        """There is nothing to finish."""

    def table(self) -> Any:
        return pa.concat_tables([self._schema.empty_table(), *self._tables])


class _BadRows:
    """Count bad rows; if they are to stop the run, do so when all are known."""

    def __init__(self, n_rows: int, action: str) -> None:
        self._n_rows = n_rows
        self._stops = action == "stop"
        self._reasons: Counter[str] = Counter()
        self._first = -1

    def take(self, bad: list[BadRow]) -> None:
        if not self._reasons:
            self._first = bad[0].row
        self._reasons.update(row.reason for row in bad)

    def look(self, summary: Summary) -> None:
        """Refuse the table, once all of it was read; what is held to the end isn't decided then."""
        if self._stops and self._reasons and summary.n_in == self._n_rows:
            why = ", ".join(f"{reason} ({n:,})" for reason, n in self._reasons.most_common())
            raise DataError(
                f"frame: {self._reasons.total():,} of {self._n_rows:,} rows can't be used: {why}. "
                f"The first is row {self._first}, counted from 0. Mend them, or leave them out "
                'with bad_rows="drop".'
            )


# -- kinds of frames -------------------------------------------------------------------------------


def _arrow(frame: Any, schema: Schema) -> tuple[Any, Callable[[Any], Any]]:
    """The columns of a frame that the schema names, and what makes a frame of its kind again."""
    table: Any
    as_given: Callable[[Any], Any]
    pandas, polars = sys.modules.get("pandas"), sys.modules.get("polars")
    if isinstance(frame, pa.RecordBatch):
        table, as_given = pa.Table.from_batches([_chosen(frame, schema)]), _as_batch
    elif isinstance(frame, pa.Table):
        table, as_given = _chosen(frame, schema), _as_it_is
    elif pandas is not None and isinstance(frame, pandas.DataFrame):
        table, as_given = _from_pandas(frame, schema), _to_pandas(frame, schema)
    elif polars is not None and isinstance(frame, polars.DataFrame):
        columns = choose_columns(frame.columns, schema.columns, "frame")
        table, as_given = frame.select(columns).to_arrow(), polars.from_arrow
    else:
        raise ParameterError(
            "frame",
            "must be a DataFrame of pandas or polars, or a Table or RecordBatch of Arrow",
            got=f"{type(frame).__module__}.{type(frame).__qualname__}",
            fix="Call collect() first" if hasattr(frame, "collect") else None,
        )
    return table.replace_schema_metadata(None), as_given


def _chosen(frame: Any, schema: Schema) -> Any:
    return frame.select([*choose_columns(frame.schema.names, schema.columns, "frame")])


def _as_it_is(table: Any) -> Any:
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
    """What makes frames in which the columns that are published as they are keep their types."""
    # Of pandas' own types these have a way from Arrow. A categorical one has none, and must not:
    # its categories tell values of rows that aren't published.
    dtypes = {str(name): dtype for name, dtype in zip(frame.columns, frame.dtypes, strict=True)}
    kept = {n: dtypes[n] for n in schema.payload if hasattr(dtypes[n], "__from_arrow__")}

    def convert(table: Any) -> Any:
        result = table.to_pandas()
        for name, dtype in kept.items():
            result[name] = dtype.__from_arrow__(table.column(name))
        return result

    return convert
