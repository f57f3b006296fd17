"""The page of file formats is right: files are read by what it says, with the standard library."""

from __future__ import annotations

import hashlib
import io
import json
import re
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.arrow.trace import OUTCOMES, trace_schema
from shoal.arrow.z.trace import z_trace_schema
from shoal.io.base import Span
from shoal.run.state import checkpoint, private_files, segment
from shoal.run.state.checkpoint import Checkpoint, checkpoint_bytes
from shoal.run.writer import _change_line

PAGE = (Path(__file__).parents[2] / "docs" / "formats.md").read_text(encoding="utf-8")
VERSIONS = (Path(__file__).parents[2] / "docs" / "versions.md").read_text(encoding="utf-8")


def heading_of(data: bytes) -> tuple[bytes, int, dict[str, Any], int]:
    """Read a heading as the page describes it; return where it ends, too."""
    kind, form, n = struct.unpack_from(">8sII", data)
    end = 16 + n
    assert data[end : end + 16] == hashlib.blake2b(data[:end], digest_size=16).digest()
    return kind, form, json.loads(data[16:end]), end + 16


def test_a_checkpoint_is_as_the_page_says() -> None:
    batch = pa.record_batch({"ward": ["a", "b"]})
    made = Checkpoint(42, {"seq": 3}, {"lo": np.arange(3.0)}, {"held": batch})
    data = b"".join(map(bytes, checkpoint_bytes(made, {"policy": "ab"}, 7.5, None)))
    kind, form, facts, at = heading_of(data)
    assert (kind, form) == (b"\x89SHOALC\n", 2)
    assert set(facts) == {"version", "number", "time", "key", "more"}
    assert facts["number"] == 42
    assert facts["more"] == {"job": {"policy": "ab"}}
    assert data[-32:] == hashlib.blake2b(data[:-32], digest_size=32).digest()
    (n,) = struct.unpack_from(">Q", data, at)
    index = json.loads(data[at + 8 : at + 8 + n])
    assert index["facts"] == {"seq": 3}
    at += 8 + n
    [[name, length]] = index["arrays"]
    assert data[at : at + 8] == b"\x93NUMPY\x03\x00"
    array = np.load(io.BytesIO(data[at : at + length]), allow_pickle=False)
    assert (name, array.tolist()) == ("lo", [0, 1, 2])
    at += length
    [[name, length]] = index["batches"]
    with pa.ipc.open_stream(data[at : at + length]) as stream:
        assert (name, stream.read_all().to_pylist()) == ("held", batch.to_pylist())
    assert at + length == len(data) - 32


def test_a_segment_of_the_journal_is_as_the_page_says() -> None:
    heading = segment.new_heading(42, 7.5, None, "this one", "that one")
    entries = [
        segment.Read((Span("people.csv", 0, 512),), 1.0, 2.0),
        segment.Tick(3.0, 4.0),
        segment.Flush(5.0),
        segment.Change("ab12"),
    ]
    data = heading.raw + segment.record(heading, 0, [*map(segment.encode, entries)], None)
    data += segment.closing_record(heading, 1, None)
    kind, form, facts, at = heading_of(data)
    assert (kind, form) == (b"\x89SHOALJ\n", 2)
    assert facts["more"] == {"name": "this one", "after": "that one"}
    raw, payloads = data[:at], []
    while at < len(data):
        mark, n, number, checksum = struct.unpack_from(">2sIQ16s", data, at)
        payload = data[at + 30 : at + 30 + n]
        digest = hashlib.blake2b(raw + struct.pack(">QQ", number, n) + payload, digest_size=16)
        assert (mark, checksum) == (b"\xf5\xfa", digest.digest())
        payloads.append(json.loads(payload))
        at += 30 + n
    assert payloads == [
        [
            ["read", [["people.csv", 0, 512]], 1, 2],
            ["tick", 3, 4],
            ["flush", 5],
            ["change", "ab12"],
        ],
        "closed",
    ]
    assert re.findall(r'^\| `\["(\w+)"', PAGE, re.M) == ["read", "tick", "flush", "change"]


def test_the_formats_of_the_pages_are_those_that_are_written() -> None:
    for name, module in (("checkpoint", checkpoint), ("journal", segment)):
        assert f"`{name}-0000000042`, format {module.FORMAT}." in PAGE
        assert f"\n| {name} | {module.FORMAT} |" in VERSIONS
    assert f"format {private_files.FORMAT}, then records" in PAGE
    assert f"\n| sealed private file | {private_files.FORMAT} |" in VERSIONS
    for module in (checkpoint, segment, private_files):
        assert repr(module.MAGIC)[2:-1] in PAGE


def test_the_columns_of_a_trace_are_those_of_the_page() -> None:
    table, _, change = PAGE.partition("## Trace")[2].partition("### A change in the trace")
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|:]+?)(?::[^|]*)? \|", table, re.M))
    schema = trace_schema(pa.string())
    assert list(rows) == schema.names
    types = {name: str(schema.field(name).type) for name in schema.names if name != "subject"}
    assert {name: rows[name] for name in types} == types
    assert set(OUTCOMES.to_pylist()) == set(
        re.findall(r"`(\w+)`", re.findall(r"^\| `outcome` \| (.*?) \|", table, re.M)[0])
    )
    extra = [name for name in z_trace_schema(pa.string()).names if name not in rows]
    assert extra == ["attribute", "level", "z"]
    assert all(f"`{name}`" in table for name in [*extra, "shard"])
    names = ("time", "what", "weaker", "sections", "rows_in", "taken_in", "published", "latest")
    (line,) = _change_line(schema, dict.fromkeys(names, 1)).to_pylist()
    told = re.findall(r"^\| `(\w+)` \|", change.partition("## Quarantine")[0], re.M)
    assert set(told) == {name for name, value in line.items() if value is not None}
    assert json.loads(line["outcome"].removeprefix("changed ")).keys() == set(names[:4])
    assert all(f"`{name}`" in change for name in names[:4])
