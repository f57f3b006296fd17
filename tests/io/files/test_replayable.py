import contextlib
import io
import json
import os
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shoal.errors import CheckpointError, JobError, ResourceError
from shoal.io import CsvSource, JsonSource, open_replayable, open_sink
from shoal.io.base import Span
from shoal.io.files.random_access import PlainFile
from shoal.io.streams import Input
from tests.io.files.replayable import all_chunks, as_tuples, interrupted, rows_of, small_chunks

ON_DISK = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
PIECES = [b"a", b'"', b",", b"\n", b"\r\n", b'""', b"\xc3\xa9", b"1,2\n", b"\xff", b"\xef\xbb\xbf"]
messy = st.lists(st.sampled_from(PIECES), max_size=40).map(b"".join)
starts = st.sampled_from([b"", b"\n", b"\xef\xbb\xbf", b"\xef\xbb\xbf\r\n"])
headers = st.sampled_from([b"a,b\n", b"a,b\r\n", b'"a","b"\n', b"a,b", b'a,"b\nb"\n', b"a,b\r"])


def stops(draw, chunks):
    """Where a run is stopped: what the checkpoint knows, and how far the journal goes."""
    seek = draw.draw(st.integers(0, len(chunks)), "seek")
    return seek, draw.draw(st.integers(seek, len(chunks)), "replay")


@ON_DISK
@given(starts, headers, messy, st.integers(1, 30), st.integers(4, 30), st.data())
def test_csv_gives_the_same_rows_whenever_it_is_stopped(
    tmp_path, start, header, data, n_bytes, limit, draw
):
    path = tmp_path / "x.csv"
    path.write_bytes(start + header + data)
    try:
        plain = list(CsvSource(Input(io.BytesIO(path.read_bytes()), "x"), max_row_bytes=limit))
    except ResourceError:
        with small_chunks(n_bytes, limit), pytest.raises(ResourceError):
            open_replayable(path)
        return
    with small_chunks(n_bytes, limit):
        chunks = all_chunks(path)
        assert rows_of(chunks) == rows_of(plain)
        assert rows_of(interrupted(path, chunks, *stops(draw, chunks))) == rows_of(plain)


JSON_PIECES = [
    b'{"a": 1, "b": null}', b'{"a": 1.5}', b'{"b": "x"}', b'{"a": true}', b"[]", b"\xff",
    b'{"a": [1]}', b"", b'{"a": 123456789012345678901}', b"\n", b"\r\n",
]  # fmt: skip


@ON_DISK
@given(
    starts,
    st.lists(st.sampled_from(JSON_PIECES), max_size=20),
    st.sampled_from([b"\n", b"\r\n"]),
    st.integers(1, 60),
    st.integers(25, 60),
    st.data(),
)
def test_json_gives_the_same_rows_and_types_whenever_it_is_stopped(
    tmp_path, start, lines, newline, n_bytes, limit, draw
):
    path = tmp_path / "x.jsonl"
    path.write_bytes(start + newline.join([b'{"a": 7, "b": null}', *lines]))
    with small_chunks(n_bytes, limit):
        chunks = all_chunks(path, ["b", "a"])
        after = interrupted(path, chunks, *stops(draw, chunks), columns=["b", "a"])
    assert list(map(as_tuples, after)) == list(map(as_tuples, chunks))
    source = JsonSource(Input(path.open("rb"), "x"), ["b", "a"], max_row_bytes=limit)
    assert rows_of(chunks)[1:] == rows_of(list(source))[1:]
    source.close()


def write_table(path, table):
    sink = open_sink(path, table.schema)
    for batch in table.to_batches(max_chunksize=700):
        sink.write(batch)
    sink.close()


TABLE = pa.table({"n": list(range(5000)), "word": [f"canary{n % 7}" for n in range(5000)]})


@pytest.mark.parametrize("name", ["parquet", "arrow", "csv.gz", "jsonl.zst", "tsv", "parquet.gz"])
@pytest.mark.parametrize("seek_after", [0, 1, 3])
def test_every_format_resumes(tmp_path, monkeypatch, name, seek_after):
    monkeypatch.setattr("shoal.io.typed.chunks", cut_small)
    path = tmp_path / f"x.{name}"
    write_table(path, TABLE)
    with small_chunks(3000):
        chunks = all_chunks(path)
        assert len(chunks) > 5
        after = interrupted(path, chunks, seek_after, 5)
    assert rows_of(after) == rows_of(chunks)
    assert rows_of(chunks)[1] == list(range(5000))


