"""Runs from MQTT to a file or to MQTT, killed at random instants and started again."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import threading
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
from tests.mosquitto import Mosquitto, Subscriber, publish
from tests.world import write_job

N_KILLS = int(os.environ.get("SHOAL_KILLS", "10"))
SEAL = "00" * 32
SUBSCRIBED = "Received SUBSCRIBE from shoal-kills"


def mqtt_job(folder: Path, broker: Mosquitto, output: str, *, sealed: bool) -> Path:
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
        file.write(f"[output]\n{output}\n")
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
    folder = tmp_path / "killed"
    job = mqtt_job(folder, mosquitto, "path = 'out.jsonl'", sealed=sealed)
    table = kill(job, mosquitto, ["--seal", "env:SHOAL_TEST_SEAL"] if sealed else [])
    judge(job, table, read_all(folder / "out.jsonl"))
    stored = b"".join(path.read_bytes() for path in (folder / "state").iterdir() if path.is_file())
    assert b"measles" not in stored or not sealed


def test_to_mqtt_a_reader_that_drops_numbers_it_has_had_has_each_row_once(tmp_path, mosquitto):
    folder = tmp_path / "killed"
    output = f"mqtt = '{mosquitto.address}'\ntopic = 'public'"
    job = mqtt_job(folder, mosquitto, output, sealed=False)
    reader = Subscriber(mosquitto.port, "public")
    table = kill(job, mosquitto, [])
    n_rows = sum(seq is not None for seq in read_all(folder / "trace")["seq"].to_pylist())
    wait_until(lambda: len({more["row"] for *_, more in reader.messages}) == n_rows)
    reader.close()
    rows: dict[int, bytes] = {}
    for _, payload, more in reader.messages:
        # A row that comes again is the same one, byte by byte.
        assert rows.setdefault(int(more["row"]), payload) == payload
    assert list(rows) == list(range(n_rows))
    judge(job, table, pa.Table.from_pylist([json.loads(payload) for payload in rows.values()]))


def kill(job: Path, mosquitto: Mosquitto, key: list[str]) -> pa.Table:
    """Kill a run again and again while rows come, and let the last one finish; give the rows."""
    folder, draw = job.parent, random.Random(11)
    table = crowd(N_KILLS * 60)
    # Published as it is, so that each row can be told apart.
    table = table.set_column(4, "ward", [[f"ward {i}" for i in range(len(table))]])
    command = ["run", str(job), "--trace", f"{folder}/trace/", "-q"]
    # The session begins with the first start: what comes before it is for nobody.
    with started([*command, "--log", "text"]) as process:
        wait_until(lambda: SUBSCRIBED in mosquitto.log.read_text())
        process.send_signal(signal.SIGTERM)
        assert process.wait(600) == 0
    for i in range(N_KILLS):
        n_before = mosquitto.log.read_text().count(SUBSCRIBED)
        # Half of the messages come while nothing runs, half while it does.
        send(mosquitto, table.slice(i * 60, 30))
        with started(command) as process:
            if i % 2:
                # At any instant, also before it has connected.
                send(mosquitto, table.slice(i * 60 + 30, 30))
                wait(process, draw.uniform(0.0, 3.0))
            else:
                # While messages arrive: some are delivered and not acknowledged.
                wait_until(lambda n=n_before: mosquitto.log.read_text().count(SUBSCRIBED) > n)
                rest = table.slice(i * 60 + 30, 30)
                thread = threading.Thread(target=send, args=(mosquitto, rest))
                thread.start()
                wait(process, draw.uniform(0.0, 0.15))
            process.kill()
            if not i % 2:
                thread.join()
    with started([*command, "--drain", "--log", "text"]) as process:
        wait_until_it_listens(process)
        wait_until(lambda: n_taken_in(folder, *key) >= len(table), seconds=60 + 6 * N_KILLS)
        process.send_signal(signal.SIGTERM)
        assert process.stderr is not None
        assert process.wait(600) == 0, process.stderr.read().decode()
    return table


def judge(job: Path, table: pa.Table, published: pa.Table) -> None:
    """Every row was taken in once, and the audit agrees."""
    trace = read_all(job.parent / "trace")
    assert sorted(trace["row"].to_pylist()) == list(range(len(table)))
    wards = published["ward"].to_pylist()
    assert len(set(wards)) == len(wards)
    described = Job.load(job)
    original = table.select([n for n in table.schema.names if n in described.schema.columns])
    report = audit(described.schema, described.policy, published, trace=trace, original=original)
    assert all(verdict.verdict == "kept" for verdict in report.verdicts), str(report)


def wait(process: subprocess.Popen[bytes], seconds: float) -> None:
    """Let it run for a while; it must not end by itself."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return
    assert process.stderr is not None
    raise AssertionError(process.stderr.read().decode())
