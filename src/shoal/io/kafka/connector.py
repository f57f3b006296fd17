"""Topics as endpoints of a job."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from shoal.errors import JobError, Problem
from shoal.io.base import SinkFactory, Source
from shoal.io.connector import (
    Connector,
    InputEndpoint,
    Opener,
    OutputEndpoint,
    SparkInput,
    absolute_secret,
)
from shoal.io.kafka.schemas.settings import FILES, FORMATS, RegistrySettings
from shoal.io.kafka.settings import KafkaSettings, is_path

__all__ = ["CONNECTOR", "KafkaInput", "KafkaOutput"]


@dataclass(frozen=True)
class KafkaInput(InputEndpoint):
    """A topic that is read."""

    kafka: KafkaSettings
    noun = "a topic"
    needs_checkpoints = True
    is_endless = True

    @property
    def repeats_rows(self) -> bool:
        """Whether updates are rows."""
        return self.kafka.changes in ("latest", "every")

    def identity(self, state: Path) -> tuple[object, ...]:
        """Return the topic, and how its messages are read."""
        return _identity(self.kafka)

    def with_options(self, format: str | None, *, follow: bool) -> KafkaInput:  # noqa: A002
        """Refuse both options."""
        _refuse("--follow", follow)
        _refuse("--from", format is not None)
        return self

    def open(self, columns: Sequence[str], *, replay: bool) -> Source:
        """Open the topic, which is always replayable."""
        from shoal.io.kafka.source import KafkaSource

        return KafkaSource(self.kafka, columns)

    def spark_stream(self, session: Any, asked: SparkInput) -> Any:
        """Return the rows of the messages as a streaming DataFrame."""
        from shoal.io.kafka.spark import read_stream

        return read_stream(session, self.kafka, asked)


@dataclass(frozen=True)
class KafkaOutput(OutputEndpoint):
    """A topic that is written."""

    kafka: KafkaSettings
    noun = "a topic"
    needs_checkpoints = True
    # By its name the broker stores how many rows of a job are committed.
    stores_job_name = True

    def identity(self, state: Path) -> tuple[object, ...]:
        """Return the topic, and how its messages are written."""
        return _identity(self.kafka)

    def with_format(self, format: str | None) -> KafkaOutput:  # noqa: A002
        """Refuse a format."""
        _refuse("--to", format is not None)
        return self

    def sink_factory(self, job: str, *, durable: bool) -> SinkFactory:
        """Return what opens the topic, which is always durable."""
        from shoal.io.kafka.sink import KafkaSink, refuse_started

        return Opener(
            lambda schema, mark: KafkaSink(self.kafka, schema, mark, job=job),
            lambda: refuse_started(self.kafka, job),
        )

    def spark_writer(self) -> Callable[[Any, str], None]:
        """Return what writes messages, at least once, with headers that identify them."""
        from shoal.io.kafka.spark import TopicWriter

        return TopicWriter(self.kafka)


def _identity(kafka: KafkaSettings) -> tuple[object, ...]:
    # Only where there are any, so that what a job without them has stored still fits.
    fields = (tuple(sorted(kafka.fields.items())),) if kafka.fields else ()
    changes = (("changes", kafka.changes),) if kafka.changes else ()
    return kafka.topic, kafka.format, kafka.partitions, kafka.columns, *fields, *changes


def _refuse(flag: str, is_given: bool) -> None:
    if is_given:
        raise JobError(Problem(flag, "can't be combined with a topic", None, "Leave it out"))


def _settings(given: Mapping[str, Any], folder: Path, **more: Any) -> KafkaSettings:
    if not given.get("topic"):
        raise JobError(Problem("topic", "is missing", None, "Name the topic"))
    servers = given["kafka"]
    return KafkaSettings(
        servers if isinstance(servers, str) else ",".join(servers),
        given["topic"],
        given.get("format") or "json",
        settings={
            name: _absolute(name, value, folder)
            for name, value in given.get("settings", {}).items()
        },
        registry=_registry(given, folder),
        **more,
    )


def _registry(given: Mapping[str, Any], folder: Path) -> RegistrySettings | None:
    settings = dict(given.get("registry_settings") or {})
    if given.get("registry") is None:
        if settings:
            what = "are those of registry, which is missing"
            raise JobError(Problem("registry_settings", what))
        return None
    for name, value in settings.items():
        if isinstance(value, str):
            is_file = name in FILES
            path = str(folder / Path(value).expanduser()) if is_file else value
            settings[name] = path if is_file else absolute_secret(value, folder)
    return RegistrySettings(given["registry"], settings)


def _absolute(name: str, value: Any, folder: Path) -> Any:
    """Make the path of a certificate, a key or a secret absolute, which is relative to the job."""
    if not isinstance(value, str):
        return value
    is_location = is_path(name, value) and not value.startswith(("env:", "file:"))
    return str(folder / value) if is_location else absolute_secret(value, folder)


def _input(given: Mapping[str, Any], folder: Path) -> KafkaInput:
    lists = {key: tuple(given[key]) for key in ("partitions", "columns") if key in given}
    more = {
        "start": given.get("start", "earliest"),
        "fields": given.get("fields") or {},
        "changes": given.get("changes"),
    }
    return KafkaInput(_settings(given, folder, **lists, **more))


def _output(given: Mapping[str, Any], folder: Path) -> KafkaOutput:
    rows = given.get("rows", 1)
    if rows <= 0:
        raise JobError(Problem("rows", "must be above 0", str(rows)))
    if rows > 1 and given.get("format") in FORMATS:
        what = f"must be 1: a message of format {given['format']} is one row"
        raise JobError(Problem("rows", what, str(rows), "Leave it out"))
    return KafkaOutput(_settings(given, folder, rows=rows, subject=given.get("subject")))


_SHARED: dict[str, tuple[Any, Any]] = {
    "kafka": (str | list[str] | None, None),
    "topic": (str | None, None),
    "format": (str | None, None),
    "settings": (dict[str, str | int | float | bool], {}),
    "registry": (str | None, None),
    "registry_settings": (dict[str, str] | None, None),
}
CONNECTOR = Connector(
    "kafka",
    _SHARED
    | {
        "partitions": (list[int] | None, None),
        "columns": (list[str] | None, None),
        "start": (Literal["earliest", "latest"], "earliest"),
        "fields": (dict[str, str] | None, None),
        "changes": (Literal["inserts", "latest", "every"] | None, None),
    },
    _SHARED | {"rows": (int | None, None), "subject": (str | None, None)},
    _input,
    _output,
)
