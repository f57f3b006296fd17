"""The heading of the files of a state folder: what wrote them, when, and whether they are sealed.

All formats, future ones too, have the same layout of the heading, so that a file of a later version
can be recognized: eight bytes for the kind, the format and the length as 32-bit numbers, a JSON
object, and a checksum of all this. It is in clear, and holds no value of a person.
"""

from __future__ import annotations

import hashlib
import json
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shoal import __version__
from shoal.errors import CheckpointError
from shoal.run.state.seal import Seal

__all__ = [
    "MOST_BYTES",
    "DamagedError",
    "Heading",
    "check_seal",
    "make_heading",
    "read_heading",
    "with_key",
]

_FIXED = struct.Struct(">8sII")
_SUM_BYTES = 16
#: The most bytes of a heading; a larger length is damage.
MOST_BYTES = 1 << 20
#: The end of the year 9999, in seconds since 1970: the last moment that `datetime` knows.
_LATEST = 253_402_300_799


class DamagedError(CheckpointError):
    """A file isn't what was written: it is cut off, changed, or another file."""

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(f"{path}: is damaged: {what}.")


@dataclass(frozen=True)
class Heading:
    """The heading of a file.

    Parameters
    ----------
    raw
        Its bytes in the file.
    format
        The number of the format.
    number
        The number of the checkpoint or segment.
    time
        When the file was begun, in seconds since 1970.
    version
        The version of Shoal that wrote it.
    key
        The fingerprint of the key of the seal; None if it isn't sealed.
    more
        Further facts, by kind of file.
    """

    raw: bytes
    format: int
    number: int
    time: float
    version: str
    key: str | None
    more: dict[str, Any]


def make_heading(
    magic: bytes, form: int, number: int, time: float, seal: Seal | None, more: dict[str, Any]
) -> Heading:
    """Return the heading of a new file."""
    key = None if seal is None else seal.fingerprint
    return _made(magic, form, number, time, __version__, key, more)


def with_key(heading: Heading, seal: Seal) -> Heading:
    """Return the heading of the same file under another key: nothing else of it changes."""
    magic, *_ = _FIXED.unpack_from(heading.raw)
    return _made(
        magic, heading.format, heading.number, heading.time, heading.version, seal.fingerprint,
        heading.more,
    )  # fmt: skip


def _made(
    magic: bytes, form: int, number: int, time: float, version: str, key: str | None,
    more: dict[str, Any],
) -> Heading:  # fmt: skip
    facts = {"version": version, "number": number, "time": time, "key": key, "more": more}
    text = json.dumps(facts).encode()
    raw = _FIXED.pack(magic, form, len(text)) + text
    raw += _checksum(raw)
    return Heading(raw, form, number, time, version, key, more)


def read_heading(
    path: Path, data: bytes, magic: bytes, newest: int, number: int, *, oldest: int = 1
) -> Heading:
    """Read the heading of a file from its first bytes, or all of them.

    Raises
    ------
    DamagedError
        If there is no heading, or one with another number.
    CheckpointError
        If the format is newer than ``newest``, or older than ``oldest``.
    """
    if len(data) < _FIXED.size or not data.startswith(magic):
        raise DamagedError(path, "it doesn't begin with the heading of such a file")
    _, form, n_bytes = _FIXED.unpack_from(data)
    end = _FIXED.size + n_bytes
    raw = data[: end + _SUM_BYTES]
    if n_bytes > MOST_BYTES or raw[end:] != _checksum(raw[:end]):
        raise DamagedError(path, "the checksum of its heading doesn't match")
    try:
        facts = json.loads(raw[_FIXED.size : end])
        version = str(facts["version"])
        if form > newest:
            raise CheckpointError(
                f"{path}: has format {form}, of Shoal {version}; this is Shoal {__version__}, "
                f"which knows formats up to {newest}. Use that version or a newer one."
            )
        if form < oldest:
            raise CheckpointError(
                f"{path}: has format {form}, of Shoal {version}; this is Shoal {__version__}, "
                f"which can resume from format {oldest} or later. Drain the job with the version "
                "that wrote it, or start again with another folder and another output: "
                "docs/checkpoints.md says from where."
            )
        if not 0 <= facts["time"] <= _LATEST:
            raise ValueError("no time")
        key = None if facts["key"] is None else str(facts["key"])
        heading = Heading(
            raw, form, int(facts["number"]), float(facts["time"]), version, key, dict(facts["more"])
        )
    except (ValueError, TypeError, KeyError, RecursionError):
        raise DamagedError(path, "its heading can't be read") from None
    if heading.number != number:
        raise DamagedError(path, f"it was written under the number {heading.number}")
    return heading


def check_seal(path: Path, heading: Heading, seal: Seal | None) -> None:
    """Raise if a file isn't sealed with the given seal.

    A file without a seal is refused, too, if a seal is given: anybody may have made it.
    """
    given = None if seal is None else seal.fingerprint
    if heading.key == given:
        return
    if heading.key is None:
        raise CheckpointError(
            f"{path}: isn't sealed, but the job has a seal, so anybody may have made it. "
            "Drain with the former job, or start again with another folder: docs/checkpoints.md "
            "says from where."
        )
    if given is None:
        raise CheckpointError(
            f"{path}: is sealed with key {heading.key}, and no key was given. Name it: "
            "seal = 'env:NAME' or 'file:PATH' in [run] checkpoint of the job, or --seal."
        )
    raise CheckpointError(
        f"{path}: is sealed with another key: {heading.key}; got key {given}. Give the key that it "
        "was sealed with. If shoal checkpoint rekey has changed the key of other files of the job, "
        "call it again with the same keys and all folders of the job. If the key is lost, start "
        "again with another folder: docs/checkpoints.md says from where."
    )


def _checksum(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=_SUM_BYTES).digest()
