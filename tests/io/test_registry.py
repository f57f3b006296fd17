"""A format or a connector is one file: dropped into its package, it is found and used."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from shoal import io as shoal_io
from shoal.errors import JobError
from shoal.io import formats, registry
from shoal.job import Job
from tests.world import people, shoal, write, write_job

ADDED = Path(__file__).parent / "added"
STATE = "seed = 7\ncheckpoint = { folder = 'state', every = 0.05 }"


@pytest.fixture
def psv(monkeypatch):
    monkeypatch.setattr(formats, "__path__", [*formats.__path__, str(ADDED / "formats")])


@pytest.fixture
def memory(monkeypatch):
    monkeypatch.setattr(shoal_io, "__path__", [*shoal_io.__path__, str(ADDED / "connectors")])
    module = importlib.import_module("shoal.io.memory")
    module.STORED.clear()
    return module


def run_file(monkeypatch, folder, ending, run="seed = 7"):
    folder.mkdir()
    job = write_job(folder, run=run)
    source = write(people(120), folder / f"in.{ending}")
    trace = folder / "trace.csv"
    out = folder / f"out.{ending}"
    assert shoal(monkeypatch, "run", job, "-q", "-i", source, "-o", out, "--trace", trace) == 0
    audit = ("audit", job, out, "--original", source, "--trace", trace)
    assert shoal(monkeypatch, *audit) == 0
    return out.read_text()


@pytest.mark.parametrize("run", ["seed = 7", STATE])
def test_a_format_that_is_added_is_used_everywhere(psv, monkeypatch, tmp_path, run):
    assert "psv" in formats.names()
    piped = run_file(monkeypatch, tmp_path / "a", "psv", run)
    plain = run_file(monkeypatch, tmp_path / "b", "csv", run)
    assert piped.startswith("age|town|illness|ward\n")
    assert len(piped.splitlines()) == len(plain.splitlines()) == 121


def test_a_format_that_isnt_known_is_an_error_that_names_the_known_ones(tmp_path):
    with pytest.raises(JobError, match=r"isn't a known format; got 'parket'\. Did you mean 'parq"):
        formats.file_type("x", "parket")
    with pytest.raises(JobError, match=r"stands for no known format\. Known: arrow, .*csv, .*pq"):
        formats.file_type("people.xlsx")


def memory_job(folder):
    job = write_job(folder, run=STATE)
    job.write_text(job.read_text() + "[input]\nmemory = 'in'\n[output]\nmemory = 'out'\n")
    return job


def test_a_connector_that_is_added_is_selected_by_its_key(memory, monkeypatch, tmp_path):
    memory.STORED["in"] = people(120).to_pylist()
    assert shoal(monkeypatch, "run", memory_job(tmp_path), "-q") == 0
    assert len(memory.STORED["out"]) == 120
    assert set(memory.STORED["out"][0]) == {"age", "town", "illness", "ward"}


def test_a_connector_that_is_added_is_resumed(memory, monkeypatch, tmp_path):
    memory.STORED["in"] = people(120).to_pylist()
    job = memory_job(tmp_path)
    memory.FAIL_AFTER.append(70)
    assert shoal(monkeypatch, "run", job, "-q") != 0
    some = list(memory.STORED["out"])
    assert 0 < len(some) < 120
    assert shoal(monkeypatch, "run", job, "-q") == 0
    assert memory.STORED["out"][: len(some)] == some
    assert len(memory.STORED["out"]) == 120


def test_what_a_connector_states_is_checked(memory, monkeypatch, tmp_path, capfd):
    job = memory_job(tmp_path)
    text = job.read_text()
    job.write_text(text.replace("checkpoint = ", "# "))
    memory.STORED["in"] = people(5).to_pylist()
    assert shoal(monkeypatch, "run", job, "-q") == 2
    assert "output: is memory, and without checkpoints" in capfd.readouterr().err
    with pytest.raises(JobError, match=r"input\.path: can't be combined with memory"):
        Job.parse(text.replace("memory = 'in'", "memory = 'in'\npath = 'x'"), folder=tmp_path)
    with pytest.raises(JobError, match=r"input\.topic: is for kafka only"):
        Job.parse(text.replace("memory = 'in'", "topic = 'x'"), folder=tmp_path)
    found = Job.parse(text, folder=tmp_path)
    with pytest.raises(JobError, match=r"input: is memory, which isn't supported on Spark"):
        found.input.spark_stream(None, None)
    with pytest.raises(JobError, match=r"output: is memory, which isn't supported on Spark"):
        found.output.spark_writer()


def test_connectors_that_share_a_key_agree_on_it():
    for section in ("input", "output"):
        keys = registry.keys_of(section)
        for connector in registry.connectors():
            own = connector.input_keys if section == "input" else connector.output_keys
            assert {key: keys[key] for key in own} == dict(own)


def test_each_connector_states_its_guarantee_in_the_first_line():
    modules = [
        sys.modules[f"shoal.io.{name}"] for name in ("files", "iceberg", "kafka", "mqtt", "table")
    ]
    assert [module.CONNECTOR for module in modules] == list(registry.connectors())
    for module in modules:
        assert ": " in (module.__doc__ or "").splitlines()[0]


def test_reading_a_job_imports_no_client_library():
    code = (
        "import sys, shoal.job.file, shoal.io.registry as r; r.connectors();"
        "assert not {'confluent_kafka', 'paho', 'pyiceberg', 'pyspark'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
