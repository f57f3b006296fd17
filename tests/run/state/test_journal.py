"""The journal: what was synced is read again, whatever happened."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.errors import ResourceError
from shoal.io.base import Span
from shoal.run.state import journal as module
from shoal.run.state.journal import Entry, Flush, Journal, Read, Tick, drop_segments
from shoal.run.state.segment import Segment
from tests.examples import examples
from tests.run.state.world import (
    ENTRIES,
    SEAL,
    SEALS,
    KilledError,
    killed_after,
    no_file_longer_than,
    read,
    segment_path,
    write,
)

times = st.floats(allow_nan=False)
spans = st.builds(Span, st.text(max_size=5), st.integers(), st.integers())
entries = st.one_of(
    st.builds(Read, st.lists(spans, max_size=3).map(tuple), times, times),
    st.builds(Tick, times, times),
    st.builds(Flush, times),
)


# -- what was written is read --------------------------------------------------------------------


@settings(max_examples=examples(40), deadline=None)
@given(st.lists(st.lists(entries, max_size=4), min_size=1, max_size=3), st.booleans())
def test_entries_come_back_exactly(segments: list[list[Entry]], sealed: bool) -> None:
    with tempfile.TemporaryDirectory() as name:
        seal = SEAL if sealed else None
        journal = Journal(Path(name), 5, seal)
        for i, segment in enumerate(segments):
            if i:
                journal.roll(5 + i)
            for entry in segment:
                journal.append(entry)
        journal.close()
        expected = [entry for segment in segments for entry in segment]
        # By their looks, so that -0.0 isn't 0.0.
        assert repr(read(Path(name), seal, 5)) == repr(expected)


def test_a_time_that_is_none_comes_back(tmp_path) -> None:
    write(tmp_path, [Flush(float("nan"))])
    assert repr(read(tmp_path)) == "[Flush(now=nan)]"


@SEALS
def test_tickets_count_and_one_sync_serves_many(tmp_path, seal) -> None:
    journal = Journal(tmp_path, 0, seal)
    tickets = [journal.append(entry) for entry in ENTRIES]
    assert tickets == [1, 2, 3, 4, 5]
    assert read(tmp_path, seal) == []
    journal.sync(tickets[2])
    assert read(tmp_path, seal) == ENTRIES
    assert Segment(segment_path(tmp_path, 0), 0).heading.number == 0
    assert [1 for _ in Segment(segment_path(tmp_path, 0), 0).records()] == [1]
    journal.close()


def test_a_sync_without_news_asks_nothing_of_the_disk(tmp_path, monkeypatch) -> None:
    journal = Journal(tmp_path, 0, None)
    ticket = journal.append(ENTRIES[0])
    journal.append(ENTRIES[1])
    journal.sync()
    monkeypatch.setattr(module, "_sync", None)
    journal.sync()
    journal.sync(ticket)
    journal.close()


def test_a_sync_waits_until_the_disk_has_all(tmp_path, monkeypatch) -> None:
    """What only the operating system has is lost with the power."""
    synced = []

    def fdatasync(number: int) -> None:
        file = os.fstat(number)
        synced.append((file.st_ino, file.st_size))

    # macOS has none.
    monkeypatch.setattr(os, "fdatasync", fdatasync, raising=False)
    journal = Journal(tmp_path, 0, None)
    for entry in ENTRIES:
        journal.sync(journal.append(entry))
        file = segment_path(tmp_path, 0).stat()
        assert synced[-1] == (file.st_ino, file.st_size)
    journal.close()
    assert len(synced) == len(ENTRIES)


def test_who_has_waited_for_the_sync_of_another_asks_nothing_of_the_disk(
    tmp_path, monkeypatch
) -> None:
    journal = Journal(tmp_path, 0, None)
    ticket = journal.append(ENTRIES[0])
    writing, syncs = journal._writing, []
    monkeypatch.setattr(module, "_sync", syncs.append)

    @contextmanager
    def after_another() -> Iterator[None]:
        """Let another thread sync while this one waits, and append one more entry."""
        journal._writing = writing
        journal.sync(ticket)
        journal.append(ENTRIES[1])
        with writing:
            yield

    monkeypatch.setattr(journal, "_writing", after_another())
    journal.sync(ticket)
    assert len(syncs) == 1
    assert read(tmp_path) == ENTRIES[:1]
    journal.close()
    assert read(tmp_path) == ENTRIES[:2]


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="lists open files on Linux only")
def test_no_file_stays_open(tmp_path, monkeypatch) -> None:
    journal = Journal(tmp_path, 0, None)
    journal.append(ENTRIES[0])
    for number in range(1, 4):
        journal.roll(number)
        assert open_files(tmp_path) == [segment_path(tmp_path, number)]
    journal.close()
    assert open_files(tmp_path) == []

    def fail(number: int) -> None:
        raise OSError(errno.EROFS, "")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(ResourceError):
        Journal(tmp_path, 3, None)
    assert open_files(tmp_path) == []


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="lists open files on Linux only")
def test_no_file_stays_open_when_the_next_segment_cant_be_begun(tmp_path) -> None:
    journal = Journal(tmp_path, 0, None)
    (tmp_path / "journal-0000000001.partial").mkdir()
    with pytest.raises(ResourceError):
        journal.roll(1)
    journal.close()
    assert open_files(tmp_path) == []


def open_files(folder: Path) -> list[Path]:
    """Return the files in a folder that this process has open."""
    found = []
    for link in Path("/proc/self/fd").iterdir():
        # The list itself was open, too.
        with suppress(FileNotFoundError):
            found.append(link.readlink())
    return [path for path in found if path.parent == folder]


def test_its_file_may_have_the_number_of_a_closed_standard_input(tmp_path) -> None:
    before = os.dup(0)
    os.close(0)
    try:
        journal = Journal(tmp_path, 0, None)
        assert journal._file == 0
        journal.append(ENTRIES[0])
        journal.close()
        # It closed its file, too.
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(0)
    finally:
        os.dup2(before, 0)
        os.close(before)
    assert read(tmp_path) == ENTRIES[:1]


@SEALS
def test_it_continues_after_the_end_of_the_process(tmp_path, seal) -> None:
    for entry in ENTRIES:
        write(tmp_path, [entry], seal=seal)
    assert read(tmp_path, seal) == ENTRIES


def test_going_on_syncs_what_was_read_first(tmp_path, monkeypatch) -> None:
    write(tmp_path, ENTRIES)
    synced = []
    monkeypatch.setattr(os, "fsync", lambda number: synced.append(os.fstat(number).st_ino))
    Journal(tmp_path, 0, None).close()
    assert segment_path(tmp_path, 0).stat().st_ino in synced
    assert tmp_path.stat().st_ino in synced


def test_segments_are_read_from_the_first_that_is_asked_for(tmp_path) -> None:
    write(tmp_path, ENTRIES[:2], ENTRIES[2:3], ENTRIES[3:])
    assert read(tmp_path, first=1) == ENTRIES[2:]
    assert read(tmp_path, first=3) == []
    drop_segments(tmp_path, 2)
    assert [path.name for path in tmp_path.iterdir()] == ["journal-0000000002"]
    assert read(tmp_path, first=2) == ENTRIES[3:]


def test_one_thread_appends_and_another_syncs(tmp_path) -> None:
    journal = Journal(tmp_path, 0, None)
    tickets: list[int] = []
    done = threading.Event()

    def sync() -> None:
        while not done.is_set():
            for ticket in tickets[-1:]:
                journal.sync(ticket)

    thread = threading.Thread(target=sync)
    thread.start()
    for i in range(500):
        tickets.append(journal.append(Flush(float(i))))
        if i % 100 == 99:
            journal.roll(journal.number + 1)
    done.set()
    thread.join()
    journal.close()
    assert read(tmp_path) == [Flush(float(i)) for i in range(500)]


def test_files_are_for_their_owner_only(tmp_path) -> None:
    mask = os.umask(0)
    try:
        write(tmp_path, ENTRIES, ENTRIES)
    finally:
        os.umask(mask)
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}


def test_a_sealed_journal_doesnt_show_its_streams(tmp_path) -> None:
    entry = Read((Span("canary.csv", 123456789, 123456790),), 1.0, 1.0)
    write(tmp_path, [entry], seal=SEAL)
    data = segment_path(tmp_path, 0).read_bytes()
    assert b"canary" not in data
    assert b"123456789" not in data


def test_its_repr_and_its_misuse(tmp_path) -> None:
    journal = Journal(tmp_path, 3, None)
    journal.append(Flush(1.0))
    assert repr(journal) == "Journal(number=3, n_appended=1)"
    for number in (3, 5):
        with pytest.raises(ValueError, match=f"segment {number} can't follow segment 3"):
            journal.roll(number)
    journal.close()
    journal.close()
    with pytest.raises(ValueError, match="closed"):
        journal.append(Flush(1.0))


# -- crashes -------------------------------------------------------------------------------------


@SEALS
def test_a_torn_last_record_is_dropped_and_the_journal_continues(tmp_path, seal) -> None:
    write(tmp_path, ENTRIES[:2], ENTRIES[2:], seal=seal)
    path = segment_path(tmp_path, 1)
    whole = path.read_bytes()
    ends = [end for _, end in Segment(path, 1).records()]
    for length in range(ends[-2], len(whole)):
        path.write_bytes(whole[:length])
        assert read(tmp_path, seal) == ENTRIES[:-1]
        journal = Journal(tmp_path, 1, seal)
        assert path.stat().st_size == ends[-2]
        journal.append(ENTRIES[0])
        journal.close()
        assert read(tmp_path, seal) == [*ENTRIES[:-1], ENTRIES[0]]


@SEALS
def test_what_a_loss_of_power_leaves_of_the_last_record_is_dropped(tmp_path, seal) -> None:
    write(tmp_path, ENTRIES, seal=seal)
    path = segment_path(tmp_path, 0)
    whole = path.read_bytes()
    begin = [end for _, end in Segment(path, 0).records()][-2]
    middle = (begin + len(whole)) // 2
    for data in (
        whole[:begin] + bytes(len(whole) - begin),
        whole[:begin] + bytes(5000),
        whole[:begin] + bytes(middle - begin) + whole[middle:],
        whole[:middle] + bytes(len(whole) - middle),
    ):
        path.write_bytes(data)
        assert read(tmp_path, seal) == ENTRIES[:-1]


@SEALS
def test_a_crash_at_any_step_of_a_roll_loses_nothing(tmp_path, seal) -> None:
    """Each system call in turn is the last one that isn't made."""
    for n_steps in range(100):
        folder = tmp_path / str(n_steps)
        folder.mkdir()
        journal = Journal(folder, 0, seal)
        journal.sync(journal.append(ENTRIES[0]))
        journal.append(ENTRIES[1])
        steps = [(os, "write"), (os, "open"), (os, "close"), (os, "fsync"), (module, "_sync")]
        try:
            with killed_after(n_steps, [*steps, (Path, "replace")]):
                journal.roll(1)
            break
        except KilledError:
            pass
        assert read(folder, seal) in (ENTRIES[:1], ENTRIES[:2])
        last = len(list(folder.glob("journal-??????????"))) - 1
        again = Journal(folder, last, seal)
        before = read(folder, seal)
        again.append(ENTRIES[2])
        again.roll(last + 1)
        again.append(ENTRIES[3])
        again.close()
        assert read(folder, seal) == [*before, *ENTRIES[2:4]]
    journal.close()
    assert 8 < n_steps < 99


