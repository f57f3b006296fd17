"""Read an Iceberg table as its readers do, and write its rows to a file for the audit.

python read.py lake public.admissions published.parquet
"""

import sys
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog import load_catalog
from pyiceberg.table import Table


def open_table(folder: str, name: str) -> Table:
    uri = f"sqlite:///{Path(folder).absolute() / 'catalog.db'}"
    return load_catalog("shoal", type="sql", uri=uri).load_table(name)


def in_order(table: Table) -> pa.Table:
    """Return all rows in the order of the commits, by which the trace counts them."""
    entries = sorted(
        table.inspect.entries().to_pylist(), key=lambda entry: entry["sequence_number"]
    )
    paths = [entry["data_file"]["file_path"].removeprefix("file://") for entry in entries]
    return pa.concat_tables([pq.ParquetFile(path).read() for path in paths])


def main(folder: str, name: str, path: str) -> None:
    table = open_table(folder, name)
    print(pl.scan_iceberg(table).group_by("profession").len().sort("profession").collect())
    pq.write_table(in_order(table), path)


if __name__ == "__main__":
    main(*sys.argv[1:])
