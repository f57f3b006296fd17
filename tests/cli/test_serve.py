"""``shoal serve``: rows by HTTP, published rows by HTTP, and what is refused."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.http_client import ask, free_port, post, releases, wait_until_it_serves
from tests.world import beside, people, shoal, write_job

STATE = "checkpoint = { folder = 'state', every = 0.1 }"


def serving_job(folder: Path, more: str = "", run: str = STATE) -> Path:
    job = write_job(folder, run=f"seed = 7\n{run}")
    with job.open("a") as file:
        file.write(f"[output]\npath = 'out.jsonl'\n{more}")
    return job


def test_rows_come_and_leave_by_http_and_no_message_tells_a_value(tmp_path):
    port = free_port()
    (tmp_path / "token").write_text("a-token-of-sixteen-or-more")
    job = serving_job(tmp_path)
    rows = people(60).to_pylist()
    rows[7]["age"] = "CANARY"
    words = ["serve", job, "--page", f"127.0.0.1:{port}", "--drain", "--log", "json"]
    with beside(*words) as process:
        wait_until_it_serves(port)
        assert post(port, rows[:30], "1") == {"rows": 30, "repeated": False}
        assert post(port, rows[30:], "2") == {"rows": 30, "repeated": False}
        assert post(port, rows[30:], "2") == {"rows": 30, "repeated": True}
        bad = b'{"person": CANARY}'
        status, _, text = ask(
            port, "POST", "/rows", bad, **{"Content-Type": "application/x-ndjson"}
        )
        assert (status, b"CANARY" in text) == (400, False)
        assert ask(port, "GET", "/")[0] == 200
        seen = releases(port, 0)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=300)
        assert process.returncode == 0, err.decode()
    assert b"CANARY" not in out + err
    published = (tmp_path / "out.jsonl").read_bytes().splitlines(keepends=True)
    assert published[: len(seen)] == seen
    # One row can't be used, which only the run finds; a body that isn't rows is refused.
    assert len(published) == 59
    assert b"CANARY" in (tmp_path / "job.quarantine.jsonl").read_bytes()


@pytest.mark.parametrize(
    ("words", "more", "run", "said"),
    [
        ([], "", "", "input: is a server of rows by HTTP, and without checkpoints"),
        ([], "[input]\npath = 'in.csv'\n", STATE, "input: is a file, and shoal serve takes rows"),
        ([], "[input]\nkafka = 'x'\ntopic = 'y'\n", STATE, "input: is a topic, and shoal serve"),
        (["--page", "0.0.0.0:0"], "", STATE, "must be on loopback unless there is a token"),
        (["--releases-token", "env:X"], "", STATE, "--releases-token: needs --page-token"),
        (
            ["--page-token", "file:token", "--releases-token", "s3cret"],
            "", STATE, "--releases-token: must say where the token is",
        ),
        (["-o", "-"], "", STATE, "output: standard output can't be resumed"),
    ],
)  # fmt: skip
def test_what_doesnt_fit_is_refused(tmp_path, monkeypatch, capfd, words, more, run, said):
    monkeypatch.chdir(tmp_path)
    Path("token").write_text("a-token-of-sixteen-or-more")
    job = serving_job(tmp_path, more, run)
    page = [] if "--page" in words else ["--page", "127.0.0.1:0"]
    assert shoal(monkeypatch, "serve", job, *page, *words) == 2
    err = capfd.readouterr().err
    assert said in err
    assert "s3cret" not in err
