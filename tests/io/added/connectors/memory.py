"""Rows in the memory of this process, exactly once: a connector that a test adds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.io.base import Chunk, CommitMark, Position, Sink, SinkFactory, Source, Span
from shoal.io.connector import Connector, InputEndpoint, Opener, OutputEndpoint

#: The rows of each place, and how many of them are committed.
STORED: dict[str, list[dict[str, Any]]] = {}
#: After how many rows a source fails, once; None: never.
FAIL_AFTER: list[int] = []
CHUNK_ROWS = 7


class MemorySource:
    def __init__(self, place: str, columns: Sequence[str]) -> None:
        self._place, self._columns, self._next = place, list(columns), 0
        self._rows = STORED[place]
        self._stopped = False
        self.schema_names = tuple(self._rows[0])

    def __iter__(self) -> Iterator[Chunk]:
        while self._next < len(self._rows) and not self._stopped:
            if FAIL_AFTER and self._next >= FAIL_AFTER[0]:
                del FAIL_AFTER[:]
                raise KeyboardInterrupt
            end = min(self._next + CHUNK_ROWS, len(self._rows))
            yield self.replay([Span(self._place, self._next, end)])

    def begins_at(self) -> Position | None:
        return None

    def seek(self, position: Position) -> None:
        self._next = position["next"]

    def replay(self, spans: Sequence[Span]) -> Chunk:
        numbers = [n for span in spans for n in range(span.begin, span.end)]
        rows = [{name: self._rows[n][name] for name in self._columns} for n in numbers]
        self._next = spans[-1].end
        return Chunk(
            pa.RecordBatch.from_pylist(rows), np.array(numbers, np.int64), [],
            tuple(spans), {"next": self._next},
        )  # fmt: skip

    def stop(self) -> None:
        self._stopped = True

    def lag(self) -> int | None:
        return len(self._rows) - self._next

    def describe(self) -> str:
        return f"memory {self._place}"

    def close(self) -> None:
        return


class MemorySink:
    def __init__(self, place: str, mark: CommitMark | None) -> None:
        self._there = STORED.setdefault(place, [])
        self._next = mark["rows"] if mark else 0

    @property
    def n_ahead(self) -> int:
        return max(0, len(self._there) - self._next)

    def write(self, batch: pa.RecordBatch) -> None:
        n_known = min(self.n_ahead, batch.num_rows)
        self._there += batch.slice(n_known).to_pylist()
        self._next += batch.num_rows

    def flush(self) -> None:
        return

    def commit(self) -> CommitMark:
        return {"rows": self._next}

    def abandon(self) -> None:
        return

    def close(self) -> None:
        return


@dataclass(frozen=True)
class MemoryInput(InputEndpoint):
    memory: str
    noun = "memory"
    is_endless = False

    def identity(self, state: Path) -> tuple[object, ...]:
        return (self.memory,)

    def with_options(self, format: str | None, *, follow: bool) -> MemoryInput:  # noqa: A002
        return self

    def open(self, columns: Sequence[str], *, replay: bool) -> Source:
        return MemorySource(self.memory, columns)


@dataclass(frozen=True)
class MemoryOutput(OutputEndpoint):
    memory: str
    noun = "memory"
    needs_checkpoints = True

    def identity(self, state: Path) -> tuple[object, ...]:
        return (self.memory,)

    def with_format(self, format: str | None) -> MemoryOutput:  # noqa: A002
        return self

    def sink_factory(self, job: str, *, durable: bool) -> SinkFactory:
        return Opener(self._open)

    def _open(self, schema: pa.Schema, mark: CommitMark | None) -> Sink:
        return MemorySink(self.memory, mark)


def _input(given: Mapping[str, Any], folder: Path) -> MemoryInput:
    return MemoryInput(given["memory"])


def _output(given: Mapping[str, Any], folder: Path) -> MemoryOutput:
    return MemoryOutput(given["memory"])


_KEYS = {"memory": (str | None, None)}
CONNECTOR = Connector("memory", _KEYS, _KEYS, _input, _output)
