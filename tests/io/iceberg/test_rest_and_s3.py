"""The sink, with Iceberg's own REST catalog, and files in S3-compatible storage."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from shoal.errors import CheckpointError, JobError, ResourceError
from shoal.io.iceberg.connector import IcebergOutput
from tests.io.iceberg.test_sink import batch, files, numbers, opened
from tests.lake import PASSWORD, PASSWORD_NAME, Lake

pytest.importorskip("pyiceberg")
from shoal.io.iceberg import sink as module
from shoal.io.iceberg.sink import refuse_rows


def output(lake: Lake, **more: object) -> IcebergOutput:
    given = {"table": "public.people", "rows": 5, "settings": lake.settings} | more
    return IcebergOutput(**given)


def test_rows_are_appended_once_with_a_rest_catalog_and_s3(lake, monkeypatch):
    where = output(lake, partition=("age",))
    refuse_rows(where)
    sink = opened(where, None)
    sink.write(batch(0, 7))
    mark = sink.commit()
    assert numbers(where) == list(range(7))
    # Committed, and killed before the checkpoint.
    sink.write(batch(7, 14))
    assert numbers(where) == list(range(14))
    again = opened(where, mark)
    assert again.n_ahead == 7
    again.write(batch(7, 14))
    again.write(batch(14, 16))
    mark = again.commit()
    again.close()
    assert numbers(where) == list(range(16))
    assert files(where) == [2, 7, 7]
    assert all(key.startswith("lake/warehouse/public/people/") for key in lake.storage.keys)
    assert any("data/age=" in key for key in lake.storage.keys)
    with pytest.raises(JobError, match="has rows already"):
        refuse_rows(where)
    # A catalog that was restarted knows its tables.
    lake.catalog.kill()
    lake.catalog.start()
    last = opened(where, mark)
    last.write(batch(16, 21))
    assert numbers(where) == list(range(21))
    # Another process with the same checkpoint: the first to commit wins, the other one ends.
    one, other = (opened(where, {"seq": 21, "held": mark["held"]}) for _ in range(2))
    one.write(batch(21, 26))
    with pytest.raises(ResourceError):
        other.write(batch(21, 26))
    assert numbers(where) == list(range(26))
    # Someone compacts the table: the number of rows is still found.
    table = module._catalog(where).load_table("public.people")
    rows: pa.Table = table.scan().to_arrow()
    table.overwrite(rows)
    assert opened(where, {"seq": 26, "held": mark["held"]}).n_ahead == 0


def test_servers_that_are_away_or_refuse_end_with_one_sentence(lake, monkeypatch, tmp_path: Path):
    where = output(lake)
    sink = opened(where, None)
    sink.write(batch(0, 5))
    mark = sink.commit()
    lake.storage.kill()
    with pytest.raises(ResourceError, match=r"table public\.people") as error:
        sink.write(batch(5, 10))
    assert PASSWORD not in str(error.value)
    with pytest.raises(ResourceError, match=r"table public\.people"):
        opened(where, mark).write(batch(5, 10))
    lake.storage.start()
    # Nothing of it is in the table; the same rows are appended now.
    assert numbers(where) == list(range(5))
    again = opened(where, mark)
    again.write(batch(5, 10))
    mark = again.commit()
    lake.catalog.kill()
    with pytest.raises(ResourceError, match=r"table public\.people"):
        again.write(batch(10, 15))
    with pytest.raises(ResourceError, match=r"table public\.people"):
        opened(where, mark)
    lake.catalog.start()
    resumed = opened(where, mark)
    resumed.write(batch(10, 15))
    assert numbers(where) == list(range(15))
    monkeypatch.setenv(PASSWORD_NAME, "wrong")
    with pytest.raises(ResourceError, match=r"table public\.people") as error:
        opened(where, {"seq": 15, "held": mark["held"]}).write(batch(15, 20))
    assert "wrong" not in str(error.value)
    monkeypatch.setenv(PASSWORD_NAME, PASSWORD)
    assert numbers(where) == list(range(15))
    # Rolled back by others: it isn't continued.
    table = module._catalog(where).load_table("public.people")
    table.manage_snapshots().set_current_snapshot(table.snapshots()[0].snapshot_id).commit()
    with pytest.raises(CheckpointError, match="has 5 rows of the job, and the checkpoint expects"):
        opened(where, mark)
