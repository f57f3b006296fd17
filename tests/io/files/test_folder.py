import contextlib
import json
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shoal.errors import CheckpointError, JobError, ResourceError
from shoal.io import open_replayable, open_source
from shoal.io.base import Span
from shoal.io.files.folder import FolderSource, has_only_folders
from tests.io.files.replayable import (
    all_chunks,
    as_tuples,
    interrupted,
    reading,
    rows_of,
    small_chunks,
    wait_until,
)


def put(folder, name, text):
    """A whole file, as it should appear."""
    aside = folder / f".{name}"
    aside.write_text(text)
    aside.rename(folder / name)


def numbers(read):
    return [int(row["a"]) for row in read.rows()]


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    return folder


def test_files_are_read_in_the_order_of_their_names(folder):
    put(folder, "b.csv", "a,b\n2,x\n3\n")
    put(folder, "a.csv", "b,a\nx,1\n")
    put(folder, "c.csv", "a,b\n")
    put(folder, "d.csv.extra.csv", "a,b\n4,x")
    for name in (".hidden.csv", "e.csv.partial", "e.csv.tmp", "e.csv.part"):
        (folder / name).write_text("a\n99\n")
    (folder / "sub.csv").mkdir()
    chunks = all_chunks(folder, ["a"])
    assert rows_of(chunks)[:2] == ([{"a": "1"}, {"a": "2"}, {"a": "4"}], [0, 1, 3])
    assert [row.row for chunk in chunks for row in chunk.bad] == [2]
    with contextlib.closing(open_source(folder, ["a"])) as source:
        assert source.schema_names == ("b", "a")
        assert rows_of(list(source)) == rows_of(chunks)
        assert source.describe() == f"{folder} (a folder, 2 columns)"
    assert [chunk.position["rows"] for chunk in chunks] == [1, 3, 4]
    assert json.loads(json.dumps(chunks[-1].position)) == chunks[-1].position
    assert list(chunks[1].position["done"]) == ["a.csv", "b.csv"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 99), max_size=6), min_size=1, max_size=4),
    st.sampled_from(["csv", "jsonl", "tsv"]),
    st.integers(1, 20),
    st.data(),
)
def test_a_folder_gives_the_same_rows_whenever_it_is_stopped(tmp_path, files, form, n, draw):
    folder = tmp_path / "in"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for place, values in enumerate(files):
        if form == "jsonl":
            text = "".join(f'{{"a": {value / 2}}}\n' for value in values)
        else:
            text = "a\n" + "".join(f"{value}\n" for value in values)
        put(folder, f"{place}.{form}", text)
    with small_chunks(n):
        chunks = all_chunks(folder, ["a"])
        seek = draw.draw(st.integers(0, len(chunks)))
        replay = draw.draw(st.integers(seek, len(chunks)))
        after = interrupted(folder, chunks, seek, replay, ["a"])
    assert list(map(as_tuples, after)) == list(map(as_tuples, chunks))
    values = [value / 2 if form == "jsonl" else str(value) for file in files for value in file]
    assert [row["a"] for row in rows_of(chunks)[0]] == values


def test_new_files_are_read_as_they_appear(folder):
    with reading(folder, ["a"]) as read:
        assert read.source.schema_names == ()
        assert read.source.lag() == 0
        put(folder, "m.csv", "a\n1\n")
        read.wait_for(1)
        put(folder, "b.csv", "a\n2\n")
        read.wait_for(2)
        (folder / "m.csv").unlink()
        put(folder, "c.csv", "a\n3\n")
        read.wait_for(3)
        assert read.source.lag() == 0
    assert numbers(read) == [1, 2, 3]
    position = read.chunks[-1].position
    assert list(position["done"]) == ["b.csv", "c.csv"], "memory is bounded by what is there"
    assert position["streams"] == {}
    put(folder, "a.csv", "a\n4\n")
    with reading(folder, ["a"], position=position) as read:
        read.wait_for(1)
    assert (numbers(read), read.chunks[0].rows.tolist()) == ([4], [3])


def test_the_order_of_arrival_is_replayed(folder):
    with reading(folder, ["a"]) as read:
        put(folder, "m.csv", "a\n1\n")
        read.wait_for(1)
        put(folder, "b.csv", "a\n2\n3\n")
        read.wait_for(3)
    put(folder, "a.csv", "a\n4\n")
    spans = [chunk.spans for chunk in read.chunks]
    with reading(folder, ["a"], spans=spans) as again:
        again.wait_for(4)
    assert numbers(again) == [1, 2, 3, 4]
    assert [as_tuples(chunk) for chunk in again.chunks[:2]] == [
        as_tuples(chunk) for chunk in read.chunks
    ]


def test_an_empty_folder_is_reported(folder):
    with pytest.raises(ResourceError, match="has no files to read"):
        all_chunks(folder)


def test_a_folder_whose_files_were_all_done_and_removed_is_no_mistake(folder):
    put(folder, "a.csv", "a\n1\n")
    [chunk] = all_chunks(folder)
    (folder / "a.csv").unlink()
    with contextlib.closing(open_replayable(folder)) as source:
        source.seek(chunk.position)
        assert list(source) == []


