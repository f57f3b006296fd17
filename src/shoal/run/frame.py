"""Anonymize a complete table: a frame of pandas, polars or Arrow in, one of the same kind out.

It goes through the same pipeline as a stream, with a source and a sink in memory.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypedDict, TypeVar, Unpack, get_args, overload

import pyarrow as pa

from shoal import algorithms
from shoal.algorithms.registry import DEFAULT, check_support, default_for
from shoal.arrow.labels import Numeric
from shoal.arrow.release import Publish, Suppressed
from shoal.engine.base import Anonymizer
from shoal.errors import DataError, ParameterError, check_choice
from shoal.io.base import BadRow, Chunk
from shoal.metrics import Summary
from shoal.metrics.unpublished import why_nothing
from shoal.run.frame_kinds import chunks_of, plain_table
from shoal.run.pipeline import Pipeline
from shoal.run.result import Result
from shoal.spec.policy import Policy
from shoal.spec.schema import Schema

__all__ = [
    "ChunkSource",
    "Gathered",
    "anonymize",
    "anonymizer_of",
    "check_parts",
    "refuse_wall_clock",
    "seed_bytes",
]

F = TypeVar("F")
BadRows = Literal["stop", "drop"]


class _Options(TypedDict, total=False):
    """The options, which don't change the type of the result."""

    seed: int | None
    numeric: Numeric
    suppressed: Suppressed
    bad_rows: BadRows
    trace: bool


# fmt: off
@overload
def anonymize(
    frame: Sequence[Mapping[str, Any]], schema: Schema, policy: Policy,
    algorithm: Anonymizer | str | None = None, **options: Unpack[_Options],
) -> Result[list[dict[str, Any]]]: ...
@overload
def anonymize(
    frame: F, schema: Schema, policy: Policy,
    algorithm: Anonymizer | str | None = None, **options: Unpack[_Options],
) -> Result[F]: ...
# fmt: on
def anonymize(
    frame: Any,
    schema: Schema,
    policy: Policy,
    algorithm: Anonymizer | str | None = None,
    *,
    seed: int | None = None,
    numeric: Numeric = "range",
    suppressed: Suppressed = "drop",
    bad_rows: BadRows = "stop",
    trace: bool = False,
) -> Any:
    """Anonymize a table; ``.frame`` of the result has its public columns, in groups.

    Rows come group by group, shuffled inside each, never in the order of the input. A pandas index
    is dropped, since it would undo that; the categories of a categorical column are dropped, since
    they may name values of suppressed rows.

    Parameters
    ----------
    frame
        A DataFrame of pandas or polars, a Table or RecordBatch of Arrow, or a list of dicts. It
        isn't changed.
    schema, policy
        The columns and their roles, and what is promised.
    algorithm
        An anonymizer, or the name of one with its default knobs. One for whole tables needs
        ``Policy(..., window="all")``; one for streams takes the rows in their order, and needs a
        delay. By default that is ``"tide-table"`` or ``"tide"``, as the policy has it, and
        ``"z-anonymity"`` if z is promised.
    seed
        For repeatable results, in tests only; by default from the operating system.
    numeric, suppressed
        How numbers are published, and whether suppressed rows are; see `Publish`.
    bad_rows
        What happens if rows can't be used, for example because a value is missing: ``"stop"``
        raises an error with their number and the reasons, ``"drop"`` leaves them out.
    trace
        Whether ``.trace`` of the result has a line for each input row: its group, and its place in
        the frame. It undoes the anonymization: it is for evaluation, and must not be published.

    Returns
    -------
    Result
        ``.frame``, of the kind that was given; ``.summary``, the figures; and ``.trace``.

    Warns
    -----
    UserWarning
        If nothing of a frame with rows is published: with what couldn't be kept, and what could.

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
    >>> anonymize(people, schema, policy)["age"].to_pylist()
    ['[31, 33]', '[31, 33]', '[64, 68]', '[64, 68]']
    """
    check_parts(schema, policy)
    anonymizer = anonymizer_of(algorithm, policy)
    check_support(anonymizer, policy)
    check_choice("bad_rows", bad_rows, get_args(BadRows))
    publish = Publish(numeric=numeric, suppressed=suppressed)
    pipeline = Pipeline(schema, policy, anonymizer, publish, seed_bytes(seed))
    refuse_wall_clock(schema, policy)
    kind, chunks = chunks_of(frame, schema.columns, schema.payload, key="frame")
    published, lines = Gathered(), Gathered()
    bad = _BadRowCounter(sum(len(c.rows) + len(c.bad) for c in chunks), bad_rows)
    warned: list[str] = []
    running = pipeline.run(
        ChunkSource(chunks, schema.columns),
        published.open,
        on_bad=bad.add,
        open_trace=lines.open if trace else None,
        watch=bad.check,
        warn=warned.append,
    )
    summary = running.execute()
    if (problem := why_nothing(policy, summary, running.shortfall)) is not None:
        warned.append(problem)
    for text in warned:
        warnings.warn(text, UserWarning, stacklevel=2)
    result = kind.from_arrow(published.table())
    return Result(result, summary, lines.table() if trace else None, publish=publish)


