"""Encrypt and authenticate state files, so that only holders of the key read or change them."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import re
from pathlib import Path

from shoal.errors import CheckpointError, JobError, Problem, install_hint
from shoal.io.streams import os_reason

__all__ = ["Seal"]

KEY_BYTES = 32
#: Each message has a key of its own, derived with this much randomness, beside GCM's nonce of 12
#: bytes. So one seal serves any number of messages, where GCM alone ends at 2^32.
SALT_BYTES, NONCE_BYTES, TAG_BYTES = 16, 12, 16
#: The most bytes of a key file that are read; no key is longer.
_FILE_BYTES = 4096
_MAKE = "To make a key for a new folder: openssl rand -hex 32"


class Seal:
    """AES-256-GCM under one key: encrypts data and detects any change of it.

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
    shoal.errors.CheckpointError: the seal is broken: the data was changed or moved, ...
    """

    #: The bytes that sealing adds.
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
                    install_hint("seal"),
                )
            ) from None
        if len(key) != KEY_BYTES:
            raise ValueError(f"a key has {KEY_BYTES} bytes")
        self._cipher, self._invalid = AESGCM, InvalidTag
        self._key = key
        #: A short name of the key that reveals nothing else about it.
        self.fingerprint = self._derive(b"fingerprint").hex()[:16]

    @classmethod
    def from_spec(cls, spec: str) -> Seal:
        """Read the key from where a job says it is: ``env:NAME`` or ``file:PATH``.

        A key is written as 64 hexadecimal digits, or as base64.

        Raises
        ------
        JobError
            If the place is neither, or the package for seals is missing.
        CheckpointError
            If there is no key.
        """
        kind, _, place = spec.partition(":")
        if kind not in ("env", "file") or not place:
            # The value isn't shown: it may be the key itself.
            raise JobError(
                Problem(
                    "run.checkpoint.seal",
                    "must say where the key is: 'env:NAME' or 'file:PATH'",
                    None,
                    "The key itself must not be in a job",
                )
            )
        if kind == "env":
            name = f"environment variable {place}"
            text = os.environ.get(place)
            if text is None:
                raise CheckpointError(f"{name}: must hold the key of the seal; isn't set. {_MAKE}")
        else:
            name, text = place, _text_of(Path(place))
        return cls(_key_of(text.strip(), name))

    def __repr__(self) -> str:
        return f"Seal({self.fingerprint})"

    def close(self, data: bytes, context: bytes) -> bytes:
        """Seal bytes. The context isn't in the result, but must be the same to open it."""
        salt, nonce = os.urandom(SALT_BYTES), os.urandom(NONCE_BYTES)
        closed: bytes = self._cipher(self._derive(b"message", salt)).encrypt(nonce, data, context)
        return salt + nonce + closed

    def open(self, data: bytes, context: bytes) -> bytes:
        """Return the data that was sealed.

        Raises
        ------
        CheckpointError
            If it was sealed with another key or context, or was changed.
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
                "the seal is broken: the data was changed or moved, or sealed with another key"
            ) from None
        return opened

    def _derive(self, purpose: bytes, salt: bytes = b"") -> bytes:
        """Derive a key for one purpose: the expand step of HKDF, one HMAC for 32 bytes."""
        return hmac.digest(self._key, b"shoal " + purpose + b"\0" + salt + b"\x01", hashlib.sha256)


def _text_of(path: Path) -> str:
    try:
        with path.open("rb") as file:
            # Bytes that aren't text can't be a key; the next step refuses them.
            return file.read(_FILE_BYTES).decode("ascii", "replace")
    except OSError as error:
        raise CheckpointError(
            f"{path}: must hold the key of the seal; can't be read: {os_reason(error)}. {_MAKE}"
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
