"""DuckDB, which shares no code with what wrote the table, reads it from its metadata."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from tests.io.iceberg.test_sink import batch, lake, opened

pytest.importorskip("pyiceberg")
duckdb = pytest.importorskip("duckdb")
from shoal.io.iceberg import sink as module  # noqa: E402

# DuckDB is installed for `make nightly` only.
pytestmark = pytest.mark.nightly


def extension(name: str) -> str:
    """The path of an extension that is installed as a package; DuckDB would download it else."""
    found = importlib.util.find_spec(f"duckdb_extension_{name}")
    if found is None or found.origin is None:
        pytest.skip(f"DuckDB's extension isn't installed: pip install duckdb-extension-{name}")
    folder = Path(found.origin).parent / "extensions" / f"v{duckdb.__version__}"
    path = folder / f"{name}.duckdb_extension"
    if not path.exists():
        pytest.skip(f"DuckDB is {duckdb.__version__}, and its extension {name} of another version")
    return str(path)


@pytest.fixture
def reader(tmp_path) -> Any:
    settings = {"extension_directory": str(tmp_path / "extensions")}
    with duckdb.connect(config=settings) as connection:
        for name in ("avro", "iceberg"):
            connection.load_extension(extension(name))
        yield connection


def test_duckdb_finds_the_rows_of_every_commit(tmp_path, reader):
    output = lake(tmp_path, rows=5, partition=["age"])
    sink = opened(output, None)
    for begin in (0, 7, 14):
        sink.write(batch(begin, begin + 7))
        mark = sink.commit()
    sink.close()
    resumed = opened(output, mark)
    resumed.write(batch(21, 30))
    resumed.commit()
    resumed.close()
    table = module._catalog(output).load_table(output.table)
    assert len(table.snapshots()) > 1
    where = table.metadata_location.removeprefix("file://")
    scan = f"FROM iceberg_scan('{where}')"
    wards = reader.execute(f"SELECT ward {scan} ORDER BY CAST(ward[6:] AS INT)").fetchall()
    assert wards == [(f"ward {i}",) for i in range(30)]
    assert reader.execute(f"SELECT age, count(*) {scan} GROUP BY age").fetchall() == [
        ("[1, 2]", 30)
    ]
