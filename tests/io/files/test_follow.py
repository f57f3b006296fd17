import contextlib
import functools
import logging
import os
import random
import subprocess
import sys

import pytest

from shoal.errors import CheckpointError, JobError, ResourceError
from shoal.io import open_replayable
from shoal.io.files.random_access import FileTruncated, GrowingFile
from shoal.io.files.rotation import generations, successors
from tests.io.files.replayable import as_tuples, reading, rows_of, wait_until


def add(path, text):
    with path.open("a") as file:
        file.write(text)


def numbers(read):
    return [int(row["a"]) for row in read.rows()]


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a,b\n1,x\n")
    return path


def test_lines_are_read_when_their_newline_is_there(path):
    with reading(path, ["a"]) as read:
        assert read.wait_for(1) == [{"a": "1"}]
        add(path, '2,"half')
        add(path, "\nof a ")
        assert read.source.lag() == 13
        add(path, 'field"\n3,')
        assert read.wait_for(2)[-1] == {"a": "2"}
        assert read.source.lag() == 2
    assert numbers(read) == [1, 2], "an unfinished line stays unread"
    last = read.chunks[-1]
    assert last.position["rows"] == 2
    assert last.position["streams"] == {last.spans[0].stream: last.spans[0].end}
    add(path, "z\n4,z\n")
    with reading(path, ["a"], position=last.position) as read:
        read.wait_for(2)
    assert numbers(read) == [3, 4]
    assert read.chunks[0].rows[0] == 2


def test_a_file_that_isnt_there_is_waited_for(tmp_path, caplog):
    caplog.set_level(logging.INFO, "shoal")
    path = tmp_path / "x.jsonl"
    with reading(path, ["a"]) as read:
        assert read.source.schema_names == ()
        assert read.source.lag() == 0
        wait_until(lambda: caplog.records)
        path.write_bytes(b"\xef")
        with path.open("ab") as file:
            file.write(b"\xbb\xbf\n[]\n")
        add(path, '{"a": 1, "b": 2}\n')
        assert read.wait_for(2) == [{"a": 1}]
        assert read.source.schema_names == ("a", "b")
        assert "followed" in read.source.describe()
    assert [record.message for record in caplog.records] == [
        f"{path}: doesn't exist yet; waiting for it"
    ]


