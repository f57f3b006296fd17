"""Runs to a table of a REST catalog in S3-compatible storage; run and servers are killed."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shoal.audit import audit
from shoal.job import Job
from tests.crashes.test_kills_iceberg import N_ROWS, finish, give, iceberg_job, rows_of
from tests.crashes.test_kills_mqtt import wait
from tests.crashes.world import crowd, read_all, started, wait_until
from tests.lake import PASSWORD, Lake

pytest.importorskip("pyiceberg")
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import NoSuchTableError

N_KILLS = 4


def lake_job(folder: Path, lake: Lake) -> list[str]:
    """Write the job of the local lake, with another catalog; give the command that runs it."""
    command = iceberg_job(folder)
    job = folder / "job.toml"
    settings = "".join(f"{json.dumps(name)} = '{value}'\n" for name, value in lake.settings.items())
    job.write_text(
        job.read_text().replace("path = 'lake'\n", "") + f"[output.settings]\n{settings}"
    )
    return command


def table_of(lake: Lake):
    catalog = load_catalog("read", **lake.settings | {"s3.secret-access-key": PASSWORD})
    return catalog.load_table("public.people")


def in_order(table) -> pa.Table:
    """All rows in the order of the commits."""
    entries = sorted(table.inspect.entries().to_pylist(), key=lambda one: one["sequence_number"])
    parts = []
    for entry in entries:
        with table.io.new_input(entry["data_file"]["file_path"]).open() as file:
            parts.append(pq.ParquetFile(pa.BufferReader(file.read())).read())
    return pa.concat_tables(parts)


def n_commits(lake: Lake) -> int:
    try:
        return len(table_of(lake).snapshots())
    except NoSuchTableError:
        return 0


def test_killed_again_and_again_the_table_is_that_of_a_local_run_without_kills(tmp_path, lake):
    draw, table = random.Random(5), crowd((N_KILLS + 2) * N_ROWS)
    table = table.set_column(4, "ward", [[f"ward {i}" for i in range(len(table))]])
    folder = tmp_path / "killed"
    command = lake_job(folder, lake)
    for i in range(N_KILLS):
        give(folder, table, i)
        n_before = n_commits(lake)
        with started([*command, "--follow"]) as process:
            if i % 2:
                wait(process, draw.uniform(0.0, 6.0))
            else:
                # During a commit, or between it and the next checkpoint.
                wait_until(lambda n=n_before: n_commits(lake) > n, seconds=300)
                wait(process, draw.uniform(0.0, 0.3))
            process.kill()
    # A server that is killed under a run: the run ends with a clear error, or finishes before.
    for i, server in enumerate((lake.catalog, lake.storage), N_KILLS):
        n_before = n_commits(lake)
        with started([*command, "--follow"]) as process:
            time.sleep(3)
            server.kill()
            give(folder, table, i)
            assert process.stderr is not None
            assert process.wait(600) == 4
            said = process.stderr.read().decode()
        assert "table public.people" in said
        assert PASSWORD not in said
        server.start()
        assert n_commits(lake) >= n_before
    finish(command)
    other = tmp_path / "undisturbed"
    undisturbed = iceberg_job(other)
    for i in range(N_KILLS + 2):
        give(other, table, i)
    finish(undisturbed)
    published = in_order(table_of(lake))
    assert published.equals(rows_of(other))
    assert all(key.startswith("lake/warehouse/public/people/") for key in lake.storage.keys)
    assert not (folder / "lake").exists()
    job = Job.load(folder / "job.toml")
    original = table.select([name for name in table.schema.names if name in job.schema.columns])
    report = audit(
        job.schema, job.policy, published, trace=read_all(folder / "trace"), original=original
    )
    assert all(verdict.verdict == "kept" for verdict in report.verdicts), str(report)
    # No secret in what the run leaves.
    for path in folder.rglob("*"):
        if path.is_file():
            assert PASSWORD.encode() not in path.read_bytes()
