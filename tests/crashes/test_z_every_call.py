"""A run of z-anonymity killed at its calls to the disk, one after the other, and gone on with."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import secrets
from pathlib import Path

import pytest

from shoal.arrow.pseudonyms import KEY
from shoal.cli.run.command import RunOptions, run
from shoal.testing.faults import count_calls, killed_at
from tests.crashes.test_kills import Feeder
from tests.crashes.z_world import ROTATE, EventsJob, bytes_under, events


def action(job: EventsJob) -> None:
    """The run, in this process."""
    options = RunOptions(
        source=str(job.folder / job.input), sink=f"{job.folder}/{job.output}",
        trace=None if job.named else f"{job.folder}/trace/", to_format=job.form, quiet=True,
    )  # fmt: skip
    with contextlib.redirect_stderr(io.StringIO()):
        assert run(job.job, options) == 0


def a_job(folder: Path, output: str, *, named: bool) -> EventsJob:
    return EventsJob(folder, events(160), output=output, every=1e-6, n_files=5, named=named)


def lines_of(job: EventsJob) -> list[dict[str, object]]:
    return sorted(job.trace.to_pylist(), key=lambda line: (line["row"], str(line["attribute"])))


@pytest.mark.parametrize(
    ("output", "named", "is_torn"),
    [("out.csv", False, False), ("out/", False, True), ("out.csv", True, True)],
)
def test_killed_at_each_call_it_resumes_to_the_same_bytes(tmp_path, output, named, is_torn):
    whole = a_job(tmp_path / "whole", output, named=named)
    n_calls = count_calls(lambda: action(whole))
    assert n_calls > 50
    quarantine = (whole.folder / "job.quarantine.jsonl").read_bytes()
    assert quarantine.count(b"\n") > 3
    if named:
        whole.check_names()
    else:
        assert whole.judge().verdict == "kept"
        assert len({line["z"] for line in lines_of(whole)} - {None}) > 1
    n_killed = 0
    step = int(os.environ.get("SHOAL_CRASH_STEP", "5"))
    for call in range(1 + is_torn, n_calls + 10, step):
        job = a_job(tmp_path / f"{call}", output, named=named)
        n_killed += killed_at(call, lambda job=job: action(job), is_torn=is_torn)
        before = job.published if (job.folder / output).exists() else b""
        # Killed once more, early in the recovery, and then let through.
        killed_at(1 + call % 7, lambda job=job: action(job), is_torn=is_torn)
        action(job)
        assert (job.folder / "job.quarantine.jsonl").read_bytes() == quarantine
        assert job.renamed == whole.renamed, call
        if output != "out/":
            # What was out stays as it was: a replay with another key would be seen here.
            assert job.published.startswith(before), call
        if named:
            job.check_names()
        else:
            assert lines_of(job) == lines_of(whole)
    assert n_killed > 60 // step


def test_a_key_is_gone_from_the_folder_with_the_last_checkpoint_that_needs_it(
    tmp_path, monkeypatch
):
    secrets_drawn: list[bytes] = []

    def draw(n: int) -> bytes:
        found = token_bytes(n)
        if n == KEY:
            secrets_drawn.append(found)
        return found

    token_bytes = secrets.token_bytes
    monkeypatch.setattr(secrets, "token_bytes", draw)
    table = events(2 * ROTATE)
    job = EventsJob(tmp_path / "job", table, output="out.jsonl", n_files=0, named=True)
    feeder = Feeder(job, rows_a_file=5)

    def keys_of(period: int) -> set[bytes]:
        name = period.to_bytes(8, "big", signed=True)
        made = (
            hashlib.blake2b(name, digest_size=KEY, key=secret, person=b"shoal-pseudonym")
            for secret in secrets_drawn
        )
        return {key.digest() for key in made}

    def n_in_state(period: int) -> int:
        state = bytes_under(job.folder / "state")
        return sum(key in state for key in keys_of(period))

    # Each run ends with a checkpoint. The last of the first period knows its key.
    feeder.feed(5)
    action(job)
    assert (n_in_state(0), n_in_state(1)) == (1, 0)
    # With two checkpoints of the next period nothing needs it any more, nor what it was made of.
    for _ in range(3):
        feeder.feed(1)
        action(job)
    assert (n_in_state(0), n_in_state(1)) == (0, 1)
    state, everything = bytes_under(job.folder / "state"), bytes_under(job.folder)
    for secret in secrets_drawn:
        assert secret not in state
        assert secret.hex().encode() not in state
    for key in keys_of(0) | keys_of(1):
        assert key.hex().encode() not in everything
    feeder.feed(2)
    action(job)
    assert feeder.is_done
    job.check_names()
