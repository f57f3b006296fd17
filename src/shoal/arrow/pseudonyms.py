"""Names that stand for subjects for a while: a keyed hash under a key that lives one period.

A key is random. It is drawn from a secret that comes from the operating system, never from the seed
of a job, and is forgotten when its period ends: then nobody, the operator included, can tell which
pseudonyms of two periods stand for one subject. A run that can be recovered keeps the key in its
checkpoints and the secret in its journal, which are dropped with the last checkpoint that needs
them.
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

#: The name of the column.
COLUMN = "pseudonym"
DIGEST, KEY = 16, 32
#: No period has a number beyond this one, whatever a clock says.
FARTHEST = 2.0**61


@dataclass(frozen=True, slots=True)
class Pseudonym:
    """That subjects are published under pseudonyms, and after how long each gets another.

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
    """Give pseudonyms, period after period.

    Parameters
    ----------
    rotate
        How long a period is, by the clock that `give` is told.

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
        """Whether a period begins with one of these times, which don't decrease."""
        return bool(len(clock)) and int(self._periods(clock)[-1]) > self._period

    def give(self, names: Any, clock: Floats, secret: bytes) -> Any:
        """Pseudonyms of so many names at times that don't decrease.

        ``secret`` is what the keys of periods that begin here are made of.
        """
        periods = self._periods(clock)
        cuts = np.flatnonzero(np.diff(periods)) + 1
        parts = []
        for begin, end in itertools.pairwise([0, *cuts.tolist(), len(periods)]):
            # Of a batch in which all rows are bad nothing is left.
            if begin < end:
                self._go_to(int(periods[begin]), secret)
            parts.append(self._hashed(names.slice(begin, end - begin)))
        return pa.chunked_array(parts, pa.string()).combine_chunks()

    def _periods(self, clock: Floats) -> Ints:
        """The number of the period of each time; those beyond all counting are one."""
        return np.clip(clock // self._rotate, -FARTHEST, FARTHEST).astype(np.int64)

    def _go_to(self, period: int, secret: bytes) -> None:
        if period == self._period:
            return
        name = period.to_bytes(8, "big", signed=True)
        fresh = hashlib.blake2b(name, digest_size=KEY, key=secret, person=b"shoal-pseudonym")
        # In place: the key of the period before is nowhere any more.
        self._key[:] = np.frombuffer(fresh.digest(), np.uint8)
        self._period = period

    def _hashed(self, names: Any) -> Any:
        if pa.types.is_dictionary(names.type):
            # A slice has the whole dictionary of its batch: only names of the period are hashed.
            names = names.dictionary_decode()
        names = names.dictionary_encode()
        key = self._key.tobytes()
        texts = [
            hashlib.blake2b(_bytes_of(name), digest_size=DIGEST, key=key).hexdigest()
            for name in names.dictionary.to_pylist()
        ]
        return pa.array(texts, pa.string()).take(pa.array(dictionary_indices(names)))

    def snapshot(self) -> dict[str, Any1]:
        """The period and its key."""
        return {"period": np.array([self._period]), "key": self._key.copy()}

    def restore(self, arrays: Mapping[str, Any1]) -> None:
        """Go on in the period of a snapshot."""
        self._period = int(arrays["period"][0])
        self._key = arrays["key"].copy()


def _bytes_of(name: str | bytes | None) -> bytes:
    return name if isinstance(name, bytes) else (name or "").encode()
