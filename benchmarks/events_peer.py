"""The kernels of z-anonymity alone: against the loop of the authors' package, and with ladders."""

from __future__ import annotations

import contextlib
import math
import tempfile
from collections.abc import Callable, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.events_data import LEVELS, Stream, as_codes, as_tuples
from benchmarks.measure import Sample, interleaved
from shoal.algorithms.z_anonymity import ZAnonymizer
from shoal.engine.base import Engine
from shoal.engine.kernels.arrays import Ints
from shoal.engine.space import Codes
from shoal.spec.ladder import Open
from shoal.spec.ladder import Path as PathOf
from shoal.spec.policy import Policy, Window, ZAnonymity
from shoal.spec.schema import Quasi, Schema

__all__ = ["LEAST_TIMES", "has_peer", "of_ladders", "of_peer"]

#: At least this many times as fast as the authors' package.
LEAST_TIMES = 100.0
SEED = b"benchmark"


def has_peer() -> bool:
    """Whether the package ``zanon`` is installed."""
    return find_spec("zanonymity") is not None


def of_peer(
    stream: Stream, *, z: int, window: float, batch_rows: int, repeats: int, peer_repeats: int
) -> dict[str, Any]:
    """Both on the same events, in turn: ours ``repeats`` times before the peer, and as often after.

    A ratio is that of the peer to one of ours in the same round.
    """
    ours = _Ours(stream, z, window, batch_rows, ladders=False)
    with tempfile.TemporaryDirectory() as folder:
        theirs = _Theirs(as_tuples(stream), z, window, Path(folder))
        ours()
        around: Sequence[Callable[[], None]] = [ours] * repeats
        samples = interleaved(peer_repeats, *around, theirs, *around, warm=True)
        theirs_published = theirs.published()
    peer = samples.pop(repeats)
    kernel = Sample(tuple(value for sample in samples for value in sample.values))
    gain = Sample(tuple(value for s in samples for value in peer.per(s).values))
    return {
        "n_rows": stream.n_rows,
        "n_subjects": stream.n_subjects,
        "n_values": stream.n_values,
        "window": window,
        "version": version("zanon"),
        "seconds": {"zanon": peer.as_dict(), "z-anonymity": kernel.as_dict()},
        "rows_per_second": {
            "zanon": peer.rate(stream.n_rows).as_dict(),
            "z-anonymity": kernel.rate(stream.n_rows).as_dict(),
        },
        "gain": gain.as_dict(),
        "target": LEAST_TIMES,
        "met": gain.median >= LEAST_TIMES,
        "published": len(theirs_published) / stream.n_rows,
        "alike": bool(np.array_equal(theirs_published, ours.published())),
    }


def of_ladders(
    stream: Stream, *, z: int, window: float, batch_rows: int, repeats: int
) -> dict[str, Any]:
    """Values with and without a ladder, in turn."""
    flat, ladders = (_Ours(stream, z, window, batch_rows, ladders=with_) for with_ in (False, True))
    of_flat, of_ladder = interleaved(repeats, flat, ladders)
    return {
        "n_rows": stream.n_rows,
        "levels": LEVELS,
        "seconds": {"flat": of_flat.as_dict(), "ladders": of_ladder.as_dict()},
        "rows_per_second": {
            "flat": of_flat.rate(stream.n_rows).as_dict(),
            "ladders": of_ladder.rate(stream.n_rows).as_dict(),
        },
        "ratio": of_ladder.per(of_flat).as_dict(),
        "published": {"flat": flat.shares(), "ladders": ladders.shares()},
    }


class _Ours:
    """A run of the engine alone, from codes to decisions; it can be called again and again."""

    def __init__(
        self, stream: Stream, z: int, window: float, batch_rows: int, *, ladders: bool
    ) -> None:
        self._batches: list[Codes] = as_codes(stream, batch_rows, ladders=ladders)
        domain = PathOf("/", levels=LEVELS) if ladders else Open()
        self._n_levels = LEVELS if ladders else 1
        self._schema = Schema("user", [Quasi("value", domain)], time="at")
        self._policy = Policy(ZAnonymity(z), window=Window(seconds=window))
        self._levels: list[Ints] = []

    def __call__(self) -> None:
        engine: Engine = ZAnonymizer(estimates=0).start(self._schema, self._policy, seed=SEED)
        self._levels = [engine.push(codes).levels[:, 0] for codes in self._batches]

    def published(self) -> Ints:
        """The positions of the events that were published."""
        return np.flatnonzero(np.concatenate(self._levels) >= 0)

    def shares(self) -> list[float]:
        """The share of events that was published at each level."""
        levels = np.concatenate(self._levels)
        counts = np.bincount(levels[levels >= 0], minlength=self._n_levels)
        return [int(n) / len(levels) for n in counts]


class _Theirs:
    """A run of the authors' package, whose z is fixed and whose files are in a folder."""

    def __init__(
        self, events: list[tuple[float, str, str]], z: int, window: float, folder: Path
    ) -> None:
        # Only where it is installed; and it takes a while, which isn't to be measured.
        from zanonymity.zanon import zanon

        self._start: Callable[[float, float, int], Any] = zanon
        self._events, self._z, self._window, self._folder = events, z, window, folder

    def __call__(self) -> None:
        # It opens files of fixed names in the current folder.
        with contextlib.chdir(self._folder):
            peer = self._start(self._window, 0.8, 2)
            peer.z = self._z
            # So that it never looks for another z.
            peer.rate = math.inf
            for event in self._events:
                peer.anonymize(event)
            peer.endFiles()

    def published(self) -> Ints:
        """The positions of the events that were published: an event a second, from 1 on."""
        with (self._folder / "output.txt").open(encoding="utf-8") as lines:
            return np.array([int(float(line.partition("\t")[0])) - 1 for line in lines], np.int64)
