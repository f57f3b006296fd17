"""``--page`` and its options, without a browser: what is refused, and what a restart keeps."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from shoal.cli.run import monitor as monitor_module
from shoal.cli.run import page as page_module
from shoal.run.observe import PageServer
from shoal.run.state.checkpoint import read_body, read_checkpoint_heading
from shoal.run.state.folder import CHECKPOINT, numbers_of, path_of
from tests.world import people, shoal, write, write_job

STATE = "checkpoint = { folder = 'state', every = 0.1 }"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--page-token", "file:x"], "--page-token: needs --page"),
        (["--page-cert", "x.pem"], "--page-cert: needs --page"),
        (["--page-host", "x"], "--page-host: needs --page"),
        (["--page", "127.0.0.1:0", "--page-key", "x.pem"], "--page-key: needs --page-cert"),
        (["--page", "0.0.0.0:0"], "--page: must be on loopback unless there is a token"),
        (["--page", "here"], "--page: must be a host and a port"),
        (["--page", "127.0.0.1:99999"], "a port from 0 to 65535; got 127.0.0.1:99999."),
        (["--metrics", "127.0.0.1:99999"], "a port from 0 to 65535; got 127.0.0.1:99999."),
        (["--page", "127.0.0.1:0", "--page-token", "s3cret"], "--page-token: must say where"),
    ],
)
def test_what_doesnt_fit_is_refused(tmp_path, monkeypatch, capfd, words, said):
    write(people(20), tmp_path / "in.csv")
    job = write_job(tmp_path)
    ends = ["-i", tmp_path / "in.csv", "-o", tmp_path / "out.csv"]
    assert shoal(monkeypatch, "run", job, *ends, *words) == 2
    err = capfd.readouterr().err
    assert said in err
    assert "s3cret" not in err
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize("quiet", [[], ["-q"]])
@pytest.mark.parametrize(("host", "warns"), [("0.0.0.0", True), ("127.0.0.1", False)])
def test_a_token_that_crosses_the_network_in_clear_is_warned_of(
    tmp_path, monkeypatch, capfd, quiet, host, warns
):
    write(people(20), tmp_path / "in.csv")
    job, token = write_job(tmp_path), tmp_path / "page.token"
    token.write_text(f"{'s3cret' * 4}\n")
    token.chmod(0o600)
    words = ["-i", tmp_path / "in.csv", "-o", tmp_path / "out.csv", *quiet]
    page = ["--page", f"{host}:0", "--page-token", f"file:{token}"]
    assert shoal(monkeypatch, "run", job, *words, *page) == 0
    err = capfd.readouterr().err
    assert ("warning: --page without --page-cert sends the token" in err) == warns
    assert "s3cret" not in err
    if quiet and not warns:
        assert err == ""


class Looked:
    """A run whose page is looked at when it ends."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder, self._monkeypatch = folder, monkeypatch
        self.found: dict[str, Any] = {}
        self.metrics = ""
        opener = page_module.open_page

        def open_page(*given: Any, **more: Any) -> PageServer:
            server = opener(*given, **more)
            close = server.close

            def look_and_close() -> None:
                if not self.found:
                    self._look(server.url, with_metrics=bool(more["with_metrics"]))
                close()

            server.close = look_and_close  # type: ignore[method-assign]
            return server

        monkeypatch.setattr(monitor_module, "open_page", open_page)
        # Each call of the loop is an instant of its own.
        monkeypatch.setattr(page_module, "INTERVAL", 1e-6)
        monkeypatch.setattr(monitor_module, "EVERY", 0.0)

    def _look(self, url: str, *, with_metrics: bool) -> None:
        with urllib.request.urlopen(f"{url}recent.json", timeout=60) as answer:
            self.found = json.load(answer)
        if with_metrics:
            with urllib.request.urlopen(f"{url}metrics", timeout=60) as answer:
                self.metrics = answer.read().decode()

    def run(self, *words: object) -> int:
        self.found = {}
        ends = ["-i", self._folder / "in.csv", "-o", self._folder / "out.csv"]
        job = self._folder / "job.toml"
        return shoal(self._monkeypatch, "run", job, *ends, "-q", *words)


def test_the_history_is_in_the_checkpoint_and_passed_on(tmp_path, monkeypatch):
    write(people(200), tmp_path / "in.csv")
    write_job(tmp_path, run=f"seed = 7\n{STATE}")
    looked = Looked(tmp_path, monkeypatch)
    assert looked.run("--page", "127.0.0.1:0") == 0
    first = looked.found
    assert first["figures"]["n_in"] == 200
    assert first["job"]["name"] == "job"
    assert first["figures"]["journal_entries"] is not None
    kept = _memory(tmp_path / "state")
    assert kept["samples"]["recent"]
    # A run without a page keeps it, and the next one with a page continues it.
    more = write(people(100, seed=2), tmp_path / "more.csv").read_bytes().partition(b"\n")[2]
    with (tmp_path / "in.csv").open("ab") as file:
        file.write(more)
    assert looked.run() == 0
    assert _memory(tmp_path / "state") == kept
    with (tmp_path / "in.csv").open("ab") as file:
        file.write(more)
    assert looked.run("--page", "127.0.0.1:0") == 0
    times = looked.found["series"]["t"]
    assert times[0] == kept["samples"]["recent"][0][0]
    assert len(times) > len(kept["samples"]["recent"])
    assert looked.found["figures"]["n_in"] == 400


def _memory(folder: Path) -> Any:
    """What the newest checkpoint remembers for observers."""
    number = numbers_of(folder, CHECKPOINT)[-1]
    path = path_of(folder, CHECKPOINT, number)
    data = path.read_bytes()
    found = read_body(path, data, read_checkpoint_heading(path, data, number), None)
    return found.facts.get("memory")


def test_page_and_metrics_at_one_address_are_one_server(tmp_path, monkeypatch):
    write(people(100), tmp_path / "in.csv")
    write_job(tmp_path)
    looked = Looked(tmp_path, monkeypatch)
    assert looked.run("--page", "127.0.0.1:0", "--metrics", "127.0.0.1:0") == 0
    assert "shoal_rows_in_total 100.0" in looked.metrics
    assert looked.found["figures"]["n_audited"] is None


def test_audited_groups_are_counted(tmp_path, monkeypatch):
    write(people(100), tmp_path / "in.csv")
    path = write_job(tmp_path)
    path.write_text(path.read_text() + "\n[audit]\nsample = 1\n")
    looked = Looked(tmp_path, monkeypatch)
    assert looked.run("--page", "127.0.0.1:0", "--metrics", "127.0.0.1:0") == 0
    n_groups = sum(n for _, n in looked.found["figures"]["groups"])
    assert looked.found["figures"]["n_audited"] == n_groups > 5
    assert f"shoal_groups_audited_total {float(n_groups)}" in looked.metrics