@pytest.mark.parametrize("name", ["parquet", "arrow", "csv", "csv.gz"])
def test_what_was_replayed_can_be_replayed_once_more(tmp_path, name):
    path = tmp_path / f"x.{name}"
    write_table(path, TABLE)
    [first, *_] = all_chunks(path)
    with contextlib.closing(open_replayable(path)) as source:
        once, twice = source.replay(first.spans), source.replay(first.spans)
        assert once.batch == twice.batch == first.batch
        assert source.replay([Span(*first.spans[0])]).rows[0] == 2 * len(first.rows)


def cut_small(batch, first_row, bad, batch_rows):
    from shoal.io.base import chunks

    return chunks(batch, first_row, bad, 300)


def test_parquet_is_cut_again_after_a_stop(tmp_path):
    """Where batches end isn't where they ended before; the spans tell."""
    path = tmp_path / "x.parquet"
    broken = pa.array([b"ok", b"\xff", b"fine"] * 40).view(pa.string())
    table = pa.table({"n": list(range(120)), "word": broken})
    pq.write_table(table, path, row_group_size=50)
    source = open_replayable(path)
    stream = next(iter(source)).spans[0].stream
    source.close()
    with contextlib.closing(open_replayable(path)) as source:
        first = source.replay([Span(stream, 0, 1)])
        second = source.replay([Span(stream, 1, 5), Span(stream, 5, 71)])
        rest = list(source)
    assert first.rows.tolist() == [0]
    assert second.batch["n"].to_pylist() == [n for n in range(1, 71) if n % 3 != 1]
    assert [row.row for row in second.bad] == list(range(1, 71, 3))
    assert rest[0].rows[0] == 71
    assert rows_of([first, second, *rest])[0] == rows_of(all_chunks(path))[0]
    with contextlib.closing(open_replayable(path)) as source:
        source.seek(second.position)
        assert rows_of(list(source)) == rows_of(rest)
    with (
        contextlib.closing(open_replayable(path)) as source,
        pytest.raises(CheckpointError, match="is shorter than what was read"),
    ):
        source.replay([Span(stream, 0, 121)])


def test_a_position_is_plain_json(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"a": 1}\n{"a": 2.5}\n')
    [chunk] = all_chunks(path)
    position = json.loads(json.dumps(chunk.position))
    assert position == chunk.position
    assert position["rows"] == 2
    assert list(position["streams"].values()) == [path.stat().st_size]
    assert position["kinds"] == {"a": ["float", "int"]}


def test_several_spans_come_as_one_chunk_in_the_types_of_the_last(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"a": 1}\n{"a": null}\n{"a": 2.5}\n[]\n{"a": "x"}\n')
    with small_chunks(9):
        chunks = all_chunks(path)
        with contextlib.closing(open_replayable(path)) as source:
            chunk = source.replay([span for chunk in chunks for span in chunk.spans])
    assert chunk.batch["a"].to_pylist() == ["1", None, "2.5", "x"]
    assert chunk.rows.tolist() == [0, 1, 2, 4]
    assert [row.row for row in chunk.bad] == [3]
    assert chunk.position == chunks[-1].position


@pytest.mark.parametrize("change", ["replaced", "shorter", "before"])
@pytest.mark.parametrize("name", ["csv", "csv.gz", "parquet"])
def test_a_file_that_has_changed_is_refused(tmp_path, name, change):
    path = tmp_path / f"x.{name}"
    write_table(path, TABLE)
    with small_chunks(3000):
        chunks = all_chunks(path)
    data = bytearray(path.read_bytes())
    if change == "replaced":
        data[5] ^= 1
    elif change == "shorter":
        del data[4500:]
    elif name == "csv":
        data[chunks[-1].spans[0].end - 2] ^= 1
    else:
        data += b"\n"
    other = tmp_path / "other"
    other.write_bytes(data)
    other.replace(path)
    try:
        source = open_replayable(path)
    except ResourceError:
        return  # A damaged file isn't even opened.
    with contextlib.closing(source):
        with pytest.raises(CheckpointError, match=r"Bring back the file as it was") as caught:
            source.seek(chunks[-1].position)
        assert "canary" not in str(caught.value)
        if change != "before" or name != "csv":
            with pytest.raises(CheckpointError):
                source.replay(chunks[-1].spans)


