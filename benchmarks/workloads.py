"""What is measured on: files of many rows with ten quasi attributes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.incomplete import missing_places
from shoal.datasets import Dataset, adult, census
from shoal.datasets._adult_domains import TABLE_5_4, domains
from shoal.spec.hierarchy import Hierarchy, Range
from shoal.spec.policy import Missing
from shoal.spec.schema import Quasi, Schema, Sensitive

__all__ = [
    "ADULT", "DATA", "ROOT", "SHARED", "Workload", "acs_income", "adult_file", "census_file",
]  # fmt: skip

ROOT = Path(__file__).parents[1]
#: Where generated files are kept between runs; never committed.
DATA = ROOT / "bench-data"
#: Real data that may stand beside the repository.
SHARED = ROOT.parent / "shared" / "data"
ADULT = SHARED / "adult.csv"

#: This many rows make a row group, as in the files that Shoal writes.
ROW_GROUP_ROWS = 131_072
SEED = 2011


@dataclass(frozen=True)
class Workload:
    """A file, and what its columns are."""

    name: str
    path: Path = field(repr=False)
    schema: Schema = field(repr=False)
    n_rows: int
    #: What a missing quasi value means there.
    missing: Missing = "quarantine"


def census_file(rows: int, folder: Path = DATA) -> Workload:
    """A made-up census of this many rows; subjects come back."""
    data = census(rows, seed=SEED)
    return Workload("census", _file(data, folder), data.schema, rows)


def adult_file(rows: int, folder: Path = DATA, *, gaps: int = 0) -> Workload:
    """UCI Adult again and again, in another order each time, each row a subject of its own.

    With ``gaps``, values are missing: as many rows lack 0, 1, … and ``gaps`` of them (IDEA §5.1).
    """
    # From the domains, since a run that is watched must not read the whole of Adult for a schema.
    known = domains(complete=True)
    schema = Schema(subject=None, quasi=[Quasi(name, known[name]) for name in TABLE_5_4])
    name = f"adult-with-{gaps}-gaps" if gaps else "adult"
    data = Dataset(name, schema, "UCI Adult, repeated", rows, partial(_repeated, rows, gaps))
    return Workload(name, _file(data, folder), schema, rows, "maybe" if gaps else "quarantine")


def _file(data: Dataset, folder: Path) -> Path:
    """The file of a data set, which is made if it isn't there."""
    path = folder / f"{data.name}-{data.n_rows}.parquet"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".unfinished")
        with pq.ParquetWriter(unfinished, next(data.batches()).schema) as writer:
            for batch in replace(data, batch_rows=ROW_GROUP_ROWS).batches():
                writer.write_batch(batch, row_group_size=ROW_GROUP_ROWS)
        unfinished.replace(path)
    return path


def _repeated(rows: int, gaps: int) -> Iterator[pa.RecordBatch]:
    table = adult(ADULT).table().select(list(TABLE_5_4))
    draw = np.random.default_rng(SEED)
    for begin in range(0, rows, table.num_rows):
        piece = table.take(draw.permutation(table.num_rows)[: rows - begin])
        missing = missing_places(*piece.shape, gaps, draw)
        columns = [
            pc.if_else(pa.array(where), pa.scalar(None, column.type), column)
            for column, where in zip(piece.columns, missing.T, strict=True)
        ]
        yield from pa.table(columns, names=piece.column_names).combine_chunks().to_batches()


def acs_income() -> Workload | None:
    """The American Community Survey of 2018, each row a subject; None where it isn't there."""
    path = SHARED / "acs_income_2018.parquet"
    hierarchies = SHARED / "hierarchies" / "acs_income_2018"
    if not path.exists() or not hierarchies.exists():
        return None

    def tree(name: str) -> Hierarchy:
        lines = (hierarchies / f"{name}.csv").read_text(encoding="utf-8").splitlines()
        paths = [line.split(";") for line in lines]
        leaves = {path[0] for path in paths}
        # Some birthplaces are a region: a leaf, and under the same name the node above others.
        return Hierarchy.from_rows(
            [leaf, *(f"{label} (region)" if label in leaves else label for label in above)]
            for leaf, *above in paths
        )

    categories = (
        "sex", "race", "marital", "education", "workclass", "birthplace", "relationship", "state",
    )  # fmt: skip
    schema = Schema(
        subject=None,
        quasi=[
            Quasi("age", Range(17, 96, step=1)),
            Quasi("hours_per_week", Range(1, 99, step=1)),
            *(Quasi(name, tree(name)) for name in categories),
        ],
        sensitive=[Sensitive("occupation", tree("occupation"))],
        keep=["income_gt_50k"],
    )
    return Workload("acs-income-2018", path, schema, pq.read_metadata(path).num_rows)
