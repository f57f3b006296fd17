"""Encode checkpoints as bytes and read them: heading, body, checksum.

The body is an index in JSON, then arrays and batches one after the other: arrays in NumPy's own
format without pickle, batches as Arrow streams. A sealed body is cut into blocks, each bound to the
heading and to its place.
"""

from __future__ import annotations

import hashlib
import io
import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.errors import CheckpointError
from shoal.run.state.heading import (
    DamagedError,
    Heading,
    check_seal,
    make_heading,
    read_heading,
    with_key,
)
from shoal.run.state.seal import Seal

__all__ = [
    "Checkpoint",
    "check_intact",
    "checkpoint_bytes",
    "job_of",
    "read_body",
    "read_checkpoint_heading",
    "resealed",
]

#: Format 2 added to waiting rows which of their values are missing, and their loss.
MAGIC, FORMAT = b"\x89SHOALC\n", 2
_SUM_BYTES = 32
#: The size of a sealed block: GCM has a limit, and memory has too.
BLOCK_BYTES = 1 << 26
_LENGTH = struct.Struct(">Q")


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """All that a run needs to resume.

    Parameters
    ----------
    number
        One more than that of the last checkpoint.
    facts
        Plain JSON values: keys are text, and tuples come back as lists.
    arrays
        Arrays of any type but objects. They come back exactly, and writable.
    batches
        Payload of held rows. This is personal data, so the repr shows none of it.

    >>> Checkpoint(7, {"seq": 3}, {"lo": np.zeros(2)}, {"held": pa.record_batch({"ward": ["a"]})})
    Checkpoint(number=7, facts=['seq'], arrays=['lo'], batches={'held': 1})
    """

    number: int
    facts: dict[str, Any]
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    batches: dict[str, pa.RecordBatch] = field(default_factory=dict)

    def __repr__(self) -> str:
        batches = {name: batch.num_rows for name, batch in self.batches.items()}
        return (
            f"Checkpoint(number={self.number}, facts={list(self.facts)}, "
            f"arrays={list(self.arrays)}, batches={batches})"
        )


def checkpoint_bytes(
    checkpoint: Checkpoint, job: Mapping[str, str], time: float, seal: Seal | None
) -> Iterator[Any]:
    """Yield the bytes of the file in blocks."""
    # How often the job has changed is said in clear, too.
    n_changes = len(checkpoint.facts.get("changes", ()))
    more = {"job": dict(job)} | ({"changes": n_changes} if n_changes else {})
    heading = make_heading(MAGIC, FORMAT, checkpoint.number, time, seal, more)
    digest = hashlib.blake2b(digest_size=_SUM_BYTES)
    body = _body(checkpoint)
    for block in (heading.raw, *(body if seal is None else _sealed(body, heading, seal))):
        digest.update(block)
        yield block
    yield digest.digest()


def read_checkpoint_heading(path: Path, data: bytes, number: int) -> Heading:
    """Read the heading of a checkpoint from its first bytes, or all of them."""
    return read_heading(path, data, MAGIC, FORMAT, number, oldest=FORMAT)


def job_of(heading: Heading) -> dict[str, str]:
    """Return the digests of the job's sections when the checkpoint was taken."""
    job = heading.more.get("job")
    return dict(job) if isinstance(job, dict) else {}


def read_body(path: Path, data: bytes, heading: Heading, seal: Seal | None) -> Checkpoint:
    """Read a checkpoint from all bytes of its file.

    Raises
    ------
    DamagedError
        If the file isn't what was written.
    CheckpointError
        If it isn't sealed as it should be.
    """
    check_intact(path, data)
    check_seal(path, heading, seal)
    body = data[len(heading.raw) : -_SUM_BYTES]
    if seal is not None:
        try:
            body = b"".join(_opened(body, heading, seal))
        except CheckpointError:
            raise DamagedError(path, "its seal is broken") from None
    try:
        return _parsed(body, heading.number)
    except (
        ValueError, TypeError, KeyError, OSError, EOFError, struct.error, pa.ArrowException,
        RecursionError, MemoryError, OverflowError,
    ):  # fmt: skip
        # The messages of these exceptions may quote the content.
        raise DamagedError(path, "its content can't be read") from None


