"""``--log-file``: finished and removed by size and age, private, and begun again after a rename."""

from __future__ import annotations

import json
import logging
import os
import shutil
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from shoal.cli.log_file import LogFile, LogFileOptions
from shoal.cli.logs import configure_logs, is_logging, print_or_log
from shoal.errors import JobError, ParameterError, ResourceError
from shoal.events import event
from shoal.run.state.retention import Retention
from tests.world import beside, people, write, write_job

LOG = logging.getLogger("shoal.test_log_file")
#: 2026-03-01, 09:30.
BEGIN = 1_772_357_400.0


def options(path: Path, **numbers: float) -> LogFileOptions:
    found = LogFileOptions.given(path, **numbers)
    assert found is not None
    return found


def note(number: int) -> None:
    event(LOG, logging.INFO, "checkpoint saved", number=number)


def a_job(folder: Path) -> list[str]:
    write_job(folder)
    write(people(60).drop_columns(["at"]), folder / "in.csv")
    return ["run", "job.toml", "-i", "in.csv", "-o", "out.csv"]


def numbers(path: Path) -> list[int]:
    return [json.loads(line)["number"] for line in path.read_text().splitlines()]


def finished(path: Path) -> list[Path]:
    return sorted(path.parent.glob(f"{path.name}-*"))


# -- where it goes ---------------------------------------------------------------------------------


def test_the_log_is_in_the_file_and_warnings_are_on_stderr_too(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "shoal.log"
    configure_logs("json", options(path))
    note(1)
    event(LOG, logging.WARNING, "broker away", attempts=3)
    print_or_log(logging.ERROR, "command failed", "shoal: the job is missing")
    assert is_logging()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["event"] for line in lines] == [
        "checkpoint saved",
        "broker away",
        "command failed",
    ]
    assert capfd.readouterr() == (
        "", "warning: broker away (attempts 3)\nerror: shoal: the job is missing\n"
    )  # fmt: skip


def test_without_a_kind_it_is_text_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    path = tmp_path / "shoal.log"
    before = os.umask(0)
    try:
        configure_logs(None, options(path))
        note(7)
    finally:
        os.umask(before)
    assert path.read_text().endswith("Z info: checkpoint saved (number 7)\n")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_run_continues_the_file_of_the_one_before(tmp_path: Path) -> None:
    path = tmp_path / "shoal.log"
    for number in (1, 2):
        configure_logs("json", options(path))
        note(number)
    configure_logs(None)
    note(3)
    assert numbers(path) == [1, 2]


@pytest.mark.parametrize("quiet", [(), ("-q",)], ids=["said", "quiet"])
def test_a_run_of_the_program_logs_to_the_file(quiet: tuple[str, ...], tmp_path: Path) -> None:
    words = (*a_job(tmp_path), "--log", "json", "--log-file", "shoal.log", *quiet)
    with beside(*words, cwd=tmp_path) as run:
        out, err = run.communicate(timeout=600)
    assert (run.returncode, out) == (0, b"")
    # The job warns of its small k; that is on stderr, and in the log. The figures are on stderr.
    said = [line for line in err.splitlines() if not line.startswith(b"warning: ")]
    assert bool(quiet) == (not said)
    assert quiet or b"loss" in err
    assert quiet or b" rows/s" in said[-1]
    lines = (tmp_path / "shoal.log").read_text().splitlines()
    events = [json.loads(line)["event"] for line in lines]
    assert events[-1] == "run ended"


# -- rotation and retention ------------------------------------------------------------------------


def test_a_file_is_finished_by_size_and_no_line_is_lost_or_torn(tmp_path: Path) -> None:
    path = tmp_path / "shoal.log"
    configure_logs("json", options(path, file_megabytes=500e-6, keep_megabytes=1))
    for number in range(50):
        note(number)
    files = [*finished(path), path]
    assert [file.name for file in files[:2]] == ["shoal.log-0000000001", "shoal.log-0000000002"]
    assert [number for file in files for number in numbers(file)] == list(range(50))
    assert all(file.stat().st_size <= 500 for file in files)
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


def test_finished_files_beyond_a_size_are_removed_the_oldest_first(tmp_path: Path) -> None:
    path = tmp_path / "shoal.log"
    configure_logs("json", options(path, file_megabytes=500e-6, keep_megabytes=1200e-6))
    for number in range(300):
        note(number)
    kept = finished(path)
    assert 0 < sum(file.stat().st_size for file in kept) <= 1200
    last = [number for file in [*kept, path] for number in numbers(file)]
    assert last == list(range(last[0], 300))
    # Numbers go on: a name never means two files.
    assert int(kept[-1].name[-10:]) > 30


def handler(path: Path, retention: Retention, clock: Callable[[], float]) -> LogFile:
    return LogFile(LogFileOptions(path, retention), clock)


def put(log: LogFile, text: str, at: float) -> None:
    record = logging.LogRecord("shoal", logging.INFO, __file__, 1, text, None, None)
    record.created = at
    log.handle(record)


