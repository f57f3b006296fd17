import json
import stat

import pyarrow.parquet as pq
import pytest

from shoal.errors import ResourceError
from shoal.io import BadRow, QuarantineWriter, open_private, open_source

BAD = [
    BadRow(3, "1 field where 2 are expected", b'a "quoted", line'),
    BadRow(7, "broken UTF-8 in column a", b"\xff,\n2"),
    BadRow(2**40, "no raw row", None),
]


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_private_file_is_its_owners_only(tmp_path):
    path = tmp_path / "secret"
    with_open = open_private(path)
    with_open.write(b"x")
    with_open.close()
    assert mode(path) == 0o600
    assert path.read_bytes() == b"x"


def test_a_file_that_was_open_to_others_is_emptied_and_closed_to_them(tmp_path):
    path = tmp_path / "secret"
    path.write_bytes(b"old")
    path.chmod(0o644)
    open_private(path).close()
    assert mode(path) == 0o600
    assert path.read_bytes() == b""


def test_a_private_file_that_cant_be_created(tmp_path):
    with pytest.raises(ResourceError, match=r"doesn't exist\. Create it first"):
        open_private(tmp_path / "none" / "secret")


@pytest.mark.parametrize("name", ["csv", "jsonl", "parquet", "arrow", "csv.gz"])
def test_quarantine_holds_every_bad_row(tmp_path, name):
    path = tmp_path / f"quarantine.{name}"
    writer = QuarantineWriter(path)
    writer.write(BAD[:1])
    writer.write([])
    writer.write(iter(BAD[1:]))
    writer.close()
    writer.close()
    assert mode(path) == 0o600
    assert writer.n_rows == 3
    source = open_source(path)
    rows = [row for chunk in source for row in chunk.batch.to_pylist()]
    source.close()
    assert [int(row["row"]) for row in rows] == [3, 7, 2**40]
    assert [row["reason"] for row in rows] == [bad.reason for bad in BAD]
    text = name in ("csv", "jsonl", "csv.gz")
    assert [row["raw"] for row in rows] == (
        ['a "quoted", line', "\\xff,\n2", None] if text else [bad.raw for bad in BAD]
    )


@pytest.mark.parametrize("name", ["csv", "jsonl"])
def test_rows_are_in_a_text_quarantine_at_once(tmp_path, name):
    path = tmp_path / f"quarantine.{name}"
    writer = QuarantineWriter(path)
    writer.write(BAD[:1])
    last = path.read_text().splitlines()[-1]
    assert last.startswith("3," if name == "csv" else '{"row": 3, ')
    writer.close()


def test_a_parquet_quarantine_without_rows_can_be_read(tmp_path):
    path = tmp_path / "quarantine.parquet"
    QuarantineWriter(path).close()
    assert pq.read_table(path).num_rows == 0


def test_reprs_show_no_row(tmp_path):
    writer = QuarantineWriter(tmp_path / "q.jsonl")
    writer.write(BAD)
    assert repr(writer) == "QuarantineWriter(n_rows=3)"
    assert "quoted" not in repr(BAD)
    writer.close()
    assert json.loads((tmp_path / "q.jsonl").read_text().splitlines()[0])["row"] == 3
