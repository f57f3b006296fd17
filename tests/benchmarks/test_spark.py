"""The benchmark of Spark: its parts, and all of it, tiny."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from benchmarks.spark import Meter, Sizes
from benchmarks.spark_cluster import seconds_of_tree
from benchmarks.spark_runs import BARE, PASSED, cut
from benchmarks.spark_text import scale_text, text
from benchmarks.workloads import census_file

from tests.benchmarks.test_commands import run


def sample(value):
    return {"median": value, "least": value, "most": value, "values": [value]}


def timing(seconds, core):
    return {
        "seconds": sample(seconds),
        "rows_per_second": sample(1_000_000 / seconds),
        "core_us_per_row": sample(core),
    }


RESULTS = {
    "machine": {
        "processor": "a machine", "cores": "2", "python": "3", "numpy": "2", "numba": "0",
        "pyarrow": "1",
    },
    "workload": "census", "n_rows": 1_000_000, "batch_rows": 1000, "k": 5, "delay": 1000,
    "shards": 2, "master": "local[1]", "spark": "4", "others": 0.25,
    "floor": {"seconds": sample(0.5)},
    "rates": {
        BARE: timing(2.0, 4.0),
        PASSED: timing(3.0, 6.0),
        "algorithms": [
            {
                "name": "castle", "spark": timing(4.0, 9.0), "embedded": timing(5.0, 3.0),
                "share": sample(0.75), "share_of_bare": sample(0.5), "met": True,
                "state_bytes_per_shard": 2_000_000.0, "out_bytes_per_row": 10.0,
                "shuffled_bytes_per_row": 100.0,
            }
        ],
        "target": 0.6,
        "in_bytes_per_row": 20.0,
    },
}  # fmt: skip


def test_files_have_all_rows_in_their_order(tmp_path):
    workload = census_file(50, tmp_path)
    files = cut(workload, tmp_path, 45, 20, 2)
    pieces = [pq.read_table(path) for path in sorted(files.folder.iterdir())]
    assert [piece.num_rows for piece in pieces] == [20, 20, 5]
    assert pa.concat_tables(pieces).equals(pq.read_table(files.whole))
    assert files.n_rows == 45
    assert not any(pa.types.is_dictionary(kind) for kind in pieces[0].schema.types)


def test_the_first_round_of_a_meter_is_not_counted():
    clock = iter([0.0, 5.0, 5.0, 7.0])
    meter = Meter(lambda: "done", {"core": lambda: next(clock)})
    meter()
    meter()
    assert meter.sample("core").values == (2.0,)
    assert meter.results == ["done", "done"]


def test_the_work_of_a_child_counts():
    before = seconds_of_tree()
    work = "import time\nwhile time.process_time() < 0.5: pass"
    subprocess.run([sys.executable, "-c", work], check=True, env=os.environ)
    assert seconds_of_tree() - before >= 0.3


def test_the_report_says_what_was_found():
    said = text(RESULTS)
    assert "other programs used 25% of the machine" in said
    shares = next(line for line in said.splitlines() if line.startswith("| castle"))
    assert [cell.strip() for cell in shares.split("|")[2:4]] == ["0.75 (0.75 to 0.75)", "met"]
    assert "A batch without rows takes 0.50 (0.50 to 0.50) s" in said


def test_what_streams_need_follows_from_what_was_measured():
    said = scale_text(RESULTS)
    # Nine core seconds for a second's million of rows, on cores that are busy for 60 %.
    assert any(
        line.startswith("| cores, on Spark") and line.endswith(" 15 |")
        for line in said.splitlines()
    )
    # 2,000 bytes for each of ten million rows.
    assert "18.6 GiB |" in said
    assert "a cluster of fewer than 6 cores" in said
    assert "120,000 rows a second" in said


def test_quick_sizes_are_for_one_thread_of_this_machine():
    assert Sizes.quick().master == "local[1]"


@pytest.mark.parametrize("master", ["local[2]"])
def test_all_of_it(tmp_path, master):
    pages = {name: tmp_path / f"{name}.md" for name in ("spark", "scale")}
    for name, page in pages.items():
        page.write_text(f"<!-- {name}:begin -->\n<!-- {name}:end -->\n")
    done = run(
        "benchmarks.spark", "--quick", "--data", tmp_path, "--json", tmp_path / "found.json",
        "--write", pages["spark"], "--scale", pages["scale"], "--master", master,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["n_rows"] == 120
    (fads,) = found["rates"]["algorithms"]
    assert fads["shuffled_bytes_per_row"] > 0
    assert fads["state_bytes_per_shard"] > 0
    assert fads["out_bytes_per_row"] > 0
    assert len(found["floor"]["seconds"]["values"]) == Sizes.quick().empty
    assert "with no anonymizer" in pages["spark"].read_text()
    assert "The crossover" in pages["scale"].read_text()
