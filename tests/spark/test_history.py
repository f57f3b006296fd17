"""The history of the page about a job on Spark: saved, given back, and never a reason to fail."""

from __future__ import annotations

import logging
import stat
from pathlib import Path
from typing import Any

import pytest

from shoal.cli.sealing import rekey as rekey_command
from shoal.errors import CheckpointError
from shoal.run.observe.history import History
from shoal.run.state import checkpoint
from shoal.run.state.folder import locked
from shoal.run.state.rekey import rekey
from shoal.run.state.seal import Seal
from shoal.spark.commits import CommitLog, Plan
from shoal.spark.history import HistoryFile
from tests.run.observe.test_history import filled
from tests.run.state.world import SEAL, SEALS

JOB = {"policy": "ab12"}
OTHER = Seal(bytes(32))


class Page:
    """What a page remembers, and what it was given."""

    def __init__(self, n: int = 0) -> None:
        self.history: History | None = filled(n)

    def state(self) -> dict[str, Any] | None:
        return None if self.history is None else self.history.state()

    def restore(self, state: object) -> None:
        if self.history is not None:
            self.history.restore(state)

    @property
    def times(self) -> list[float | None]:
        assert self.history is not None
        return self.history.series("recent")["t"]


def file_of(folder: Path, page: Page, seal: Seal | None = None) -> HistoryFile:
    return HistoryFile(page, folder, job=JOB, seal=seal)


def there(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("history-*"))


@SEALS
def test_the_next_run_goes_on_with_it(tmp_path: Path, seal: Seal | None) -> None:
    before, after = Page(50), Page()
    file_of(tmp_path, before, seal).save()
    file_of(tmp_path, after, seal).load()
    assert after.state() == before.state()
    (path,) = tmp_path.iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert (b"samples" in path.read_bytes()) == (seal is None)


def test_one_file_is_kept_and_its_size_is_bounded(tmp_path: Path) -> None:
    page = Page(10_000)
    kept = file_of(tmp_path, page)
    (tmp_path / "history-0000000000.9-ff.partial").write_bytes(b"half, of a crash")
    for n in range(3):
        page.history = filled(10_000 + n)
        kept.save()
    assert there(tmp_path) == ["history-0000000002"]
    assert (tmp_path / "history-0000000002").stat().st_size < 110_000


def test_it_is_written_when_it_has_changed(tmp_path: Path) -> None:
    page = Page(3)
    kept = file_of(tmp_path, page)
    kept.save()
    kept.save()
    assert there(tmp_path) == ["history-0000000000"]
    again = file_of(tmp_path, page)
    again.load()
    again.save()
    assert there(tmp_path) == ["history-0000000000"]
    page.history = filled(4)
    again.save()
    assert there(tmp_path) == ["history-0000000001"]


def test_a_run_without_a_page_leaves_it_alone(tmp_path: Path) -> None:
    page = Page(3)
    file_of(tmp_path, page).save()
    nobody = Page()
    nobody.history = None
    kept = file_of(tmp_path, nobody)
    kept.load()
    kept.save()
    later = Page()
    file_of(tmp_path, later).load()
    assert later.times == page.times


def damage(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-40] ^= 1
    path.write_bytes(data)


def replace_content(path: Path, memory: object) -> None:
    """Write a whole file with another content."""
    made = checkpoint.Checkpoint(0, {"memory": memory})
    path.write_bytes(b"".join(checkpoint.checkpoint_bytes(made, JOB, 1.0, SEAL)))


@pytest.mark.parametrize(
    "spoil",
    [
        damage,
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(path.read_bytes()[:100]),
        lambda path: (path.unlink(), path.mkdir()),
        lambda path: replace_content(path, None),
        lambda path: replace_content(path, {"samples": {"recent": [[1.0, 2]], "long": []}}),
        lambda path: replace_content(path, {"samples": {"recent": [[float("nan")] * 11]}}),
    ],
    ids=["damaged", "empty", "cut off", "a folder", "nothing", "other figures", "not a number"],
)
def test_one_that_cant_be_read_is_ignored(tmp_path, caplog, spoil) -> None:
    file_of(tmp_path, Page(3), SEAL).save()
    spoil(tmp_path / "history-0000000000")
    page = Page()
    kept = file_of(tmp_path, page, SEAL)
    with caplog.at_level(logging.WARNING, "shoal"):
        kept.load()
    assert [record.message for record in caplog.records] == ["history ignored"]
    assert page.times == []


