import datetime
import errno
import io
import os
import subprocess
import sys
import threading
import tracemalloc
from contextlib import closing
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shoal.errors import JobError, ParameterError, ResourceError
from shoal.io import open_sink, open_source
from shoal.io.formats import file_type

FORMATS = ["csv", "tsv", "jsonl", "parquet", "arrow"]
COMPRESSIONS = ["", ".gz", ".bz2", ".zst", ".lz4"]
SCHEMA = pa.schema([("label", pa.string()), ("text", pa.string()), ("n", pa.int64())])
TEXTS = ["plain", 'say "hi"', "a,b\tc", "two\nlines", "é", None, " space ", "back\\slash"]


def batches(n_batches=3):
    """Give batches with a dictionary of its own each."""
    for number in range(n_batches):
        labels = pa.array([f"[{number}, {number + 5})", 'a "b", c', "unused secret"])
        yield pa.record_batch(
            {
                "label": pa.DictionaryArray.from_arrays(
                    pa.array([0, 1, None, 0, 1, 0, 0, 0], pa.int32()), labels
                ),
                "text": pa.array(TEXTS),
                "n": pa.array([*range(number, number + 7), None], pa.int64()),
            }
        )


EXPECTED = pa.Table.from_batches(
    [
        pa.record_batch([b["label"].dictionary_decode(), b["text"], b["n"]], SCHEMA)
        for b in batches()
    ]
)


def write(path, parts=None, schema=SCHEMA):
    sink = open_sink(path, schema)
    for batch in parts if parts is not None else batches():
        sink.write(batch)
    sink.close()
    sink.close()


def chunks(path, columns=None, **options):
    with closing(open_source(path, columns, **options)) as source:
        yield from source


def names(path):
    with closing(open_source(path)) as source:
        return source.schema_names


def read(path, columns=None, **options):
    found = list(chunks(path, columns, **options))
    assert np.concatenate([c.rows for c in found]).tolist() == list(
        range(sum(c.batch.num_rows for c in found))
    )
    return [row for chunk in found for row in chunk.batch.to_pylist()]


def as_read(name, rows):
    """What a text format makes of the rows."""
    if name in ("csv", "tsv"):
        return [{k: v if v is None else str(v) for k, v in row.items()} for row in rows]
    return rows


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_what_is_written_is_read(tmp_path, name, compression):
    path = tmp_path / f"people.{name}{compression}"
    write(path)
    assert read(path, ["n", "label", "text"]) == as_read(
        name, EXPECTED.select(["n", "label", "text"]).to_pylist()
    )
    assert names(path) == ("label", "text", "n")


@pytest.mark.parametrize("name", FORMATS)
def test_what_a_dictionary_holds_beside_the_rows_isnt_written(tmp_path, name):
    path = tmp_path / f"people.{name}"
    write(path)
    assert b"unused secret" not in path.read_bytes()


@pytest.mark.parametrize("name", ["parquet", "arrow"])
def test_columns_of_labels_are_written_as_plain_text(tmp_path, name):
    path = tmp_path / f"people.{name}"
    write(path)
    if name == "parquet":
        assert pq.read_schema(path).equals(SCHEMA)
    else:
        assert pa.ipc.open_stream(path.read_bytes()).schema.equals(SCHEMA)


@pytest.mark.parametrize("name", FORMATS)
def test_an_output_without_rows_has_columns(tmp_path, name):
    path = tmp_path / f"people.{name}"
    write(path, [])
    if name == "jsonl":
        assert path.read_bytes() == b""
    else:
        assert names(path) == ("label", "text", "n")
        assert list(chunks(path)) == []


