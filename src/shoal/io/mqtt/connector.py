"""MQTT topics as endpoints of a job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from shoal.errors import JobError, Problem
from shoal.io.base import Source
from shoal.io.connector import Connector, InputEndpoint, OutputEndpoint, absolute_secret
from shoal.io.mqtt.settings import FILES, MqttSettings

__all__ = ["CONNECTOR", "MqttInput"]


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


def _refuse(flag: str, is_given: bool) -> None:
    if is_given:
        raise JobError(Problem(flag, "doesn't go with a topic", None, "Leave it out"))


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


def _output(given: Mapping[str, Any], folder: Path) -> OutputEndpoint:
    raise JobError(Problem("mqtt", "is for inputs only"))


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
    {},
    _input,
    _output,
)
