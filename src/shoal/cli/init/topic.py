"""A topic as what a job is drafted from: its schema in a registry, or its JSON messages."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from shoal.cli.init.toml import line
from shoal.errors import JobError, Problem
from shoal.io.kafka.connector import KafkaInput
from shoal.io.kafka.described import describe_messages
from shoal.io.kafka.schemas.client import Registry
from shoal.io.kafka.schemas.columns import Leaf
from shoal.io.kafka.schemas.subjects import Described, describe_subject
from shoal.io.kafka.values import joined
from shoal.io.registry import endpoint
from shoal.job.toml import quote, quote_key

__all__ = ["SCHEME", "Topic", "TopicOptions", "TopicRows", "open_topic"]

SCHEME = "kafka://"
#: How long, in seconds, to wait for further messages that the broker says are there.
IDLE_SECONDS = 10.0
#: How often, in seconds, to see whether all messages were read.
LOOK_SECONDS = 0.1
#: The tables of ``[input]`` that options may fill.
TABLES = ("settings", "registry_settings")
ONCE_ONLY = "updates and deletes are skipped; read docs/cdc.md before changing it"


@dataclass(frozen=True, slots=True)
class TopicOptions:
    """What the command line says about a topic.

    Parameters
    ----------
    registry
        Where the registry answers; None: there is none, and messages are JSON.
    subject
        The subject of the schema; None: ``<topic>-value``.
    settings
        Further keys of ``[input]``, as ``settings.NAME=VALUE`` or ``registry_settings.NAME=VALUE``.
    """

    registry: str | None = None
    subject: str | None = None
    settings: Sequence[str] = ()

    def check_file(self) -> None:
        """Raise if an option is given, and the data isn't a topic."""
        given = {
            "--registry": self.registry, "--schema": self.subject, "--set": self.settings,
        }  # fmt: skip
        for flag, value in given.items():
            if value:
                fix = f"Write {SCHEME}host:port/topic as the data, or leave it out"
                raise JobError(Problem(flag, "goes with a topic of Kafka", None, fix))


