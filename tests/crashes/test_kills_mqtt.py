"""Runs from MQTT to a file, killed at random instants and started again."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pyarrow as pa
import pytest

from shoal.audit import audit
from shoal.job import Job
from tests.crashes.world import (
    crowd,
    n_taken_in,
    read_all,
    started,
    wait_until,
    wait_until_it_listens,
)
from tests.mosquitto import Mosquitto, publish
from tests.world import write_job

N_KILLS = int(os.environ.get("SHOAL_KILLS", "10"))
SEAL = "00" * 32


def mqtt_job(folder: Path, broker: Mosquitto, *, sealed: bool) -> Path:
    """A job whose ward is a level of the topic."""
    folder.mkdir()
    seal = ", seal = 'env:SHOAL_TEST_SEAL'" if sealed else ""
    job = write_job(
        folder,
        policy="k = 3\nl = 2\ndelay = { rows = 60 }",
        run=f"seed = 7\nname = 'kills'\ncheckpoint = {{ folder = 'state', every = 0.1{seal} }}",
    )
    with job.open("a") as file:
        file.write(f"[input]\nmqtt = '{broker.address}'\ntopic = 'people/{{ward}}/+'\n")
        file.write("[output]\npath = 'out.jsonl'\n")
    return job


def send(broker: Mosquitto, table: pa.Table) -> None:
    """Publish rows, one to a message."""
    messages = []
    for row in table.to_pylist():
        ward = row.pop("ward")
        messages.append((f"people/{ward}/visit", json.dumps(row).encode()))
    publish(broker.port, messages)


@pytest.mark.parametrize("sealed", [False, True], ids=["in clear", "sealed"])
def test_killed_again_and_again_every_message_is_taken_in_once(
    tmp_path, mosquitto, monkeypatch, sealed
):
    monkeypatch.setenv("SHOAL_TEST_SEAL", SEAL)
    draw = random.Random(11)
    table = crowd(N_KILLS * 60)
    # Published as it is, so that each row can be told apart.
    table = table.set_column(4, "ward", [[f"ward {i}" for i in range(len(table))]])
    folder = tmp_path / "killed"
    job = mqtt_job(folder, mosquitto, sealed=sealed)
    command = ["run", str(job), "--trace", f"{folder}/trace/", "-q"]
    # The session begins with the first start: what comes before it is for nobody.
    with started([*command, "--log", "text"]) as process:
        wait_until(lambda: "Received SUBSCRIBE from shoal-kills" in mosquitto.log.read_text())
        process.send_signal(signal.SIGTERM)
        assert process.wait(600) == 0
    for i in range(N_KILLS):
        # Half of the messages come while nothing runs, half while it does.
        send(mosquitto, table.slice(i * 60, 30))
        with started(command) as process:
            send(mosquitto, table.slice(i * 60 + 30, 30))
            try_to_wait(process, draw.uniform(0.0, 3.0))
            process.kill()
    with started([*command, "--drain", "--log", "text"]) as process:
        wait_until_it_listens(process)
        key = ["--seal", "env:SHOAL_TEST_SEAL"] if sealed else []
        wait_until(lambda: n_taken_in(folder, *key) >= len(table), seconds=60 + 6 * N_KILLS)
        process.send_signal(signal.SIGTERM)
        assert process.stderr is not None
        assert process.wait(600) == 0, process.stderr.read().decode()
    trace = read_all(folder / "trace")
    assert sorted(trace["row"].to_pylist()) == list(range(len(table)))
    published = read_all(folder / "out.jsonl")
    wards = published["ward"].to_pylist()
    assert len(set(wards)) == len(wards)
    described = Job.load(job)
    original = table.select([n for n in table.schema.names if n in described.schema.columns])
    report = audit(described.schema, described.policy, published, trace=trace, original=original)
    assert all(verdict.verdict == "kept" for verdict in report.verdicts), str(report)
    stored = b"".join(path.read_bytes() for path in (folder / "state").iterdir() if path.is_file())
    assert b"measles" not in stored or not sealed


def try_to_wait(process, seconds: float) -> None:
    """Let it run for a while, counted from when it has Python's modules."""
    end = time.monotonic() + 1.0 + seconds
    while time.monotonic() < end:
        try:
            process.wait(0.1)
        except subprocess.TimeoutExpired:
            continue
        assert process.stderr is not None
        raise AssertionError(process.stderr.read().decode())
