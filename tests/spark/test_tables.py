"""Turns that are written to a table: each beside those before it, and over itself."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from shoal.spark.endpoints import writer_of
from tests.spark.world import job_of


@pytest.fixture
def table(spark):
    name = "eyes_turns"
    spark.sql(f"DROP TABLE IF EXISTS {name}")
    yield name
    spark.sql(f"DROP TABLE IF EXISTS {name}")


def told(spark: Any, name: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in spark.table(name).collect())


@pytest.mark.parametrize("mode", ["STATIC", "DYNAMIC"])
def test_a_turn_is_written_over_itself_and_over_no_other(spark, table, tmp_path, mode):
    job = job_of(tmp_path)
    write = writer_of(job, dataclasses.replace(job.output, table=table))
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", mode)

    def turn(number: int, *rows: tuple[int, str]) -> None:
        write(spark.createDataFrame(list(rows), "age int, town string"), f"batch-000000000{number}")

    try:
        turn(0, (1, "east"), (2, "west"))
        turn(1, (3, "east"))
        both = told(spark, table)
        assert both == [
            (1, "east", "batch-0000000000"),
            (2, "west", "batch-0000000000"),
            (3, "east", "batch-0000000001"),
        ]
        turn(1, (3, "east"))
        assert told(spark, table) == both
        # What was torn by a crash goes altogether.
        turn(1)
        assert told(spark, table) == both[:2]
    finally:
        spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
