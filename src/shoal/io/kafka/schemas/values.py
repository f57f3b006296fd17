"""Parse messages whose schema is in a registry: one message is one row, or one bad row."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.errors import CheckpointError
from shoal.events import sentence
from shoal.io.base import BadRow
from shoal.io.kafka.parsed import EMPTY, ParsedRows, Values
from shoal.io.kafka.schemas.avro import AvroReader, SchemaTextError, parse_avro
from shoal.io.kafka.schemas.client import Registered, Registry
from shoal.io.kafka.schemas.columns import Column, Leaf
from shoal.io.kafka.schemas.cursor import BROKEN, Cursor, Ints, padded
from shoal.io.kafka.schemas.kinds import arrow_type, fits
from shoal.io.kafka.schemas.proto_text import ProtoFile, parse_proto
from shoal.io.kafka.schemas.protobuf import ProtobufReader, message_index
from shoal.io.kafka.settings import KafkaSettings
from shoal.io.readable import broken_text

__all__ = ["RegisteredValues", "SchemaReader"]

LOG = logging.getLogger("shoal.kafka.registry")
#: The bytes before the value: a zero, and the id of the schema.
HEAD_BYTES = 5
#: The maximum number of schemas that are kept.
MOST_SCHEMAS = 1000
#: How often, in seconds, to ask again for a schema that wasn't there; and the maximum number of
#: such schemas to ask for in this time. Messages with many wrong ids would cost a request each.
ASK_AGAIN_SECONDS, MOST_MISSES = 30.0, 200
SHORT = "shorter than a mark and the id of a schema"
NO_MARK = "its first byte isn't 0, so that it has no id of a schema"


class SchemaReader(Protocol):
    """Reads the wanted fields of messages of one schema."""

    leaves: dict[str, Leaf]
    problem: str | None

    def read(self, cursor: Cursor) -> Mapping[str, Column]:
        """Read messages to their ends."""
        ...


#: The place of a message type in a Protobuf schema.
Path: TypeAlias = tuple[int, ...]
#: Gives the reader of a type, or why its messages can't be read.
Maker: TypeAlias = Callable[[Path], SchemaReader | str]


class RegisteredValues(Values):
    """Avro and Protobuf: the id of the schema, and one value.

    The first schema that is read decides of which kind each column is. Messages with a schema in
    which a column is missing, or of another kind, are bad rows.

    Parameters
    ----------
    settings
        The topic, the format, the registry, and where columns are.
    columns
        The columns to read.
    stopped
        Set to end waiting for the registry.
    registry
        The registry; by default the one of the settings.
    """

    def __init__(
        self,
        settings: KafkaSettings,
        columns: Sequence[str],
        stopped: threading.Event,
        registry: Registry | None = None,
    ) -> None:
        assert settings.registry is not None
        self.names = tuple(columns)
        self._where = settings.where
        self._format = settings.format
        self._paths = {name: settings.fields.get(name, name) for name in columns}
        self._kinds: dict[str, list[str]] = {}
        self._registry = registry or Registry(settings.registry, stopped)
        try:
            self._registry.check()
        except BaseException:
            self._registry.close()
            raise
        self._readers: OrderedDict[int, Maker] = OrderedDict()
        #: When a schema that wasn't there was asked for, in the order of these times.
        self._asked: OrderedDict[int, float] = OrderedDict()
        #: When it was last said that many weren't there.
        self._warned = -math.inf

    @property
    def kinds(self) -> dict[str, list[str]]:
        """The kind of each column."""
        return {name: list(kinds) for name, kinds in self._kinds.items()}

    def restore(self, kinds: dict[str, list[str]]) -> None:
        """Set what had been learned about types."""
        self._kinds = {name: list(found) for name, found in kinds.items()}

    @property
    def is_away(self) -> bool:
        """Whether no registry answers."""
        return self._registry.is_away

    def close(self) -> None:
        """Close the connection to the registry."""
        self._registry.close()

    def read(
        self,
        values: Sequence[bytes | None],
        first_row: int,
        lost: Sequence[int] | None = None,
    ) -> ParsedRows:
        """Parse messages.

        Which schemas weren't there depends on when they were asked for, so a replay is told:
        ``lost`` are their ids.

        Raises
        ------
        CheckpointError
            If a schema is gone that was there when these messages were read first.
        """
        given = [value or b"" for value in values]
        lengths = np.array([len(value) for value in given], np.int64)
        data = padded(b"".join(given))
        end = np.cumsum(lengths)
        at = end - lengths
        wrong: dict[int, str] = {}
        ids = self._ids(data, at, lengths, wrong)
        found: list[tuple[Ints, dict[str, pa.Array]]] = []
        missing: list[int] = []
        for number, who in _groups(ids):
            make = self._reader_of(number, lost)
            if make is None:
                missing.append(number)
                wrong |= dict.fromkeys(who.tolist(), f"schema {number} isn't in the registry")
                continue
            for reader, some, start in self._split(make, data, at, end, who, wrong):
                self._read_some(number, reader, some, Cursor(data, start, end[some]), found, wrong)
        batch, places = self._joined(found, wrong)
        bad = [BadRow(first_row + place, wrong[place], given[place]) for place in sorted(wrong)]
        return ParsedRows(batch, places + first_row, bad, tuple(missing))

    def _ids(self, data: memoryview, at: Ints, lengths: Ints, wrong: dict[int, str]) -> Ints:
        """Return the ids of schemas, -1 where there is none."""
        raw = np.frombuffer(data, np.uint8)
        head = raw[at[:, None] + np.arange(HEAD_BYTES)].astype(np.int64)
        ids: Ints = (head[:, 1] << 24) | (head[:, 2] << 16) | (head[:, 3] << 8) | head[:, 4]
        ok = (lengths >= HEAD_BYTES) & (head[:, 0] == 0)
        for place in np.flatnonzero(~ok).tolist():
            n_bytes = int(lengths[place])
            is_marked = n_bytes and not head[place, 0]
            wrong[place] = (SHORT if is_marked else NO_MARK) if n_bytes else EMPTY
        return np.where(ok, ids, -1)

    def _reader_of(self, number: int, lost: Sequence[int] | None) -> Maker | None:
        """Return what gives the reader of a schema; None if there is no such schema."""
        if lost is not None and number in lost:
            return None
        known = self._readers.get(number)
        if known is not None:
            self._readers.move_to_end(number)
            return known
        if lost is None and not self._may_ask(number):
            return None
        schema = self._registry.schema(number)
        if schema is None:
            if lost is not None:
                raise CheckpointError(
                    f"{self._where}: rows of the journal were read with schema {number}, which "
                    "isn't in the registry any more. Restore it under this id."
                )
            self._asked[number] = time.monotonic()
            self._asked.move_to_end(number)
            _shorten(self._asked, MOST_MISSES)
            return None
        self._readers[number] = made = self._make(schema)
        _shorten(self._readers, MOST_SCHEMAS)
        return made

    def _may_ask(self, number: int) -> bool:
        """Return whether to ask for a schema: not if it, or many others, weren't there just now."""
        since = time.monotonic() - ASK_AGAIN_SECONDS
        if number in self._asked:
            return self._asked[number] <= since
        if len(self._asked) < MOST_MISSES or next(iter(self._asked.values())) <= since:
            return True
        if self._warned <= since:
            self._warned = time.monotonic()
            text = (
                f"{self._where}: messages have more than {MOST_MISSES} different ids of schemas "
                "that aren't in the registry; such ids are bad rows, and asked for from time to "
                "time only"
            )
            sentence(LOG, logging.WARNING, "many unknown schemas", text)
        return False

    def _make(self, schema: Registered) -> Maker:
        """Return what gives the reader of a schema for the place of a type in it."""
        if schema.kind != self._format.upper():
            problem = f"is of format {schema.kind.lower()}"
            return lambda _: problem
        referenced = schema.references.values()
        try:
            if self._format == "protobuf":
                return self._of_types(parse_proto(schema.text, referenced))
            avro = AvroReader(parse_avro(schema.text, referenced), self._paths)
        except SchemaTextError as error:
            problem = str(error)
            return lambda _: problem
        made = avro if avro.problem is None else avro.problem
        return lambda _: made

    def _of_types(self, types: ProtoFile) -> Maker:
        """Return what gives the readers of the message types of a Protobuf schema."""
        known: dict[Path, SchemaReader | str] = {}

        def make(path: Path) -> SchemaReader | str:
            message = types.at(path)
            if message is None:
                return "has no such message type"
            if path not in known:
                reader = ProtobufReader(types, message, self._paths)
                known[path] = reader if reader.problem is None else reader.problem
            return known[path]

        return make

    def _split(
        self, make: Maker, data: memoryview, at: Ints, end: Ints, who: Ints, wrong: dict[int, str]
    ) -> list[tuple[SchemaReader | str, Ints, Ints]]:
        """Return the readers of messages of one schema, and where their values begin."""
        start = at[who] + HEAD_BYTES
        if self._format == "avro":
            return [(make((0,)), who, start)]
        raw = np.frombuffer(data, np.uint8)
        if not (raw[start] | (start >= end[who])).any():
            # A zero: the first message type.
            return [(make((0,)), who, start + 1)]
        paths: dict[Path, list[tuple[int, int]]] = {}
        for message, begin in zip(who.tolist(), start.tolist(), strict=True):
            found = message_index(data, begin, int(end[message]))
            if found is None:
                wrong[message] = BROKEN
            else:
                paths.setdefault(found[0], []).append((message, found[1]))
        groups = [(make(path), np.array(found, np.int64)) for path, found in paths.items()]
        return [(reader, pairs[:, 0], pairs[:, 1]) for reader, pairs in groups]

    def _read_some(
        self,
        number: int,
        reader: SchemaReader | str,
        who: Ints,
        cursor: Cursor,
        found: list[tuple[Ints, dict[str, pa.Array]]],
        wrong: dict[int, str],
    ) -> None:
        problem = reader if isinstance(reader, str) else self._misfit(reader.leaves)
        if isinstance(reader, str) or problem is not None:
            wrong |= dict.fromkeys(who.tolist(), f"schema {number} {problem}")
            return
        columns = reader.read(cursor)
        arrays = {name: columns[name].array(cursor) for name in self.names}
        good = ~cursor.broken
        if not good.all():
            wrong |= dict.fromkeys(who[~good].tolist(), BROKEN)
            mask = pa.array(good)
            arrays = {name: array.filter(mask) for name, array in arrays.items()}
            who = who[good]
        found.append((who, {name: self._as_known(name, arrays[name]) for name in self.names}))

    def _misfit(self, leaves: Mapping[str, Leaf]) -> str | None:
        """Return why columns of these kinds can't be read; learn the kinds of the first."""
        for name in self.names:
            known = self._kinds.get(name)
            if known and not fits(leaves[name].kind, known[0]):
                return f"has column {name} as {leaves[name].kind}, and it was {known[0]} before"
        for name in self.names:
            self._kinds.setdefault(name, [leaves[name].kind])
        return None

    def _as_known(self, name: str, array: pa.Array) -> pa.Array:
        kind = arrow_type(self._kinds[name][0])
        # Whole numbers beyond 2 ** 53 lose digits as fractions, as Avro's rules allow.
        return array if array.type == kind else array.cast(kind, safe=False)

    def _joined(
        self, found: list[tuple[Ints, dict[str, pa.Array]]], wrong: dict[int, str]
    ) -> tuple[pa.RecordBatch, NDArray[np.int64]]:
        """Return the rows in the order of their messages, and the places of those."""
        if not found:
            kinds = self._kinds
            types = [
                arrow_type(kinds[name][0]) if name in kinds else pa.null() for name in self.names
            ]
            arrays = [pa.array([], kind) for kind in types]
            return pa.RecordBatch.from_arrays(arrays, names=self.names), np.empty(0, np.int64)
        places = np.concatenate([who for who, _ in found])
        arrays = [pa.concat_arrays([part[name] for _, part in found]) for name in self.names]
        if len(found) > 1:
            order = np.argsort(places, kind="stable")
            places = places[order]
            arrays = [array.take(pa.array(order)) for array in arrays]
        batch = pa.RecordBatch.from_arrays(arrays, names=list(self.names))
        if broken := broken_text(batch):
            wrong |= {int(places[row]): reason for row, reason in broken.items()}
            keep = np.delete(np.arange(len(places)), list(broken))
            # A copy by rows would trust what isn't text.
            batch = pa.RecordBatch.from_arrays(
                [_taken(array, keep) for array in batch.columns], names=list(self.names)
            )
            places = places[keep]
        return batch, places


def _taken(array: pa.Array, keep: Ints) -> pa.Array:
    if pa.types.is_string(array.type):
        return array.view(pa.binary()).take(pa.array(keep)).view(pa.string())
    return array.take(pa.array(keep))


def _groups(ids: Ints) -> list[tuple[int, Ints]]:
    """Return the messages of each id, in the order of their first ones."""
    if not len(ids):
        return []
    if (ids == ids[0]).all():
        return [(int(ids[0]), np.arange(len(ids)))] if ids[0] >= 0 else []
    numbers, n_each = np.unique(ids, return_counts=True)
    parts = np.split(np.argsort(ids, kind="stable"), np.cumsum(n_each)[:-1])
    found = [(int(n), who) for n, who in zip(numbers, parts, strict=True) if n >= 0]
    return sorted(found, key=lambda pair: int(pair[1][0]))


def _shorten(kept: OrderedDict[int, Any], most: int) -> None:
    while len(kept) > most:
        kept.popitem(last=False)
