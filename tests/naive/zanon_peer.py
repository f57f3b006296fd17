"""A thin driver of the authors' own package, ``zanon``, that works around its quirks.

It writes to files of fixed names in the current folder, so it runs in a temporary one; it takes a
first time of 0 for none; and it adapts z every half hour unless that is switched off.
"""

from __future__ import annotations

import contextlib
import json
import math
import tempfile
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from zanonymity.zanon import zanon

__all__ = ["Peer", "path_levels", "peer"]


class Peer:
    """One run of the peer in a folder.

    ``z`` stays as it is unless the run is ``adaptive``; then it moves once a window has passed,
    half an hour after the last time at the earliest, towards ``probability`` with ``k``.
    """

    def __init__(
        self,
        folder: Path,
        seconds: float,
        *,
        z: int = 10,
        adaptive: bool = False,
        probability: float = 0.8,
        k: int = 2,
    ) -> None:
        self.folder = folder
        with contextlib.chdir(folder):
            self.inner: Any = zanon(seconds, probability, k)
        self.inner.z = z
        if not adaptive:
            self.inner.rate = math.inf
        self.n_read = 0

    def push(self, time: float, subject: str, value: str) -> str | None:
        """What the peer publishes of one event: the value or what is above it, or None."""
        if time <= 0:
            raise ValueError("the peer takes a time of 0 for none")
        with contextlib.chdir(self.folder), warnings.catch_warnings():
            # It tells the time of an estimate in a way that newer Pythons warn about.
            warnings.simplefilter("ignore", DeprecationWarning)
            self.inner.anonymize((time, subject, value))
        lines = self.published
        new, self.n_read = lines[self.n_read :], len(lines)
        return new[0].split("\t")[2] if new else None

    def push_all(self, events: Iterable[tuple[float, str, str]]) -> list[str | None]:
        """The same for several events."""
        return [self.push(*event) for event in events]

    @property
    def published(self) -> list[str]:
        """The lines of its output."""
        self.inner.f_out.flush()
        return (self.folder / "output.txt").read_text(encoding="utf-8").splitlines()

    @property
    def counters(self) -> list[str]:
        """The lines of the file beside its output."""
        self.inner.f_count.flush()
        return (self.folder / "counters.txt").read_text(encoding="utf-8").splitlines()

    @property
    def shares(self) -> list[float]:
        """The shares of subjects with k alike that it has reported."""
        output = json.loads((self.folder / "output.json").read_text(encoding="utf-8"))
        return [float(share) for share in output["kanon"]]


@contextlib.contextmanager
def peer(seconds: float, **options: Any) -> Iterator[Peer]:
    """Run the peer in a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        run = Peer(Path(folder), seconds, **options)
        try:
            yield run
        finally:
            run.inner.endFiles()


def path_levels(value: str, levels: int) -> tuple[str, ...]:
    """The levels of a path such as ``italy*turin``, fine to coarse; a short one repeats itself."""
    parts = value.split("*")
    return value, *("*".join(parts[: levels - level]) for level in range(1, levels))
