"""The settings of an MQTT topic and its broker."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from shoal.errors import JobError, Problem, did_you_mean
from shoal.io.mqtt.paths import FieldPath
from shoal.io.mqtt.topics import TopicPattern
from shoal.io.secret_settings import in_clear, is_reference, look_up

__all__ = ["FILES", "FORMATS", "SETTINGS", "MqttSettings"]

#: The formats of a payload.
FORMATS = ("json", "csv")
#: The settings of the connection that are paths of files.
FILES = ("ca", "cert", "key")
#: All settings of the connection.
SETTINGS = ("username", "password", "tls", *FILES, "keepalive")
#: The ports of brokers, without and with TLS.
PORT, TLS_PORT = 1883, 8883
_ADDRESS = re.compile(r"(?P<host>\[[0-9A-Fa-f:.%]+\]|[^:/\s\[\]]+)(?::(?P<port>\d{1,5}))?")


@dataclass(frozen=True)
class MqttSettings:
    """A topic, its broker, and the format of its messages.

    Parameters
    ----------
    server
        The broker, as ``host`` or ``host:port``.
    topic
        The topic; of an input with wildcards and columns, see `TopicPattern`.
    format
        The format of a payload: ``json`` or ``csv``.
    columns
        The fields of CSV payloads, in order.
    fields
        Where columns are in nested JSON payloads, see `FieldPath`.
    settings
        Of the connection: user, password and TLS. The password is never among them: it is
        ``env:NAME``, the name of an environment variable, or ``file:PATH``.

    Raises
    ------
    JobError
        With all problems.

    >>> secrets = {"username": "ann", "password": "hunter2"}
    >>> MqttSettings("localhost", "ward/{ward}", settings=secrets)
    Traceback (most recent call last):
    ...
    shoal.errors.JobError: settings.password: is a secret in plain text. \
Write "env:NAME" or "file:PATH", and keep the secret there.
    """

    server: str
    topic: str
    format: str = "json"
    columns: tuple[str, ...] | None = None
    fields: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "settings", MappingProxyType(dict(self.settings)))
        object.__setattr__(self, "fields", MappingProxyType(dict(self.fields)))
        if problems := [*self._wrong_keys(), *self._wrong_settings()]:
            raise JobError(problems)

    @property
    def where(self) -> str:
        """The topic, for messages."""
        return f"MQTT topic {self.topic} at {self.server}"

    @property
    def has_tls(self) -> bool:
        """Whether the connection is encrypted."""
        return bool(self.settings.get("tls", any(name in self.settings for name in FILES)))

    @property
    def address(self) -> tuple[str, int]:
        """The host and the port."""
        found = _ADDRESS.fullmatch(self.server)
        assert found is not None
        port = found["port"]
        return found["host"].strip("[]"), int(port) if port else (PORT, TLS_PORT)[self.has_tls]

    def resolved(self) -> dict[str, Any]:
        """Return the settings of the connection with every secret looked up.

        Raises
        ------
        JobError
            If an environment variable isn't set.
        ResourceError
            If a file can't be read.
        """
        values: dict[str, Any] = {}
        for name, value in self.settings.items():
            is_looked_up = name in ("username", "password") and is_reference(value)
            values[name] = look_up(f"settings.{name}", str(value)) if is_looked_up else value
        return values

    def _wrong_keys(self) -> list[Problem]:
        problems = []
        found = _ADDRESS.fullmatch(self.server)
        if found is None or not 0 < int(found["port"] or 1) < 65536:
            problems.append(
                Problem("mqtt", "isn't a broker", repr(self.server), "Write host or host:port")
            )
        if self.format not in FORMATS:
            near = did_you_mean(self.format, FORMATS)
            problems.append(Problem("format", "isn't a known format", repr(self.format), near))
        try:
            TopicPattern(self.topic)
        except JobError as error:
            problems += error.problems
        for name, path in self.fields.items():
            try:
                FieldPath(path, f"fields.{name}")
            except JobError as error:
                problems += error.problems
        if self.fields and self.format == "csv":
            what = "says where columns are in JSON, and the format is csv"
            problems.append(Problem("fields", what, None, "Leave it out"))
        if self.format == "csv" and self.columns is None:
            what, fix = "is missing: CSV messages have no header", 'Write ["age", "sex", …]'
            problems.append(Problem("columns", what, None, fix))
        if self.columns is not None:
            if self.format == "json":
                what = "names the fields of CSV messages, and the format is json"
                problems.append(Problem("columns", what, None, "Leave it out"))
            if not self.columns or len(set(self.columns)) < len(self.columns):
                what = "must be at least one name, and each a different one"
                problems.append(Problem("columns", what))
        return problems

    def _wrong_settings(self) -> list[Problem]:
        problems = []
        for name, value in self.settings.items():
            key = f"settings.{name}"
            if name not in SETTINGS:
                near = did_you_mean(name, SETTINGS)
                problems.append(Problem(key, "isn't a known setting", None, near))
            elif name == "password" and not is_reference(value):
                problems.append(in_clear(key))
            elif name == "tls" and not isinstance(value, bool):
                problems.append(Problem(key, "must be true or false"))
            elif name == "keepalive" and (
                isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 65_535
            ):
                problems.append(Problem(key, "must be a number of seconds from 1 to 65535"))
            elif name in ("username", *FILES) and not isinstance(value, str):
                problems.append(Problem(key, "must be a text"))
        if self.settings.get("tls") is False and any(name in self.settings for name in FILES):
            problems.append(Problem("settings.tls", "is false, and certificates are given"))
        if "key" in self.settings and "cert" not in self.settings:
            problems.append(
                Problem("settings.key", "is the key of settings.cert, which is missing")
            )
        if "password" in self.settings and "username" not in self.settings:
            problems.append(Problem("settings.username", "is missing, and there is a password"))
        return problems
