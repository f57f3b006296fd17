"""``shoal checkpoint show``: what there is and what is broken, and never a value."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from shoal.cli import checkpoint as module
from shoal.cli.checkpoint import show
from shoal.errors import CheckpointError, ResourceError
from shoal.run.state.checkpoint import FORMAT
from shoal.run.state.journal import Flush, Journal, Read, Tick
from shoal.run.state.seal import Seal
from shoal.run.state.store import Checkpoint
from shoal.run.state.versions import Versions
from shoal.spark.commits import CommitLog, Epoch, Plan
from tests.run.state.world import SEAL, Span, new_store, path, segment_path

KEY = bytes(range(32)).hex()
FACTS = {
    "seq": 12345,
    "now": float("-inf"),
    "rows": {"in": 20000, "published": 12345, "suppressed": 0},
    "position": {"streams": [{"name": "people.csv", "row": 987654}], "long": "canary" * 20},
    "marks": {"out.csv": {"bytes": 4321, "whole": True}},
    "codec": {"illness": ["canary flu", "canary gout"]},
    "note": "canary",
}


def held() -> pa.RecordBatch:
    return pa.record_batch({"\0row": [1, 2], "illness": ["canary flu", "canary gout"]})


def fill(folder: Path, seal: Seal | None) -> None:
    """Two checkpoints with their segments; the last one ends as a crash has left it."""
    store = new_store(folder, seal)
    journal = Journal(folder, 0, seal)
    arrays = {
        "lo": np.full((3, 2), 777.125),
        "rows": np.zeros(4, [("subject", "i8"), ("time", "f8")]),
        "next": np.array(31337),
    }
    for number in (0, 1):
        if number:
            journal.roll(number)
        store.save(Checkpoint(number, FACTS, arrays, {"hold": held()}))
        journal.append(Read((Span("people.csv", 0, 5),), 1.0, 1.0))
        journal.append(Tick(2.0, 2.0))
        journal.sync()
    journal.append(Flush(3.0))
    journal.close()
    with segment_path(folder, 1).open("ab") as file:
        file.write(b"torn")


@pytest.fixture(params=[False, True], ids=["plain", "sealed"])
def folder(request, tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("SHOAL_TEST_KEY", KEY)
    fill(tmp_path / "state", SEAL if request.param else None)
    return tmp_path / "state"


def shown(capsys, folder: Path, seal: str | None = "env:SHOAL_TEST_KEY") -> tuple[int, Any]:
    """What a program gets, after a look that no value is in it."""
    code = show(folder, seal=seal, as_json=True)
    out = capsys.readouterr().out
    assert "canary" not in out
    return code, json.loads(out, parse_constant=lambda word: pytest.fail(f"{word} isn't JSON"))


def test_json_for_programs(capsys, folder) -> None:
    code, report = shown(capsys, folder)
    assert code == 0
    first, second = report["checkpoints"]
    assert (first["number"], second["number"]) == (0, 1)
    assert second["n_bytes"] == path(folder, 1).stat().st_size
    assert second["format"] == FORMAT
    assert second["time"] == 86_400.0
    assert second["age_s"] > 0
    assert second["job"] == {"schema": "aa11", "policy": "bb22"}
    assert second["problem"] is None
    assert second["facts"] == {
        "seq": {"": 12345},
        "now": {"": "-inf"},
        "rows": {"in": 20000, "published": 12345, "suppressed": 0},
        "position": {"streams.0.name": "people.csv", "streams.0.row": 987654},
        "marks": {"out.csv.bytes": 4321, "out.csv.whole": True},
    }
    assert second["other_facts"] == {"codec": 1, "note": 1}
    assert second["batches"] == [
        {"name": "hold", "n_rows": 2, "columns": {"row": "int64", "illness": "string"}}
    ]
    assert second["arrays"] == [
        {"name": "lo", "type": "float64", "shape": [3, 2]},
        {"name": "rows", "type": "(subject, time)", "shape": [4]},
        {"name": "next", "type": "int64", "shape": []},
    ]
    closed, last = report["journal"]
    assert (closed["entries"], closed["closed"]) == ({"read": 1, "tick": 1, "flush": 0}, True)
    assert (last["entries"], last["closed"]) == ({"read": 1, "tick": 1, "flush": 1}, False)
    assert (closed["n_torn"], last["n_torn"]) == (0, 4)
    assert (closed["n_records"], last["n_records"]) == (1, 2)


def test_words_for_people(capsys, folder) -> None:
    assert show(folder, seal="env:SHOAL_TEST_KEY", as_json=False) == 0
    out = capsys.readouterr().out
    for text in (
        "checkpoint 1: ",
        "1970-01-02 00:00:00 UTC",
        "job       schema aa11, policy bb22",
        "seq       12,345",
        'now       "-inf"',
        "rows      in 20,000, published 12,345, suppressed 0",
        'position  streams.0.name "people.csv", streams.0.row 987,654',
        "codec     1 not shown",
        "batch     hold: 2 rows of row int64, illness string",
        "array     lo: 3 × 2 float64",
        "array     next: 1 int64",
        "journal 1: ",
        "entries   1 read, 1 tick, 1 flush",
        "ends      closed",
        "ends      open",
        "torn      4 bytes of a crash",
    ):
        assert text in out
    for value in ("canary", "777", "31337"):
        assert value not in out


def test_a_short_form_has_a_line_for_each(capsys, folder) -> None:
    assert show(folder, seal="env:SHOAL_TEST_KEY", as_json=False, short=True) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert lines[1].startswith("checkpoint 1: 1970-01-02 00:00:00 UTC (")
    assert lines[1].endswith(", 20,000 in, 12,345 published")
    assert lines[2:] == ["journal 0: 2 entries, closed", "journal 1: 3 entries"]
    assert "canary" not in "".join(lines)


def test_a_short_form_still_shows_what_is_damaged(capsys, folder) -> None:
    path(folder, 1).write_bytes(path(folder, 1).read_bytes()[:-5])
    assert show(folder, seal="env:SHOAL_TEST_KEY", as_json=False, short=True) == 5
    assert "PROBLEM" in capsys.readouterr().out


def test_without_the_key_the_outside_is_shown(capsys, tmp_path) -> None:
    fill(tmp_path, SEAL)
    code, report = shown(capsys, tmp_path, seal=None)
    assert code == 0
    assert report["checkpoints"][0]["key"] == SEAL.fingerprint
    assert "facts" not in report["checkpoints"][0]
    # The closing record can't be told from another one.
    assert [entry["n_records"] for entry in report["journal"]] == [2, 2]
    assert report["journal"][1]["n_torn"] == 4
    assert show(tmp_path, seal=None, as_json=False) == 0
    out = capsys.readouterr().out
    assert f"sealed with key {SEAL.fingerprint}, undamaged (--seal shows more)" in out


def test_another_key_or_none(capsys, tmp_path, monkeypatch) -> None:
    fill(tmp_path, SEAL)
    monkeypatch.setenv("SHOAL_TEST_KEY", "00" * 32)
    code, report = shown(capsys, tmp_path)
    assert code == 5
    for entry in report["checkpoints"] + report["journal"]:
        assert "is sealed with another key" in entry["problem"]
    monkeypatch.delenv("SHOAL_TEST_KEY")
    with pytest.raises(CheckpointError, match="isn't set"):
        show(tmp_path, seal="env:SHOAL_TEST_KEY", as_json=True)


@pytest.mark.parametrize("seal", ["env:SHOAL_TEST_KEY", None])
def test_damage_is_reported_and_the_rest_is_shown(capsys, folder, seal) -> None:
    for broken in (path(folder, 1), segment_path(folder, 0)):
        data = bytearray(broken.read_bytes())
        data[len(data) // 2 + 60] ^= 1
        broken.write_bytes(data)
    code, report = shown(capsys, folder, seal)
    assert code == 5
    good, bad = report["checkpoints"]
    assert good["problem"] is None
    assert "its checksum doesn't match" in bad["problem"]
    assert bad["time"] == 86_400.0
    assert "is damaged" in report["journal"][0]["problem"]
    assert report["journal"][1]["problem"] is None
    assert show(folder, seal=seal, as_json=False) == 5
    out = capsys.readouterr().out
    assert "PROBLEM" in out
    assert "checkpoint 0" in out


def test_a_missing_or_cut_segment_is_reported(capsys, tmp_path) -> None:
    store = new_store(tmp_path)
    journal = Journal(tmp_path, 0, None)
    store.save(Checkpoint(0, {}))
    journal.roll(1)
    journal.roll(2)
    journal.close()
    whole = segment_path(tmp_path, 1).read_bytes()
    segment_path(tmp_path, 1).write_bytes(whole[:-1])
    code, report = shown(capsys, tmp_path, None)
    assert code == 5
    assert "it is cut off, and segment 2 follows" in report["journal"][2]["problem"]
    segment_path(tmp_path, 1).unlink()
    code, report = shown(capsys, tmp_path, None)
    assert code == 5
    assert "segment 1, which should come before, is missing" in report["journal"][1]["problem"]


def test_a_file_that_goes_meanwhile_is_left_out(capsys, folder, monkeypatch) -> None:
    def gone(file: Path) -> bytes:
        if file == path(folder, 0):
            file.unlink()
            raise ResourceError("gone")
        return file.read_bytes()

    monkeypatch.setattr(module, "read_file", gone)
    code, report = shown(capsys, folder)
    assert code == 0
    assert [entry["number"] for entry in report["checkpoints"]] == [1]


def test_many_positions_are_cut_short_for_people_only(capsys, tmp_path) -> None:
    position = {f"topic.{i}": i for i in range(100)}
    new_store(tmp_path).save(Checkpoint(0, {"position": position}))
    assert show(tmp_path, seal=None, as_json=False) == 0
    out = capsys.readouterr().out
    assert "topic.19 19, and 80 more" in out
    _, report = shown(capsys, tmp_path, seal=None)
    assert len(report["checkpoints"][0]["facts"]["position"]) == 100


def test_names_that_a_terminal_would_obey_are_spelled_out(capsys, tmp_path) -> None:
    new_store(tmp_path).save(Checkpoint(0, {"position": {"\x1b[2J": 1}}))
    assert show(tmp_path, seal=None, as_json=False) == 0
    assert "\\x1b[2J" in capsys.readouterr().out


def test_an_empty_folder_and_none(capsys, tmp_path) -> None:
    assert show(tmp_path, seal=None, as_json=False) == 0
    assert "no checkpoint, no journal" in capsys.readouterr().out
    with pytest.raises(ResourceError, match="none: isn't a folder") as caught:
        show(tmp_path / "none", seal=None, as_json=False)
    assert caught.value.exit_code == 4


def test_the_state_of_a_job_on_spark(tmp_path, capfd):
    secret = "ca4a12" * 8
    commits = CommitLog(tmp_path / "state", job={"policy": "ab" * 16}, seal=None)
    commits.add_plan(Plan(2, None, secret))
    commits.begin(Epoch(14, 12, 0, True, 1.0, 2.0, 3.0, 100, 50, secret=secret))
    (commits.folder / "shard-001" / "state-0000000014").write_bytes(b"torn")
    assert show(commits.folder, seal=None, as_json=False) == 5
    printed = capfd.readouterr().out
    assert "plan 0: " in printed
    assert "  n_shards  2\n" in printed
    assert "epoch 14: " in printed
    assert "  n_in      100\n" in printed
    assert "shard-001/state 14: " in printed
    assert "PROBLEM" in printed
    assert secret not in printed


def test_a_damaged_history_of_the_page_is_shown_and_is_no_failure(tmp_path, capfd) -> None:
    commits = CommitLog(tmp_path / "state", job={"policy": "ab" * 16}, seal=None)
    commits.add_plan(Plan(2, None, "c0ffee"))
    history = Versions(commits.folder, "history", job={"policy": "ab" * 16}, seal=None)
    history.save(3, {"memory": {"samples": {}}})
    assert show(commits.folder, seal=None, as_json=False) == 0
    printed = capfd.readouterr().out
    assert "history 3: " in printed
    assert "PROBLEM" not in printed
    (commits.folder / "history-0000000003").write_bytes(b"torn")
    assert show(commits.folder, seal=None, as_json=False) == 0
    printed = capfd.readouterr().out
    assert "history 3: " in printed
    assert "PROBLEM" in printed
