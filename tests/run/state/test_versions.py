"""Checkpoints of one kind by number, each of which may be written again."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import numpy as np
import pytest

from shoal.errors import CheckpointError, ResourceError
from shoal.run.state.checkpoint import read_checkpoint_heading
from shoal.run.state.folder import path_of
from shoal.run.state.heading import DamagedError
from shoal.run.state.seal import Seal
from shoal.run.state.versions import Versions
from tests.run.state.world import BATCH, JOB, SEAL, SEALS, names, no_file_longer_than, same, small


def states(folder: Path, seal: Seal | None = None, job: dict[str, str] = JOB) -> Versions:
    return Versions(folder, "state", job=job, seal=seal)


def save(versions: Versions, number: int) -> int:
    one = small(number)
    return versions.save(number, one.facts, one.arrays, one.batches)


def body(path: Path, number: int) -> bytes:
    """All of a file but its heading, which knows the time, and the checksum of both."""
    data = path.read_bytes()
    return data[len(read_checkpoint_heading(path, data, number).raw) : -32]


@SEALS
def test_what_is_saved_is_loaded(tmp_path, seal):
    versions = states(tmp_path, seal)
    assert save(versions, 3) == path_of(tmp_path, "state", 3).stat().st_size
    same(versions.load(3), small(3))
    assert versions.has(3)
    assert not versions.has(2)
    # Of another kind there is nothing.
    assert not Versions(tmp_path, "figures", job=JOB, seal=seal).numbers()


def test_written_again_it_is_written_over_with_the_same_bytes(tmp_path):
    versions, path = states(tmp_path), path_of(tmp_path, "state", 3)
    save(versions, 3)
    first = body(path, 3)
    save(versions, 3)
    assert body(path, 3) == first
    versions.save(3, {"seq": 4})
    assert versions.load(3).facts == {"seq": 4}
    assert names(tmp_path) == ["state-0000000003"]


def test_files_are_for_their_owner_only(tmp_path):
    mask = os.umask(0)
    try:
        save(states(tmp_path), 0)
    finally:
        os.umask(mask)
    assert stat.S_IMODE(path_of(tmp_path, "state", 0).stat().st_mode) == 0o600


def test_a_seal_hides_all_values(tmp_path):
    for seal, found in ((None, True), (SEAL, False)):
        states(tmp_path, seal).save(0, {}, {"canary": np.zeros(1)}, {"held": BATCH})
        assert (b"canary" in path_of(tmp_path, "state", 0).read_bytes()) == found


def test_numbers_are_in_order_and_of_a_folder_that_isnt_there_there_are_none(tmp_path):
    versions = states(tmp_path)
    for number in (12, 2, 10**11):
        save(versions, number)
    assert versions.numbers() == [2, 12, 10**11]
    missing = states(tmp_path / "missing")
    assert missing.numbers() == []
    missing.drop_before(5)
    with pytest.raises(ResourceError, match="can't be written"):
        save(missing, 1)


def test_those_before_a_number_are_dropped_with_what_a_crash_has_left_of_them(tmp_path):
    versions = states(tmp_path)
    for number in (1, 2, 3):
        save(versions, number)
    for name in ("state-0000000001.77-ab.partial", "state-0000000003.77-ab.partial",
                 "state-other.partial", "figures-0000000001.partial"):  # fmt: skip
        (tmp_path / name).write_bytes(b"half")
    versions.drop_before(3)
    assert names(tmp_path) == [
        # Another kind, or one that somebody may be writing just now.
        "figures-0000000001.partial",
        "state-0000000003",
        "state-0000000003.77-ab.partial",
        "state-other.partial",
    ]


def test_one_of_another_job_is_refused_and_the_section_named(tmp_path):
    save(states(tmp_path), 1)
    with pytest.raises(CheckpointError, match=r"another job: \[policy\] is not"):
        states(tmp_path, job=JOB | {"policy": "cc33"}).load(1)


def test_one_that_is_sealed_otherwise_is_refused(tmp_path):
    save(states(tmp_path, SEAL), 1)
    for seal in (None, Seal(bytes(32))):
        with pytest.raises(CheckpointError, match="seal"):
            states(tmp_path, seal).load(1)
    save(states(tmp_path), 2)
    with pytest.raises(CheckpointError, match="seal"):
        states(tmp_path, SEAL).load(2)


def test_one_that_is_damaged_or_swapped_for_another_is_refused(tmp_path):
    versions = states(tmp_path)
    save(versions, 1)
    path = path_of(tmp_path, "state", 1)
    path.rename(path_of(tmp_path, "state", 2))
    with pytest.raises(DamagedError):
        versions.load(2)
    with pytest.raises(ResourceError, match="can't be read"):
        versions.load(1)
    save(versions, 1)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DamagedError):
        versions.load(1)


def test_a_full_disk_leaves_what_was_there_and_nothing_else(tmp_path):
    versions = states(tmp_path)
    save(versions, 1)
    with no_file_longer_than(100), pytest.raises(ResourceError, match="can't be written"):
        save(versions, 1)
    assert names(tmp_path) == ["state-0000000001"]
    same(versions.load(1), small(1))


def test_a_stamp_changes_when_a_file_is_written_again(tmp_path):
    versions = states(tmp_path)
    assert versions.stamp(1) == ()
    save(versions, 1)
    stamp = versions.stamp(1)
    assert stamp == versions.stamp(1) != ()
    save(versions, 1)
    assert versions.stamp(1) != stamp


def test_a_repr_shows_where_and_what(tmp_path):
    assert repr(states(tmp_path, SEAL)) == f"Versions('{tmp_path}', 'state')"