@dataclass(frozen=True, slots=True)
class TopicRows:
    """The rows of a sample."""

    table: pa.Table
    is_whole: bool
    n_bad: int
    reason: str
    """Why most of the bad ones can't be read."""


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic that a job reads.

    Parameters
    ----------
    name
        The name of the topic.
    subject
        The subject of its schema; None: it has none.
    described
        What the schema, or the first messages, say.
    keys
        The keys of ``[input]``.
    opened
        The input of the job.
    nested
        The fields of JSON messages that can't be columns.
    """

    name: str
    subject: str | None
    described: Described
    keys: Mapping[str, Any]
    opened: KafkaInput
    nested: tuple[str, ...] = ()

    def lines(self) -> Iterator[str]:
        """Write ``[input]``, and an output as a comment."""
        yield "[input]"
        tables = []
        for key, value in self.keys.items():
            if isinstance(value, Mapping):
                tables.append((key, value))
            else:
                yield line(f"{key} = {quote(value)}", ONCE_ONLY if key == "changes" else "")
        yield ""
        for key, table in tables:
            remark = "where columns are that aren't at the top" if key == "fields" else ""
            yield line(f"[input.{key}]", remark)
            yield from (f"{quote_key(name)} = {quote(value)}" for name, value in table.items())
            yield ""
        yield "# Without an output, name a file with -o."
        yield "# [output]"
        yield f"# kafka = {quote(self.keys['kafka'])}"
        yield line(f"# topic = {quote(self.name + '-public')}", "create it first")
        yield line('# format = "json"', "or avro, protobuf with a registry")
        yield ""

    def sample(self, n_rows: int) -> TopicRows:
        """Read the oldest messages of the topic, as far as there are any now."""
        source: Any = self.opened.open(tuple(self.described.leaves), replay=True)
        done, seen = threading.Event(), [0]
        watch = threading.Thread(target=_stop_at_the_end, args=(source, done, seen), daemon=True)
        batches: list[pa.RecordBatch] = []
        n, reasons, is_whole = 0, Counter[str](), True
        try:
            watch.start()
            for chunk in source:
                seen[0] += 1
                batches.append(chunk.batch)
                n += chunk.batch.num_rows
                reasons.update(bad.reason for bad in chunk.bad)
                # A topic that can't be read isn't read to its end either.
                if max(n, reasons.total()) >= n_rows:
                    is_whole = False
                    break
        finally:
            done.set()
            watch.join()
            source.close()
        rows = [batch for batch in batches if batch.num_rows]
        table = pa.table(joined(rows).slice(0, n_rows)) if rows else pa.table({})
        reason = reasons.most_common(1)[0][0] if reasons else ""
        return TopicRows(table, is_whole, sum(reasons.values()), reason)


def _stop_at_the_end(source: Any, done: threading.Event, seen: Sequence[int]) -> None:
    """Stop a source when there are no further messages, or none come."""
    idle, before = 0.0, -1
    while not done.wait(LOOK_SECONDS):
        idle, before = (idle + LOOK_SECONDS if seen[0] == before else 0.0), seen[0]
        if source.lag() == 0 or (idle > IDLE_SECONDS and not source.is_away):
            source.stop()
            return


def open_topic(data: str, options: TopicOptions, folder: Path, form: str | None) -> Topic:
    """Find the schema of a topic, or the columns of its messages.

    Parameters
    ----------
    data
        ``kafka://host:port/topic``.
    options
        Where its schema is.
    folder
        The folder of the job, to which paths are relative.
    form
        The format that the caller expects; None: the one of the schema.
    """
    servers, _, name = data.removeprefix(SCHEME).partition("/")
    if "@" in servers:
        # Not shown: it may have a password in it.
        fix = "Write --set settings.sasl.username=… and --set settings.sasl.password=env:NAME"
        raise JobError(Problem("DATA", "has a user in its address", None, fix))
    if not servers or not name:
        raise JobError(Problem("DATA", "isn't a topic", data, f"Write {SCHEME}host:port/topic"))
    keys: dict[str, Any] = {"kafka": servers, "topic": name}
    tables = _tables(options.settings)
    if options.registry is None:
        return _of_messages(name, keys, tables, options, folder, form)
    subject = options.subject or f"{name}-value"
    keys |= {"format": "avro", "registry": options.registry}
    settings = _opened(keys | tables, folder).kafka.registry
    assert settings is not None
    registry = Registry(settings, threading.Event())
    try:
        described = describe_subject(registry, subject)
    finally:
        registry.close()
    if form not in (None, described.format):
        what = f"is {form}, and the schema of subject {subject} is {described.format}"
        raise JobError(Problem("--from", what, None, "Leave it out"))
    keys["format"] = described.format
    if described.is_envelope:
        keys["changes"] = "inserts"
    if described.fields:
        keys["fields"] = described.fields
    return Topic(name, subject, described, keys | tables, _opened(keys | tables, folder))


def _of_messages(
    name: str,
    keys: dict[str, Any],
    tables: dict[str, dict[str, str]],
    options: TopicOptions,
    folder: Path,
    form: str | None,
) -> Topic:
    """Find the columns of a topic without a schema, whose messages are JSON."""
    if form not in (None, "json") or options.subject is not None:
        what = "is missing: without a schema, only messages in JSON say which columns they have"
        fix = "Give the address of the registry, or draft from a file with some of the messages"
        raise JobError(Problem("--registry", what, None, fix))
    keys["format"] = "json"
    found = describe_messages(_opened(keys | tables, folder).kafka)
    if found.is_envelope:
        keys["changes"] = "inserts"
    paths = {column: column for column in found.columns}
    leaves = dict.fromkeys(paths, Leaf("text"))
    described = Described("json", leaves, paths, found.is_envelope)
    opened = _opened(keys | tables, folder)
    return Topic(name, None, described, keys | tables, opened, found.nested)


def _opened(keys: Mapping[str, Any], folder: Path) -> KafkaInput:
    made = endpoint("input", keys, folder)
    assert isinstance(made, KafkaInput)
    return made


def _tables(settings: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return the tables of ``[input]`` that options fill.

    >>> _tables(["settings.security.protocol=SSL"])
    {'settings': {'security.protocol': 'SSL'}}
    """
    tables: dict[str, dict[str, str]] = {}
    for text in settings:
        name, is_set, value = text.partition("=")
        table, _, key = name.partition(".")
        if table not in TABLES or not key or not is_set:
            # Not shown: it may have a secret in it.
            what = "isn't a setting of the input"
            fix = "Write settings.NAME=VALUE or registry_settings.NAME=VALUE"
            raise JobError(Problem("--set", what, None, fix))
        tables.setdefault(table, {})[key] = value
    return tables
