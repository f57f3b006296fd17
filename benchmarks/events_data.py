"""Events to measure z-anonymity on: a made-up stream of any length, and two real ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.workloads import ROW_GROUP_ROWS, SHARED, Workload
from shoal.engine.kernels.arrays import Floats, Ints
from shoal.engine.space import Codes
from shoal.spec.ladder import Open
from shoal.spec.ladder import Path as PathOf
from shoal.spec.policy import Window
from shoal.spec.schema import Quasi, Schema

__all__ = [
    "LEVELS", "MSNBC", "RETAIL", "Case", "Stream", "as_codes", "as_tuples", "drawn", "msnbc",
    "paths", "plain", "retail", "stream_file",
]  # fmt: skip

RETAIL = SHARED / "online_retail.parquet"
MSNBC = SHARED / "msnbc_events.parquet"
DAY = 86_400

SEED = 2023
#: The path of a value has its own number last, and before it what is left of that by these.
GROUPS = (5, 50, 500)
LEVELS = len(GROUPS) + 1


@dataclass(frozen=True)
class Case:
    """A file of events and the window that z is measured against."""

    title: str
    workload: Workload
    window: Window


# -- made up ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stream:
    """Events, one a second, of subjects who are alike, with values of popularity 1/rank."""

    n_rows: int = 1_000_000
    n_subjects: int = 10_000
    n_values: int = 5_000


class Drawn(NamedTuple):
    """Some events: seconds from 1 on, subjects and values as numbers from 0."""

    times: Floats
    subjects: Ints
    values: Ints


def drawn(stream: Stream) -> Iterator[Drawn]:
    """The events of a stream, piece by piece. A longer stream begins as a shorter one does."""
    popularity = 1 / np.arange(1, stream.n_values + 1)
    upto = np.cumsum(popularity / popularity.sum())[:-1]
    draw = np.random.default_rng(SEED)
    for begin in range(0, stream.n_rows, ROW_GROUP_ROWS):
        subjects = draw.integers(stream.n_subjects, size=ROW_GROUP_ROWS)
        values = np.searchsorted(upto, draw.random(ROW_GROUP_ROWS), side="right")
        n = min(ROW_GROUP_ROWS, stream.n_rows - begin)
        yield Drawn(np.arange(begin + 1.0, begin + n + 1), subjects[:n], values[:n])


def as_tuples(stream: Stream) -> list[tuple[float, str, str]]:
    """The stream as the peer takes it: when, who, what."""
    return [
        (time, f"u{subject}", f"a{value}")
        for piece in drawn(stream)
        for time, subject, value in zip(*(part.tolist() for part in piece), strict=True)
    ]


def as_codes(stream: Stream, batch_rows: int, *, ladders: bool) -> list[Codes]:
    """The stream as an engine takes it, in batches: a random number for each distinct value."""
    draw = np.random.default_rng(SEED)
    times, subjects, values = (np.concatenate(parts) for parts in zip(*drawn(stream), strict=True))
    people = draw.integers(1, 2**63, stream.n_subjects)[subjects]
    labels = draw.integers(1, 2**63, (LEVELS, stream.n_values))
    above = reversed(GROUPS) if ladders else ()
    levels = [values, *(values % n for n in above)]
    keys = np.stack([labels[level, value] for level, value in enumerate(levels)], axis=1)
    return [
        Codes(
            np.empty((len(part), 0)), people[part], np.empty((len(part), 0), np.int64),
            times[part], np.ascontiguousarray(keys[part]),
        )
        for begin in range(0, stream.n_rows, batch_rows)
        for part in [np.arange(begin, min(begin + batch_rows, stream.n_rows))]
    ]  # fmt: skip


def stream_file(stream: Stream, folder: Path) -> Path:
    """The stream as a file with each value twice, alone and as a path; made if it isn't there."""
    name = f"events-{stream.n_rows}-{stream.n_subjects}-{stream.n_values}.parquet"
    texts = pa.array([f"a{i}" for i in range(stream.n_values)])
    parts = ["/".join([*(f"g{i % n}" for n in GROUPS), f"a{i}"]) for i in range(stream.n_values)]

    def tables() -> Iterator[pa.Table]:
        for piece in drawn(stream):
            chosen = pa.array(piece.values)
            columns = {
                "at": pa.array(piece.times.astype(np.int64)),
                "user": pa.array(piece.subjects.astype(np.int32)),
                "value": texts.take(chosen),
                "path": pa.array(parts).take(chosen),
            }
            yield pa.table(columns)

    return _made(folder / name, tables)


def plain(stream: Stream, folder: Path) -> Workload:
    """The stream with values that have no ladder."""
    schema = Schema("user", [Quasi("value", Open())], time="at")
    return Workload("events", stream_file(stream, folder), schema, stream.n_rows)


def paths(stream: Stream, folder: Path) -> Workload:
    """The stream with values that are paths."""
    schema = Schema("user", [Quasi("path", PathOf("/", levels=LEVELS))], time="at")
    return Workload("events-paths", stream_file(stream, folder), schema, stream.n_rows)


# -- real ------------------------------------------------------------------------------------------


def retail(folder: Path, *, every: int = 1) -> list[Case]:
    """Purchases of a year, those with a customer; ``every``: one row out of this many."""
    schema = Schema("customer_id", [Quasi("stock_code", Open())], time="invoice_date")

    def rows() -> pa.Table:
        table = pq.read_table(RETAIL, columns=list(schema.columns))
        return table.filter(pc.is_valid(table["customer_id"]))

    workload = _prepared("online_retail", schema, folder, rows, every)
    lengths = {"a day": DAY, "a week": 7 * DAY}
    return [
        Case(f"`online_retail`, {words}", workload, Window(seconds=seconds))
        for words, seconds in lengths.items()
    ]


def msnbc(folder: Path, window: int, *, every: int = 1) -> list[Case]:
    """Page views of a day: the first of everybody, then the second of everybody, and so on."""
    schema = Schema("user_id", [Quasi("category", Open())])

    def rows() -> pa.Table:
        table = pq.read_table(MSNBC)
        keys = [("position", "ascending"), ("user_id", "ascending")]
        return table.sort_by(keys).select(list(schema.columns))

    workload = _prepared("msnbc_events", schema, folder, rows, every)
    return [Case(f"`msnbc_events`, {window:,} rows", workload, Window(rows=window))]


def _prepared(
    name: str, schema: Schema, folder: Path, rows: Callable[[], pa.Table], every: int
) -> Workload:
    def tables() -> Iterator[pa.Table]:
        table = rows()
        yield table.take(pa.array(np.arange(0, table.num_rows, every)))

    path = _made(folder / f"{name}-{every}.parquet", tables)
    return Workload(name, path, schema, pq.read_metadata(path).num_rows)


def _made(path: Path, tables: Callable[[], Iterator[pa.Table]]) -> Path:
    """A file, which is made if it isn't there."""
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".unfinished")
    pieces = tables()
    first = next(pieces)
    with pq.ParquetWriter(unfinished, first.schema) as writer:
        write = partial(writer.write_table, row_group_size=ROW_GROUP_ROWS)
        write(first)
        for piece in pieces:
            write(piece)
    unfinished.replace(path)
    return path
