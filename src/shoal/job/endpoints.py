"""Where a job keeps its state, what it is called, and how it runs on Spark."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shoal import algorithms
from shoal.errors import JobError, Problem
from shoal.io.connector import absolute_secret
from shoal.job.form import RunForm, SparkForm

__all__ = [
    "Checkpoints",
    "Cluster",
    "checkpoints_of",
    "cluster_of",
    "digests",
    "name_of",
    "plain_name",
    "refuse_remote",
]

_NAME = re.compile(r"[A-Za-z0-9._-]{1,200}")


@dataclass(frozen=True, slots=True)
class Cluster:
    """How a job runs on Spark: the number of shards, and the seconds between batches.

    A batch takes at most ``files`` files of a folder and ``rows`` rows of a topic; None: all.
    """

    shards: int = 1
    interval: float = 1.0
    files: int | None = None
    rows: int | None = None


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """Where checkpoints are kept, how often they are taken, and where the key of the seal is."""

    folder: Path
    every: float
    seal: str | None = field(repr=False)


def checkpoints_of(raw: RunForm, folder: Path) -> Checkpoints | None:
    """Return where a job keeps its state, or None if it keeps none."""
    if raw.checkpoint is None:
        return None
    refuse_remote("run.checkpoint.folder", raw.checkpoint.folder)
    every = float(raw.checkpoint.every)
    if not 0 < every <= 1e6:
        raise JobError(
            Problem("run.checkpoint.every", "must be a number of seconds above 0", f"{every:g}")
        )
    seal = raw.checkpoint.seal
    if seal is not None and not seal.startswith(("env:", "file:")):
        # Not shown: it may be the key itself.
        raise JobError(
            Problem(
                "run.checkpoint.seal",
                "must say where the key is, not what it is",
                None,
                'Write "env:NAME" or "file:PATH"',
            )
        )
    if seal is not None:
        seal = absolute_secret(seal, folder)
    return Checkpoints(folder / raw.checkpoint.folder, every, seal)


def refuse_remote(key: str, path: str) -> None:
    """Raise `JobError` for an address where a local path is asked for.

    >>> refuse_remote("run.checkpoint.folder", "s3://bucket/state")
    Traceback (most recent call last):
    ...
    shoal.errors.JobError: run.checkpoint.folder: is an address, and object storage isn't \
supported here. Give a path on a file system of this machine.
    """
    if "://" in path:
        # Not shown: it may have a password in it.
        what = "is an address, and object storage isn't supported here"
        fix = "Give a path on a file system of this machine"
        raise JobError(Problem(key, what, None, fix))


def plain_name(text: str) -> str:
    """Return a text as a name that a job may have.

    >>> plain_name("my job")
    'my-job'
    """
    return re.sub(r"[^A-Za-z0-9._-]", "-", text)[:200] or "job"


def name_of(raw: RunForm, where: str | None) -> str:
    """Return the name of a job, by which a broker identifies it."""
    name = raw.name if raw.name is not None else Path(where or "job").stem
    if _NAME.fullmatch(name):
        return name
    if raw.name is None:
        return plain_name(name)
    raise JobError(
        Problem(
            "run.name", "must have only letters, digits, dots, dashes and underscores", repr(name)
        )
    )


def digests(raw: Mapping[str, Any], files: Mapping[str, bytes]) -> dict[str, str]:
    """Return a digest for each section of a valid job on which held rows depend.

    ``files`` are the hierarchies that the schema names, by name. Knobs that change no decision
    don't count.
    """
    found = {}
    for section in ("schema", "policy", "algorithm", "publish"):
        keys = raw.get(section, {})
        if section == "algorithm":
            ignored = algorithms.find(keys["name"]).decides_nothing
            keys = {key: value for key, value in keys.items() if key not in ignored}
        text = json.dumps(keys, sort_keys=True, default=str)
        digest = hashlib.blake2b(text.encode(), digest_size=16)
        if section == "schema":
            for name in sorted(files):
                digest.update(name.encode() + b"\0" + files[name])
        found[section] = digest.hexdigest()
    return found


def cluster_of(raw: SparkForm) -> Cluster:
    """Return how a job runs on Spark."""
    problems = [
        Problem(f"spark.{key}", "must be at least 1", str(value))
        for key in ("shards", "files", "rows")
        if (value := getattr(raw, key)) is not None and value < 1
    ]
    if not 0 < raw.interval < float("inf"):
        what = "must be a number of seconds above 0"
        problems.append(Problem("spark.interval", what, str(raw.interval)))
    if problems:
        raise JobError(problems)
    return Cluster(raw.shards, float(raw.interval), raw.files, raw.rows)
