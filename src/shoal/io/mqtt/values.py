"""Turn messages into rows: one message is one row, or one bad row."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.io.base import BadRow, choose_columns
from shoal.io.formats.csv import CsvParser
from shoal.io.formats.jsonl import JsonParser, load_object
from shoal.io.mqtt.paths import FieldPath
from shoal.io.mqtt.settings import MqttSettings
from shoal.io.mqtt.topics import TopicPattern
from shoal.io.text.dialect import PLAIN
from shoal.io.text.source import RowParser
from shoal.io.text.splitter import structural_quotes

__all__ = ["ParsedRows", "Values"]

EMPTY = "an empty message"
_NO_ROW = "not a row"


class ParsedRows(NamedTuple):
    """The rows of some messages: those that could be read, their numbers, and bad rows."""

    batch: pa.RecordBatch
    rows: NDArray[np.int64]
    bad: list[BadRow]


class Values:
    r"""Parses messages. Columns that the topic names come from there, the others from the payload.

    Parameters
    ----------
    settings
        The topic and the format.
    columns
        The columns to read.

    Raises
    ------
    JobError
        If a requested column is neither in the topic nor among the fields of CSV messages.

    >>> values = Values(MqttSettings("localhost", "ward/{ward}"), ["age", "ward"])
    >>> rows = values.read([("ward/A", b'{"age": 39}'), ("ward/B", b"39"), ("ward/C", b"")], 7)
    >>> rows.batch.to_pylist(), rows.rows.tolist()
    ([{'age': 39, 'ward': 'A'}], [7])
    >>> rows.bad
    [BadRow(row=8, reason='not a JSON object'), BadRow(row=9, reason='an empty message')]
    """

    def __init__(self, settings: MqttSettings, columns: Sequence[str]) -> None:
        self._topic = TopicPattern(settings.topic)
        self._columns = tuple(columns)
        self._inner = tuple(name for name in columns if name not in self._topic.names)
        self._paths = {
            name: FieldPath(path, f"fields.{name}") for name, path in settings.fields.items()
        }
        self._parser: RowParser
        if settings.format == "json":
            self._parser = JsonParser(self._inner)
            self.names = self._columns
        else:
            fields = settings.columns or ()
            choose_columns([*fields, *self._topic.names], self._columns, settings.where)
            self._parser = CsvParser(fields, self._inner, PLAIN, settings.where)
            self.names = tuple(dict.fromkeys([*fields, *self._topic.names]))

    @property
    def kinds(self) -> dict[str, list[str]]:
        """What has been learned about types; a source that resumes from here must set it."""
        return self._parser.kinds if isinstance(self._parser, JsonParser) else {}

    def restore(self, kinds: dict[str, list[str]]) -> None:
        """Set what had been learned about types."""
        if isinstance(self._parser, JsonParser):
            self._parser.kinds = kinds

    def read(self, messages: Sequence[tuple[str, bytes]], first_row: int) -> ParsedRows:
        """Parse messages, given as topic and payload; the first one's row gets this number."""
        wrong: dict[int, str] = {}
        lines: list[bytes] = []
        places: list[int] = []
        for place, (_, payload) in enumerate(messages):
            line = self._line(payload) if self._inner else b""
            if isinstance(line, str):
                wrong[place] = line
            else:
                lines.append(line)
                places.append(place)
        inner, refused = self._parse(lines)
        wrong |= {places[place]: reason for place, reason in refused.items()}
        good = [place for place in range(len(messages)) if place not in wrong]
        parts = [self._topic.parts(messages[place][0]) for place in good]
        arrays = {
            name: pa.array([part[i] for part in parts], pa.string())
            for i, name in enumerate(self._topic.names)
        } | dict(zip(self._inner, inner.columns, strict=True))
        batch = pa.RecordBatch.from_arrays(
            [arrays[name] for name in self._columns], names=list(self._columns)
        )
        bad = [
            BadRow(first_row + place, wrong[place], messages[place][1]) for place in sorted(wrong)
        ]
        return ParsedRows(batch, np.asarray(good, np.int64) + first_row, bad)

    def _parse(self, lines: list[bytes]) -> tuple[pa.RecordBatch, dict[int, str]]:
        """Return the rows of lines, and which of them aren't rows and why."""
        if not self._inner:
            return pa.RecordBatch.from_arrays([], names=[]), {}
        data = b"\n".join(lines)
        batch, bad = self._parser.parse(data, 0) if lines else (self._parser.nothing, [])
        if batch.num_rows + len(bad) == len(lines):
            return batch, {row.row: row.reason for row in bad}
        # A line is no row, or more than one, for the parser: none may take another one's place.
        refused, whole = {}, []
        for place, line in enumerate(lines):
            batch, bad = self._parser.parse(line, 0)
            if batch.num_rows == 1 and not bad:
                whole.append(line)
            else:
                refused[place] = bad[0].reason if len(bad) == 1 else _NO_ROW
        batch, _ = self._parser.parse(b"\n".join(whole), 0) if whole else (self._parser.nothing, [])
        assert batch.num_rows == len(whole)
        return batch, refused

    def _line(self, payload: bytes) -> bytes | str:
        """Return the payload as one line; or why that isn't possible."""
        line = payload.strip() if isinstance(self._parser, JsonParser) else payload.strip(b"\r\n")
        if not line.strip():
            return EMPTY
        is_one = b"\n" not in line and b"\r" not in line
        if isinstance(self._parser, JsonParser):
            return line if is_one and not self._paths else self._rewritten(line)
        if not is_one:
            return "more than one line"
        if b'"' in line and len(structural_quotes(line, b",")) % 2:
            return "a quote is opened and never closed"
        return line

    def _rewritten(self, text: bytes) -> bytes | str:
        """Return the requested columns of an object as a line."""
        found = load_object(text)
        if isinstance(found, str):
            return found
        row = {
            name: self._paths[name].find(found) if name in self._paths else found.get(name)
            for name in self._inner
        }
        for name, value in row.items():
            if isinstance(value, dict | list):
                return f"column {name} isn't a plain value"
        return json.dumps(row, ensure_ascii=False).encode("utf-8", "surrogatepass")