def test_one_of_a_newer_version_is_ignored(tmp_path, caplog, monkeypatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(checkpoint, "FORMAT", checkpoint.FORMAT + 1)
        file_of(tmp_path, Page(3)).save()
    check_ignored(tmp_path, caplog, None)


@pytest.mark.parametrize(
    ("then", "now"), [(SEAL, OTHER), (SEAL, None), (None, SEAL)], ids=["another", "none", "a new"]
)
def test_one_with_another_key_is_ignored(tmp_path, caplog, then, now) -> None:
    file_of(tmp_path, Page(3), then).save()
    check_ignored(tmp_path, caplog, now)


def check_ignored(folder: Path, caplog: pytest.LogCaptureFixture, seal: Seal | None) -> None:
    """Load one that can't be used; the page begins a history of its own, which replaces it."""
    page = Page()
    kept = file_of(folder, page, seal)
    with caplog.at_level(logging.WARNING, "shoal"):
        kept.load()
    assert [record.message for record in caplog.records] == ["history ignored"]
    assert page.times == []
    page.history = filled(2)
    kept.save()
    assert there(folder) == ["history-0000000001"]
    later = Page()
    file_of(folder, later, seal).load()
    assert later.times == page.times


def test_one_that_cant_be_written_is_tried_again(tmp_path: Path, caplog) -> None:
    folder = tmp_path / "state"
    page = Page(3)
    kept = file_of(folder, page)
    with caplog.at_level(logging.WARNING, "shoal"):
        kept.save()
    assert [record.message for record in caplog.records] == ["history not saved"]
    folder.mkdir()
    kept.save()
    assert there(folder) == ["history-0000000000"]


def test_the_commit_log_neither_needs_nor_removes_it(tmp_path: Path) -> None:
    commits = CommitLog(tmp_path / "state", job=JOB, seal=None)
    commits.add_plan(Plan(2, None, "c0ffee"))
    file_of(commits.folder, Page(3)).save()
    assert commits.newest_plan == 0
    assert commits.last_commit is None
    commits.check_follows(0)
    assert there(commits.folder) == ["history-0000000000"]


# -- another key -----------------------------------------------------------------------------------


def sealed_state(folder: Path, page: Page) -> Path:
    commits = CommitLog(folder / "state", job=JOB, seal=SEAL)
    commits.add_plan(Plan(1, None, "c0ffee"))
    file_of(commits.folder, page, SEAL).save()
    return commits.folder


def test_it_gets_another_key_with_the_rest(tmp_path: Path) -> None:
    page, later = Page(3), Page()
    folder = sealed_state(tmp_path, page)
    assert rekey([folder], SEAL, OTHER) == (2, 0, 0)
    file_of(folder, later, OTHER).load()
    assert later.times == page.times


def test_another_key_removes_a_damaged_one_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = sealed_state(tmp_path, Page(3))
    damage(folder / "history-0000000000")
    monkeypatch.setenv("OLD_KEY", bytes(range(32)).hex())
    monkeypatch.setenv("NEW_KEY", bytes(32).hex())
    assert rekey_command([folder], seal="env:OLD_KEY", new_seal="env:NEW_KEY") == 0
    assert "removed: 1" in capsys.readouterr().err
    assert there(folder) == []
    with locked(folder):
        assert CommitLog(folder, job=JOB, seal=OTHER).plan(0).seed == "c0ffee"


def test_a_wrong_key_removes_nothing(tmp_path: Path) -> None:
    folder = sealed_state(tmp_path, Page(3))
    wrong = Seal(bytes([1] * 32))
    with pytest.raises(CheckpointError, match="another key"):
        rekey([folder], wrong, OTHER)
    assert there(folder) == ["history-0000000000"]
    # Also if all that a run needs has the new key.
    kept = (folder / "history-0000000000").read_bytes()
    rekey([folder], SEAL, OTHER)
    (folder / "history-0000000000").write_bytes(kept)
    for key in (wrong, None):
        with pytest.raises(CheckpointError, match=r"sealed with.*Or remove the file"):
            rekey([folder], key, OTHER)
        assert there(folder) == ["history-0000000000"]
    assert rekey([folder], SEAL, OTHER) == (1, 1, 0)