def test_a_file_is_finished_by_age_counted_from_its_first_line(tmp_path: Path) -> None:
    path, now = tmp_path / "shoal.log", [BEGIN]
    retention = Retention(file_seconds=3600)

    def logged(text: str) -> None:
        # Each by a process of its own: the age survives a restart.
        log = handler(path, retention, lambda: now[0])
        log.setFormatter(logging.Formatter("%(message)s"))
        put(log, text, now[0])
        log.close()

    logged("2026-03-01T09:30:00.000Z info: first")
    now[0] += 3599
    logged("2026-03-01T10:29:59.000Z info: second")
    assert finished(path) == []
    now[0] += 1
    logged("2026-03-01T10:30:00.000Z info: third")
    (first,) = finished(path)
    assert [line[-6:] for line in first.read_text().splitlines()] == [" first", "second"]
    assert path.read_text().endswith("third\n")


def test_finished_files_of_some_age_are_removed(tmp_path: Path) -> None:
    path, now = tmp_path / "shoal.log", [BEGIN]
    log = handler(path, Retention(file_seconds=3600, keep_seconds=86400), lambda: now[0])
    for _ in range(5):
        put(log, "entry", now[0])
        os.utime(path, (now[0], now[0]))
        now[0] += 6 * 3600
    # Finished 6, 12 and 18 hours after they were written to for the last time; then one of 24.
    assert [file.name[-2:] for file in finished(path)] == ["02", "03", "04"]
    log.close()


def test_other_files_beside_it_stay(tmp_path: Path) -> None:
    path = tmp_path / "shoal.log"
    for name in ("shoal.log-old", "shoal.log.1", "other.log-0000000001"):
        (tmp_path / name).write_text("mine")
    configure_logs("json", options(path, file_megabytes=200e-6, keep_megabytes=300e-6))
    for number in range(50):
        note(number)
    for name in ("shoal.log-old", "shoal.log.1", "other.log-0000000001"):
        assert (tmp_path / name).read_text() == "mine"


# -- other programs --------------------------------------------------------------------------------


@pytest.mark.parametrize("removed", [True, False])
def test_a_file_that_was_renamed_or_removed_is_begun_again(tmp_path: Path, removed: bool) -> None:
    path, other = tmp_path / "shoal.log", tmp_path / "elsewhere"
    configure_logs("json", options(path))
    note(1)
    if removed:
        path.unlink()
    else:
        path.rename(other)
    note(2)
    assert numbers(path) == [2]
    assert removed or numbers(other) == [1]


@pytest.mark.skipif(shutil.which("logrotate") is None, reason="there is no logrotate")
def test_logrotate_needs_no_signal(tmp_path: Path) -> None:
    path, settings = tmp_path / "shoal.log", tmp_path / "logrotate.conf"
    settings.write_text(f"{path} {{\n rotate 3\n size 1\n nocreate\n}}\n")
    settings.chmod(0o644)
    configure_logs("json", options(path))
    for number in range(3):
        note(number)
        subprocess.run(
            ["logrotate", "--force", "--state", str(tmp_path / "state"), str(settings)], check=True
        )
    note(3)
    assert [numbers(tmp_path / f"shoal.log{end}") for end in (".3", ".2", ".1", "")] == [
        [0], [1], [2], [3],
    ]  # fmt: skip


def test_what_cant_be_written_is_printed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    configure_logs("text", options(folder / "shoal.log"))
    note(1)
    shutil.rmtree(folder)
    note(2)
    assert capfd.readouterr().err.endswith("info: checkpoint saved (number 2)\n")
    folder.mkdir()
    note(3)
    assert "number 3" in (folder / "shoal.log").read_text()


# -- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize("content", ["person,age\nada,36\n", "x"])
def test_a_file_that_isnt_a_log_is_refused_and_stays(tmp_path: Path, content: str) -> None:
    path = tmp_path / "people.csv"
    path.write_text(content)
    with pytest.raises(ResourceError, match="isn't a log of Shoal"):
        configure_logs("json", options(path))
    assert path.read_text() == content


def test_a_place_where_nothing_can_be_written_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "missing" / "shoal.log", tmp_path):
        with pytest.raises(ResourceError, match="the log can't be written"):
            configure_logs("json", options(path))


def test_the_output_of_the_job_cant_be_its_log(tmp_path: Path) -> None:
    with beside(*a_job(tmp_path), "--log-file", "out.csv", cwd=tmp_path) as run:
        _, err = run.communicate(timeout=600)
    assert run.returncode == 2
    assert b"--log-file: is the same file as the output" in err


def test_numbers_are_above_zero_and_need_the_file(tmp_path: Path) -> None:
    for wrong in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(ParameterError, match="--log-keep-days"):
            LogFileOptions.given(tmp_path / "shoal.log", keep_days=wrong)
    with pytest.raises(JobError, match="needs --log-file"):
        LogFileOptions.given(None, file_hours=1)
    assert LogFileOptions.given(None) is None
