"""Streams of Spark's that aren't as they were: other columns, another way to run."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from shoal.errors import ResourceError
from shoal.job import Job
from shoal.spark import publish
from shoal.spark.endpoints import read_stream
from tests.spark.world import LIVE, job_of
from tests.world import people

WALL = "k = 3\ndelay = { rows = 1000, seconds = 2, clock = 'wall' }"


def write(path: Path, names: list[str], first: int, n_rows: int = 40) -> None:
    table = people(200).slice(first, n_rows).select(names).to_pylist()
    lines = [",".join(names), *(",".join(str(row[name]) for name in names) for row in table)]
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture
def job(tmp_path):
    (tmp_path / "in").mkdir()
    run = LIVE + "\n[spark]\ninterval = 0.2\n"
    return job_of(tmp_path, policy=WALL, run=run)


def lived(spark: Any, job: Job, folder: Path, **options: Any) -> list[dict[str, Any]]:
    """Run until some rows are out; give them."""
    source = dataclasses.replace(job.input, path=str(folder / "in"), format="csv")
    found: dict[str, list[dict[str, Any]]] = {}

    def keep(rows: Any, turn: str) -> None:
        found[turn] = rows.toArrow().to_pylist()

    running = publish(read_stream(spark, job, source), job, write=keep, **options)
    if options.get("until_end"):
        running.wait()
    else:
        while not any(found.values()):
            assert not running.wait(1)
        running.stop()
        assert running.wait(1)
    return [row for rows in found.values() for row in rows]


def test_a_file_whose_columns_stand_in_another_order_is_refused(spark, job, tmp_path):
    # By its header alone it can be seen that these aren't wards.
    write(tmp_path / "in" / "a.csv", ["person", "age", "town", "illness", "ward"], 0)
    write(tmp_path / "in" / "b.csv", ["ward", "age", "town", "illness", "person"], 40)
    with pytest.raises(ResourceError, match="Spark has given up"):
        lived(spark, job, tmp_path, until_end=True)


def test_who_has_read_up_to_the_end_can_follow_what_comes_after_it(spark, job, tmp_path):
    names = ["person", "age", "town", "illness", "ward"]
    n_out = 0
    for i, until_end in enumerate([True, False, True]):
        write(tmp_path / "in" / f"{i}.csv", names, 40 * i)
        n_out += len(lived(spark, job, tmp_path, until_end=until_end))
    assert 60 < n_out <= 120