def test_the_header_is_waited_for_and_looked_at(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a,")
    with reading(path, ["a"]) as read:
        add(path, "b\n1,2")
        add(path, "\n")
        assert read.wait_for(1) == [{"a": "1"}]
    with pytest.raises(JobError, match="column c: isn't in the input"):
        open_replayable(path, ["c", "a"], follow=True)


def test_a_rotated_file_is_read_to_its_end_and_then_the_new_one(path):
    with reading(path, ["a"]) as read, path.open("a") as writer:
        read.wait_for(1)
        path.rename(path.with_name("x.csv.1"))
        path.touch()
        writer.write("2,still the old\n3,without an end")
        writer.flush()
        read.wait_for(2)
        assert read.source.lag() == 16
        add(path, "a,b\n4,new\n")
        read.wait_for(4)
        assert numbers(read) == [1, 2, 3, 4]
        assert read.source.lag() == 0
        path.unlink()
        assert read.source.lag() == 0
    streams = [chunk.spans[0].stream.rsplit(":", 2)[1] for chunk in read.chunks]
    assert streams[0] == streams[1] == streams[2] != streams[3]
    assert rows_of(read.chunks)[1] == [0, 1, 2, 3]


def test_a_rotated_file_that_was_empty_or_removed_is_left(path):
    path.write_text("")
    with reading(path, ["a"]) as read:
        path.unlink()
        path.write_text("a\n1\n")
        assert read.wait_for(1)
        path.unlink()
        path.write_text("a\n2\n")
        assert read.wait_for(2)
    assert numbers(read) == [1, 2]


def test_rotations_while_nobody_read_are_caught_up_with(path):
    with reading(path, ["a"]) as read:
        read.wait_for(1)
    position = read.chunks[-1].position
    add(path, "2,x\n")
    for number in range(3, 6):
        for old in (2, 1):
            if path.with_name(f"x.csv.{old}").exists():
                path.with_name(f"x.csv.{old}").rename(path.with_name(f"x.csv.{old + 1}"))
        path.rename(path.with_name("x.csv.1"))
        path.write_text(f"a,b\n{number},x\n")
    path.with_name("x.csv.bak").write_text("a,b\n99,not ours\n")
    with reading(path, ["a"], position=position) as read:
        read.wait_for(4)
    assert numbers(read) == [2, 3, 4, 5]


def test_dated_generations_come_in_order(tmp_path):
    path = tmp_path / "x.csv"
    for name in ("x.csv-20260102", "x.csv-20260101", "x.csv", "x.csv.1", "x.csv~"):
        path.with_name(name).touch()
    found = generations(path)
    assert list(found) == ["x.csv-20260101", "x.csv-20260102", "x.csv.1", "x.csv"]
    assert successors(path, found, found["x.csv-20260101"]) == ["x.csv-20260102", "x.csv"]
    assert successors(path, found, found["x.csv.1"]) == ["x.csv"]
    assert generations(tmp_path / "none" / "x.csv") == {}


def test_spans_of_rotated_files_are_found_again(path):
    with reading(path, ["a"]) as read:
        read.wait_for(1)
        path.rename(path.with_name("x.csv.1"))
        path.write_text("a,b\n2,x\n")
        read.wait_for(2)
        path.with_name("x.csv.1").rename(path.with_name("x.csv.2"))
        path.rename(path.with_name("x.csv.1"))
        path.write_text("a,b\n3,x\n")
        read.wait_for(3)
    first, second, third = read.chunks
    assert first.position is not None
    for position, chunks in ((None, read.chunks), (first.position, [second, third])):
        with reading(path, ["a"], position=position, spans=[c.spans for c in chunks]) as again:
            add(path, "4,x\n")
            again.wait_for(len(chunks) + 1)
        assert [as_tuples(c) for c in again.chunks[: len(chunks)]] == [as_tuples(c) for c in chunks]
        path.write_text("a,b\n3,x\n")
    path.with_name("x.csv.1").unlink()
    with contextlib.closing(open_replayable(path, ["a"], follow=True)) as source:
        source.replay(first.spans)
        with pytest.raises(CheckpointError, match=r"is gone.*as x\.csv\.1, uncompressed"):
            source.replay(second.spans)


def test_a_file_that_is_emptied_begins_again_with_a_warning(path, caplog):
    with reading(path, ["a"]) as read:
        read.wait_for(1)
        add(path, "2,old\n3,ol")
        read.wait_for(2)
        copy = path.read_text()
        os.truncate(path, 0)
        wait_until(lambda: caplog.records)
        add(path, "a,b\n4,new\n")
        read.wait_for(3)
    assert numbers(read) == [1, 2, 4]
    [record] = caplog.records
    assert record.levelname == "WARNING"
    assert "was emptied while it was read" in record.message
    spans = [chunk.spans for chunk in read.chunks]
    assert spans[1][0].stream != spans[2][0].stream
    with (
        contextlib.closing(open_replayable(path, ["a"], follow=True)) as source,
        pytest.raises(CheckpointError, match="is gone, shorter, or begins differently"),
    ):
        source.replay(spans[0])
    # copytruncate leaves a copy, which has another inode.
    path.with_name("x.csv.1").write_text(copy)
    with reading(path, ["a"], spans=spans) as again:
        again.wait_for(3)
    assert numbers(again) == [1, 2, 4]


def test_a_file_that_was_emptied_and_has_grown_since_is_noticed(path):
    file = GrowingFile(path)
    with contextlib.closing(file):
        assert file.read_at(0, 6) == b"a,b\n1,"
        assert file.read_at(6, 100) == b"x\n"
        path.write_text("a,b\n" + "9,y\n" * 10)
        with pytest.raises(FileTruncated):
            file.read_at(8, 100)
        file.forget()
        assert len(file.read_at(0, 100)) == 44
        os.truncate(path, 10)
        with pytest.raises(FileTruncated):
            file.read_at(20, 1)


def test_an_ambiguous_generation_is_refused(path):
    with reading(path, ["a"]) as read:
        read.wait_for(1)
    [chunk] = read.chunks
    data = path.read_bytes()
    path.rename(path.with_name("gone"))
    for name in ("x.csv.1", "x.csv"):
        path.with_name(name).write_bytes(data)
    with contextlib.closing(open_replayable(path, ["a"], follow=True)) as source:
        with pytest.raises(CheckpointError):
            source.seek(chunk.position)
        path.with_name("x.csv.1").unlink()
        source.seek(chunk.position)
        assert source.lag() == 0


def test_a_change_before_the_position_is_refused(path):
    add(path, "2,x\n" * 3000)
    with reading(path, ["a"]) as read:
        read.wait_for(3001)
    with path.open("r+b") as file:
        file.seek(-2, os.SEEK_END)
        file.write(b"y")
    with contextlib.closing(open_replayable(path, ["a"], follow=True)) as source:
        with pytest.raises(CheckpointError, match="Restore it under its name"):
            source.seek(read.chunks[-1].position)
        with pytest.raises(CheckpointError, match="isn't the input"):
            source.seek({"streams": {}, "rows": 0})


def test_types_of_json_are_carried_over_a_rotation(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"a": 1.5}\n')
    with reading(path, ["a"]) as read:
        read.wait_for(1)
        path.rename(path.with_name("x.jsonl.1"))
        path.write_text('{"other": 1}\n{"a": 2}\n')
        rows = read.wait_for(3)
    assert [row["a"] for row in rows] == [1.5, None, 2.0]
    assert isinstance(rows[2]["a"], float)
    with reading(path, ["a"], position=read.chunks[0].position) as again:
        assert again.wait_for(2) == rows[1:]
    assert {str(chunk.batch.schema.field("a").type) for chunk in again.chunks} == {"double"}


def test_an_error_while_following_is_reported(path):
    with reading(path, ["a"]) as read:
        read.wait_for(1)
        path.unlink()
        path.write_text("c,d\n1,2\n")
        assert isinstance(read.fail(), JobError)
    path.write_text("\n\n")
    with reading(path, ["a"]) as read:
        path.rename(path.with_name("x.csv.1"))
        path.write_text("a\n")
        error = read.fail()
    assert isinstance(error, ResourceError)
    assert "it has no header" in str(error)


WRITER = """
import os, random, sys, time
path, seed, n = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
draw = random.Random(seed)
file = open(path, "a", buffering=1)
number = 0
while number < n:
    for _ in range(draw.randrange(1, 40)):
        if number < n:
            text = f'{number},"{"x" * draw.randrange(30)}"\\n'
            cut = draw.randrange(len(text))
            file.write(text[:cut]); file.flush(); file.write(text[cut:])
            number += 1
    if draw.random() < 0.3 and number < n:
        # As logrotate does: shift, rename, create; the writer opens the new file later.
        have = [k for k in range(1, 50) if os.path.exists(f"{path}.{k}")]
        for k in reversed(have):
            os.rename(f"{path}.{k}", f"{path}.{k + 1}")
        os.rename(path, path + ".1")
        open(path, "a").close()
        file.write(f"{number},late\\n"); number += 1
        file.close()
        file = open(path, "a", buffering=1)
        file.write("a,b\\n")
    time.sleep(draw.random() * 0.01)
file.close()
"""


def has_come(read, n_rows):
    return read.error or read.n_rows() >= n_rows


@pytest.mark.parametrize("seed", range(3))
def test_a_process_appends_and_rotates_while_the_reader_is_stopped_again_and_again(tmp_path, seed):
    path = tmp_path / "x.csv"
    n_rows = 600
    path.write_text("a,b\n")
    draw = random.Random(seed)
    kept, position, writer = [], None, None
    try:
        while len(kept) < n_rows:
            with reading(path, ["a"], position=position, poll=0.002) as read:
                command = [sys.executable, "-c", WRITER, str(path), str(seed), str(n_rows)]
                writer = writer or subprocess.Popen(command)
                goal = min(n_rows - len(kept), draw.randrange(1, 120))
                is_far = functools.partial(has_come, read, goal)
                wait_until(is_far)
            assert read.error is None
            chunks = read.chunks
            n_known = draw.randrange(len(chunks) + 1)
            journal = [chunk.spans for chunk in chunks[n_known:]]
            if n_known:
                position = chunks[n_known - 1].position
            if journal:
                source = open_replayable(path, ["a"], follow=True)
                if position is not None:
                    source.seek(position)
                again = [source.replay(spans) for spans in journal]
                source.close()
                assert list(map(as_tuples, again)) == list(map(as_tuples, chunks[n_known:]))
                position = again[-1].position
            kept += [int(row["a"]) for row in read.rows()]
    finally:
        assert writer.wait(600) == 0
    assert kept == list(range(n_rows))


@pytest.mark.parametrize(("name", "header"), [("x.csv", "a,b\n"), ("x.jsonl", "")])
def test_a_file_that_is_rotated_before_a_row_was_taken_in_is_still_the_first(
    tmp_path, name, header
):
    path = tmp_path / name
    row = '{{"a": {}, "b": "x"}}\n' if name.endswith("jsonl") else "{},x\n"
    path.write_text(header + row.format(0))
    source = open_replayable(path, ["a"], follow=True)
    begin = source.begins_at()
    source.close()
    add(path, row.format(1))
    path.rename(tmp_path / f"{name}.1")
    path.write_text(header + row.format(2))
    with reading(path, ["a"], position=begin) as read:
        read.wait_for(3)
    assert numbers(read) == [0, 1, 2]
    assert [int(row) for chunk in read.chunks for row in chunk.rows] == [0, 1, 2]


def test_a_file_that_isnt_there_yet_has_no_beginning(tmp_path):
    source = open_replayable(tmp_path / "x.csv", ["a"], follow=True)
    assert source.begins_at() is None
    source.close()
