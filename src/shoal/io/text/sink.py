"""Write rows as lines of text: each column is rendered as a whole, then the rows are joined."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.errors import JobError, Problem
from shoal.io.typed import plain_array

__all__ = ["TextSink"]

_SLICE_ROWS = 65536


class TextSink(ABC):
    """Base of the sinks whose rows are lines of text.

    A subclass says how a text is escaped, how null is written, and what surrounds the values.
    """

    def __init__(self, output: Any, schema: pa.Schema) -> None:
        problems = [
            Problem(
                f"column {field.name}",
                "holds bytes, which a text format can't carry",
                None,
                "Write Parquet or Arrow, or leave it out",
            )
            for field in schema
            if pa.types.is_binary(field.type)
            or pa.types.is_large_binary(field.type)
            or pa.types.is_fixed_size_binary(field.type)
        ]
        if problems:
            raise JobError(problems)
        self._output = output
        self._schema = schema

    def write(self, batch: pa.RecordBatch) -> None:
        """Write some rows."""
        # Arrow's text arrays end at 2 GiB: slices stay far below.
        for start in range(0, batch.num_rows, _SLICE_ROWS):
            self._write(batch.slice(start, _SLICE_ROWS))

    def _write(self, batch: pa.RecordBatch) -> None:
        last = len(self._schema) - 1
        texts = [
            self._texts(
                batch.column(field.name),
                field.type,
                self._before(place, field.name),
                self._line_end if place == last else "",
            )
            for place, field in enumerate(self._schema)
        ]
        lines = pc.binary_join_element_wise(*texts, self._separator)
        # Each line has its newline, so the buffer holds the lines exactly as they are written.
        _, offsets, text = lines.buffers()
        n_bytes = int(np.frombuffer(offsets, np.int32)[len(lines)])
        self._output.write(text[:n_bytes])

    def flush(self) -> None:
        """Pass all rows so far to the operating system."""
        self._output.flush()

    def close(self) -> None:
        """Write the rest and close the file."""
        if not self._output.closed:
            self._output.close()

    def _texts(self, array: pa.Array, kind: pa.DataType, before: str, after: str) -> pa.Array:
        """Return the values of a column as they stand in the line, with what surrounds them."""
        if pa.types.is_dictionary(array.type) and len(array.dictionary) <= len(array):
            # Labels are few and rows are many: render each label once.
            texts = self._framed(self._escaped_texts(array.dictionary, kind), before, after)
            array = pa.DictionaryArray.from_arrays(array.indices, texts).dictionary_decode()
        else:
            texts = self._escaped_texts(plain_array(array, kind), kind)
            array = self._framed(texts, before, after)
        return array.fill_null(before + self._null + after) if array.null_count else array

    @staticmethod
    def _framed(texts: pa.Array, before: str, after: str) -> pa.Array:
        if not before and not after:
            return texts
        return pc.binary_join_element_wise(before, texts, after, "")

    def _escaped_texts(self, array: pa.Array, kind: pa.DataType) -> pa.Array:
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            return self._quoted(array.cast(pa.string()))
        if pa.types.is_floating(kind):
            array = self._finite(array)
        texts = array.cast(pa.string())
        is_bare = pa.types.is_boolean(kind) or pa.types.is_decimal(kind)
        is_bare = is_bare or pa.types.is_integer(kind) or pa.types.is_floating(kind)
        return texts if is_bare or pa.types.is_null(kind) else self._quoted(texts)

    @staticmethod
    def _replace(texts: pa.Array, pattern: str, escape: Callable[[str], str]) -> pa.Array:
        """Escape the texts that match a pattern, and leave the others."""
        found = pc.match_substring_regex(texts, pattern).fill_null(False)
        if not pc.any(found).as_py():
            return texts
        escaped = [escape(text) for text in texts.filter(found).to_pylist()]
        return pc.replace_with_mask(texts, found, pa.array(escaped, pa.string()))

    def _finite(self, numbers: pa.Array) -> pa.Array:
        return numbers

    #: What is written for a missing value, between two values, and at the end of a line.
    _null: str
    _separator: str
    _line_end: str

    @abstractmethod
    def _before(self, place: int, name: str) -> str:
        """Return what is written before the value of a column."""

    @abstractmethod
    def _quoted(self, texts: pa.Array) -> pa.Array:
        """Return texts as they stand in the line."""
