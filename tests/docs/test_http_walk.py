"""The steps of docs/http.md: the commands of the page, the real program, real HTTP."""

from __future__ import annotations

import http.server
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import ClassVar

import pytest

from tests.crashes.world import environment, n_taken_in, started, wait_until
from tests.docs.test_docs import section
from tests.docs.test_kafka_walk import ROOT
from tests.http_client import free_port, wait_until_it_serves
from tests.world import COMMAND


def steps() -> list[str]:
    """The commands of the walk, one text for each block."""
    walk = section(ROOT / "docs" / "http.md", "A walk")
    return re.findall(r"^```sh\n(.*?)^```$", walk, re.M | re.S)


def shell(folder: Path, text: str, *, is_done: bool = True) -> str:
    """Run the commands of a block, with the program and the interpreter of this test."""
    bin_folder = folder / "bin"
    bin_folder.mkdir(exist_ok=True)
    for name, command in (("shoal", COMMAND), ("python", [sys.executable])):
        words = " ".join(f"'{word}'" for word in command)
        (bin_folder / name).write_text(f'#!/bin/sh\nexec {words} "$@"\n')
        (bin_folder / name).chmod(0o755)
    done = subprocess.run(
        ["bash", "-c", text],
        cwd=folder,
        env={**environment(), "PATH": f"{bin_folder}:{os.environ['PATH']}"},
        capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert (done.returncode == 0) == is_done, done.stdout + done.stderr
    return done.stdout


class Answers(http.server.BaseHTTPRequestHandler):
    """Answers with each status in turn, then with the last; 0 breaks the connection."""

    statuses: ClassVar[list[int]] = []
    seen: ClassVar[list[tuple[str, int]]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.seen.append((self.headers["Idempotency-Key"], body.count(b"\n")))
        status = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
        if status:
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()
        self.close_connection = True

    def log_message(self, *given: object) -> None:
        pass


@pytest.mark.parametrize(
    ("statuses", "sent", "is_done"),
    [
        # Away, busy, then there: the first piece comes three times, with one key.
        ([0, 503, 200], [3] + [1] * 9, True),
        # A piece that is refused isn't sent again, and no other after it.
        ([200, 422], [1, 1], False),
        ([400], [1], False),
    ],
)
def test_pieces_are_sent_again_only_where_that_can_help(statuses, sent, is_done, tmp_path):
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    Answers.statuses, Answers.seen = list(statuses), []
    with http.server.HTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        send = steps()[1].replace(":8800", f":{server.server_port}")
        try:
            shell(tmp_path, send, is_done=is_done)
        finally:
            server.shutdown()
            thread.join()
    keys = [key for key, _ in Answers.seen]
    assert [keys.count(key) for key in dict.fromkeys(keys)] == sent
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\d-piece-a[a-j]", key) for key in keys)
    assert {n for _, n in Answers.seen} == {50}


@pytest.mark.nightly
def test_from_nothing_to_an_audited_output(tmp_path, monkeypatch):
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    here = tmp_path / "examples" / "http_to_file"
    job = here / "job.toml"
    text = job.read_text()
    assert "every = 10 }" in text
    job.write_text(text.replace("every = 10 }", "every = 0.2 }"))
    port = free_port()
    serve, send, look, judge = (step.replace(":8800", f":{port}") for step in steps())
    [command] = re.findall(r"^shoal (serve .*)$", serve, re.M)
    words = [*command.split(), "--page", f"127.0.0.1:{port}"]
    monkeypatch.chdir(here)
    said: list[str] = []
    client = threading.Thread(target=lambda: said.append(shell(tmp_path, send)))
    with started(words) as process:
        wait_until_it_serves(port)
        client.start()
        wait_until(lambda: n_taken_in(here) > 0)
        process.kill()
    with started(words) as process:
        client.join(600)
        assert said[0].count('{"rows": 50, "repeated": ') == 10
        # What is published while nothing more comes depends on the delay; after 500 rows there is.
        assert shell(tmp_path, look).count("\n") == 3
        process.send_signal(signal.SIGTERM)
        assert process.wait(600) == 0
    assert shell(tmp_path, judge).startswith("kept: 12 of 12")
