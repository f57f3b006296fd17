"""``shoal run`` among real pipes and signals, in a process of its own."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow.parquet as pq
import pytest

from shoal.cli.run.monitor import WAITING
from tests.world import COMMAND, ID_AND_AGE, SCHEMA, beside, people, read, shoal, write, write_job

NAMES = ["person", "age", "town", "illness", "ward"]
HEADER = ",".join(NAMES).encode() + b"\n"
PATIENCE = 600.0


def lines(n_rows: int, seed: int = 1) -> list[bytes]:
    rows = people(n_rows, seed).select(NAMES).to_pylist()
    return [",".join(map(str, row.values())).encode() + b"\n" for row in rows]


def give(pipe: IO[bytes] | None, data: bytes) -> None:
    assert pipe is not None
    pipe.write(data)
    pipe.flush()


def next_line(pipe: IO[bytes] | None) -> bytes:
    """The next line of a pipe, for which the other end has some time."""
    assert pipe is not None
    line = b""
    while not line.endswith(b"\n"):
        assert select.select([pipe], [], [], PATIENCE)[0], "nothing came"
        octet = os.read(pipe.fileno(), 1)
        assert octet, "the output ended"
        line += octet
    return line


def wait_for(what: str, is_so) -> None:  # type: ignore[no-untyped-def]
    for _ in range(int(PATIENCE / 0.05)):
        if is_so():
            return
        time.sleep(0.05)
    raise AssertionError(f"waited in vain for {what}")


def test_rows_come_out_before_the_input_ends(tmp_path):
    job = write_job(tmp_path)
    with beside("run", job, stdin=subprocess.PIPE) as process:
        rows = lines(60)
        give(process.stdin, HEADER)
        for begin in range(0, 60, 10):
            give(process.stdin, b"".join(rows[begin : begin + 10]))
        assert next_line(process.stdout) == b"age,town,illness,ward\n"
        # With a delay of 20 rows, 60 rows bring at least 40 of them out.
        early = [next_line(process.stdout) for _ in range(40)]
        assert process.poll() is None
        rest, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, err
        assert len(early) + len(rest.splitlines()) == 60
        assert b"person-" not in b"".join(early) + rest + err


def test_a_quiet_pipe_gets_its_rows_out_within_the_delay(tmp_path):
    job = write_job(tmp_path, policy="k = 3\ndelay = { seconds = 1 }")
    trace = tmp_path / "trace.parquet"
    with beside("run", job, "--trace", trace, stdin=subprocess.PIPE) as process:
        give(process.stdin, HEADER + b"".join(lines(12)))
        # The pipe stays open and nothing more comes.
        assert [next_line(process.stdout) for _ in range(10)]
        assert process.poll() is None
        _, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, err
    seconds = read(trace).select(["arrived_s", "published_s"])
    waited = np.asarray(seconds["published_s"]) - np.asarray(seconds["arrived_s"])
    # Not at once, and by the clock; a busy machine may be late by some moments.
    assert 0.7 < waited.max() < 3


FAT = b"x" * 20_000


class Feeder(threading.Thread):
    """Write rows of 20 kB as fast as they are read."""

    def __init__(self, pipe: IO[bytes] | None, most_rows: int) -> None:
        super().__init__(daemon=True)
        assert pipe is not None
        self._pipe, self._most = pipe, most_rows
        self.n_rows, self.enough = 0, threading.Event()

    def run(self) -> None:
        try:
            give(self._pipe, HEADER)
            while self.n_rows < self._most and not self.enough.is_set():
                place = self.n_rows
                row = b"person-%d,%d,berlin,%s," % (place, place % 90, (b"flu", b"gout")[place % 2])
                give(self._pipe, row + FAT + b"\n")
                self.n_rows += 1
        except OSError:
            # Nobody takes what is left, here or below.
            pass
        with contextlib.suppress(OSError):
            self._pipe.close()

    def wait_until_stuck(self) -> None:
        before, still = -1, 0
        while still < 8:
            time.sleep(0.2)
            still = still + 1 if self.n_rows == before and before > 0 else 0
            before = self.n_rows


def test_a_consumer_that_does_not_read_stops_the_producer(tmp_path):
    job = write_job(tmp_path)
    with beside("run", job, stdin=subprocess.PIPE) as process:
        feeder = Feeder(process.stdin, most_rows=10_000)
        feeder.start()
        # Only once the header is out is it the run, and not its start, that takes no rows.
        next_line(process.stdout)
        feeder.wait_until_stuck()
        assert feeder.n_rows < 10_000
        assert process.poll() is None
        feeder.enough.set()
        assert process.stdout is not None
        n_out = sum(1 for _ in process.stdout)
        assert process.wait(PATIENCE) == 0
        feeder.join(PATIENCE)
        assert n_out == feeder.n_rows


@pytest.mark.parametrize("log", [(), ("--log", "text")], ids=["quiet", "logged"])
def test_a_consumer_that_goes_away_ends_the_run_with_4_and_only_a_log_says_so(log, tmp_path):
    job = write_job(tmp_path, run="")
    with beside("run", job, *log, stdin=subprocess.PIPE) as process:
        feeder = Feeder(process.stdin, most_rows=10_000)
        feeder.start()
        next_line(process.stdout)
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(PATIENCE) == 4
        assert process.stderr is not None
        err = process.stderr.read()
        if log:
            assert b"standard output: the reader of the output closed the pipe." in err
        else:
            (warning,) = err.splitlines()
            assert warning.startswith(b"warning: schema.keep publishes ward unchanged")
        assert b"person-" not in err
        assert b"Traceback" not in err
        feeder.join(PATIENCE)


@pytest.mark.parametrize("stopped", [False, True])
def test_a_reader_that_closes_a_named_pipe_is_told_of_without_a_count(stopped, tmp_path):
    fifo, job = tmp_path / "out.csv", write_job(tmp_path, run="")
    os.mkfifo(fifo)
    with beside("run", job, "-o", fifo, stdin=subprocess.PIPE) as process:
        feeder = Feeder(process.stdin, most_rows=10_000)
        feeder.start()
        reader = os.open(fifo, os.O_RDONLY)
        assert os.read(reader, 100)
        feeder.wait_until_stuck()
        if stopped:
            process.send_signal(signal.SIGINT)
            assert any(line.decode().strip() == WAITING for line in process.stderr)
        os.close(reader)
        assert process.wait(PATIENCE) == 4
        feeder.join(PATIENCE)
        err = process.stderr.read().decode()
    assert err.endswith(f"shoal: {fifo}: the reader of the output closed the pipe.\n")
    assert "published;" not in err


@pytest.mark.parametrize(
    ("number", "order"),
    [(signal.SIGINT, "released"), (signal.SIGTERM, "released"), (signal.SIGINT, "arrival")],
)
def test_a_signal_ends_the_run_in_good_order(number, order, tmp_path, monkeypatch, capfd):
    job = write_job(tmp_path, publish=f'order = "{order}"')
    out, trace = tmp_path / "out.csv", tmp_path / "trace.parquet"
    rows = lines(60)
    with beside("run", job, "-o", out, "--trace", trace, stdin=subprocess.PIPE) as process:
        give(process.stdin, HEADER + b"".join(rows))
        # 40 rows are older than the delay, so they are out when all rows are in.
        wait_for("rows", lambda: out.exists() and len(out.read_bytes().splitlines()) > 40)
        process.send_signal(number)
        _, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 128 + number
    n_held = read(trace)["outcome"].to_pylist().count("held")
    n_published = read(out).num_rows
    assert n_published + n_held == 60
    assert n_held > 0
    message = (
        f"interrupted: {n_published} rows were published; {n_held} are still held and were not"
    )
    assert message in err.decode()
    assert b"person-" not in err
    original = tmp_path / "in.csv"
    original.write_bytes(HEADER + b"".join(rows))
    words = ("audit", job, out, "--original", original, "--trace", trace)
    assert shoal(monkeypatch, *words) == 0, capfd.readouterr().out


def test_a_second_signal_ends_it_at_once(tmp_path):
    job = write_job(tmp_path)
    with beside("run", job, stdin=subprocess.PIPE) as process:
        feeder = Feeder(process.stdin, most_rows=10_000)
        feeder.start()
        # Only once the header is out is it the run, and not its start, that takes no rows.
        next_line(process.stdout)
        feeder.wait_until_stuck()
        process.send_signal(signal.SIGINT)
        # Nobody reads, so the rows that are decided can't be got rid of.
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == -signal.SIGINT
        feeder.join(PATIENCE)


def test_nobody_listening_on_stderr_is_no_failure(tmp_path):
    job, out = write_job(tmp_path), tmp_path / "out.csv"
    source = write(people(40), tmp_path / "in.csv")
    nobody, stderr = os.pipe()
    os.close(nobody)
    with beside("run", job, "-i", source, "-o", out, stderr=stderr) as process:
        os.close(stderr)
        assert process.wait(PATIENCE) == 0
    assert read(out).num_rows == 40


def test_a_closed_stderr_puts_no_words_among_the_rows(tmp_path):
    job, source = write_job(tmp_path), write(people(40), tmp_path / "in.csv")
    words = [*COMMAND, "run", str(job), "-i", str(source)]
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" 2>&-', "sh", *words],
        stdout=subprocess.PIPE,
        timeout=PATIENCE,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
    )
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 41
    assert b"warning" not in done.stdout


@pytest.mark.parametrize("command", [("algorithms",), ("audit", "JOB", "OUT")])
def test_a_result_that_nobody_reads_ends_with_4_and_not_as_a_broken_promise(command, tmp_path):
    job, out = write_job(tmp_path), tmp_path / "out.csv"
    out.write_bytes(b"age,town,illness,ward\n")
    words = [{"JOB": job, "OUT": out}.get(word, word) for word in command]
    nobody, stdout = os.pipe()
    os.close(nobody)
    with beside(*words, stdout=stdout) as process:
        os.close(stdout)
        assert process.stderr is not None
        err = process.stderr.read()
        assert process.wait(PATIENCE) == 4, err
    # `| head -2` has what it wants.
    assert err == b""


def test_the_first_object_of_a_pipe_names_every_column(tmp_path):
    job = write_job(tmp_path, policy="k = 3\ndelay = { rows = 20 }\nmissing = 'extended'")
    rows = people(60).to_pylist()
    whole = json.dumps(rows[0]) + "\n"
    lacking = "".join(
        json.dumps({name: row[name] for name in NAMES if name != "town"}) + "\n" for row in rows
    )
    for data, code in ((whole + lacking, 0), (lacking + whole, 2)):
        words = ("run", job, "--from", "jsonl", "-q")
        with beside(*words, stdin=subprocess.PIPE) as process:
            _, said = process.communicate(data.encode(), timeout=PATIENCE)
        assert process.returncode == code, said
        assert (b"column town: isn't in the input" in said) == (code == 2)


def test_a_named_pipe_is_read_as_it_comes(tmp_path):
    job, pipe = write_job(tmp_path), tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    with beside("run", job, "-i", pipe) as process:
        with Path(pipe).open("wb", buffering=0) as writer:
            writer.write(HEADER + b"".join(lines(60)))
            early = [next_line(process.stdout) for _ in range(41)]
        rest, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, err
        assert len(early) + len(rest.splitlines()) == 61


def test_a_time_column_in_a_pipe_needs_no_clock(tmp_path):
    schema = SCHEMA.replace('"person"', '"person"\ntime = "at"')
    job = write_job(tmp_path, schema=schema, policy="k = 3\ndelay = { seconds = 20 }")
    source = write(people(60), tmp_path / "in.csv").read_bytes()
    with beside("run", job, stdin=subprocess.PIPE) as process:
        give(process.stdin, source)
        # One row a second: 60 rows bring 39 out, however quick they are written.
        early = [next_line(process.stdout) for _ in range(1 + 39)]
        rest, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, err
        assert len(early) + len(rest.splitlines()) <= 61


def test_one_person_written_as_two_types_on_a_pipe_is_one(tmp_path: Path) -> None:
    job = write_job(tmp_path, schema=ID_AND_AGE, policy="k = 3\ndelay = { rows = 9 }")
    trace = tmp_path / "trace.parquet"
    command = [sys.executable, "-c", "from shoal.cli import main; main()", "run", job]
    command += ["--from", "jsonl", "--to", "jsonl", "--trace", trace]
    with subprocess.Popen(
        [str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, env=os.environ,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        for line in (
            b'{"id":48123456789,"age":30}\n',
            b'{"id":2.0,"age":31}\n',
            b'{"id":48123456789,"age":30}\n',
        ):
            process.stdin.write(line)
            process.stdin.flush()
            time.sleep(0.3)
        out, _ = process.communicate(timeout=600)
    assert out == b"", "two people are no group of three"
    assert pq.read_table(trace).column("outcome").to_pylist() == ["suppressed"] * 3
