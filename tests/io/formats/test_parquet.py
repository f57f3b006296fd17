"""Parquet files: what is written, whatever form the rows come in."""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shoal.io.formats import parquet
from shoal.io.typed import plain_batch, used_only

SCHEMA = pa.schema(
    [("label", pa.string()), ("n", pa.int64()), ("text", pa.string()), ("mixed", pa.string())]
)


class Output(io.BytesIO):
    """Bytes that can be looked at after the file is closed."""

    broken = False
    written = b""

    def close(self):
        self.written = self.getvalue()
        super().close()


def by_arrow(batches, group_rows):
    """The file that Arrow writes of plain text."""
    output = io.BytesIO()
    with pq.ParquetWriter(output, SCHEMA, compression="zstd") as writer:
        table = pa.Table.from_batches([plain_batch(b, SCHEMA) for b in batches], SCHEMA)
        for start in range(0, table.num_rows, group_rows):
            group = table.slice(start, group_rows).combine_chunks()
            writer.write_table(group, row_group_size=group.num_rows)
    return output.getvalue()


def by_shoal(batches):
    output = Output()
    sink = parquet.ParquetSink(output, SCHEMA)
    for batch in batches:
        sink.write(batch)
    sink.close()
    return output.written


def drawn(seed):
    draw = np.random.default_rng(seed)
    labels = [f"label {i}" for i in range(draw.integers(1, 40))]
    labels += ["twice", "twice"] if seed % 5 == 0 else []
    labels += [None] if seed % 7 == 0 else []
    batches = []
    for number in range(draw.integers(0, 6)):
        n = int(draw.integers(0, 700))
        nulls = draw.random(n) < [0.0, 0.1, 1.0][seed % 3]
        places = pa.array(draw.integers(0, len(labels), n).astype(np.int32), mask=nulls)
        label = pa.DictionaryArray.from_arrays(places, pa.array(labels, pa.string()))
        text = pa.array([f"text {i}" for i in draw.integers(0, 9, n)], pa.string())
        mixed = label if number % 2 == seed % 2 else label.dictionary_decode()
        columns = [label, pa.array(draw.integers(0, 9, n)), text, mixed]
        batches.append(pa.record_batch(columns, names=SCHEMA.names))
    return batches


@pytest.mark.parametrize("seed", range(30))
def test_dictionaries_are_written_as_text_is(monkeypatch, seed):
    monkeypatch.setattr(parquet, "ROW_GROUP_ROWS", 500)
    batches = drawn(seed)
    assert by_shoal(batches) == by_arrow(batches, 500)


def test_a_value_that_no_row_has_is_not_in_the_file(monkeypatch):
    monkeypatch.setattr(parquet, "ROW_GROUP_ROWS", 4)
    dictionary = pa.array(["canary", "a", "b", "other canary"])
    # The second batch is cut between two row groups.
    batches = [
        pa.record_batch(
            [pa.DictionaryArray.from_arrays(pa.array(places, pa.int32()), dictionary)] * 4,
            names=SCHEMA.names,
        ).set_column(1, "n", pa.array([0] * 3))
        for places in ([1, 2, 1], [2, 1, 1])
    ]
    written = by_shoal(batches)
    assert b"canary" not in written
    file = pq.ParquetFile(io.BytesIO(written), read_dictionary=["label"])
    assert file.metadata.num_row_groups == 2
    assert file.read_row_group(1)["label"].chunk(0).dictionary.to_pylist() == ["a"]
    assert file.read()["label"].to_pylist() == ["a", "b", "a", "b", "a", "a"]
    assert pq.read_schema(io.BytesIO(written)) == SCHEMA


def test_no_rows_make_a_file_with_columns():
    assert by_shoal([]) == by_arrow([], 500)


def test_values_used_late_come_last():
    places = np.zeros(5000, np.int32)
    places[4000], places[4999] = 3, 1
    array = pa.DictionaryArray.from_arrays(pa.array(places), pa.array(["a", "b", "hidden", "d"]))
    found = used_only(array)
    assert found.dictionary.to_pylist() == ["a", "d", "b"]
    assert found.to_pylist() == array.to_pylist()
