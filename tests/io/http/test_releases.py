"""Published rows by their number: of a file that grows, and of a folder of part files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from shoal.errors import JobError
from shoal.io.connector import OutputEndpoint
from shoal.io.files.connector import FileOutput
from shoal.io.http import releases as module
from shoal.io.http.releases import GoneError, Page, Releases, releases_of
from shoal.io.registry import endpoint


def rows(begin: int, end: int, width: int = 0) -> bytes:
    return b"".join(json.dumps({"row": i, "x": "y" * width}).encode() + b"\n"
                    for i in range(begin, end))  # fmt: skip


def test_before_there_is_a_file_there_are_no_rows(tmp_path):
    for in_parts in (False, True):
        releases = Releases(str(tmp_path / "out"), in_parts=in_parts)
        assert releases.read(0, 10) == Page(b"", 0)
        assert releases.read(7, 10) == Page(b"", 7)


@pytest.mark.parametrize("most", [4, 4096])
def test_each_row_of_a_file_by_its_number(tmp_path, monkeypatch, most):
    monkeypatch.setattr(module, "MOST_PLACES", most)
    monkeypatch.setattr(module, "_BLOCK", 1 << 10)
    path = tmp_path / "out.jsonl"
    releases = Releases(str(path))
    path.write_bytes(rows(0, 20_000))
    for first in (19_999, 0, 10_000, 1_023, 1_024, 5_000, 15_000, 12_288):
        page = releases.read(first, 3)
        assert page == Page(rows(first, min(first + 3, 20_000)), min(first + 3, 20_000))
    assert len(releases._file._places) <= most
    # It grows, and its last line isn't complete.
    with path.open("ab") as file:
        file.write(rows(20_000, 20_005) + b'{"row": 20005')
    assert releases.read(20_003, 10) == Page(rows(20_003, 20_005), 20_005)
    assert releases.read(20_005, 10) == Page(b"", 20_005)
    assert releases.read(20_006, 10) == Page(b"", 20_006)
    with path.open("ab") as file:
        file.write(b', "x": ""}\n')
    assert releases.read(20_005, 10) == Page(rows(20_005, 20_006), 20_006)


def test_a_page_is_bounded_in_bytes_but_has_a_row(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_BLOCK", 100)
    monkeypatch.setattr(module, "MOST_PAGE", 1000)
    path = tmp_path / "out.jsonl"
    path.write_bytes(rows(0, 10, 400) + rows(10, 11, 3000) + rows(11, 12, 1))
    releases = Releases(str(path))
    assert releases.read(0, 10) == Page(rows(0, 2, 400), 2)
    assert releases.read(9, 10) == Page(rows(9, 10, 400), 10)
    assert releases.read(10, 10) == Page(rows(10, 11, 3000), 11)
    assert releases.read(11, 10) == Page(rows(11, 12, 1), 12)


def test_parts_of_a_folder(tmp_path):
    for begin, end in ((0, 5), (5, 12), (12, 20)):
        (tmp_path / f"rows-{begin:012d}-{end:012d}.jsonl").write_bytes(rows(begin, end))
    (tmp_path / "rows-000000000020.jsonl.partial").write_bytes(rows(20, 22))
    (tmp_path / "other.txt").write_text("x")
    releases = Releases(str(tmp_path), in_parts=True)
    assert releases.read(0, 3) == Page(rows(0, 3), 3)
    assert releases.read(3, 100) == Page(rows(3, 5), 5)
    assert releases.read(5, 100) == Page(rows(5, 12), 12)
    assert releases.read(19, 100) == Page(rows(19, 20), 20)
    assert releases.read(20, 100) == Page(b"", 20)
    # The first ones have been removed.
    (tmp_path / "rows-000000000000-000000000005.jsonl").unlink()
    with pytest.raises(GoneError, match="row 4 was removed"):
        releases.read(4, 1)
    assert releases.read(5, 1) == Page(rows(5, 6), 6)


@pytest.mark.parametrize(
    ("output", "is_read"),
    [
        (FileOutput("out.jsonl"), True),
        (FileOutput("out.ndjson"), True),
        (FileOutput("out.txt", "jsonl"), True),
        (FileOutput("out/", "jsonl"), True),
        (FileOutput("out/"), False),
        (FileOutput("out.csv"), False),
        (FileOutput("out.jsonl.gz"), False),
        (FileOutput("out/", "jsonl.gz"), False),
    ],
)
def test_outputs_that_can_be_read_by_row(output: OutputEndpoint, is_read: bool):
    assert (releases_of(output) is not None) == is_read


def test_a_topic_cant():
    topic = endpoint("output", {"mqtt": "127.0.0.1:1", "topic": "x"}, Path())
    assert releases_of(topic) is None


def test_options_of_files_dont_go_with_rows_by_http():
    from shoal.io.http.endpoint import HttpInput

    with pytest.raises(JobError, match="--follow: can't be combined with rows by HTTP"):
        HttpInput().with_options(None, follow=True)
