"""The settings of a Kafka topic, and which of them a job must not set."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from shoal.errors import JobError, Problem, ResourceError, did_you_mean
from shoal.io.kafka.refusals import CERTIFICATE_KEYS, KEY_KEYS
from shoal.io.kafka.schemas.settings import FORMATS as REGISTERED
from shoal.io.kafka.schemas.settings import RegistrySettings, wrong_paths
from shoal.io.secret_settings import in_clear, is_reference, look_up
from shoal.io.streams import os_reason

__all__ = ["CHANGES", "FORMATS", "STARTS", "KafkaSettings", "Resolved", "is_path", "unless_set"]

#: The formats of a message value.
FORMATS = ("json", "csv", "arrow", *REGISTERED)
#: Where to begin without a checkpoint.
STARTS = ("earliest", "latest")
#: Which changes of a table are rows, if messages are envelopes of changes.
CHANGES = ("inserts", "latest", "every")
#: The formats of envelopes.
ENVELOPES = ("json", "avro")

#: Names of librdkafka settings whose values are secrets.
_SECRET = re.compile(r"password|passphrase|secret|key\.pem$|oauthbearer\.config$")

_OFFSETS = "offsets are kept in the checkpoint, so that a row is neither lost nor published twice"
_TRANSACTIONS = "the output is written in transactions, which this would break"
_OWNED = "partitions are assigned, never rebalanced: a row that is held must not change its owner"
_POSE = (
    "anybody could impersonate the broker, and send rows of people who don't exist. Name the "
    "authority that you trust in ssl.ca.location instead"
)
_SERVERS = "the brokers are named by the key kafka"
#: Settings that would break the guarantee, and why.
_REFUSED = {
    "auto.commit.enable": _OFFSETS,
    "auto.commit.interval.ms": _OFFSETS,
    "auto.offset.reset": _OFFSETS,
    "enable.auto.commit": _OFFSETS,
    "enable.auto.offset.store": _OFFSETS,
    "enable.partition.eof": _OFFSETS,
    "offset.store.method": _OFFSETS,
    "group.id": _OWNED,
    "group.instance.id": _OWNED,
    "group.protocol": _OWNED,
    "partition.assignment.strategy": _OWNED,
    "enable.gapless.guarantee": _TRANSACTIONS,
    "enable.idempotence": _TRANSACTIONS,
    "transactional.id": _TRANSACTIONS,
    "bootstrap.servers": _SERVERS,
    "metadata.broker.list": _SERVERS,
    "allow.auto.create.topics": "a topic that is missing is most likely a wrong name",
    "plugin.library.paths": "it would load code from elsewhere",
    "ssl.engine.location": "it would load code from elsewhere",
}
#: Settings of which only one value keeps the guarantee, and why.
_FIXED = {
    "isolation.level": (("read_committed",), "rows of aborted transactions would be published"),
    "acks": (("all", "-1"), _TRANSACTIONS),
    "request.required.acks": (("all", "-1"), _TRANSACTIONS),
    "enable.ssl.certificate.verification": (("true", "True"), _POSE),
}


@dataclass(frozen=True)
class Resolved:
    """Settings as the client takes them, including secrets; the repr shows none of them."""

    values: dict[str, Any] = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)

    def hide(self, text: str) -> str:
        """Return a text in which the secrets are replaced."""
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return text


@dataclass(frozen=True)
class KafkaSettings:
    """A topic, its brokers, and the format of its messages.

    Parameters
    ----------
    servers
        The bootstrap servers, as ``host:port``, with commas between them.
    topic
        The name of the topic.
    format
        The format of a message value: ``json``, ``csv``, ``arrow``, ``avro`` or ``protobuf``.
    partitions
        The partitions that an input owns; None for all.
    columns
        The fields of CSV messages, in order. Without them each message begins with a header.
    rows
        The maximum number of rows that an output puts in a message.
    start
        Where an input begins without a checkpoint: ``earliest`` or ``latest``.
    settings
        Further settings for librdkafka (TLS, SASL, sizes). A secret is never among them: it is
        ``env:NAME``, the name of an environment variable, or ``file:PATH``.
    registry
        Where the schemas of Avro and Protobuf messages are.
    fields
        Where columns are in messages of an input that have a schema: names of fields with dots
        between them.
    subject
        Under which an output registers its schema; None: ``<topic>-value``.
    changes
        Which changes are rows, if messages are Debezium's envelopes: ``inserts``, ``latest`` or
        ``every``; None: messages are rows.

    Raises
    ------
    JobError
        With all problems.

    >>> KafkaSettings("localhost:9092", "people", settings={"sasl.password": "hunter2"})
    Traceback (most recent call last):
    ...
    shoal.errors.JobError: settings.sasl.password: is a secret in plain text. \
