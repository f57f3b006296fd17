"""Parse the values of messages into rows.

All messages that arrived together are parsed together, since a parser's call costs as much as a
hundred rows. Each is checked first, so that what is open at the end of one (a quote, a bracket)
can't continue into the next. What can't be read becomes a bad row.
"""

from __future__ import annotations

import io
import itertools
import json
import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.ipc

from shoal.io.base import BadRow, choose_columns
from shoal.io.formats.csv import CsvParser, parse_names
from shoal.io.formats.jsonl import JsonParser, lines_of, load_object
from shoal.io.kafka.envelopes import AvroEnvelopes
from shoal.io.kafka.json_envelopes import JsonEnvelopes
from shoal.io.kafka.parsed import EMPTY, LearnedValues, ParsedRows, Values, load_json
from shoal.io.kafka.schemas.values import RegisteredValues
from shoal.io.kafka.settings import KafkaSettings
from shoal.io.readable import broken_text, is_readable, readable_batch
from shoal.io.streams import Input
from shoal.io.text.dialect import PLAIN
from shoal.io.text.source import LOOK_ROWS
from shoal.io.text.splitter import lines_of_rows, read_blocks, structural_quotes
from shoal.io.typed import plain_array

__all__ = ["ParsedRows", "Values", "joined", "json_rows", "values_for"]

_DELIMITER = b","


def values_for(
    settings: KafkaSettings, columns: Sequence[str], stopped: threading.Event | None = None
) -> Values:
    """Return the parser for a format; ``stopped`` ends its waiting, if it waits for something.

    Raises
    ------
    JobError
        If the fields of CSV messages are named, and a requested column isn't among them.
    ResourceError
        If the format needs a schema registry, and none answers.
    """
    if settings.changes is not None:
        if settings.registry is not None:
            return AvroEnvelopes(settings, columns, stopped or threading.Event())
        return JsonEnvelopes(JsonValues(columns), settings.changes)
    if settings.registry is not None:
        return RegisteredValues(settings, columns, stopped or threading.Event())
    if settings.format == "json":
        return JsonValues(columns)
    if settings.format == "arrow":
        return ArrowValues(columns)
    return CsvValues(settings.columns, columns, settings.where)


class _Unreadable(NamedTuple):
    """Something that can't be read, and how many readable pieces come before it."""

    n_pieces: int
    reason: str
    raw: bytes


class JsonValues(LearnedValues):
    r"""JSON: a message is an object, a line for each of many objects, or an array of them.

    >>> values = JsonValues(["age"])
    >>> rows = values.read([b'{"age": 1}\n{"age": 2}', None, b'[{"age": 3}, 4]'], first_row=7)
    >>> rows.batch["age"].to_pylist(), rows.rows.tolist()
    ([1, 2, 3], [7, 8, 10])
    >>> rows.bad
    [BadRow(row=9, reason='an empty message'), BadRow(row=11, reason='not a JSON object')]
    """

    def __init__(self, columns: Sequence[str]) -> None:
        self.names = tuple(columns)
        self._parser = JsonParser(columns)

    @property
    def kinds(self) -> dict[str, list[str]]:
        """The kinds of values that each column has had."""
        return self._parser.kinds

    def restore(self, kinds: dict[str, list[str]]) -> None:
        """Set what had been learned about types."""
        self._parser.kinds = kinds

    @property
    def known(self) -> pa.Schema | None:
        """The columns in the types learned so far, or None before the first."""
        return self._parser.schema() if any(self._parser.kinds.values()) else None

    def read_known(self, lines: bytes) -> pa.RecordBatch | None:
        """Parse lines of one object each, or return None if that would need other types."""
        return self._parser.parse_known(lines)

    def read(
        self,
        values: Sequence[bytes | None],
        first_row: int,
        lost: Sequence[int] | None = None,
    ) -> ParsedRows:
        """Parse messages."""
        pieces: list[bytes] = []
        wrong: list[_Unreadable] = []
        for value in values:
            if value is not None and _is_lines(value):
                pieces.append(value)
            else:
                _careful_json(value, pieces, wrong)
        data = b"\n".join(pieces)
        if not any(self._parser.kinds.values()):
            self._look(data)
        batch, bad = self._parser.parse(data, 0) if data else (self._parser.nothing, [])
        counts = [piece.count(b"\n") + (piece[-1:] != b"\n") for piece in pieces] if wrong else []
        return _numbered(batch, bad, wrong, counts, first_row)

    def _look(self, data: bytes) -> None:
        """Learn types from the first rows: without them parsing is slow."""
        rows = [load_object(line) for line in itertools.islice(lines_of(data), LOOK_ROWS)]
        good = [row for row in rows if isinstance(row, dict) and not self._parser.nested(row)]
        self._parser.widen(good)


