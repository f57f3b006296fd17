"""How the files of a state folder begin: what wrote them, when, and whether they are sealed.

A heading is laid out alike in all formats, also those to come, so that a file of a later version
can say so: eight bytes that name the kind, the format and the length as 32-bit numbers, a JSON
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

__all__ = ["DamagedError", "Heading", "check_seal", "make_heading", "read_heading"]

_FIXED = struct.Struct(">8sII")
_SUM_BYTES = 16
#: No heading is longer; more isn't believed.
_MOST_BYTES = 1 << 20
#: The end of the year 9999, in seconds since 1970: what calendars can tell.
_LATEST = 253_402_300_799


class DamagedError(CheckpointError):
    """A file that isn't what was written: cut off, changed, or swapped for another."""

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(f"{path}: is damaged: {what}.")


@dataclass(frozen=True)
class Heading:
    """The beginning of a file.

    Parameters
    ----------
    raw
        As it is in the file.
    format
        The number of the format.
    number
        That of the checkpoint or segment.
    time
        When the file was begun, in seconds since 1970.
    version
        The version of Shoal that wrote it.
    key
        The fingerprint of the key it is sealed with; None if it isn't sealed.
    more
        What else the kind of file has there.
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
    """The heading of a new file."""
    key = None if seal is None else seal.fingerprint
    facts = {"version": __version__, "number": number, "time": time, "key": key, "more": more}
    text = json.dumps(facts).encode()
    raw = _FIXED.pack(magic, form, len(text)) + text
    raw += _checksum(raw)
    return Heading(raw, form, number, time, __version__, key, more)


def read_heading(
    path: Path, data: bytes, magic: bytes, newest: int, number: int, *, oldest: int = 1
) -> Heading:
    """Read the heading of a file, of which the first or all bytes are given.

    Raises
    ------
    DamagedError
        If there is no heading, or that of another number.
    CheckpointError
        If the format is newer than the newest that is known, or older than the oldest that can be
        gone on with.
    """
    if len(data) < _FIXED.size or not data.startswith(magic):
        raise DamagedError(path, "it doesn't begin as such a file does")
    _, form, n_bytes = _FIXED.unpack_from(data)
    end = _FIXED.size + n_bytes
    raw = data[: end + _SUM_BYTES]
    if n_bytes > _MOST_BYTES or raw[end:] != _checksum(raw[:end]):
        raise DamagedError(path, "the checksum of its heading doesn't fit")
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
                f"which goes on from format {oldest} at the least. Let the version that wrote it "
                "drain the job, or start anew with another folder and another output."
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
    """Refuse a file that isn't sealed as it should be.

    One that isn't sealed at all is refused too where a seal is asked for: anybody may have made it.
    """
    given = None if seal is None else seal.fingerprint
    if heading.key == given:
        return
    if heading.key is None:
        raise CheckpointError(
            f"{path}: isn't sealed, though a seal is asked for, so anybody may have made it. "
            "Drain with the job as it was before, or start anew with another folder."
        )
    if given is None:
        raise CheckpointError(
            f"{path}: is sealed with key {heading.key}, and no key was given. Say where it is: "
            "seal = 'env:NAME' or 'file:PATH' in [run] checkpoint of the job, or --seal."
        )
    raise CheckpointError(
        f"{path}: is sealed with another key: {heading.key}; got key {given}. Give the key that it "
        "was sealed with. Without it nobody can read it: then start anew with another folder."
    )


def _checksum(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=_SUM_BYTES).digest()
