"""What is measured on: files of many rows with ten quasi attributes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow.parquet as pq

from shoal.datasets import census
from shoal.hierarchy import Hierarchy, Range
from shoal.schema import Quasi, Schema, Sensitive

__all__ = ["DATA", "ROOT", "SHARED", "Workload", "acs_income", "census_file"]

ROOT = Path(__file__).parents[1]
#: Where generated files are kept between runs; never committed.
DATA = ROOT / "bench-data"
#: Real data that may stand beside the repository.
SHARED = ROOT.parent / "shared" / "data"

#: So many rows make a row group, as in the files that Shoal writes.
ROW_GROUP_ROWS = 131_072
SEED = 2011


@dataclass(frozen=True)
class Workload:
    """A file, and what its columns are."""

    name: str
    path: Path = field(repr=False)
    schema: Schema = field(repr=False)
    n_rows: int


def census_file(rows: int, folder: Path = DATA) -> Workload:
    """A made-up census of so many rows; subjects come back."""
    data = census(rows, seed=SEED)
    path = folder / f"census-{rows}.parquet"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".unfinished")
        with pq.ParquetWriter(unfinished, next(data.batches()).schema) as writer:
            for batch in replace(data, batch_rows=ROW_GROUP_ROWS).batches():
                writer.write_batch(batch, row_group_size=ROW_GROUP_ROWS)
        unfinished.replace(path)
    return Workload("census", path, data.schema, rows)


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
