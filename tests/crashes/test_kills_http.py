"""Runs that take rows by HTTP, killed at random instants and started again, while clients send."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.crashes.test_kills_mqtt import judge, wait
from tests.crashes.world import crowd, read_all, started
from tests.http_client import free_port, post, releases, wait_until_it_serves
from tests.world import write_job

N_KILLS = int(os.environ.get("SHOAL_KILLS", "10"))
SEAL = "00" * 32


class Reader:
    """Reads what is published while the server is killed, and expects no row twice."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._stopped = threading.Event()
        self.lines: list[bytes] = []
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        while not self._stopped.wait(0.05):
            self.lines += releases(self._port, len(self.lines), 7)

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join(120)


@pytest.mark.parametrize(
    ("output", "sealed"), [("out.jsonl", False), ("out/", True)], ids=["file", "folder, sealed"]
)
def test_killed_again_and_again_every_row_is_taken_in_once(tmp_path, monkeypatch, output, sealed):
    monkeypatch.setenv("SHOAL_TEST_SEAL", SEAL)
    job, table = serving_job(tmp_path, output, sealed=sealed), rows()
    lines = kill(job, table, n_clients=1)
    judge(job, table, read_all(tmp_path / output))
    # What a reader had was never taken back or changed.
    assert lines
    assert lines == all_lines(tmp_path / output)[: len(lines)]
    stored = b"".join(path.read_bytes() for path in (tmp_path / "state").iterdir())
    assert b"measles" not in stored or not sealed


def test_with_many_clients_at_once_none_is_lost_or_doubled(tmp_path):
    job, table = serving_job(tmp_path, "out.jsonl"), rows()
    kill(job, table, n_clients=4)
    trace = read_all(tmp_path / "trace")
    assert sorted(trace["row"].to_pylist()) == list(range(len(table)))
    published = [json.loads(line)["ward"] for line in all_lines(tmp_path / "out.jsonl")]
    n_suppressed = trace["seq"].null_count
    assert len(set(published)) == len(published) == len(table) - n_suppressed


def serving_job(folder: Path, output: str, *, sealed: bool = False) -> Path:
    """A job without an input."""
    seal = ", seal = 'env:SHOAL_TEST_SEAL'" if sealed else ""
    job = write_job(
        folder,
        policy="k = 3\nl = 2\ndelay = { rows = 60 }",
        run=f"seed = 7\ncheckpoint = {{ folder = 'state', every = 0.1{seal} }}",
    )
    with job.open("a") as file:
        file.write(f"[output]\npath = '{output}'\nformat = 'jsonl'\n")
    return job


def rows() -> pa.Table:
    """Rows of which each can be told apart: the ward is published as it is."""
    table = crowd(N_KILLS * 60)
    return table.set_column(4, "ward", [[f"ward {i}" for i in range(len(table))]])


def all_lines(path: Path) -> list[bytes]:
    """The lines of a file, or of the files of a folder."""
    files = sorted(path.glob("rows-*")) if path.is_dir() else [path]
    return b"".join(file.read_bytes() for file in files).splitlines(keepends=True)


def kill(job: Path, table: pa.Table, n_clients: int) -> list[bytes]:
    """Kill a server again and again while clients send, and let the last one finish.

    Give what a reader of published rows has seen meanwhile.
    """
    draw, port = random.Random(11), free_port()
    command = [
        "serve", str(job), "--page", f"127.0.0.1:{port}", "--trace", f"{job.parent}/trace/", "-q",
    ]  # fmt: skip
    reader = Reader(port)
    started_runs = [threading.Event() for _ in range(N_KILLS)]
    answers: list[dict[str, Any]] = []

    def send(number: int) -> None:
        """Send a share of the rows, five at a time; each start of the server has new ones."""
        for i in range(N_KILLS):
            assert started_runs[i].wait(600)
            part = table.slice(60 * i, 60).to_pylist()
            answers.extend(
                post(port, part[begin : begin + 5], f"{i}-{begin}")
                for begin in range(5 * number, 60, 5 * n_clients)
            )

    clients = [threading.Thread(target=send, args=(number,)) for number in range(n_clients)]
    for client in clients:
        client.start()
    for i in range(N_KILLS):
        started_runs[i].set()
        with started(command) as process:
            if i % 2:
                # At any instant, also before it listens.
                wait(process, draw.uniform(0.0, 3.0))
            else:
                # While rows are posted.
                wait_until_it_serves(port)
                wait(process, draw.uniform(0.0, 0.3))
            process.kill()
    with started([*command, "--drain"]) as process:
        # From then on it takes signals.
        wait_until_it_serves(port)
        for client in clients:
            client.join(600)
            assert not client.is_alive()
        process.send_signal(signal.SIGTERM)
        assert process.stderr is not None
        assert process.wait(600) == 0, process.stderr.read().decode()
    reader.stop()
    assert sum(answer["rows"] for answer in answers) == len(table)
    return reader.lines
