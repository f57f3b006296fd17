"""Rotating pseudonyms of subjects: keyed hashes under a key that lives for one period.

A key is random. It is derived from a secret of the operating system, never from the seed of a job,
and dropped when its period ends: after that nobody, not even the operator, can link the pseudonyms
of a subject in two periods. A recoverable run keeps the key in its checkpoints and the secret in
its journal; both are dropped with the last checkpoint that needs them.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.arrow.columns import dictionary_indices
from shoal.engine.kernels.arrays import Any1, Floats, Ints
from shoal.errors import ParameterError

__all__ = ["COLUMN", "Pseudonym", "Pseudonyms"]

#: The name of the published column.
COLUMN = "pseudonym"
DIGEST, KEY = 16, 32
#: The largest number of a period, whatever the clock says.
FARTHEST = 2.0**61


@dataclass(frozen=True, slots=True)
class Pseudonym:
    """Publish subjects under pseudonyms that change after some time.

    ``rotate`` is in seconds where the window is, else in rows.

    >>> Pseudonym(rotate=3600)
    Pseudonym(rotate=3600)
    """

    rotate: float

    def __post_init__(self) -> None:
        good = isinstance(self.rotate, int | float) and not isinstance(self.rotate, bool)
        if not good or not math.isfinite(self.rotate) or self.rotate <= 0:
            raise ParameterError(
                "Pseudonym.rotate", "must be a number above 0", got=repr(self.rotate)
            )


class Pseudonyms:
    """Make pseudonyms, period after period.

    Parameters
    ----------
    rotate
        The length of a period, by the clock that is passed to `give`.

    >>> pseudonyms = Pseudonyms(rotate=60)
    >>> names, clock = pa.array(["ada", "bob", "ada"]), np.array([0.0, 1.0, 70.0])
    >>> first, _, third = pseudonyms.give(names, clock, bytes(32)).to_pylist()
    >>> len(first), first == third  # another minute, another pseudonym
    (32, False)
    """

    def __init__(self, rotate: float) -> None:
        self._rotate = rotate
        self._period = -(2**62)
        self._key = np.zeros(KEY, np.uint8)

    def __repr__(self) -> str:
        return f"Pseudonyms(rotate={self._rotate:g})"

    def begins(self, clock: Floats) -> bool:
        """Whether a new period begins within these times, which don't decrease."""
        return bool(len(clock)) and int(self._periods(clock)[-1]) != self._period

    def give(self, names: Any, clock: Floats, secret: bytes) -> Any:
        """Return the pseudonyms of names at times that don't decrease.

        ``secret`` is the material for the keys of periods that begin here.
        """
        periods = self._periods(clock)
        cuts = np.flatnonzero(np.diff(periods)) + 1
        parts = []
        for begin, end in itertools.pairwise([0, *cuts.tolist(), len(periods)]):
            # A batch in which all rows are bad is empty.
            if begin < end:
                self._enter(int(periods[begin]), secret)
            parts.append(self._hashed(names.slice(begin, end - begin)))
        return pa.chunked_array(parts, pa.string()).combine_chunks()

    def _periods(self, clock: Floats) -> Ints:
        """Return the number of each time's period, clipped to what can be counted."""
        return np.clip(clock // self._rotate, -FARTHEST, FARTHEST).astype(np.int64)

    def _enter(self, period: int, secret: bytes) -> None:
        if period == self._period:
            return
        if not secret:
            # Under a key that anybody can derive, pseudonyms would name their subjects.
            raise ValueError("a period of pseudonyms begins without a secret")
        name = period.to_bytes(8, "big", signed=True)
        fresh = hashlib.blake2b(name, digest_size=KEY, key=secret, person=b"shoal-pseudonym")
        # In place, so that the key of the last period is gone.
        self._key[:] = np.frombuffer(fresh.digest(), np.uint8)
        self._period = period

    def _hashed(self, names: Any) -> Any:
        if pa.types.is_dictionary(names.type):
            # A slice has the whole dictionary of its batch, but only its own names are hashed.
            names = names.dictionary_decode()
        names = names.dictionary_encode()
        key = self._key.tobytes()
        texts = [
            hashlib.blake2b(_bytes_of(name), digest_size=DIGEST, key=key).hexdigest()
            for name in names.dictionary.to_pylist()
        ]
        return pa.array(texts, pa.string()).take(pa.array(dictionary_indices(names)))

    def snapshot(self) -> dict[str, Any1]:
        """Return the period and its key."""
        return {"period": np.array([self._period]), "key": self._key.copy()}

    def restore(self, arrays: Mapping[str, Any1]) -> None:
        """Restore the period of a snapshot."""
        self._period = int(arrays["period"][0])
        self._key = arrays["key"].copy()


def _bytes_of(name: str | bytes | None) -> bytes:
    return name if isinstance(name, bytes) else (name or "").encode()