@pytest.mark.parametrize("name", ["csv", "jsonl"])
def test_other_types_as_text(tmp_path, name):
    batch = pa.record_batch(
        {
            "day": pa.array([datetime.date(2024, 2, 29)]),
            "money": pa.array([Decimal("1.50")]),
            "yes": pa.array([True]),
            "nothing": pa.nulls(1),
            "ratio": pa.array([0.25]),
        }
    )
    path = tmp_path / f"x.{name}"
    write(path, [batch], batch.schema)
    want = {
        "csv": "day,money,yes,nothing,ratio\n2024-02-29,1.50,true,,0.25\n",
        "jsonl": '{"day": "2024-02-29", "money": 1.50, "yes": true, "nothing": null, '
        '"ratio": 0.25}\n',
    }
    assert path.read_text() == want[name]


def test_csv_is_quoted_only_where_it_must_be(tmp_path):
    path = tmp_path / "x.csv"
    batch = pa.record_batch({"a,b": pa.array(["x", "", None, 'q"', "l\n"]), "c": pa.nulls(5)})
    write(path, [batch], pa.schema([("a,b", pa.string()), ("c", pa.string())]))
    assert path.read_text() == '"a,b",c\nx,\n"",\n,\n"q""",\n"l\n",\n'


def test_a_single_null_of_a_csv_is_still_a_row(tmp_path):
    path = tmp_path / "x.csv"
    write(path, [pa.record_batch({"a": pa.array(["x", None])})], pa.schema([("a", pa.string())]))
    assert [row["a"] for row in read(path)] == ["x", ""]


def test_bytes_dont_fit_a_text_format(tmp_path):
    with pytest.raises(JobError, match="column b: holds bytes"):
        open_sink(tmp_path / "x.csv", pa.schema([("b", pa.binary())]))


@pytest.mark.parametrize("name", ["csv", "jsonl", "parquet"])
def test_a_file_doesnt_depend_on_how_its_rows_were_batched(tmp_path, monkeypatch, name):
    monkeypatch.setattr("shoal.io.formats.parquet.ROW_GROUP_ROWS", 10)
    parts = list(batches(5))
    ones = [batch.slice(i, 1) for batch in parts for i in range(batch.num_rows)]
    write(tmp_path / f"one.{name}", parts)
    write(tmp_path / f"two.{name}", ones)
    assert (tmp_path / f"one.{name}").read_bytes() == (tmp_path / f"two.{name}").read_bytes()
    if name == "parquet":
        metadata = pq.ParquetFile(tmp_path / "one.parquet").metadata
        groups = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
        assert groups == [10, 10, 10, 10]


@pytest.mark.parametrize("name", FORMATS)
def test_batches_have_at_most_batch_rows(tmp_path, name):
    path = tmp_path / f"people.{name}"
    write(path)
    assert max(chunk.batch.num_rows for chunk in chunks(path, batch_rows=5)) <= 5
    assert read(path, batch_rows=5) == as_read(name, EXPECTED.to_pylist())


# -- pipes ---------------------------------------------------------------------------------------


@pytest.fixture
def pipe():
    ends = list(os.pipe())
    yield ends
    for number in ends:
        try:
            os.close(number)
        except OSError as error:
            assert error.errno == errno.EBADF


def stdin_from(monkeypatch, number):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.FileIO(number, closefd=False)))


@pytest.mark.parametrize(
    ("name", "first", "more"),
    [
        ("csv", b"a,b\n1,2\n3,", b"4\n"),
        ("jsonl", b'{"a": "1", "b": "2"}\n{"a": "3"', b', "b": "4"}\n'),
    ],
)
def test_rows_of_a_pipe_come_before_its_writer_is_done(monkeypatch, pipe, name, first, more):
    reader, writer = pipe
    stdin_from(monkeypatch, reader)
    os.write(writer, first)
    source = open_source("-", ["a", "b"], format=name)
    rows = iter(source)
    # The writer is still there: this would wait for ever if it waited for more than is there.
    assert next(rows).batch.to_pylist() == [{"a": "1", "b": "2"}]
    os.write(writer, more)
    assert next(rows).batch.to_pylist() == [{"a": "3", "b": "4"}]
    os.close(writer)
    assert list(rows) == []
    source.close()
    os.fstat(reader)


