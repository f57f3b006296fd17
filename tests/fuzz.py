"""Fuzz what comes from outside: files, messages of a topic, and job files.

``python -m tests.fuzz --count 1000000`` changes good inputs at random and reads them. Each must end
well: with rows, with bad rows, or with an error of Shoal that shows no value of a person. Anything
else is a finding: a crash, a hang, or a leak. A finding is written with its number; the same seed
and number make the same input again.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from shoal.errors import ShoalError
from shoal.io import open_source
from shoal.io.kafka.values import ArrowValues, CsvValues, JsonValues
from shoal.job import Job

__all__ = ["TARGETS", "Finding", "fuzz"]

#: A value of a person, in every input that has rows. No message may show it.
CANARY = "Zarathustra"
ROWS = [
    {"name": f"{CANARY} {i}", "age": 20 + i, "town": town, "at": f"2026-01-0{i + 1}T00:00:00Z"}
    for i, town in enumerate(["bonn", 'ko"ln', "a,b\nc", "", "münchen"])
]
COLUMNS = ("name", "age", "town")
JOB = """\
[schema]
subject = "name"
time = "at"
[schema.quasi]
age = { range = [0, 120], step = 1, weight = 2 }
town = { values = ["bonn", "berlin"] }
code = { mask = 3 }
[schema.sensitive]
illness = {}
[schema.keep]
columns = ["ward"]
[policy]
k = 10
l = { illness = { recursive = 3, c = 2 } }
t = { illness = { variation = 0.2 } }
window = { rows = 20000, advance = 5000 }
delay = { rows = 10000, seconds = 30, clock = "wall" }
lateness = 5
[algorithm]
name = "castle"
clusters = 50
[publish]
numeric = "range"
[run]
checkpoint = { folder = "state", every = 10, seal = "env:KEY" }
[bad_rows]
limit = 0.05
[private]
seal = true
file_hours = 24
keep_days = 30
[audit]
sample = 0.01
[output]
path = "out.csv"
"""
#: What breaks parsers.
TOKENS = [
    b'"', b"'", b",", b"\n", b"\r", b"\0", b"\xff", b"\xef\xbb\xbf", b"{", b"}", b"[", b"]", b"\\",
    b"[" * 2000, b'{"a":' * 500, b"9" * 400, b"1e999", b"-0", b"NaN", b"Infinity", b"\\ud800",
    b"\xed\xa0\x80", b"null", b"true", b"=", b"#", b'"""', b"%s", b"inf", b"\x1f\x8b", b"PAR1",
]  # fmt: skip
#: The most seconds that an input may take.
HANG = 20


class Finding(NamedTuple):
    """An input that didn't end well."""

    target: str
    number: int
    what: str


def _csv() -> bytes:
    quoted = [
        ",".join('"' + str(row[name]).replace('"', '""') + '"' for name in COLUMNS) for row in ROWS
    ]
    return "\n".join([",".join(COLUMNS), *quoted, ""]).encode()


def _jsonl() -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in ROWS).encode()


def _arrow() -> bytes:
    table = pa.Table.from_pylist(ROWS)
    output = io.BytesIO()
    with pa.ipc.new_stream(output, table.schema) as writer:
        writer.write_table(table)
    return output.getvalue()


def _read_file(ending: str) -> Callable[[bytes], None]:
    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name) / f"rows.{ending}"

    def read(data: bytes, _keep: object = folder) -> None:
        path.write_bytes(data)
        source = open_source(path, COLUMNS)
        try:
            for chunk in source:
                _no_canary(" ".join(bad.text for bad in chunk.bad))
        finally:
            source.close()

    return read


def _read_message(kind: str) -> Callable[[bytes], None]:
    def read(data: bytes) -> None:
        values = {
            "json": lambda: JsonValues(COLUMNS),
            "csv": lambda: CsvValues(None, COLUMNS, "people"),
            "arrow": lambda: ArrowValues(COLUMNS),
        }[kind]()
        rows = values.read([data, b"", data[: len(data) // 2]], first_row=0)
        _no_canary(" ".join(bad.text for bad in rows.bad))

    return read


def _read_job(data: bytes) -> None:
    Job.parse(data.decode("utf-8", "surrogateescape"))


def _no_canary(text: str) -> None:
    if CANARY in text:
        raise AssertionError("a message shows a value of a person")


#: The kinds of inputs: a good one, and what reads it.
TARGETS: dict[str, tuple[bytes, Callable[[bytes], None]]] = {
    "csv file": (_csv(), _read_file("csv")),
    "jsonl file": (_jsonl(), _read_file("jsonl")),
    "arrow file": (_arrow(), _read_file("arrow")),
    "json message": (_jsonl(), _read_message("json")),
    "csv message": (_csv(), _read_message("csv")),
    "arrow message": (_arrow(), _read_message("arrow")),
    "job": (JOB.encode(), _read_job),
}


def changed(good: bytes, draw: random.Random) -> bytes:
    """Return an input that is changed at a few places."""
    data = bytearray(good)
    for _ in range(draw.choice([1, 1, 1, 2, 3, 8])):
        at = draw.randrange(len(data) + 1)
        end = min(len(data), at + draw.choice([1, 1, 2, 5, 20, 200]))
        match draw.randrange(6):
            case 0 if at < len(data):
                data[at] ^= 1 << draw.randrange(8)
            case 1:
                del data[at:end]
            case 2:
                data[at:at] = draw.choice(TOKENS)
            case 3:
                data[at:at] = data[at:end]
            case 4:
                data[at:end] = draw.randbytes(end - at)
            case _:
                other = draw.randrange(len(data) + 1)
                data[at:end] = data[other : other + end - at]
    return bytes(data)


def fuzz(target: str, count: int, seed: int, first: int = 0) -> Iterator[Finding]:
    """Yield the findings about one kind of input."""
    good, read = TARGETS[target]
    for number in range(first, first + count):
        data = changed(good, random.Random(f"{seed} {target} {number}"))
        signal.alarm(HANG)
        try:
            read(data)
        except ShoalError as error:
            if target != "job" and CANARY in str(error):
                yield Finding(target, number, "a message shows a value of a person")
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            yield Finding(target, number, f"{type(error).__name__} at {_place(error)}")
        finally:
            signal.alarm(0)


def _place(error: BaseException) -> str:
    """Return where an exception was raised; its text may show a value."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "?" if trace is None else f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"


def main() -> int:
    """Fuzz all targets; return 1 if there are findings."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--count", type=int, default=1_000_000, help="inputs, over all targets")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--target", choices=list(TARGETS))
    options.add_argument("--number", type=int, help="make one input again, and show what happens")
    given = options.parse_args()
    names = [given.target] if given.target else list(TARGETS)
    if given.number is not None:
        found = list(fuzz(names[0], 1, given.seed, given.number))
        print(*found, sep="\n")
        return bool(found)
    kinds: Counter[tuple[str, str]] = Counter()
    for name in names:
        n_findings = 0
        for finding in fuzz(name, given.count // len(names), given.seed):
            n_findings += 1
            kinds[name, finding.what] += 1
            if kinds[name, finding.what] <= 3:
                print(f"{name} {finding.number}: {finding.what}", flush=True)
        print(f"{name}: {given.count // len(names):,} inputs, {n_findings:,} findings", flush=True)
    return bool(kinds)


def _hang(*_: object) -> None:
    raise TimeoutError("it hangs")


signal.signal(signal.SIGALRM, _hang)

if __name__ == "__main__":
    sys.exit(main())