def _is_lines(value: bytes) -> bool:
    """Return whether each line seems to begin with ``{`` and end with ``}``."""
    if value[:1] != b"{":
        return False
    ends = value[-1:] == b"\n"
    is_whole = value[-2:-1] == b"}" if ends else value[-1:] == b"}"
    return is_whole and value.count(b"\n") - ends == value.count(b"}\n{")


def _careful_json(value: bytes | None, pieces: list[bytes], wrong: list[_Unreadable]) -> None:
    """Split a message that isn't one object to a line."""
    text = (value or b"").strip()
    if value is None or not text:
        wrong.append(_Unreadable(len(pieces), EMPTY, value or b""))
        return
    if text[:1] == b"[":
        rows = load_json(text)
        if isinstance(rows, list):
            for row in rows:
                line = json.dumps(row, ensure_ascii=False).encode("utf-8", "surrogatepass")
                pieces.append(line)
            return
    lines = list(lines_of(text))
    if len(lines) > 1:
        row = load_json(text)
        if isinstance(row, dict):
            # One object over several lines: JSON has newlines only between its tokens.
            pieces.append(b" ".join(lines))
            return
        if not any(isinstance(load_object(line), dict) for line in lines):
            wrong.append(_Unreadable(len(pieces), "not a JSON object", value))
            return
    pieces += lines


def json_rows(values: Iterable[bytes | None]) -> Iterator[dict[str, Any]]:
    """Yield the objects in messages of JSON; what isn't one is left out."""
    pieces: list[bytes] = []
    for value in values:
        _careful_json(value, pieces, [])
    for piece in pieces:
        row = load_object(piece)
        if isinstance(row, dict):
            yield row


class CsvValues(Values):
    r"""CSV: a message is rows, after a header where the settings don't name the fields.

    >>> values = CsvValues(None, ["age"], "people")
    >>> rows = values.read([b"age,sex\n39,M\n50,F", b'sex,age\nM,"7\nM,8'], first_row=0)
    >>> rows.batch["age"].to_pylist(), rows.rows.tolist(), rows.bad
    (['39', '50', '8'], [0, 1, 3], [BadRow(row=2, reason='a quote is opened and never closed')])
    """

    def __init__(self, fields: Sequence[str] | None, columns: Sequence[str], where: str) -> None:
        self._where = where
        self._columns = tuple(columns)
        self.names = tuple(columns if fields is None else fields)
        self._fixed = fields is not None
        if fields is not None:
            choose_columns(fields, columns, where)
        self._names: tuple[str, ...] = self.names
        self._parser = CsvParser(self._names, columns, PLAIN, where)
        self._head: bytes | None = None

    def read(
        self,
        values: Sequence[bytes | None],
        first_row: int,
        lost: Sequence[int] | None = None,
    ) -> ParsedRows:
        """Parse messages."""
        pieces: list[tuple[CsvParser, bytes]] = []
        wrong: list[_Unreadable] = []
        for value in values:
            if value is None or not value.strip():
                wrong.append(_Unreadable(len(pieces), EMPTY, value or b""))
                continue
            rest = value if self._fixed else self._without_header(value)
            if isinstance(rest, str):
                wrong.append(_Unreadable(len(pieces), rest, value))
            elif b'"' in rest and len(structural_quotes(rest, _DELIMITER)) % 2:
                for block in read_blocks(Input(io.BytesIO(rest), self._where), _DELIMITER):
                    if block.reason is None:
                        pieces.append((self._parser, block.data))
                    else:
                        wrong.append(
                            _Unreadable(len(pieces), block.reason, block.data.rstrip(b"\r\n"))
                        )
            else:
                pieces.append((self._parser, rest))
        batches, bad = [self._parser.nothing], []
        n_rows = 0
        for parser, run in itertools.groupby(pieces, key=lambda piece: piece[0]):
            data = b"\n".join(piece for _, piece in run)
            if data.strip(b"\r\n"):
                batch, found = parser.parse(data, n_rows)
                batches.append(batch)
                bad += found
                n_rows += batch.num_rows + len(found)
        counts = (
            [sum(1 for _ in lines_of_rows(piece, _DELIMITER)) for _, piece in pieces]
            if wrong
            else []
        )
        return _numbered(joined(batches), bad, wrong, counts, first_row)

    def _without_header(self, value: bytes) -> bytes | str:
        """Take the fields from the header; return the rest, or why that isn't possible."""
        if self._head is not None and value.startswith(self._head):
            return value[len(self._head) :]
        line, end = next(lines_of_rows(value, _DELIMITER))
        names = parse_names(line, PLAIN)
        if names is None:
            return "its first line isn't a header in UTF-8"
        if missing := [name for name in self._columns if name not in names]:
            return f"its header has no column {' and no column '.join(missing)}"
        if len(set(names)) < len(names):
            return "two columns of its header have the same name"
        if names != self._names:
            self._names = names
            self._parser = CsvParser(names, self._columns, PLAIN, self._where)
        # Only with its newline is the header known to be complete.
        self._head = value[:end] if value[end - 1 : end] == b"\n" else None
        return value[end:]


