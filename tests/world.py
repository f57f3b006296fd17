"""A small world of made-up people, jobs about them, and the command line run on both."""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from shoal.cli import main
from shoal.io import open_sink, open_source
from shoal.io.base import Chunk

TOWNS = "berlin;east;any\ndresden;east;any\nbonn;west;any\nkoeln;west;any\n"
SCHEMA = """\
subject = "person"
[schema.quasi]
age = { range = [0, 120], step = 1 }
town = { hierarchy = "town.csv" }
[schema.sensitive]
illness = {}
[schema.keep]
columns = ["ward"]
"""
ID_AND_AGE = 'subject = "id"\n[schema.quasi]\nage = { range = [0, 120], step = 1 }\n'
POLICY = "k = 3\nl = 2\ndelay = { rows = 20 }"
GAPS = {"age": 3, "town": 4}
COLUMNS = ("person", "age", "town", "illness", "ward", "at")


def people(n_rows: int, seed: int = 1, n_people: int | None = None) -> pa.Table:
    """Rows of made-up people who come back now and then, one row a second."""
    draw = random.Random(seed)
    n_people = n_people or max(1, n_rows // 2)
    rows = [
        {
            "person": f"person-{draw.randrange(n_people)}",
            "age": draw.randrange(18, 90),
            "town": draw.choice(["berlin", "dresden", "bonn", "koeln"]),
            "illness": draw.choice(["flu", "gout", "scurvy", "measles"]),
            "ward": draw.choice("ABC"),
            "at": float(i),
        }
        for i in range(n_rows)
    ]
    return pa.Table.from_pylist(rows)


def with_gaps(table: pa.Table, every: Mapping[str, int] = GAPS) -> pa.Table:
    """The same rows, in which every ``n``-th row lacks a value of the column."""
    for name, n in every.items():
        nulls = np.arange(table.num_rows) % n == 0
        column = pa.array(table[name].to_pylist(), table[name].type, mask=nulls)
        table = table.set_column(table.schema.names.index(name), name, column)
    return table


def write_job(
    folder: Path,
    *,
    schema: str = SCHEMA,
    policy: str = POLICY,
    algorithm: str = "",
    publish: str = "",
    run: str = "seed = 7",
    bad_rows: str = "",
) -> Path:
    """Write a job and its hierarchy; give the path of the job."""
    (folder / "town.csv").write_text(TOWNS)
    path = folder / "job.toml"
    path.write_text(
        f"[schema]\n{schema}\n[policy]\n{policy}\n[algorithm]\nname = 'castle'\n{algorithm}\n"
        f"[publish]\n{publish}\n[run]\n{run}\n[bad_rows]\n{bad_rows}\n"
    )
    return path


def write(table: pa.Table, path: Path, form: str | None = None) -> Path:
    """Write a table to a file; the ending tells the format."""
    sink = open_sink(path, table.schema, format=form)
    for batch in table.to_batches():
        sink.write(batch)
    sink.close()
    return path


def read(path: Path, form: str | None = None) -> pa.Table:
    """Read all of a file; no row of it may be broken."""
    source = open_source(path, format=form)
    try:
        chunks = list(source)
        assert not any(chunk.bad for chunk in chunks)
        return pa.Table.from_batches([chunk.batch for chunk in chunks])
    finally:
        source.close()


def shoal(monkeypatch: pytest.MonkeyPatch, *words: object) -> int:
    """Run a command in this process; give its exit code."""
    monkeypatch.setattr(sys, "argv", ["shoal", *map(str, words)])
    with pytest.raises(SystemExit) as ended:
        main()
    code = ended.value.code
    assert isinstance(code, int)
    return code


COMMAND = [sys.executable, "-c", "from shoal.cli import main; main()"]


@contextlib.contextmanager
def beside(*words: object, **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command in a process of its own, without compiling, and don't leave it behind."""
    options = {
        "stdin": subprocess.DEVNULL,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
        "env": {**os.environ, "NUMBA_DISABLE_JIT": "1"},
    } | options
    with subprocess.Popen([*COMMAND, *map(str, words)], **options) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


class Rows:
    """A source of rows in memory, cut into chunks of given lengths."""

    def __init__(self, table: pa.Table, columns: tuple[str, ...], cuts: list[int]) -> None:
        self._table, self._cuts = table.select(columns), cuts
        self.schema_names = columns

    def __iter__(self) -> Iterator[Chunk]:
        batch = self._table.combine_chunks().to_batches()[0]
        borders = sorted({0, batch.num_rows, *(cut for cut in self._cuts if cut < batch.num_rows)})
        for begin, end in itertools.pairwise(borders):
            yield Chunk(batch.slice(begin, end - begin), np.arange(begin, end), [])

    def describe(self) -> str:
        return "rows in memory"

    def close(self) -> None:
        pass


class Kept:
    """A sink that keeps what it is given."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._batches: list[pa.RecordBatch] = []

    def write(self, batch: pa.RecordBatch) -> None:
        both = batch.columns, self._schema
        plain = [column.cast(field.type) for column, field in zip(*both, strict=True)]
        self._batches.append(pa.record_batch(plain, schema=self._schema))

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass

    @property
    def table(self) -> pa.Table:
        return pa.Table.from_batches(self._batches, self._schema)
