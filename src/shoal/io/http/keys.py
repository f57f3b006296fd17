"""The keys of the latest requests, by which one that is sent again is recognized."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from typing import NamedTuple

__all__ = ["MOST_KEYS", "KeyMemory", "Known", "digest_of"]

#: The number of keys that are remembered: those of the latest requests that had one.
MOST_KEYS = 10_000


class Known(NamedTuple):
    """What is remembered of a request: a digest of its body, and the number of its rows."""

    body: str
    n_rows: int


class KeyMemory:
    """The latest keys, as digests.

    >>> memory = KeyMemory()
    >>> memory.add("a1", Known("b2", 3))
    >>> memory.find("a1"), memory.find("c3")
    (Known(body='b2', n_rows=3), None)
    >>> KeyMemory.of(memory.plain()).find("a1")
    Known(body='b2', n_rows=3)
    """

    def __init__(self) -> None:
        # As they are written: the text of all of them is asked for with each chunk.
        self._keys: OrderedDict[str, str] = OrderedDict()

    def find(self, key: str) -> Known | None:
        """Return what is remembered under the digest of a key."""
        found = self._keys.get(key)
        if found is None:
            return None
        _, body, n_rows = found.split(":")
        return Known(body, int(n_rows))

    def add(self, key: str, known: Known) -> None:
        """Remember a request; the oldest one beyond `MOST_KEYS` is forgotten."""
        self._keys.pop(key, None)
        self._keys[key] = f"{key}:{known.body}:{known.n_rows}"
        if len(self._keys) > MOST_KEYS:
            self._keys.popitem(last=False)

    def plain(self) -> str:
        """Return them as a text, the oldest first."""
        return " ".join(self._keys.values())

    @classmethod
    def of(cls, plain: str) -> KeyMemory:
        """Return what `plain` returned."""
        memory = cls()
        for each in plain.split():
            key, body, n_rows = each.split(":")
            memory.add(key, Known(body, int(n_rows)))
        return memory


def digest_of(salt: str, data: bytes) -> str:
    """Return a digest; without the salt nobody can try out values."""
    return hashlib.blake2b(data, key=bytes.fromhex(salt), digest_size=12).hexdigest()
