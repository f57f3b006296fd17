"""``shoal run`` on Kafka while somebody looks: deadlines, health and checkpoints go on."""

from __future__ import annotations

import json
import signal
import threading
import time

from tests.cli.run.test_live import ask
from tests.crashes.world import started, wait_until
from tests.io.kafka.world import fill, values
from tests.world import write_job

SCHEMA = 'subject = "person"\n[schema.quasi]\nage = { range = [0, 120], step = 1 }\n'
SECONDS = 2


def people(begin, end):
    return [json.dumps({"person": f"p{n}", "age": 20 + n % 50}).encode() for n in range(begin, end)]


def test_deadlines_hold_and_health_is_known_while_metrics_are_scraped(tmp_path, kafka, topic):
    source, sink = topic(3), topic()
    write_job(
        tmp_path,
        schema=SCHEMA,
        policy=f"k = 3\ndelay = {{ seconds = {SECONDS}, clock = 'wall' }}",
        run="checkpoint = { folder = 'state', every = 0.5 }",
    )
    job = tmp_path / "job.toml"
    with job.open("a") as file:
        file.write(f"[input]\nkafka = '{kafka}'\ntopic = '{source}'\n")
        file.write(f"[output]\nkafka = '{kafka}'\ntopic = '{sink}'\n")
    fill(kafka, source, people(0, 30), [n % 3 for n in range(30)])
    over, seen = threading.Event(), []
    with started(["run", str(job), "--metrics", "127.0.0.1:0"]) as process:
        line = process.stderr.readline().decode()
        while "/metrics" not in line:
            assert line, "the run has ended"
            line = process.stderr.readline().decode()
        address = line.split()[-1].removesuffix("/metrics")

        def scrape():
            while not over.is_set():
                seen.append(ask(f"{address}/metrics")[1])

        scrapers = [threading.Thread(target=scrape) for _ in range(3)]
        for thread in scrapers:
            thread.start()
        try:
            wait_until(lambda: ask(f"{address}/health")[0] == 200)
            wait_until(lambda: len(values(kafka, sink)) > 0)
            n_before = len(values(kafka, sink))
            fill(kafka, source, people(30, 60), [n % 3 for n in range(30)])
            begin = time.monotonic()
            wait_until(lambda: len(values(kafka, sink)) > n_before)
            # The deadline, and what a loaded machine may add.
            assert time.monotonic() - begin < SECONDS + 20
            wait_until(lambda: any((tmp_path / "state").glob("checkpoint-*")))
            wait_until(lambda: "shoal_source_lag 0" in seen[-1])
            assert json.loads(ask(f"{address}/health")[1])["status"] == "ok"
        finally:
            over.set()
            for thread in scrapers:
                thread.join()
        process.send_signal(signal.SIGTERM)
        assert process.wait(600) == 0