def test_a_position_of_another_kind_of_input_is_refused(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a\n1\n")
    for position in (
        {},
        {"streams": {}, "rows": 0},
        {"streams": {"x:strange": 3}, "rows": 1, "before": [1, 2]},
        {"streams": {"x:0-00000000": 0}, "rows": 1},
    ):
        with (
            contextlib.closing(open_replayable(path)) as source,
            pytest.raises(CheckpointError, match="isn't the input that the checkpoint belongs to"),
        ):
            source.seek(position)


def test_a_file_that_has_grown_is_gone_on_with(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a\n1\n2\n")
    [chunk] = all_chunks(path)
    with path.open("a") as file:
        file.write("3\n")
    with contextlib.closing(open_replayable(path)) as source:
        source.seek(chunk.position)
        assert source.lag() == 2
        [more] = source
        assert source.lag() == 0
    assert (more.batch["a"].to_pylist(), more.rows.tolist()) == (["3"], [2])


@pytest.mark.parametrize(("added", "is_same"), [("\n3\n", True), ("\r\n3\n", True), ("2\n", False)])
def test_a_last_line_that_was_written_on_is_refused(tmp_path, added, is_same):
    path = tmp_path / "x.csv"
    path.write_text("a\n1")
    [chunk] = all_chunks(path)
    assert chunk.batch["a"].to_pylist() == ["1"]
    with path.open("a") as file:
        file.write(added)
    with contextlib.closing(open_replayable(path)) as source:
        if is_same:
            source.seek(chunk.position)
            assert rows_of(list(source)) == ([{"a": "3"}], [1], [])
        else:
            with pytest.raises(CheckpointError, match="had no newline when it was read"):
                source.seek(chunk.position)


def test_what_is_added_after_the_end_was_reached_isnt_read(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a\n1")
    with contextlib.closing(open_replayable(path)) as source:
        chunks = iter(source)
        assert next(chunks).batch["a"].to_pylist() == ["1"]
        with path.open("a") as file:
            file.write("2\n")
        assert list(chunks) == []


def test_stop_ends_the_reading(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a\n" + "1\n" * 100)
    with small_chunks(20), contextlib.closing(open_replayable(path)) as source:
        given = 0
        for _ in source:
            given += 1
            source.stop()
    assert given == 1


def test_what_can_be_read_only_once_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    for path in ("-", tmp_path / "pipe.csv"):
        with pytest.raises(JobError, match=r"can be read only once.*Give a file or a folder"):
            open_replayable(path)
    with pytest.raises(JobError, match="only uncompressed text files in UTF-8 can be followed"):
        open_replayable(tmp_path / "x.csv.gz", follow=True)
    with pytest.raises(JobError, match="no known format"):
        open_replayable(tmp_path / "x.doc")
    with pytest.raises(ResourceError, match="it doesn't exist"):
        open_replayable(tmp_path / "x.csv")


def test_errors_at_the_beginning_are_those_of_any_source(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("age,sex\n1,2\n")
    with pytest.raises(JobError, match="Did you mean 'age'"):
        open_replayable(path, ["agee", "sex"])
    path.write_text("\n\n")
    with pytest.raises(ResourceError, match="it has no header"):
        open_replayable(path)
    (tmp_path / "x.jsonl").write_text("[]\n")
    with pytest.raises(ResourceError, match="no line with a JSON object"):
        open_replayable(tmp_path / "x.jsonl")
    (tmp_path / "x.parquet").write_text("no")
    with pytest.raises(ResourceError, match="isn't a whole Parquet file"):
        open_replayable(tmp_path / "x.parquet")


def test_lag_and_words(tmp_path):
    write_table(tmp_path / "x.parquet", TABLE)
    write_table(tmp_path / "x.arrow", TABLE)
    write_table(tmp_path / "x.csv.gz", TABLE)
    with contextlib.closing(open_replayable(tmp_path / "x.parquet", ["n"])) as source:
        assert source.lag() == 5000
        assert source.schema_names == ("n", "word")
        list(source)
        assert source.lag() == 0
        assert source.describe().endswith("x.parquet (parquet, 2 columns)")
    for name in ("x.arrow", "x.csv.gz"):
        with contextlib.closing(open_replayable(tmp_path / name)) as source:
            assert source.lag() is None


def test_a_file_of_many_json_rows_is_looked_at_no_further_than_needed(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"a": 1}\n' * 1500 + '{"late": 1}\n')
    with contextlib.closing(open_replayable(path)) as source:
        assert source.schema_names == ("a",)


def test_two_threads_may_close_a_file_at_once(tmp_path: Path) -> None:
    """A run that fails closes its source, and its reader the file that it has just finished."""
    path = tmp_path / "in.csv"
    path.write_text("age\n39\n")
    for _ in range(200):
        file, barrier = PlainFile(path), threading.Barrier(2)
        errors: list[OSError] = []

        def close(file: PlainFile = file, barrier: threading.Barrier = barrier) -> None:
            barrier.wait()
            try:
                file.close()
            except OSError as error:
                errors.append(error)  # noqa: B023

        threads = [threading.Thread(target=close) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not errors
