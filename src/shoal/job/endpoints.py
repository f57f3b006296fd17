"""Where the rows of a job come from and go to, and where it keeps its state."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from shoal.errors import JobError, Problem
from shoal.io.kafka.settings import KafkaSettings
from shoal.job.form import InputForm, OutputForm, RunForm, SparkForm

__all__ = [
    "Checkpoints",
    "Cluster",
    "Input",
    "Output",
    "checkpoints_of",
    "cluster_of",
    "digests",
    "input_of",
    "name_of",
    "output_of",
]

_NAME = re.compile(r"[A-Za-z0-9._-]{1,200}")
_FOR_KAFKA = ("topic", "partitions", "columns", "settings")
_FOR_FILES = ("follow", "seconds")


@dataclass(frozen=True, slots=True)
class Input:
    """What is read: a path (``-`` is standard input), a topic, or, on Spark, a table."""

    path: str = "-"
    format: str | None = None
    follow: bool = False
    kafka: KafkaSettings | None = None
    table: str | None = None


@dataclass(frozen=True, slots=True)
class Output:
    """Where rows go: a path (``-`` is standard output), a topic, or, on Spark, a table.

    A folder gets files of at most ``rows`` rows, none of them open for longer than ``seconds``.
    """

    path: str = "-"
    format: str | None = None
    rows: int | None = None
    seconds: float | None = None
    kafka: KafkaSettings | None = None
    table: str | None = None


@dataclass(frozen=True, slots=True)
class Cluster:
    """How a job runs on Spark: in how many shards, and with how many seconds between batches.

    A batch takes at most so many ``files`` of a folder, so many ``rows`` of a topic; None: all.
    """

    shards: int = 1
    interval: float = 1.0
    files: int | None = None
    rows: int | None = None


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """Where checkpoints go, how often, and where the key they are sealed with comes from."""

    folder: Path
    every: float
    seal: str | None = field(repr=False)


def input_of(raw: InputForm, folder: Path) -> Input:
    """The input of a job; paths are relative to a folder."""
    if raw.table is not None:
        return Input(table=_table("input", raw))
    if not _is_kafka("input", raw):
        return Input(_path(raw.path, folder), raw.format, raw.follow)
    return Input(
        kafka=_kafka(
            "input",
            servers=_servers(raw.kafka),
            topic=raw.topic or "",
            format=raw.format or "json",
            partitions=None if raw.partitions is None else tuple(raw.partitions),
            columns=None if raw.columns is None else tuple(raw.columns),
            start=raw.start,
            settings=_settings(raw, folder),
        )
    )


def output_of(raw: OutputForm, folder: Path) -> Output:
    """The output of a job; paths are relative to a folder."""
    wrong = [
        Problem(f"output.{key}", "must be above 0", str(value))
        for key, value in (("rows", raw.rows), ("seconds", raw.seconds))
        if value is not None and value <= 0
    ]
    if wrong:
        raise JobError(wrong)
    if raw.table is not None:
        return Output(table=_table("output", raw))
    if not _is_kafka("output", raw):
        return Output(_path(raw.path, folder), raw.format, raw.rows, raw.seconds)
    return Output(
        kafka=_kafka(
            "output",
            servers=_servers(raw.kafka),
            topic=raw.topic or "",
            format=raw.format or "json",
            rows=raw.rows or 1,
            settings=_settings(raw, folder),
        )
    )


def checkpoints_of(raw: RunForm, folder: Path) -> Checkpoints | None:
    """Where a job keeps its state, if it does."""
    if raw.checkpoint is None:
        return None
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
        seal = _reference(seal, folder)
    return Checkpoints(folder / raw.checkpoint.folder, every, seal)


def name_of(raw: RunForm, where: str | None) -> str:
    """The name of a job: what the broker knows it by."""
    name = raw.name if raw.name is not None else Path(where or "job").stem
    if _NAME.fullmatch(name):
        return name
    if raw.name is None:
        return re.sub(r"[^A-Za-z0-9._-]", "-", name)[:200] or "job"
    raise JobError(
        Problem("run.name", "must be of letters, digits, dots, dashes and underscores", repr(name))
    )


def digests(raw: Mapping[str, Any], files: Mapping[str, bytes]) -> dict[str, str]:
    """A digest for each section of a job that what is held depends on.

    ``files`` are the hierarchies that the schema names, by name.
    """
    found = {}
    for section in ("schema", "policy", "algorithm", "publish"):
        text = json.dumps(raw.get(section, {}), sort_keys=True, default=str)
        digest = hashlib.blake2b(text.encode(), digest_size=16)
        if section == "schema":
            for name in sorted(files):
                digest.update(name.encode() + b"\0" + files[name])
        found[section] = digest.hexdigest()
    return found


def _is_kafka(section: str, raw: InputForm | OutputForm) -> bool:
    """Whether a topic is meant; a section that means both or neither is refused."""
    given = raw.model_fields_set
    if raw.kafka is None:
        problems = [
            Problem(f"{section}.{key}", "goes with kafka only")
            for key in (*_FOR_KAFKA, "start")
            if key in given
        ]
    else:
        problems = [
            Problem(f"{section}.{key}", "doesn't go with kafka")
            for key in ("path", *_FOR_FILES)
            if key in given
        ]
        if not raw.topic:
            problems.append(Problem(f"{section}.topic", "is missing", None, "Name the topic"))
    if problems:
        raise JobError(problems)
    return raw.kafka is not None


def _table(section: str, raw: InputForm | OutputForm) -> str:
    """The table that is meant, and nothing else."""
    if more := sorted(raw.model_fields_set - {"table"}):
        raise JobError(Problem(f"{section}.{key}", "doesn't go with table") for key in more)
    assert raw.table is not None
    return raw.table


def cluster_of(raw: SparkForm) -> Cluster:
    """How a job runs on Spark."""
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


def _kafka(section: str, **settings: Any) -> KafkaSettings:
    try:
        return KafkaSettings(**settings)
    except JobError as error:
        raise JobError(
            replace(problem, key=f"{section}.{problem.key}") for problem in error.problems
        ) from None


def _settings(raw: InputForm | OutputForm, folder: Path) -> dict[str, str | int | float | bool]:
    return {
        name: _reference(value, folder) if isinstance(value, str) else value
        for name, value in raw.settings.items()
    }


def _reference(spec: str, folder: Path) -> str:
    """Where a secret is, with a path relative to the job made one that is good everywhere."""
    return f"file:{folder / spec[5:]}" if spec.startswith("file:") else spec


def _servers(raw: str | list[str] | None) -> str:
    return raw if isinstance(raw, str) else ",".join(raw or [])


def _path(raw: str | None, folder: Path) -> str:
    if raw is None or raw == "-":
        return "-"
    if "://" in raw:
        # Of another file system, which Spark knows.
        return raw
    # Path would drop the slash that tells a folder.
    slash = "/" if raw.endswith("/") else ""
    return str(folder / raw) + slash
