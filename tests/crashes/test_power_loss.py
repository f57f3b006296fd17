"""A loss of power at every moment of a run: nothing that was published depends on what is lost.

The job publishes pseudonyms, whose keys are drawn at random and are in the journal. If a record of
the journal is lost after rows that depend on it were seen, the resumed run gives other names to the
same people.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from shoal.io.files import atomic
from shoal.run.state import journal
from shoal.testing.power import LOSSES, Loss, Recording, recorded
from tests.crashes.test_z_every_call import action
from tests.crashes.z_world import EventsJob, events

N_ROWS = 60


def a_job(folder: Path, every: float) -> EventsJob:
    return EventsJob(folder, events(N_ROWS), output="out.csv", every=every, n_files=6, named=True)


class Resumed(EventsJob):
    """A job whose files are there already."""

    def __post_init__(self) -> None:
        self.job = self.folder / "job.toml"


def a_recording(folder: Path, every: float) -> Recording:
    job = a_job(folder, every)
    with recorded(folder) as recording:
        action(job)
    return recording


def findings(
    recording: Recording, folder: Path, every: float, points: list[int], losses: tuple[Loss, ...]
) -> list[str]:
    """What is wrong after losses of power at some points, with a word for each."""
    found = []
    for n_calls, loss in itertools.product(points, losses):
        place = folder / f"{n_calls}-{loss}"
        recording.left(n_calls, loss, place)
        seen = recording.seen(n_calls, "out.csv")
        job = Resumed(place, events(N_ROWS), output="out.csv", every=every, named=True)
        try:
            action(job)
        except Exception as error:
            found.append(f"{n_calls} {loss}: {type(error).__name__}: {error}")
            continue
        if not job.published.startswith(seen):
            found.append(f"{n_calls} {loss}: what was seen isn't what is there")
        elif job.published.count(b"\n") != recording.seen(10**9, "out.csv").count(b"\n"):
            found.append(f"{n_calls} {loss}: rows are lost or doubled")
    return found


def points_of(recording: Recording, *, all_of_them: bool = False) -> list[int]:
    """After each call; or only after each write to the output, which is the most dangerous one."""
    step = int(os.environ.get("SHOAL_CRASH_STEP", "5"))
    if all_of_them:
        return list(range(0, len(recording.calls) + 1, step))
    number = next(c[2] for c in recording.calls if c[0] == "create" and c[1] == "out.csv")
    return [
        i + 1 for i, call in enumerate(recording.calls) if call[0] == "write" and call[1] == number
    ]


@pytest.mark.parametrize("every", [1e-6, 1000.0])
@pytest.mark.parametrize("loss", LOSSES)
def test_what_was_seen_is_what_a_run_after_a_loss_of_power_publishes(
    tmp_path: Path, every: float, loss: Loss
) -> None:
    recording = a_recording(tmp_path / "whole", every)
    points = points_of(recording, all_of_them=True)
    assert len(recording.calls) > 40
    assert findings(recording, tmp_path, every, points, (loss,)) == []


def nothing(*_: object) -> None:
    """Sync nothing."""


@pytest.mark.story
@pytest.mark.parametrize(
    ("module", "name"), [(journal, "_sync"), (atomic, "sync_folder"), (journal, None)]
)
def test_a_sync_that_is_left_out_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: object, name: str | None
) -> None:
    """The journal's sync, and that of the folder after a rename; with both in place, nothing is."""
    with monkeypatch.context() as patched:
        if name is not None:
            left_out: Callable[..., None] = nothing
            patched.setattr(module, name, left_out)
        recording = a_recording(tmp_path / "whole", 1000.0)
    points = points_of(recording)
    assert len(points) >= 3
    found = findings(recording, tmp_path, 1000.0, points[-2:], ("dropped",))
    assert bool(found) == (name is not None), found