def test_the_first_row_of_a_json_pipe_names_every_column(monkeypatch, pipe):
    reader, writer = pipe
    stdin_from(monkeypatch, reader)
    os.write(writer, b'{"age": 1}\n{"age": 1, "sex": "F"}\n')
    with pytest.raises(JobError, match="column sex: isn't in the input"):
        open_source("-", ["age", "sex"], format="jsonl")


def test_standard_streams_may_be_in_memory(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a\n1\n")))
    out = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out))
    [chunk] = open_source("-")
    sink = open_sink("-", chunk.batch.schema)
    sink.write(chunk.batch)
    sink.close()
    assert out.getvalue() == b"a\n1\n"


def test_batches_of_an_arrow_pipe_come_before_its_writer_is_done(monkeypatch, pipe):
    reader, writer = pipe
    stdin_from(monkeypatch, reader)
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.FileIO(writer, "wb", closefd=False)))
    sink = open_sink("-", SCHEMA, format="arrow")
    first, second, _ = batches()
    sink.write(first)
    sink.flush()
    rows = iter(open_source("-", format="arrow"))
    assert next(rows).batch.num_rows == 8
    sink.write(second)
    sink.close()
    os.close(writer)
    assert [chunk.rows.tolist() for chunk in rows] == [list(range(8, 16))]


@pytest.mark.parametrize("name", [*FORMATS, "csv.gz", "parquet.zst"])
def test_a_program_between_two_pipes(tmp_path, name):
    path = tmp_path / f"people.{name}"
    write(path)
    program = (
        "import sys\n"
        "from shoal.io import open_sink, open_source\n"
        "source = open_source('-', format=sys.argv[1])\n"
        "sink = None\n"
        "for chunk in source:\n"
        "    sink = sink or open_sink('-', chunk.batch.schema, format='jsonl')\n"
        "    sink.write(chunk.batch)\n"
        "sink.close()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, name],
        input=path.read_bytes(),
        capture_output=True,
        check=True,
    )
    out = tmp_path / "out.jsonl"
    out.write_bytes(done.stdout)
    assert read(out) == as_read(name.split(".")[0], EXPECTED.to_pylist())
    assert done.stderr == b""


@pytest.mark.parametrize("name", [*FORMATS, "csv.gz"])
def test_a_reader_that_goes_away(monkeypatch, pipe, name):
    reader, writer = pipe
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.FileIO(writer, "wb", closefd=False)))
    sink = open_sink("-", SCHEMA, format=name)
    os.close(reader)
    with pytest.raises(ResourceError, match="the reader of the output closed the pipe"):
        for batch in batches(1):
            sink.write(batch)
        sink.flush()
        sink.close()
    sink.close()


def test_more_than_a_pipe_holds_goes_through(monkeypatch, pipe):
    reader, writer = pipe
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.FileIO(writer, "wb", closefd=False)))
    sink = open_sink("-", pa.schema([("a", pa.string())]), format="csv")
    got = []

    def drain():
        while data := os.read(reader, 1 << 16):
            got.append(data)

    thread = threading.Thread(target=drain)
    thread.start()
    sink.write(pa.record_batch({"a": pa.array(["x" * 99] * 30_000)}))
    sink.close()
    os.close(writer)
    thread.join()
    assert b"".join(got) == b"a\n" + (b"x" * 99 + b"\n") * 30_000


# -- what can go wrong ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", FORMATS)
def test_a_full_disk(name):
    sink = open_sink("/dev/full", SCHEMA, format=name)
    with pytest.raises(ResourceError, match="the disk is full"):
        for batch in batches(1):
            sink.write(batch)
        sink.close()


