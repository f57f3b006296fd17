"""What an output holds beside its rows: metadata, and values in dictionaries that no row uses.

A table shows the rows. The files it was read from may hold more: metadata of the file, of a column
or of a batch, columns that the reader left out, and dictionaries. CSV and JSON lines have none of
these.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc
import pyarrow.parquet

from shoal.audit.columns import Array, is_bytes, is_text
from shoal.audit.metadata import has_extra_metadata

__all__ = ["Hidden", "hidden_in"]

_PARQUET, _ARROW = b"PAR1", b"ARROW1"
#: How an Arrow stream, which has no magic number, begins: a marker, then the length of the schema.
_STREAM = b"\xff\xff\xff\xff"
#: The number of a column, which table formats give it; the only metadata a column may have.
_FIELD_ID = b"PARQUET:field_id"


@dataclass(slots=True)
class Hidden:
    """What was found, by the names of columns.

    ``has_metadata`` says that a table, a file or a batch has metadata; ``described`` are columns
    with metadata, ``unused`` those with values that no row has, ``columns`` those that only the
    files have.
    """

    has_metadata: bool = False
    described: list[str] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)

    def add(self, names: Iterable[str], kind: str) -> None:
        """Note columns, each once."""
        known: list[str] = getattr(self, kind)
        known.extend(name for name in names if name not in known)


def hidden_in(
    published: pa.Table, files: Sequence[Path] = (), *, labels: Sequence[str] = ()
) -> Hidden:
    """Look into a table, and into the Parquet and Arrow files that it was read from.

    ``labels`` are columns for which a run has dictionaries of all possible labels, in memory only:
    their dictionaries are looked at in files alone.

    >>> codes = pa.array([0, 0], pa.int32())
    >>> ill = pa.DictionaryArray.from_arrays(codes, pa.array(["flu", "gout"]))
    >>> hidden_in(pa.table({"ill": ill})).unused
    ['ill']
    """
    found = Hidden()
    _look_at_schema(found, published.schema)
    rest = [i for i, name in enumerate(published.schema.names) if name not in labels]
    table = published.select(rest)
    _look_at_batches(found, table.schema, table.to_batches())
    for path in files:
        _look_into(found, path, published.schema.names)
    return found


def _look_into(found: Hidden, path: Path, names: Sequence[str]) -> None:
    """Look into one file; what can't be read is a matter of whoever has read the table."""
    try:
        with path.open("rb") as file:
            start = file.read(len(_ARROW))
        if start.startswith(_PARQUET):
            _look_into_parquet(found, path, names)
        elif start.startswith((_ARROW, _STREAM)):
            _look_into_arrow(found, path, names, is_file=start.startswith(_ARROW))
    except (OSError, pa.ArrowException):
        # A message of Arrow may quote a value.
        return


def _look_into_parquet(found: Hidden, path: Path, names: Sequence[str]) -> None:
    with pa.parquet.ParquetFile(path) as plain:
        schema, metadata = plain.schema_arrow, dict(plain.metadata.metadata or {})
        groups = [plain.metadata.row_group(i) for i in range(plain.metadata.num_row_groups)]
    metadata.pop(b"ARROW:schema", None)
    found.has_metadata |= has_extra_metadata(metadata, schema.names)
    for group in groups:
        for i in range(group.num_columns):
            chunk = group.column(i)
            if getattr(chunk, "metadata", None):
                found.add([chunk.path_in_schema], "described")
    _look_at_schema(found, schema)
    found.add((name for name in schema.names if name not in names), "columns")
    texts = [one.name for one in schema if is_text(one.type) or is_bytes(one.type)]
    with pa.parquet.ParquetFile(path, read_dictionary=texts) as file:
        for number in range(file.num_row_groups):
            table = file.read_row_group(number, columns=texts, use_threads=False)
            _look_at_batches(found, table.schema, table.to_batches())


def _look_into_arrow(found: Hidden, path: Path, names: Sequence[str], *, is_file: bool) -> None:
    with pa.memory_map(str(path)) as source:
        if is_file:
            reader = pa.ipc.open_file(source)
            batches = (
                reader.get_batch_with_custom_metadata(i) for i in range(reader.num_record_batches)
            )
            footer: Mapping[bytes, bytes] | None = getattr(reader, "metadata", None)
            found.has_metadata |= has_extra_metadata(footer, reader.schema.names)
        else:
            reader = pa.ipc.open_stream(source)
            batches = reader.iter_batches_with_custom_metadata()
        _look_at_schema(found, reader.schema)
        found.add((name for name in reader.schema.names if name not in names), "columns")
        _look_at_batches(found, reader.schema, _without_metadata(found, batches))


def _without_metadata(found: Hidden, batches: Iterable[Any]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        found.has_metadata |= bool(batch.custom_metadata)
        yield batch.batch


def _look_at_schema(found: Hidden, schema: pa.Schema) -> None:
    metadata = dict(schema.metadata or {})
    metadata.pop(b"ARROW:schema", None)
    found.has_metadata |= has_extra_metadata(metadata, schema.names)
    found.add((one.name for one in schema if _is_described(one)), "described")


def _is_described(column: pa.Field) -> bool:
    """Return whether a column has metadata beside its number, or one of its parts has."""
    rest = dict(column.metadata or {})
    if rest.pop(_FIELD_ID, b"0").removeprefix(b"-").isdigit() and not rest:
        kind = column.type
        if pa.types.is_nested(kind):
            return any(_is_described(kind.field(i)) for i in range(kind.num_fields))
        return False
    return True


def _look_at_batches(found: Hidden, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """Compare the values of dictionaries with those of rows, over all batches."""
    places = [i for i, one in enumerate(schema) if pa.types.is_dictionary(one.type)]
    listed: dict[int, list[Array]] = {i: [] for i in places}
    used: dict[int, list[Array]] = {i: [] for i in places}
    for batch in batches:
        for i in places:
            array = batch.column(i)
            seen = listed[i][-1] if listed[i] else None
            if seen is None or not array.dictionary.equals(seen):
                listed[i].append(array.dictionary)
            used[i].append(array.dictionary.take(pc.unique(array.indices).drop_null()))
    for i in places:
        if not listed[i]:
            continue
        kind = schema.field(i).type.value_type
        values = pc.unique(pa.chunked_array(listed[i], kind))
        shown = pc.unique(pa.chunked_array(used[i], kind))
        if not pc.all(pc.is_in(values, value_set=shown), min_count=0).as_py():
            found.add([schema.field(i).name], "unused")
