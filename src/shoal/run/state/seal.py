"""Seals: what is written to disk can be read, and changed unnoticed, by holders of the key only."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import re
from pathlib import Path

from shoal.errors import CheckpointError, JobError, Problem
from shoal.io.streams import os_reason

__all__ = ["Seal"]

KEY_BYTES = 32
#: A key for each message is derived with this much fresh randomness, beside GCM's own nonce of 12
#: bytes. So one key is good for any number of messages, where GCM alone ends at 2^32.
SALT_BYTES, NONCE_BYTES, TAG_BYTES = 16, 12, 16
#: Longer than any key; more of a file isn't read.
_FILE_BYTES = 4096
_MAKE = "For a new folder one is made by: openssl rand -hex 32"


class Seal:
    """AES-256-GCM under one key: hides what it closes, and notices any change of it.

    Parameters
    ----------
    key
        32 random bytes.

    >>> seal = Seal(bytes(range(32)))
    >>> closed = seal.close(b"held rows", b"checkpoint 7")
    >>> seal.open(closed, b"checkpoint 7")
    b'held rows'
    >>> seal.open(closed, b"checkpoint 8")
    Traceback (most recent call last):
    ...
    shoal.errors.CheckpointError: the seal is broken: what it closes was changed or moved ...
    """

    #: How much longer bytes become by sealing.
    n_extra = SALT_BYTES + NONCE_BYTES + TAG_BYTES

    def __init__(self, key: bytes) -> None:
        try:
            from cryptography.exceptions import InvalidTag
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        except ImportError:
            raise JobError(
                Problem(
                    "run.checkpoint.seal",
                    "needs the package cryptography, which isn't installed",
                    None,
                    "Install it: pip install 'shoal[seal]'",
                )
            ) from None
        if len(key) != KEY_BYTES:
            raise ValueError(f"a key has {KEY_BYTES} bytes")
        self._cipher, self._invalid = AESGCM, InvalidTag
        self._key = key
        #: A short name of the key that tells nothing else about it.
        self.fingerprint = self._derive(b"fingerprint").hex()[:16]

    @classmethod
    def from_spec(cls, spec: str) -> Seal:
        """Take the key from where a job says it is: ``env:NAME`` or ``file:PATH``.

        A key is written as 64 hexadecimal digits, or as base64.

        Raises
        ------
        JobError
            If the place is none of these, or the package for it is missing.
        CheckpointError
            If no key is there.
        """
        kind, _, place = spec.partition(":")
        if kind not in ("env", "file") or not place:
            # What was got isn't shown: somebody may have put the key itself there.
            raise JobError(
                Problem(
                    "run.checkpoint.seal",
                    "must say where the key is: 'env:NAME' or 'file:PATH'",
                    None,
                    "The key itself doesn't belong into a job",
                )
            )
        if kind == "env":
            name = f"environment variable {place}"
            text = os.environ.get(place)
            if text is None:
                raise CheckpointError(
                    f"{name}: should hold the key of the seal; isn't set. {_MAKE}"
                )
        else:
            name, text = place, _text_of(Path(place))
        return cls(_key_of(text.strip(), name))

    def __repr__(self) -> str:
        return f"Seal({self.fingerprint})"

    def close(self, data: bytes, context: bytes) -> bytes:
        """Seal some bytes. The context isn't in the result, but must be the same to open it."""
        salt, nonce = os.urandom(SALT_BYTES), os.urandom(NONCE_BYTES)
        closed: bytes = self._cipher(self._derive(b"message", salt)).encrypt(nonce, data, context)
        return salt + nonce + closed

    def open(self, data: bytes, context: bytes) -> bytes:
        """Give what was sealed.

        Raises
        ------
        CheckpointError
            If it was sealed with another key or for another context, or was changed since.
        """
        salt, rest = data[:SALT_BYTES], data[SALT_BYTES:]
        nonce, closed = rest[:NONCE_BYTES], rest[NONCE_BYTES:]
        try:
            if len(nonce) < NONCE_BYTES:
                raise self._invalid
            opened: bytes = self._cipher(self._derive(b"message", salt)).decrypt(
                nonce, closed, context
            )
        except self._invalid:
            raise CheckpointError(
                "the seal is broken: what it closes was changed or moved since, or sealed with "
                "another key"
            ) from None
        return opened

    def _derive(self, purpose: bytes, salt: bytes = b"") -> bytes:
        """A key for one purpose: the expansion step of HKDF, which for 32 bytes is one HMAC."""
        return hmac.digest(self._key, b"shoal " + purpose + b"\0" + salt + b"\x01", hashlib.sha256)


def _text_of(path: Path) -> str:
    try:
        with path.open("rb") as file:
            # Bytes that aren't text can't be a key, and the next step says so.
            return file.read(_FILE_BYTES).decode("ascii", "replace")
    except OSError as error:
        raise CheckpointError(
            f"{path}: should hold the key of the seal; can't be read: {os_reason(error)}. {_MAKE}"
        ) from None


def _key_of(text: str, name: str) -> bytes:
    key = b""
    if re.fullmatch(r"[0-9a-fA-F]{64}", text):
        key = bytes.fromhex(text)
    else:
        plain = text.rstrip("=").replace("-", "+").replace("_", "/")
        try:
            key = base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
        except (binascii.Error, ValueError):
            key = b""
    if len(key) != KEY_BYTES:
        raise CheckpointError(
            f"{name}: must hold a key of {KEY_BYTES} bytes, as 64 hexadecimal digits or as base64; "
            f"got {len(text)} characters that aren't one. {_MAKE}"
        )
    return key