def test_files_that_cant_be_opened(tmp_path):
    with pytest.raises(ResourceError, match=r"x\.csv: can't be read: it doesn't exist"):
        open_source(tmp_path / "x.csv")
    with pytest.raises(ResourceError, match="has no files to read"):
        list(open_source(tmp_path, format="csv"))
    with pytest.raises(ResourceError, match=r"can't be written: the folder .*none doesn't exist"):
        open_sink(tmp_path / "none" / "x.csv", SCHEMA)
    with pytest.raises(ResourceError, match="it is a folder"):
        open_sink(tmp_path, SCHEMA, format="csv")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_permission_is_denied(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a\n1\n")
    path.chmod(0)
    with pytest.raises(ResourceError, match="can't be read: permission is denied"):
        open_source(path)
    with pytest.raises(ResourceError, match="can't be written: permission is denied"):
        open_sink(path, SCHEMA)


@pytest.mark.parametrize("compression", COMPRESSIONS[1:])
def test_a_compressed_file_that_is_cut_off(tmp_path, compression):
    path = tmp_path / f"x.csv{compression}"
    n_rows = 300_000
    rows = np.random.default_rng(1).integers(0, 1 << 60, n_rows).astype(str)
    write(path, [pa.record_batch({"a": rows.tolist()})], pa.schema([("a", pa.string())]))
    path.write_bytes(path.read_bytes()[:-20])
    got = []
    with pytest.raises(ResourceError, match="the compressed data is damaged or cut off"):
        for chunk in chunks(path):
            got += chunk.batch["a"].to_pylist()
    assert got == rows[: len(got)].tolist()
    assert len(got) > n_rows // 3


@pytest.mark.parametrize("name", ["parquet", "arrow", "csv.gz"])
@pytest.mark.parametrize("data", [b"", b"PAR1", b"not what the ending says" * 100])
def test_a_file_that_isnt_what_its_ending_says(tmp_path, name, data):
    path = tmp_path / f"x.{name}"
    path.write_bytes(data)
    with pytest.raises(ResourceError, match=r"x\..*: can't be read"):
        list(chunks(path))


def test_a_parquet_file_that_is_cut_off(tmp_path):
    path = tmp_path / "x.parquet"
    write(path)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(ResourceError, match="it isn't a whole Parquet file"):
        open_source(path)


def test_a_parquet_file_that_is_damaged_within(tmp_path):
    path = tmp_path / "x.parquet"
    write(path, list(batches(50)))
    data = bytearray(path.read_bytes())
    data[10:60] = bytes(50)
    path.write_bytes(data)
    with pytest.raises(ResourceError, match="it isn't a whole Parquet file"):
        list(chunks(path))


@pytest.mark.parametrize("is_file", [False, True])
def test_an_arrow_input_that_is_cut_off(tmp_path, is_file):
    path = tmp_path / "x.arrow"
    make = pa.ipc.new_file if is_file else pa.ipc.new_stream
    with make(path, SCHEMA) as writer:
        for start in range(0, 24, 8):
            writer.write_table(EXPECTED.slice(start, 8))
    data = path.read_bytes()
    whole = read(path)
    assert whole == EXPECTED.to_pylist()
    for n_bytes in range(0, len(data) - 10, 50):
        path.write_bytes(data[:n_bytes])
        got = []
        try:
            for chunk in chunks(path):
                got += chunk.batch.to_pylist()
        except ResourceError as error:
            assert "it isn't a whole Arrow stream or file" in str(error)
        else:
            # A stream may end between two messages; a file may not.
            assert not is_file
        assert got == whole[: len(got)]
        assert len(got) in (0, 8, 16, 24)


@pytest.mark.parametrize("name", ["parquet", "arrow"])
@pytest.mark.parametrize("as_dictionary", [False, True])
def test_text_that_isnt_utf8_costs_its_own_row_only(tmp_path, name, as_dictionary):
    as_bytes = pa.array([b"good", b"\xff\xfe", None, b"fine"] * 2)
    array = pa.Array.from_buffers(pa.string(), len(as_bytes), as_bytes.buffers())
    if as_dictionary:
        codes = pa.array([0, 1, None, 2] * 2, pa.int32())
        array = pa.DictionaryArray.from_arrays(codes, array.take(pa.array([0, 1, 3])))
    table = pa.table({"a": array, "b": list(range(8))})
    path = tmp_path / f"x.{name}"
    if name == "parquet":
        pq.write_table(table, path)
    else:
        with pa.ipc.new_stream(path, table.schema) as writer:
            writer.write_table(table)
    [chunk] = chunks(path, ["a", "b"])
    assert chunk.batch["a"].to_pylist() == ["good", None, "fine"] * 2
    assert chunk.rows.tolist() == chunk.batch["b"].to_pylist() == [0, 2, 3, 4, 6, 7]
    assert [(bad.row, bad.reason) for bad in chunk.bad] == [
        (1, "broken UTF-8 in column a"),
        (5, "broken UTF-8 in column a"),
    ]


def test_categories_of_parquet_come_as_dictionaries(tmp_path):
    n_rows = 20_000
    table = pa.table(
        {"few": ["Female", "Male"] * (n_rows // 2), "many": [f"person {i}" for i in range(n_rows)]}
    )
    pq.write_table(table, tmp_path / "x.parquet")
    [chunk] = chunks(tmp_path / "x.parquet")
    assert pa.types.is_dictionary(chunk.batch.schema.field("few").type)
    assert chunk.batch.schema.field("many").type == pa.string()


@pytest.mark.parametrize("name", ["parquet", "arrow"])
def test_nested_columns_are_refused_where_asked_for(tmp_path, name):
    table = pa.table({"a": [1], "b": [[1, 2]]})
    path = tmp_path / f"x.{name}"
    if name == "parquet":
        pq.write_table(table, path)
    else:
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
    with pytest.raises(JobError, match="column b: holds nested values"):
        open_source(path, ["a", "b"])
    with pytest.raises(JobError, match=r"column c: isn't in the input\. None of its 2 columns"):
        open_source(path, ["a", "c"])
    assert read(path) == [{"a": 1}]


@pytest.mark.parametrize("path", ["x", "x.txt", "x.gz", "csv"])
def test_an_ending_that_is_not_known(path):
    with pytest.raises(ParameterError, match="stands for no known format"):
        file_type(path)


def test_a_format_that_is_not_known():
    with pytest.raises(ParameterError, match=r"format: isn't a known format.*Did you mean 'jsonl'"):
        file_type("-", "jsonlines")
    assert file_type("people.2024.CSV").name == "csv"
    assert file_type("people.txt", "tsv").name == "tsv"


def test_descriptions_name_input_and_format(tmp_path):
    for name, word in [("csv", "CSV"), ("jsonl", "JSON lines"), ("parquet", "Parquet")]:
        write(tmp_path / f"x.{name}")
        source = open_source(tmp_path / f"x.{name}")
        assert source.describe() == f"{tmp_path / f'x.{name}'} ({word}, 3 columns)"
        source.close()


def test_importing_the_package_imports_no_arrow():
    program = "import shoal.io, sys; sys.exit('pyarrow' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_long_parquet_file_is_not_kept_in_memory(tmp_path):
    path = tmp_path / "long.parquet"
    numbers = np.random.default_rng(1).integers(0, 2**62, 1_000_000)
    pq.write_table(pa.table({"n": numbers}), path, row_group_size=20_000, use_dictionary=False)
    source = open_source(path, ["n"], batch_rows=20_000)
    tracemalloc.start()
    try:
        n_rows = sum(len(chunk.rows) for chunk in source)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        source.close()
    assert n_rows == 1_000_000
    assert peak < path.stat().st_size / 4


@pytest.mark.parametrize("name", ["csv", "jsonl"])
@pytest.mark.parametrize("n_batches", [0, 1])
def test_a_named_pipe_is_opened_when_something_is_written(tmp_path, name, n_batches):
    fifo = tmp_path / f"out.{name}"
    os.mkfifo(fifo)
    sink = open_sink(fifo, SCHEMA)
    taken = []
    # A reader comes to its end also if there are no rows.
    reader = threading.Thread(target=lambda: taken.append(fifo.read_bytes()))
    reader.start()
    for batch in batches(n_batches):
        sink.write(batch)
    sink.close()
    reader.join(60)
    assert bool(taken[0]) == (name == "csv" or n_batches > 0)