def check_parts(schema: object, policy: object) -> None:
    """Raise if a schema or a policy is something else."""
    for key, given, kind in (("schema", schema, Schema), ("policy", policy, Policy)):
        if not isinstance(given, kind):
            raise ParameterError(
                key,
                f"must be a {kind.__name__}",
                got=type(given).__name__,
                fix="The order is schema, policy, algorithm",
            )


def anonymizer_of(algorithm: object, policy: Policy | None = None) -> Anonymizer:
    """Return an anonymizer, given one, its name, or None for the default under a policy."""
    if algorithm is None and policy is not None:
        algorithm = default_for(policy)
    if isinstance(algorithm, str):
        return algorithms.find(algorithm)()
    if not isinstance(algorithm, Anonymizer):
        is_class = isinstance(algorithm, type)
        raise ParameterError(
            "algorithm",
            "must be an anonymizer or the name of one",
            got="a class" if is_class else type(algorithm).__name__,
            fix="Call it, for example Tide()" if is_class else f'For example "{DEFAULT}"',
        )
    return algorithm


def seed_bytes(seed: object) -> bytes | None:
    """Return a seed as a job has it, so that both decide alike."""
    if seed is None:
        return None
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise ParameterError("seed", "must be a whole number", got=type(seed).__name__)
    return (seed % 2**128).to_bytes(16, "big")


def refuse_wall_clock(schema: Schema, policy: Policy) -> None:
    """Raise if a table would need times of arrival, which it hasn't."""
    if policy.delay is not None and policy.delay.by_wall(schema):
        raise ParameterError(
            "policy.delay.seconds",
            "are measured by the wall clock, and a table has no arrival times",
            fix="Give the delay in rows, or name the column of the times as Schema.time",
        )


# -- the ends of the pipeline ----------------------------------------------------------------------


class ChunkSource:
    """A source of chunks that are in memory."""

    def __init__(self, chunks: Sequence[Chunk], columns: tuple[str, ...]) -> None:
        self._chunks = chunks
        self.schema_names = columns

    def __iter__(self) -> Iterator[Chunk]:
        return iter(self._chunks)

    def describe(self) -> str:
        """Return its name, for messages."""
        return "frame"

    def close(self) -> None:
        """Do nothing: there is nothing to close."""


class Gathered:
    """A sink that keeps batches in memory."""

    def __init__(self) -> None:
        self._schema = pa.schema([])
        self._batches: list[pa.RecordBatch] = []

    def open(self, schema: pa.Schema) -> Gathered:
        """Take the columns; return the sink."""
        self._schema = schema
        return self

    def write(self, batch: pa.RecordBatch) -> None:
        """Keep a batch."""
        self._batches.append(batch)

    def flush(self) -> None:
        """Do nothing: nothing is buffered."""

    def close(self) -> None:
        """Do nothing: the table is complete."""

    def table(self) -> Any:
        """Return all batches as one table of plain columns."""
        return plain_table(self._batches, self._schema)


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
