"""The steps of docs/http.md: the commands of the page, the real program, real HTTP."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

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


def shell(folder: Path, text: str) -> str:
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
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


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