Write "env:NAME" or "file:PATH", and keep the secret there.
    >>> KafkaSettings("localhost:9092", "people", settings={"group.id": "mine"})
    Traceback (most recent call last):
    ...
    shoal.errors.JobError: settings.group.id: can't be set: partitions are assigned, never \
rebalanced: a row that is held must not change its owner.
    """

    servers: str
    topic: str
    format: str = "json"
    partitions: tuple[int, ...] | None = None
    columns: tuple[str, ...] | None = None
    rows: int = 1000
    start: str = "earliest"
    settings: Mapping[str, Any] = field(default_factory=dict, repr=False)
    registry: RegistrySettings | None = None
    fields: Mapping[str, str] = field(default_factory=dict)
    subject: str | None = None
    changes: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "settings", MappingProxyType(dict(self.settings)))
        object.__setattr__(self, "fields", MappingProxyType(dict(self.fields)))
        wrong = [
            *self._wrong_keys(), *self._wrong_schema_keys(), *self._wrong_changes(),
            *self._wrong_settings(),
        ]  # fmt: skip
        problems = wrong or self._missing_settings()
        if problems:
            raise JobError(problems)

    @property
    def where(self) -> str:
        """The topic, for messages."""
        return f"Kafka topic {self.topic} at {self.servers}"

    def resolved(self) -> Resolved:
        """Return librdkafka's settings with every secret looked up.

        Raises
        ------
        JobError
            If an environment variable isn't set.
        ResourceError
            If a file can't be read: of a secret, or of a certificate.
        """
        values: dict[str, Any] = {"bootstrap.servers": self.servers}
        secrets = []
        for name, value in self.settings.items():
            if is_path(name, value):
                _check_readable(name, Path(str(value)))
            if not is_reference(value):
                values[name] = str(value).lower() if isinstance(value, bool) else value
                continue
            values[name] = look_up(f"settings.{name}", str(value))
            if values[name]:
                secrets.append(values[name])
        return Resolved(values, tuple(secrets))

    def _wrong_keys(self) -> list[Problem]:
        problems = []
        if not self.servers.strip():
            problems.append(Problem("kafka", "names no broker", None, "Write host:port"))
        if not re.fullmatch(r"[a-zA-Z0-9._-]{1,249}", self.topic):
            fix = "A name has letters, digits, dots, dashes and underscores, 249 at most"
            problems.append(Problem("topic", "isn't a valid topic name", repr(self.topic), fix))
        for key, value, known in (("format", self.format, FORMATS), ("start", self.start, STARTS)):
            if value not in known:
                near = did_you_mean(value, known)
                problems.append(Problem(key, f"isn't a known {key}", repr(value), near))
        if self.rows < 1:
            problems.append(Problem("rows", "must be at least 1", str(self.rows)))
        if self.partitions is not None:
            if not self.partitions:
                fix = "Leave it out to own all partitions"
                problems.append(Problem("partitions", "is empty", None, fix))
            if (
                len(set(self.partitions)) < len(self.partitions)
                or min(self.partitions, default=0) < 0
            ):
                what = "must be different whole numbers of at least 0"
                problems.append(Problem("partitions", what, str(list(self.partitions))))
        if self.columns is not None:
            if self.format != "csv":
                what = f"names the fields of CSV messages, and the format is {self.format}"
                problems.append(Problem("columns", what, None, "Leave it out"))
            if not self.columns or len(set(self.columns)) < len(self.columns):
                what = "must be at least one name, and each a different one"
                problems.append(Problem("columns", what))
        return problems

    def _wrong_schema_keys(self) -> list[Problem]:
        """Return what is wrong with the keys that go with a schema registry."""
        problems = wrong_paths(self.fields)
        is_registered = self.format in REGISTERED
        if is_registered and self.registry is None:
            what, fix = f"is missing, and the format is {self.format}", "Write http://host:port"
            problems.append(Problem("registry", what, None, fix))
        if not is_registered and self.format in FORMATS:
            for key, value in (
                ("registry", self.registry), ("fields", self.fields), ("subject", self.subject),
            ):  # fmt: skip
                if value:
                    what = f"is for avro and protobuf, and the format is {self.format}"
                    problems.append(Problem(key, what, None, "Leave it out"))
        return problems

    def _wrong_changes(self) -> list[Problem]:
        if self.changes is None:
            return []
        if self.changes not in CHANGES:
            near = did_you_mean(self.changes, CHANGES)
            return [Problem("changes", "isn't a known choice", repr(self.changes), near)]
        if self.format in FORMATS and self.format not in ENVELOPES:
            what = f"is for json and avro, and the format is {self.format}"
            return [Problem("changes", what, None, "Leave it out")]
        return []

    def _wrong_settings(self) -> list[Problem]:
        problems = []
        for name, value in self.settings.items():
            key = f"settings.{name}"
            if name in _REFUSED:
                problems.append(Problem(key, f"can't be set: {_REFUSED[name]}"))
            elif name in _FIXED and str(value) not in _FIXED[name][0]:
                only, reason = _FIXED[name]
                problems.append(Problem(key, f"must be {only[0]}: {reason}"))
            elif _SECRET.search(name) and not is_reference(value):
                problems.append(in_clear(key))
            elif name.endswith(".location") and is_reference(value):
                fix = "Write the path alone, without file: or env:"
                problems.append(Problem(key, "is the path of a file", None, fix))
            elif not isinstance(value, str | int | float | bool):
                problems.append(Problem(key, "must be a text, a number, true or false"))
        return problems

    def _missing_settings(self) -> list[Problem]:
        """Return what is missing beside the settings of TLS and SASL that are there."""
        given, problems = self.settings, []
        # Without it librdkafka connects in clear, and says nothing.
        for kind, example in (("ssl", "SSL or SASL_SSL"), ("sasl", "SASL_SSL")):
            named = [name for name in given if name.startswith(f"{kind}.")]
            if named and kind not in str(given.get("security.protocol", "")).lower().split("_"):
                what = f"doesn't ask for {kind.upper()}, so that {named[0]} has no effect"
                fix = f"Write {example}, or leave out the {kind} settings"
                problems.append(Problem("settings.security.protocol", what, None, fix))
        has_certificate, has_key = (
            any(key in given for key in keys) for keys in (CERTIFICATE_KEYS, KEY_KEYS)
        )
        if has_certificate != has_key:
            missing = "ssl.key.location" if has_certificate else "ssl.certificate.location"
            what = "is missing: a certificate and its key go together"
            problems.append(Problem(f"settings.{missing}", what))
        return problems


def unless_set(settings: KafkaSettings, ours: Mapping[str, Any]) -> dict[str, Any]:
    """Return default settings, except those that the job sets.

    >>> job = KafkaSettings("localhost:9092", "people", settings={"retry.backoff.ms": 50})
    >>> unless_set(job, {"retry.backoff.ms": 10, "linger.ms": 5})
    {'linger.ms': 5}
    """
    return {name: value for name, value in ours.items() if name not in settings.settings}


def is_path(name: str, value: object) -> bool:
    """Return whether a setting is the path of a file or folder that the client reads.

    >>> is_path("ssl.ca.location", "ca.pem"), is_path("ssl.ca.location", "probe")
    (True, False)
    """
    return name.endswith(".location") and isinstance(value, str) and value != "probe"


def _check_readable(name: str, path: Path) -> None:
    """Raise an error if a file can't be read: librdkafka's own doesn't say which, or why."""
    try:
        if not path.is_dir():
            path.open("rb").close()
    except OSError as error:
        raise ResourceError(f"settings.{name}: {path} can't be read: {os_reason(error)}.") from None
