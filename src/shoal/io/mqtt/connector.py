"""MQTT topics as endpoints of a job."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from shoal.errors import JobError, Problem
from shoal.io.base import SinkFactory, Source
from shoal.io.connector import Connector, InputEndpoint, Opener, OutputEndpoint, absolute_secret
from shoal.io.mqtt.settings import FILES, MqttSettings

__all__ = ["CONNECTOR", "MqttInput", "MqttOutput"]


@dataclass(frozen=True)
class MqttInput(InputEndpoint):
    """A topic that is read."""

    mqtt: MqttSettings
    client: str = "shoal"
    noun = "a topic"
    needs_checkpoints = True
    is_endless = True

    def identity(self, state: Path) -> tuple[object, ...]:
        """Return the topic, how its messages are read, and who the broker keeps them for."""
        mqtt = self.mqtt
        fields = tuple(sorted(mqtt.fields.items()))
        return "mqtt", mqtt.topic, mqtt.format, mqtt.columns, fields, self.client

    def with_options(self, format: str | None, *, follow: bool) -> MqttInput:  # noqa: A002
        """Refuse both options."""
        _refuse("--follow", follow)
        _refuse("--from", format is not None)
        return self

    def with_job(self, name: str) -> MqttInput:
        """Be known to the broker by the name of the job."""
        return replace(self, client=f"shoal-{name}")

    def open(self, columns: Sequence[str], *, replay: bool) -> Source:
        """Open the topic; its rows are kept in the journal."""
        from shoal.io.mqtt.source import MqttSource

        return MqttSource(self.mqtt, self.client, columns)


@dataclass(frozen=True)
class MqttOutput(OutputEndpoint):
    """A topic that is written."""

    mqtt: MqttSettings
    noun = "a topic"
    needs_checkpoints = True

    def identity(self, state: Path) -> tuple[object, ...]:
        """Return the topic."""
        return "mqtt", self.mqtt.topic

    def with_format(self, format: str | None) -> MqttOutput:  # noqa: A002
        """Refuse a format."""
        _refuse("--to", format is not None)
        return self

    def sink_factory(self, job: str, *, durable: bool) -> SinkFactory:
        """Return what opens the topic. Whether it has rows of the job already can't be known."""
        from shoal.io.mqtt.sink import MqttSink

        return Opener(lambda schema, mark: MqttSink(self.mqtt, f"shoal-{job}-out", schema, mark))


def _refuse(flag: str, is_given: bool) -> None:
    if is_given:
        raise JobError(Problem(flag, "can't be combined with a topic", None, "Leave it out"))


def _settings(given: Mapping[str, Any], folder: Path, **more: Any) -> MqttSettings:
    if not given.get("topic"):
        raise JobError(Problem("topic", "is missing", None, "Name the topic"))
    settings = {
        name: absolute_secret(value, folder) if isinstance(value, str) else value
        for name, value in given.get("settings", {}).items()
    }
    for name in FILES:
        if isinstance(settings.get(name), str):
            settings[name] = str(folder / Path(settings[name]).expanduser())
    return MqttSettings(
        given["mqtt"], given["topic"], given.get("format") or "json", settings=settings, **more
    )


def _input(given: Mapping[str, Any], folder: Path) -> MqttInput:
    columns = given.get("columns")
    named = None if columns is None else tuple(columns)
    return MqttInput(_settings(given, folder, columns=named, fields=given.get("fields") or {}))


def _output(given: Mapping[str, Any], folder: Path) -> MqttOutput:
    settings = _settings(given, folder)
    if re.search(r"[{}+#]", settings.topic):
        what = "has a wildcard or a column, and rows are published to one topic"
        raise JobError(Problem("topic", what, repr(settings.topic)))
    return MqttOutput(settings)


_SHARED: dict[str, tuple[Any, Any]] = {
    "mqtt": (str | None, None),
    "topic": (str | None, None),
    "settings": (dict[str, str | int | float | bool], {}),
}
CONNECTOR = Connector(
    "mqtt",
    _SHARED
    | {
        "format": (str | None, None),
        "columns": (list[str] | None, None),
        "fields": (dict[str, str] | None, None),
    },
    _SHARED,
    _input,
    _output,
)