@pytest.mark.parametrize("now", ["a\n1\n2\n", "a\n2\n"])
def test_a_file_that_changed_after_it_was_done_is_reported(folder, now):
    put(folder, "a.csv", "a\n1\n")
    with reading(folder) as read:
        read.wait_for(1)
        (folder / "a.csv").write_text(now)
        error = read.fail()
    assert isinstance(error, ResourceError)
    assert "a.csv: has changed since it was read" in str(error)
    with (
        contextlib.closing(open_replayable(folder)) as source,
        pytest.raises(ResourceError, match="has changed since"),
    ):
        source.seek(read.chunks[0].position)


def test_a_file_that_was_only_touched_is_the_same(folder):
    put(folder, "a.csv", "a\n1\n")
    with reading(folder) as read:
        read.wait_for(1)
        (folder / "a.csv").touch()
        put(folder, "b.csv", "a\n2\n")
        read.wait_for(2)


def test_a_file_that_grows_while_it_is_read_is_reported(folder):
    put(folder, "a.csv", "a\n" + "1\n" * 50)
    with (
        small_chunks(20),
        contextlib.closing(open_replayable(folder)) as source,
        pytest.raises(ResourceError, match=r"a\.csv: has changed since it was read"),
    ):
        for _ in source:
            with (folder / "a.csv").open("a") as file:
                file.write("2\n" if file.tell() < 200 else "")


def test_what_was_read_and_is_gone_or_changed_is_refused(folder):
    put(folder, "a.csv", "a\n" + "1\n" * 20)
    put(folder, "b.csv", "a\n2\n")
    with small_chunks(20):
        chunks = all_chunks(folder)
        kept = (folder / "a.csv").read_text()
        for now in (None, kept + "3\n"):
            (folder / "a.csv").unlink(missing_ok=True)
            if now is not None:
                put(folder, "a.csv", now)
            for attempt in (
                lambda s: s.seek(chunks[0].position),
                lambda s: s.replay(chunks[0].spans),
            ):
                with (
                    contextlib.closing(open_replayable(folder)) as source,
                    pytest.raises(CheckpointError, match=r"a\.csv: was read before the stop"),
                ):
                    attempt(source)
        put(folder, "a.csv", kept)
        with contextlib.closing(open_replayable(folder)) as source:
            source.replay(chunks[0].spans)
            with pytest.raises(CheckpointError, match=r"a\.csv: was read before the stop"):
                source.replay(chunks[-1].spans)  # the rest of a.csv would be lost
    with contextlib.closing(open_replayable(folder)) as source:
        with pytest.raises(CheckpointError, match="isn't the input"):
            source.seek({"streams": {}, "rows": 3})
        with pytest.raises(CheckpointError):
            source.replay([Span("none.csv:1-00000000", 0, 1)])


def test_files_that_dont_belong_are_reported(folder):
    put(folder, "a.csv", "a,b\n1,2\n")
    put(folder, "b.csv", "b\n2\n")
    with pytest.raises(JobError, match=r"b\.csv: column a: isn't in the input"):
        all_chunks(folder)
    with pytest.raises(JobError, match=r"b\.csv: column a"):
        all_chunks(folder, ["a", "b"])
    (folder / "b.csv").rename(folder / "b.jsonl")
    with pytest.raises(ResourceError, match=r"b\.jsonl: can't be read: it is jsonl, and .* csv"):
        all_chunks(folder)
    (folder / "b.jsonl").rename(folder / "b.doc")
    with pytest.raises(ResourceError, match=r"b\.doc: can't be read: its ending stands for no"):
        all_chunks(folder)
    with contextlib.closing(open_replayable(folder)) as source:
        assert source.lag() is None
    with pytest.raises(JobError, match="isn't a known format"):
        all_chunks(folder, format="doc")
    put(folder, "b.doc", "a,b\n3,4\n")
    assert rows_of(all_chunks(folder, ["a"], format="csv"))[0] == [{"a": "1"}, {"a": "3"}]
    (folder / "c.csv").touch()
    with pytest.raises(ResourceError, match=r"c\.csv: can't be read: it has no header"):
        all_chunks(folder, format="csv")


def test_json_without_rows_is_no_mistake(folder):
    put(folder, "a.jsonl", "")
    put(folder, "b.jsonl", '{"a": 1}\n')
    put(folder, "c.jsonl", '{"b": 1}\n')
    assert rows_of(all_chunks(folder, ["a"]))[0] == [{"a": 1}, {"a": None}]


