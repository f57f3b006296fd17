"""Write the state of a `Stream` as bytes, and read it into a stream of the same kind."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from shoal.engine.base import Anonymizer
from shoal.errors import CheckpointError, ParameterError
from shoal.run.core import CoreState
from shoal.run.pipeline import Pipeline
from shoal.run.state.checkpoint import (
    Checkpoint,
    checkpoint_bytes,
    job_of,
    read_body,
    read_checkpoint_heading,
)
from shoal.run.state.seal import Seal

__all__ = ["read_snapshot", "section_digests", "snapshot_bytes"]

#: The name of a snapshot in messages, where a checkpoint has its path.
NAME = Path("snapshot")
#: The number of a snapshot, of which there is only one at a time.
NUMBER = 0


def snapshot_bytes(pipeline: Pipeline, code: str, state: CoreState, seal: str | None) -> bytes:
    """Return a state as bytes, in the format of checkpoints."""
    checkpoint = Checkpoint(NUMBER, state.facts, state.arrays, state.batches)
    digests = section_digests(pipeline) | {"code": code}
    return b"".join(checkpoint_bytes(checkpoint, digests, time.time(), _seal(seal)))


def read_snapshot(pipeline: Pipeline, code: str, data: object, seal: str | None) -> CoreState:
    """Return a state from bytes.

    Raises
    ------
    CheckpointError
        If it was taken under another schema, policy, algorithm, form or version of the code, isn't
        sealed as it should be, or is damaged.
    """
    if not isinstance(data, bytes | bytearray | memoryview):
        raise ParameterError(
            "snapshot",
            "must be the bytes that Stream.snapshot returned",
            got=type(data).__name__,
            fix="Read the file in binary mode" if isinstance(data, str | Path) else None,
        )
    data = bytes(data)
    heading = read_checkpoint_heading(NAME, data, NUMBER)
    then, now = job_of(heading), section_digests(pipeline) | {"code": code}
    found = read_body(NAME, data, heading, _seal(seal))
    changed = [name for name in now if then.get(name) != now[name]]
    if changed == ["code"]:
        raise CheckpointError(
            f"snapshot: was taken by other code (Shoal {heading.version}), which might decide "
            "differently about rows that are already published. Restore it with the version that "
            "took it and flush that stream; then start a new one."
        )
    if changed:
        what = [name for name in changed if name != "code"]
        words = what[0] if len(what) == 1 else f"{', '.join(what[:-1])} and {what[-1]}"
        raise CheckpointError(
            f"snapshot: was taken under another {words}: what it holds doesn't keep this promise, "
            "and a stream can't change while it holds rows. Restore it into a stream with the same "
            "parameters and flush that; then start a new one."
        )
    return CoreState(found.facts, found.arrays, found.batches)


def section_digests(pipeline: Pipeline) -> dict[str, str]:
    """Return a digest for each part of a pipeline on which held rows depend."""
    parts = {
        "schema": pipeline.schema,
        "policy": pipeline.policy,
        "algorithm": pipeline.anonymizer,
        "publish": pipeline.publish,
    }
    return {
        name: hashlib.blake2b(json.dumps(_plain(part)).encode(), digest_size=16).hexdigest()
        for name, part in parts.items()
    }


def _plain(value: Any) -> Any:
    """Return a value of the vocabulary as values that JSON can carry, with all that it decides."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, set | frozenset):
        return sorted(json.dumps(_plain(part)) for part in value)
    if isinstance(value, Mapping):
        return [[_plain(key), _plain(part)] for key, part in value.items()]
    kind = type(value)
    if dataclasses.is_dataclass(kind):
        names = [field.name for field in dataclasses.fields(kind)]
    else:
        slots = [name for base in kind.__mro__ for name in getattr(base, "__slots__", ())]
        names = sorted({*slots, *getattr(value, "__dict__", ())})
    ignored = value.decides_nothing if isinstance(value, Anonymizer) else ()
    public = [name for name in names if not name.startswith("_") and name not in ignored]
    return [kind.__qualname__, {name: _plain(getattr(value, name)) for name in public}]


def _seal(spec: str | None) -> Seal | None:
    return None if spec is None else Seal.from_spec(spec)
