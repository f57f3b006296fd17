"""What the tests of journal and checkpoints share: seals, small states, failing disks, kills."""

from __future__ import annotations

import json
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from shoal.io.base import Span
from shoal.run.state.folder import CHECKPOINT, SEGMENT, path_of
from shoal.run.state.journal import AnyEntry, Entry, Flush, Journal, Read, Tick, read_journal
from shoal.run.state.seal import Seal
from shoal.run.state.store import Checkpoint, Store

SEAL = Seal(bytes(range(32)))
SEALS = pytest.mark.parametrize("seal", [None, SEAL], ids=["plain", "sealed"])
JOB = {"schema": "aa11", "policy": "bb22"}
ENTRIES: list[Entry] = [
    Read((Span("a.csv", 0, 512), Span("b.csv", 7, 2**62)), 1.5, 2.25),
    Tick(3.5, 3.25),
    Read((), -0.0, float("-inf")),
    Tick(float("inf"), 1e-300),
    Flush(5.0),
]
BATCH = pa.record_batch(
    {
        "\0row": pa.array([1, 2, None], pa.int64()),
        "ward": pa.array(["canary", None, "canary"]).dictionary_encode(),
    }
)


def small(number: int = 0) -> Checkpoint:
    arrays = {"lo": np.array([1.5, np.nan]), "rng": np.arange(2, dtype=np.uint32)}
    return Checkpoint(number, {"seq": number}, arrays, {"held": BATCH})


def new_store(folder: Path, seal: Seal | None = None, job: dict[str, str] = JOB) -> Store:
    return Store(folder, job=job, seal=seal, clock=lambda: 86_400.0)


def path(folder: Path, number: int) -> Path:
    return path_of(folder, CHECKPOINT, number)


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def same(one: Checkpoint, other: Checkpoint) -> None:
    """Assert that two are the same to the last bit."""
    assert one.number == other.number
    assert json.dumps(one.facts) == json.dumps(other.facts)
    assert list(one.arrays) == list(other.arrays)
    for name, array in one.arrays.items():
        again = other.arrays[name]
        assert (again.dtype, again.shape) == (array.dtype, array.shape)
        assert again.tobytes() == array.tobytes()
        assert again.flags.writeable
    assert list(one.batches) == list(other.batches)
    for name, batch in one.batches.items():
        assert other.batches[name].equals(batch, check_metadata=True)
        assert other.batches[name].schema.equals(batch.schema, check_metadata=True)


def segment_path(folder: Path, number: int) -> Path:
    return path_of(folder, SEGMENT, number)


def write(folder: Path, *segments: list[Entry], seal: Seal | None = None, first: int = 0) -> None:
    """Write segments, each entry in a record of its own."""
    journal = Journal(folder, first, seal)
    for i, segment in enumerate(segments):
        if i:
            journal.roll(first + i)
        for entry in segment:
            journal.sync(journal.append(entry))
    journal.close()


def read(folder: Path, seal: Seal | None = None, first: int = 0) -> list[AnyEntry]:
    return list(read_journal(folder, first, seal))


@contextmanager
def no_file_longer_than(n_bytes: int) -> Iterator[None]:
    """Let the operating system refuse to write more: as a full disk, the last write falls short."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


class KilledError(BaseException):
    """Stands for the end of the process."""


@contextmanager
def killed_after(n_steps: int, calls: list[tuple[Any, str]]) -> Iterator[None]:
    """Allow some of these calls, and end the process at the next one."""
    left = n_steps

    def counted(call: Any) -> Any:
        def step(*arguments: Any, **options: Any) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                raise KilledError
            return call(*arguments, **options)

        return step

    with pytest.MonkeyPatch.context() as patch:
        for home, name in calls:
            patch.setattr(home, name, counted(getattr(home, name)))
        yield