def resealed(path: Path, data: bytes, number: int, old: Seal | None, new: Seal) -> Iterator[bytes]:
    """Yield the bytes of a checkpoint under another key; ``old`` is None if it isn't sealed."""
    heading = read_checkpoint_heading(path, data, number)
    check_intact(path, data)
    check_seal(path, heading, old)
    body = data[len(heading.raw) : -_SUM_BYTES]
    if old is not None:
        try:
            body = b"".join(_opened(body, heading, old))
        except CheckpointError:
            raise DamagedError(path, "its seal is broken") from None
    fresh = with_key(heading, new)
    digest = hashlib.blake2b(digest_size=_SUM_BYTES)
    for block in (fresh.raw, *_sealed([body], fresh, new)):
        digest.update(block)
        yield block
    yield digest.digest()


def check_intact(path: Path, data: bytes) -> None:
    """Raise if the checksum of a file doesn't match."""
    view = memoryview(data)[:-_SUM_BYTES]
    if hashlib.blake2b(view, digest_size=_SUM_BYTES).digest() != data[-_SUM_BYTES:]:
        raise DamagedError(path, "its checksum doesn't match")


def _body(checkpoint: Checkpoint) -> list[Any]:
    arrays = {name: _array_bytes(array) for name, array in checkpoint.arrays.items()}
    batches = {name: _batch_bytes(batch) for name, batch in checkpoint.batches.items()}
    index = {
        "facts": checkpoint.facts,
        "arrays": [[name, len(data)] for name, data in arrays.items()],
        "batches": [[name, len(data)] for name, data in batches.items()],
    }
    text = json.dumps(index).encode()
    return [_LENGTH.pack(len(text)), text, *arrays.values(), *batches.values()]


def _parsed(body: bytes, number: int) -> Checkpoint:
    rest = io.BytesIO(body)
    (n_bytes,) = _LENGTH.unpack(rest.read(_LENGTH.size))
    index = json.loads(_exactly(rest, n_bytes))
    arrays = {name: _array_of(_exactly(rest, n)) for name, n in index["arrays"]}
    batches = {name: _batch_of(_exactly(rest, n)) for name, n in index["batches"]}
    if rest.read() or not isinstance(index["facts"], dict):
        raise ValueError("more than the index says")
    return Checkpoint(number, index["facts"], arrays, batches)


def _exactly(source: io.BytesIO, n_bytes: int) -> bytes:
    data = source.read(n_bytes)
    if len(data) != n_bytes:
        raise ValueError("less than the index says")
    return data


def _array_bytes(array: NDArray[Any]) -> memoryview:
    output = io.BytesIO()
    # Version 3 of NumPy's format can name the fields of records in any script.
    np.lib.format.write_array(output, array, version=(3, 0), allow_pickle=False)
    return output.getbuffer()


def _array_of(data: bytes) -> NDArray[Any]:
    array: NDArray[Any] = np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
    return array


def _batch_bytes(batch: pa.RecordBatch) -> memoryview:
    output = pa.BufferOutputStream()
    with pa.ipc.new_stream(output, batch.schema) as writer:
        writer.write_batch(batch)
    return memoryview(output.getvalue())


def _batch_of(data: bytes) -> pa.RecordBatch:
    with pa.ipc.open_stream(data) as reader:
        return reader.read_next_batch()


def _sealed(body: list[Any], heading: Heading, seal: Seal) -> Iterator[bytes]:
    data = memoryview(b"".join(body))
    n_blocks = -(-len(data) // BLOCK_BYTES)
    for i in range(n_blocks):
        block = bytes(data[i * BLOCK_BYTES : (i + 1) * BLOCK_BYTES])
        yield seal.close(block, _context(heading, i, n_blocks))


def _opened(body: bytes, heading: Heading, seal: Seal) -> Iterator[bytes]:
    step = BLOCK_BYTES + seal.n_extra
    n_blocks = -(-len(body) // step)
    for i in range(n_blocks):
        yield seal.open(body[i * step : (i + 1) * step], _context(heading, i, n_blocks))


def _context(heading: Heading, block: int, n_blocks: int) -> bytes:
    return b"checkpoint\0" + heading.raw + struct.pack(">QQ", block, n_blocks)
