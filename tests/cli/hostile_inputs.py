"""Files that nobody should have to read, each in a command line that must end well."""

from __future__ import annotations

import datetime
import decimal
import gzip
import io
import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc
import pyarrow.parquet as pq

#: A value of a person, in every file that has rows. No message may show it.
CANARY = "Zarathustra"
N_ROWS = 40
AGES = [n % 50 for n in range(N_ROWS)]
JOB = """\
[schema]
subject = {subject}
{time}
[schema.quasi]
age = {{ range = [0, 120] }}
{quasi}
[schema.sensitive]
{sensitive}
[schema.keep]
columns = [{keep}]
[policy]
k = 2
delay = {{ rows = 10 }}
[algorithm]
name = "castle"
{more}
"""
NOBODY = "{ each_row = true }"
ROLES = {
    "subject": {"subject": '"x"'},
    "time": {"time": 'time = "x"'},
    "range": {"quasi": "x = { range = [0, 120] }"},
    "values": {"quasi": 'x = { values = ["1", "2"] }'},
    "sensitive": {"sensitive": "x = {}"},
    "keep": {"keep": '"x"'},
}


class Attempt(NamedTuple):
    """A command line, and what it is about."""

    name: str
    words: tuple[object, ...]


class Hostility:
    """Makes hostile files in a folder, the same for the same seed."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder, self._draw = folder, random.Random(seed)
        self._n = 0
        rows = "".join(f"{age},{CANARY}\n" for age in AGES)
        self._plain = self._file("plain.csv", f"age,x\n{rows}")

    def _file(self, name: str, content: str | bytes) -> Path:
        path = self._folder / f"{self._n}-{name}"
        self._n += 1
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def _job(self, text: str | None = None, **parts: str) -> Path:
        empty = {"time": "", "quasi": "", "sensitive": "", "keep": "", "more": ""}
        filled = JOB.format(**{"subject": NOBODY} | empty | parts)
        return self._file("job.toml", filled if text is None else text)

    def _run(self, name: str, job: Path | str, data: object, *more: object) -> Attempt:
        words = ("run", job, "-i", data, "-o", self._folder / "out.csv", "--trace")
        return Attempt(name, (*words, self._folder / "trace.parquet", "--force", *more))

    # -- columns of every type ------------------------------------------------------------------

    def columns(self) -> Iterator[Attempt]:
        """Yield a column of each type in each role, in both typed formats."""
        for kind, column in typed_columns():
            table = pa.table({"x": column, "age": pa.array(AGES)})
            for form, save in (("arrow", _as_arrow), ("parquet", _as_parquet)):
                data = save(table)
                if data is None:
                    continue
                path = self._file(f"x.{form}", data)
                for role, parts in ROLES.items():
                    yield self._run(f"{kind} as {role} in {form}", self._job(**parts), path)

    # -- damaged files --------------------------------------------------------------------------

    def damaged(self, n_files: int) -> Iterator[Attempt]:
        """Yield files of all formats in which some bytes are others, or missing."""
        table = pa.table(
            {
                "age": pa.array(AGES * 20),
                "x": pa.array([f"{CANARY} {n % 7}" for n in range(N_ROWS * 20)]),
            }
        )
        coded = table.set_column(1, "x", table["x"].dictionary_encode())
        lines = [f'{{"age": {a}, "x": "{CANARY} {n}"}}\n' for n, a in enumerate(AGES)]
        rows = [f'{a},"{CANARY}, {n}"\n' for n, a in enumerate(AGES)]
        sound = [
            ("x.parquet", _as_parquet(table)),
            ("x.parquet", _as_parquet(table, compression="none", data_page_version="2.0")),
            ("x.parquet", _as_parquet(table, compression="none", use_dictionary=False)),
            ("x.arrow", _as_arrow(table)),
            ("x.arrow", _as_arrow(coded)),
            ("x.jsonl", "".join(lines).encode()),
            ("x.csv", ("age,x\n" + "".join(rows)).encode()),
            ("x.csv.gz", gzip.compress(("age,x\n" + "".join(rows)).encode(), mtime=0)),
            ("x.csv", ("age,x\n" + "".join(rows)).encode("utf-16")),
        ]
        job = self._job(keep='"x"')
        for _ in range(n_files):
            name, data = self._draw.choice(sound)
            assert data is not None
            yield self._run(f"damaged {name}", job, self._file(name, self._damage(data)))

    def _damage(self, data: bytes) -> bytes:
        broken = bytearray(data)
        how = self._draw.randrange(4)
        at = self._draw.randrange(len(broken))
        if how == 0:
            for _ in range(self._draw.choice([1, 5, 50])):
                broken[self._draw.randrange(len(broken))] = self._draw.randrange(256)
        elif how == 1:
            del broken[at : at + self._draw.randrange(1, 200)]
        elif how == 2:
            broken[at:at] = self._draw.choice(
                [b'"', b"\0" * 50, b"\xff\xfe", b"\n" * 9, b"{[" * 99]
            )
        else:
            del broken[at:]
        return bytes(broken)

    # -- jobs and hierarchies -------------------------------------------------------------------

    def jobs(self) -> Iterator[Attempt]:
        """Yield jobs with numbers, labels, nestings and paths beyond all bounds."""
        huge, label = "1" + "0" * 400, "x" * 1_000_000
        for domain in (
            f"range = [0, {huge}]", f"range = [-{huge}, 0]", f"range = [0, {'9' * 5000}]",
            f"range = [0x{'f' * 400}, 1]", "range = [0, inf]", "range = [nan, 1]",
            f"range = [0, 5], step = {huge}", f"range = [0, 5], weight = {huge}",
            f"mask = {huge}", f'path = "/", levels = {huge}', f'grid = ["a", "b", {huge}]',
            f'values = ["{label}", "b"]', f'hierarchy = "{label}"', 'hierarchy = "a\\u0000b"',
        ):  # fmt: skip
            job = self._job(quasi=f"x = {{ {domain} }}")
            yield self._run(f"domain {domain[:30]}", job, self._plain)
        for more in (
            f"clusters = {huge}", f"[run]\nseed = {huge}",
            f"[run]\ncheckpoint = {{ folder = 's', every = {huge} }}",
            "[run]\ncheckpoint = { folder = 'a\\u0000b' }".replace("'a", '"a').replace("b'", 'b"'),
            f"[output]\nrows = {huge}", f'[output]\n"{label}" = 1', f'["{label}"]\na = 1',
            f'"{label}" = 1', '[input]\npath = "a\\u0000b.csv"', f'[input]\npath = "{label}.csv"',
            '[bad_rows]\nfile = "a\\u0000b.csv"', "[input]\nencoding = 'rot13'",
            "[input]\nencoding = 'idna'", "[input]\nencoding = 'unicode_escape'",
            "[input]\nencoding = 'utf-7'", "[input]\nencoding = 'undefined'",
        ):  # fmt: skip
            yield self._run(f"job {more[:30]}", self._job(more=more), self._plain)
        for depth in (20, 60, 2000, 50_000):
            for text in (
                f"a = {'[' * depth}{']' * depth}", f"a = {'{a=' * depth}1{'}' * depth}",
                f"[a{'.a' * depth}]", f"x{'.a' * depth} = 1", "\n".join([f"[[a{'.b' * 5}]]"] * 99),
            ):  # fmt: skip
                job = self._job(self._job().read_text() + text)
                yield self._run(f"nested {depth} {text[:8]}", job, self._plain)

    def hierarchies(self) -> Iterator[Attempt]:
        """Yield hierarchies that are no trees, or far too large."""
        deep = ";".join(str(n) for n in range(100_000))
        for content in (
            b"", b"\0", b"a;*\n\0;*\n", b'"a;*\n' * 9, "ä;*\n".encode("utf-16"), b"\xff;*\n",
            ("x" * 1_000_000 + ";*\n").encode(), f"a;{deep}\n".encode(), b"a;b;a\n", b";;;\n",
            b'"' + b"a\n" * 200_000,
        ):  # fmt: skip
            path = self._file("tree.csv", content)
            job = self._job(quasi=f'x = {{ hierarchy = "{path}" }}')
            yield self._run(f"hierarchy {content[:9]!r}", job, self._plain)

    # -- what isn't a file ----------------------------------------------------------------------

    def strange_files(self) -> Iterator[Attempt]:
        """Yield devices, pipes, folders and circles of links where a file is expected."""
        folder = self._folder / "folder"
        folder.mkdir()
        (self._folder / "loop-a").symlink_to(self._folder / "loop-b")
        (self._folder / "loop-b").symlink_to(self._folder / "loop-a")
        os.mkfifo(self._folder / "pipe")
        pipe, loop = self._folder / "pipe", self._folder / "loop-a"
        endless = ("/dev/zero", "/dev/urandom", "/dev/full")
        good = self._job(keep='"x"')
        for path in (pipe, loop, folder, *endless, "/dev/null", "/nowhere/at/all", "\n"):
            tree = self._job(quasi=f"x = {{ hierarchy = {json.dumps(str(path))} }}")
            yield self._run(f"hierarchy {path}", tree, self._plain)
            yield self._run(f"job {path}", str(path), self._plain)
            yield Attempt(f"checkpoints {path}", ("checkpoint", "show", path))
            if path != pipe:
                for form in ("csv", "jsonl", "parquet", "arrow", "csv.gz", "csv.zst"):
                    yield self._run(f"input {path} {form}", good, path, "--from", form)
                yield Attempt(f"audit {path}", ("audit", good, path, "--from", "csv"))
                yield self._run(f"output {path}", good, self._plain, "-o", path, "--to", "csv")

    # -- texts ----------------------------------------------------------------------------------

    def texts(self, n_bytes: int) -> Iterator[Attempt]:
        """Yield texts with fields, rows and nestings without end."""
        job = self._job(keep='"x"')
        endless = b'age,x\n1,2\n3,"' + b"a" * n_bytes
        many = b'age,x\n1,2\n3,"' + b"a\n" * (n_bytes // 16)
        for data in (
            endless, many, b'"' + b"a" * n_bytes, b'age,x\n' + b'"' * (n_bytes // 8),
            b"age,x\n" + b"," * n_bytes, b"age" + b",x" * 10_000, b"\r" * 10_000, b"age,x\r1,2\r",
            b'age,x\n"1\n"2\n' * 100, b"\xff\xfe" * 99, b"\0" * 9999,
        ):  # fmt: skip
            yield self._run(f"text {data[:12]!r}", job, self._file("x.csv", data))
            packed = gzip.compress(data, mtime=0)
            yield self._run(f"gzip {data[:12]!r}", job, self._file("x.csv.gz", packed))
        for depth in (100, 10_000):
            for line in (
                '{"age": ' + "[" * depth,
                '{"age": 1, "x": ' + '{"a":' * depth + "1" + "}" * depth + "}",
            ):
                data = f'{{"age": 1, "x": "{CANARY}"}}\n{line}\n'
                yield self._run(f"json {depth}", job, self._file("x.jsonl", data))
        numbers = '{"age": ' + "9" * 100_000 + ', "x": "\\ud800"}\n{"age": 1e99999, "x": -0}\n'
        yield self._run("json numbers", job, self._file("x.jsonl", numbers))


def typed_columns() -> Iterator[tuple[str, Any]]:
    """Yield a column of every type that Arrow has."""
    texts, n = [str(age) for age in AGES], N_ROWS
    raw = [text.encode() for text in texts]
    days = [datetime.date(2020, 1, 1)] * n
    yield "string_view", pa.array(texts, pa.string_view())
    yield "binary_view", pa.array(raw, pa.binary_view())
    yield "binary", pa.array(raw)
    yield "fixed_size_binary", pa.array([b"%02d" % age for age in AGES], pa.binary(2))
    interval = pa.MonthDayNano([1, 2, 3])
    yield "interval", pa.array([interval] * n, pa.month_day_nano_interval())
    yield "list", pa.array([[age] for age in AGES])
    yield "list_view", pa.array([[age] for age in AGES], pa.list_view(pa.int64()))
    yield "fixed_size_list", pa.array([[age] for age in AGES], pa.list_(pa.int64(), 1))
    yield "struct", pa.array([{"a": age} for age in AGES])
    yield "map", pa.array([[("a", age)] for age in AGES], pa.map_(pa.string(), pa.int64()))
    yield "union", pa.UnionArray.from_sparse(pa.array([0] * n, pa.int8()), [pa.array(AGES)])
    nought = pa.array([0] * n)
    yield "dictionary of lists", pa.DictionaryArray.from_arrays(nought, pa.array([[1]]))
    views = pa.array(["1", "a"], pa.string_view())
    yield "dictionary of views", pa.DictionaryArray.from_arrays(nought, views)
    yield "dictionary of floats", pa.array([float(age) for age in AGES]).dictionary_encode()
    yield "dictionary of bytes", pa.array(raw).dictionary_encode()
    yield "dictionary of nulls", pa.DictionaryArray.from_arrays(nought, pa.array([None, "a"]))
    yield "run_end_encoded", pc.run_end_encode(pa.array(AGES))
    yield "float16", pa.array([float(age) for age in AGES]).cast(pa.float16())
    yield "uint64", pa.array([2**64 - 1] * n, pa.uint64())
    yield "decimal256", pa.array([decimal.Decimal(age) for age in AGES], pa.decimal256(60, 2))
    yield "date64", pa.array([2**62] * n).view(pa.date64())
    yield "date32", pa.array(days)
    yield "timestamp", pa.array([2**62] * n).view(pa.timestamp("s", "Europe/Berlin"))
    yield "timestamp nowhere", pa.array([1] * n).view(pa.timestamp("us", "Mars/City"))
    yield "time32", pa.array([2**31 - 1] * n, pa.int32()).view(pa.time32("s"))
    yield "duration", pa.array([datetime.timedelta(1)] * n)
    yield "null", pa.nulls(n)
    yield "nan", pa.array([float("nan")] * n)
    cells = pa.array([[age] for age in AGES], pa.list_(pa.int64(), 1))
    shape = pa.fixed_shape_tensor(pa.int64(), [1])
    yield "tensor", pa.FixedShapeTensorArray.from_storage(shape, cells)


def _as_arrow(table: pa.Table) -> bytes | None:
    out = io.BytesIO()
    try:
        with pa.ipc.new_stream(out, table.schema) as writer:
            writer.write_table(table)
    except pa.ArrowException:
        return None
    return out.getvalue()


def _as_parquet(table: pa.Table, **options: Any) -> bytes | None:
    out = io.BytesIO()
    try:
        pq.write_table(table, out, **options)
    except pa.ArrowException:
        # Parquet hasn't all types.
        return None
    return out.getvalue()