class ArrowValues(Values):
    """Arrow: a message is a whole IPC stream, with its own types."""

    def __init__(self, columns: Sequence[str]) -> None:
        self.names = tuple(columns)
        self._types = pa.schema([(name, pa.null()) for name in columns])

    def read(
        self,
        values: Sequence[bytes | None],
        first_row: int,
        lost: Sequence[int] | None = None,
    ) -> ParsedRows:
        """Parse messages; columns that differ in type are cast to a wider one, or to text.

        The types of the batch depend on these messages only.
        """
        try:
            return self._read(values, first_row, careful=False)
        except (pa.ArrowException, OSError):
            # A message is damaged inside: only a full check of each one finds it.
            return self._read(values, first_row, careful=True)

    def _read(self, values: Sequence[bytes | None], first_row: int, *, careful: bool) -> ParsedRows:
        batches: list[pa.RecordBatch] = []
        wrong: list[_Unreadable] = []
        for value in values:
            batch = self._one(value, careful) if value else EMPTY
            if isinstance(batch, str):
                wrong.append(_Unreadable(len(batches), batch, value or b""))
            else:
                batches.append(batch)
        counts = [batch.num_rows for batch in batches]
        batch = joined(batches) if batches else pa.RecordBatch.from_pylist([], schema=self._types)
        broken = broken_text(batch)
        if broken:
            batch = batch.filter(pa.array([row not in broken for row in range(batch.num_rows)]))
        bad = [BadRow(row, broken[row]) for row in sorted(broken)]
        return _numbered(batch, bad, wrong, counts, first_row)

    def _one(self, value: bytes, careful: bool) -> pa.RecordBatch | str:
        """Return the requested columns of a message, without dictionaries; or why that fails."""
        try:
            with pa.ipc.open_stream(value) as reader:
                names = reader.schema.names
                if missing := [name for name in self.names if name not in names]:
                    return f"it has no column {' and no column '.join(missing)}"
                if len(set(names)) < len(names):
                    return "two of its columns have the same name"
                for name in self.names:
                    if not is_readable(reader.schema.field(name).type):
                        return f"column {name} holds nested values"
                kinds = [(name, reader.schema.field(name).type) for name in self.names]
                nothing = pa.RecordBatch.from_pylist([], schema=pa.schema(kinds))
                batches = [batch.select(list(self.names)) for batch in reader]
            for batch in batches:
                batch.validate()
            batches = [readable_batch(batch) for batch in batches]
            schema = readable_batch(nothing).schema
            for batch in batches:
                if careful:
                    broken_text(batch)
            if any(pa.types.is_dictionary(schema.field(name).type) for name in self.names):
                batches = [_decoded(batch) for batch in batches]
            if not batches:
                return _decoded(readable_batch(nothing))
            return joined(batches)
        except (pa.ArrowException, OSError, UnicodeDecodeError):
            # The name of a column may be no text.
            return "not a whole Arrow stream"


def _decoded(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch without dictionaries, which are validated first."""
    broken_text(batch)
    arrays = [
        plain_array(array, array.type.value_type) if pa.types.is_dictionary(array.type) else array
        for array in batch.columns
    ]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """Concatenate batches with the same columns; types that differ are made to agree."""
    if len(batches) == 1:
        return batches[0]
    arrays = []
    for place in range(batches[0].num_columns):
        columns = [batch.column(place) for batch in batches]
        if len({column.type for column in columns}) > 1:
            columns = _agreeing(columns)
        arrays.append(pa.concat_arrays(columns))
    return pa.RecordBatch.from_arrays(arrays, names=batches[0].schema.names)


def _agreeing(columns: list[pa.Array]) -> list[pa.Array]:
    fields = [pa.schema([("x", column.type)]) for column in columns]
    try:
        kind = pa.unify_schemas(fields, promote_options="permissive").field("x").type
        return [column.cast(kind) for column in columns]
    except pa.ArrowException:
        return [column.cast(pa.string()) for column in columns]


def _numbered(
    batch: pa.RecordBatch,
    bad: list[BadRow],
    wrong: list[_Unreadable],
    counts: Sequence[int],
    first_row: int,
) -> ParsedRows:
    """Number rows, good and bad, and insert what couldn't be read at its place.

    ``counts`` are the numbers of rows of the pieces; needed only if something is unreadable.
    """
    places = np.arange(batch.num_rows + len(bad), dtype=np.int64)
    before = np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))
    at = before[[item.n_pieces for item in wrong]] if wrong else np.empty(0, np.int64)
    numbers = first_row + places + np.searchsorted(at, places, side="right")
    found = [BadRow(int(numbers[row.row]), row.reason, row.raw) for row in bad]
    rows = np.delete(numbers, [row.row for row in bad]) if bad else numbers
    for place, item in enumerate(wrong):
        found.append(BadRow(first_row + int(at[place]) + place, item.reason, item.raw))
    return ParsedRows(batch, rows, sorted(found, key=lambda row: row.row))
