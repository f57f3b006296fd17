"""The steps of docs/mqtt.md: the real program, a real broker."""

from __future__ import annotations

import shutil
import signal
import sys

from tests.crashes.world import n_taken_in, started, wait_until, wait_until_it_listens
from tests.docs.test_kafka_walk import ROOT, run
from tests.world import COMMAND


def test_from_an_empty_broker_to_an_audited_output(tmp_path, mosquitto, monkeypatch):
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    here = tmp_path / "examples" / "mqtt_to_file"
    job = here / "job.toml"
    text = job.read_text()
    assert "127.0.0.1:1883" in text
    text = text.replace("127.0.0.1:1883", mosquitto.address).replace("every = 10", "every = 0.2")
    job.write_text(text)
    monkeypatch.chdir(here)
    words = ["run", "job.toml", "--trace", "trace/", "--drain"]
    people = "../anonymize_a_csv/people.csv"
    with started(words) as process:
        wait_until(lambda: "Received SUBSCRIBE from shoal-admissions" in mosquitto.log.read_text())
        run(here, sys.executable, "send.py", people, "127.0.0.1", str(mosquitto.port))
        wait_until(lambda: n_taken_in(here) > 0)
        process.kill()
    with started([*words, "--log", "text"]) as process:
        wait_until_it_listens(process)
        wait_until(lambda: n_taken_in(here) == 500)
        process.send_signal(signal.SIGTERM)
        assert process.wait(600) == 0
    verdict = run(
        here, *COMMAND, "audit", "job.toml", "published.jsonl",
        "--original", people, "--trace", "trace/",
    )  # fmt: skip
    assert verdict.startswith("kept: 12 of 12")
