"""A stream with its schema and policy, and functions that play it to an engine.

A `Stream` is cut into `Move` s, each of which is one call of an engine. However it is cut, the
concatenated decisions must be the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from shoal.engine.base import Anonymizer, Decisions, Engine
from shoal.engine.kernels.arrays import Floats
from shoal.engine.space import Codes
from shoal.spec.policy import Policy
from shoal.spec.schema import Schema

__all__ = [
    "Move",
    "Step",
    "Stream",
    "Tick",
    "batch",
    "difference",
    "joined",
    "moves",
    "play",
    "steps",
]


def batch(codes: Codes, begin: int, end: int) -> Codes:
    """Return the rows from one position to another."""
    return Codes(
        codes.values[begin:end],
        codes.subjects[begin:end],
        codes.sensitive[begin:end],
        codes.times[begin:end],
        codes.keys[begin:end],
    )


class Tick(NamedTuple):
    """A time that the engine is given before the row of that position."""

    position: int
    now: float


@dataclass(frozen=True)
class Stream:
    """Rows, what they mean, what is promised about them, and when the clock ticks.

    Parameters
    ----------
    schema, policy
        What the columns are and what is promised.
    codes
        All rows, in order of arrival.
    ticks
        Where `Engine.advance` is called, by position.
    cuts
        Where the rows are cut into batches. A position named twice makes an empty batch.
    """

    schema: Schema
    policy: Policy
    codes: Codes
    ticks: tuple[Tick, ...] = ()
    cuts: tuple[int, ...] = ()

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.codes.subjects)

    def start(self, anonymizer: Anonymizer, seed: bytes = b"stream") -> Engine:
        """Begin a run on this stream."""
        return anonymizer.start(self.schema, self.policy, seed=seed)

    def row_by_row(self) -> tuple[int, ...]:
        """Return cuts before and after every row."""
        return tuple(range(len(self) + 1))

    def arrivals(self) -> Floats:
        """Return when each row arrived: the latest time of a row by then; NaN without time.

        A tick before a row changes nothing: the row may have been delayed on its way.
        """
        known = np.fmax.accumulate(self.codes.times)
        return np.where(np.isnan(self.codes.times), np.nan, known)


class Move(NamedTuple):
    """One call of an engine: some rows, a tick, or the end of the stream."""

    verb: Literal["push", "advance", "flush"]
    begin: int
    end: int
    now: float = np.nan

    def make(self, engine: Engine, codes: Codes) -> Decisions:
        """Call the engine."""
        if self.verb == "push":
            return engine.push(batch(codes, self.begin, self.end))
        return engine.advance(self.now) if self.verb == "advance" else engine.flush()


class Step(NamedTuple):
    """A move and the decisions that it caused."""

    move: Move
    decisions: Decisions


def moves(stream: Stream, cuts: Iterable[int]) -> Iterator[Move]:
    """Yield the calls that play a stream, cut there and at its ticks."""
    at = 0
    marks: list[tuple[int, float | None]] = [(cut, None) for cut in cuts]
    marks += [(tick.position, tick.now) for tick in stream.ticks]
    for position, now in sorted(marks, key=lambda mark: mark[0]):
        if now is None or position > at:
            yield Move("push", at, position)
        if now is not None:
            yield Move("advance", position, position, now)
        at = position
    if at < len(stream):
        yield Move("push", at, len(stream))
    yield Move("flush", len(stream), len(stream))


def steps(engine: Engine, stream: Stream, cuts: Iterable[int]) -> Iterator[Step]:
    """Play a stream, and yield every move with its decisions."""
    for move in moves(stream, cuts):
        yield Step(move, move.make(engine, stream.codes))


def play(
    anonymizer: Anonymizer, stream: Stream, *, cuts: Iterable[int] = (), seed: bytes = b"stream"
) -> Decisions:
    """Play a stream, and return all decisions, concatenated."""
    engine = stream.start(anonymizer, seed)
    return joined([step.decisions for step in steps(engine, stream, cuts)])


def joined(parts: Sequence[Decisions]) -> Decisions:
    """Concatenate decisions; boxes are renumbered."""
    arrays = [np.concatenate(columns) for columns in zip(*parts, strict=True)]
    n_boxes = np.cumsum([0, *(len(part.lo) for part in parts)])
    boxes = [
        np.where(part.boxes < 0, -1, part.boxes + before)
        for part, before in zip(parts, n_boxes, strict=False)
    ]
    return Decisions(*arrays)._replace(boxes=np.concatenate(boxes))


def difference(one: Decisions, other: Decisions) -> str | None:
    """Return the name of the first array in which decisions differ in any bit, or None."""
    for name, left, right in zip(Decisions._fields, one, other, strict=True):
        if left.dtype != right.dtype or left.shape != right.shape:
            return name
        if left.tobytes() != right.tobytes():
            return name
    return None