def test_what_was_synced_survives_a_kill(tmp_path) -> None:
    program = (
        "import sys; from pathlib import Path; from shoal.run.state.journal import Journal, Flush\n"
        "journal = Journal(Path(sys.argv[1]), 0, None)\n"
        "for i in range(10**9):\n"
        "    journal.sync(journal.append(Flush(float(i))))\n"
        "    print(i, flush=True)\n"
        "    if i % 50 == 49: journal.roll(journal.number + 1)\n"
    )
    for n_lines in (1, 77, 150):
        folder = tmp_path / str(n_lines)
        folder.mkdir()
        command = [sys.executable, "-c", program, str(folder)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            for _ in range(n_lines):
                reported = int(process.stdout.readline())
            process.kill()
        found = read(folder)
        assert found == [Flush(float(i)) for i in range(len(found))]
        assert len(found) > reported


# -- failures of the disk ------------------------------------------------------------------------


@SEALS
def test_a_full_disk_fails_it_for_good(tmp_path, seal) -> None:
    journal = Journal(tmp_path, 0, seal)
    first = journal.append(ENTRIES[0])
    journal.sync(first)
    n_bytes = segment_path(tmp_path, 0).stat().st_size
    second = journal.append(ENTRIES[1])
    with no_file_longer_than(n_bytes + 10), pytest.raises(ResourceError, match="can't be written"):
        journal.sync(second)
    # There is room again, but what was lost would be missing.
    journal.sync(first)
    for call in (
        lambda: journal.sync(second),
        journal.sync,
        lambda: journal.append(ENTRIES[2]),
        lambda: journal.roll(1),
    ):
        with pytest.raises(ResourceError, match="can't be written"):
            call()
    journal.close()
    assert segment_path(tmp_path, 0).stat().st_size == n_bytes
    assert read(tmp_path, seal) == ENTRIES[:1]


def test_a_record_whose_sync_failed_is_taken_back(tmp_path, monkeypatch) -> None:
    journal = Journal(tmp_path, 0, None)
    journal.append(ENTRIES[0])

    def fail(number: int) -> None:
        raise OSError(errno.ENOSPC, "")

    monkeypatch.setattr(module, "_sync", fail)
    with pytest.raises(ResourceError, match="the disk is full"):
        journal.sync()
    monkeypatch.undo()
    with pytest.raises(ResourceError, match="the disk is full"):
        journal.sync()
    assert read(tmp_path) == []


def test_a_segment_that_cant_be_begun_fails_the_journal(tmp_path) -> None:
    journal = Journal(tmp_path, 0, None)
    journal.sync(journal.append(ENTRIES[0]))
    (tmp_path / "journal-0000000001.partial").mkdir()
    with pytest.raises(ResourceError, match="journal-0000000001"):
        journal.roll(1)
    with pytest.raises(ResourceError, match="journal-0000000001"):
        journal.append(ENTRIES[1])
    # Nothing is pending, but whoever syncs must not believe that the journal goes on.
    with pytest.raises(ResourceError, match="journal-0000000001"):
        journal.sync()
    journal.close()
    assert read(tmp_path) == ENTRIES[:1]
    (tmp_path / "journal-0000000001.partial").rmdir()
    # The closing record is there already, and is cut off again.
    write(tmp_path, ENTRIES[1:2])
    assert read(tmp_path) == ENTRIES[:2]


def test_a_segment_that_cant_be_continued(tmp_path, monkeypatch) -> None:
    write(tmp_path, ENTRIES)

    def fail(number: int) -> None:
        raise OSError(errno.EROFS, "")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(ResourceError, match="read-only"):
        Journal(tmp_path, 0, None)


def test_a_folder_that_isnt_there(tmp_path) -> None:
    with pytest.raises(ResourceError, match="none: can't be read"):
        Journal(tmp_path / "none", 0, None)


def test_signals_dont_hide_a_limit() -> None:
    """The tests above rely on it: a file that would grow too long is an error, not a signal."""
    assert signal.getsignal(signal.SIGXFSZ) == signal.SIG_IGN