@pytest.mark.parametrize(
    ("gone", "said"),
    [
        (["b-canary.csv"], "1 file"),
        (["b-canary.csv", "c-canary.csv"], "2 files"),
        (["c-canary.csv", "d.csv"], "2 files"),
    ],
)
def test_files_that_go_away_unread_are_left_and_counted(folder, caplog, gone, said):
    names = ["a.csv", "b-canary.csv", "c-canary.csv", "d.csv"]
    for i, name in enumerate(names):
        put(folder, name, f"a\n{i}\n")
    with contextlib.closing(open_replayable(folder)) as source:
        assert source.lag() == 2 + 4 + 4 + 4
        for name in gone:
            (folder / name).unlink()
        left = [{"a": str(i)} for i, name in enumerate(names) if name not in gone]
        assert rows_of(list(source))[0] == left
    # Who sends the files has named them, perhaps as a person.
    text = f"{folder}: {said} disappeared before being read, so rows are missing"
    assert [record.message for record in caplog.records] == [text]


def test_typed_files_of_a_folder(folder):
    for place in range(3):
        first = 10 * place
        table = pa.table({"a": list(range(first, first + 10)), "w": ["same"] * 10, "l": [[1]] * 10})
        pq.write_table(table, folder / f"{place}.parquet", use_dictionary=place != 1)
    chunks = all_chunks(folder)
    assert [row["a"] for row in rows_of(chunks)[0]] == list(range(30))
    assert "l" not in chunks[0].batch.schema.names
    for seek in range(3):
        after = interrupted(folder, chunks, seek, 3)
        assert rows_of(after) == rows_of(chunks)
    with contextlib.closing(open_replayable(folder)) as source:
        assert source.lag() is None
        spans = [span for chunk in chunks for span in chunk.spans]
        assert source.replay(spans).batch["w"].to_pylist() == ["same"] * 30
    for name in ("1.parquet", "2.parquet"):
        (folder / name).unlink()
    with contextlib.closing(open_replayable(folder)) as source:
        assert source.lag() == 10


def test_a_folder_that_goes_away_is_reported(folder):
    put(folder, "a.csv", "a\n1\n")
    with reading(folder) as read:
        read.wait_for(1)
        shutil.rmtree(folder)
        assert "it doesn't exist" in str(read.fail())
        wait_until(lambda: read.source.lag() is None)


# -- folders in the folder -------------------------------------------------------------------------


def nested_rows(folder, **options):
    with contextlib.closing(FolderSource(folder, nested=True, **options)) as source:
        return [int(row["a"]) for row in rows_of(list(source))[0]]


def batch(folder, name, *values, mark=True):
    """A folder as systems write it for each batch: parts, sums of them, and a mark at the end."""
    (folder / name).mkdir(parents=True)
    for place, value in enumerate(values):
        put(folder / name, f"part-{place}.csv", f"a\n{value}\n")
        (folder / name / f".part-{place}.csv.crc").write_bytes(b"\0")
    if mark:
        (folder / name / "_SUCCESS").touch()


def test_folders_of_batches_are_read_in_the_order_of_their_names(folder):
    batch(folder, "batch-0000000008", 5)
    batch(folder, "batch-0000000007-end", 3, 4)  # as plain text, "-" comes before "/"
    batch(folder, "batch-0000000007", 1, 2)
    batch(folder, "batch-0000000009")
    batch(folder, "_temporary", 99)
    batch(folder, ".old", 99)
    (folder / "_SUCCESS").touch()
    (folder / "link").symlink_to(folder, target_is_directory=True)
    assert has_only_folders(folder)
    assert nested_rows(folder) == [1, 2, 3, 4, 5]
    with contextlib.closing(FolderSource(folder, nested=True)) as source:
        assert source.lag() == 5 * 4 - 2  # the header of the first is read


def test_nested_folders_go_on_where_they_were(folder):
    for day in range(3):
        batch(folder, f"2024/{day}", day)
    with contextlib.closing(FolderSource(folder, nested=True)) as source:
        chunks = list(source)
    assert list(chunks[-1].position["done"]) == [f"2024/{day}/part-0.csv" for day in range(3)]
    with contextlib.closing(FolderSource(folder, nested=True)) as source:
        source.seek(json.loads(json.dumps(chunks[0].position)))
        assert [as_tuples(chunk) for chunk in source] == [as_tuples(chunk) for chunk in chunks[1:]]


def test_batches_without_rows_are_no_mistake_if_they_are_complete(folder):
    batch(folder, "batch-0")
    assert nested_rows(folder) == []
    (folder / "batch-0" / "_SUCCESS").unlink()
    with pytest.raises(ResourceError, match="has no files to read"):
        nested_rows(folder)


def test_folders_in_a_folder_are_left_alone_unless_they_are_all_there_is(folder):
    """What a run reads doesn't change because somebody puts a folder into its input."""
    assert not has_only_folders(folder)
    batch(folder, "_temporary", 99)
    batch(folder, ".hidden", 99)
    assert not has_only_folders(folder)
    batch(folder, "old", 99)
    assert has_only_folders(folder)
    with pytest.raises(ResourceError, match="has no files to read"):
        all_chunks(folder)
    put(folder, "_a.csv", "a\n1\n")
    assert not has_only_folders(folder)
    assert rows_of(all_chunks(folder))[0] == [{"a": "1"}]
