"""Logs on stderr: for people and for programs, never with a value of a person."""

from __future__ import annotations

import json
import logging
import os
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from shoal.cli.logs import configure_logs
from shoal.errors import ParameterError
from shoal.events import WITHHELD, event, sentence
from tests.world import write_job

CANARY = "CANARY"
LOG = logging.getLogger("shoal.test_logs")


def saved() -> None:
    event(LOG, logging.INFO, "checkpoint saved", number=3, bytes=120_000, sealed=True, lag=None)


def lost() -> None:
    event(LOG, logging.WARNING, "broker went away", attempts=3, seconds=1.5, why="timeout")


def failed() -> None:
    try:
        int(CANARY)
    except ValueError as error:
        event(LOG, logging.ERROR, "run failed", error=error)


def test_json_is_one_object_a_line(capfd):
    configure_logs("json")
    saved()
    lost()
    failed()
    out, err = capfd.readouterr()
    assert out == ""
    first, second, third = (json.loads(line) for line in err.splitlines())
    time = datetime.fromisoformat(first.pop("time"))
    assert time.tzinfo == UTC
    assert abs(datetime.now(UTC) - time) < timedelta(minutes=10)
    assert first == {
        "level": "info", "event": "checkpoint saved",
        "number": 3, "bytes": 120_000, "sealed": True, "lag": None,
    }  # fmt: skip
    assert second["level"] == "warning"
    assert (third["error"], third["event"]) == ("ValueError", "run failed")
    assert re.fullmatch(r"test_logs\.py:\d+", third["place"])


def test_text_is_for_people(capfd):
    configure_logs("text")
    saved()
    lost()
    first, second = capfd.readouterr().err.splitlines()
    moment = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z "
    assert re.sub(moment, "", first) == (
        "info: checkpoint saved (number 3, bytes 120,000, sealed yes, lag unknown)"
    )
    assert re.match(moment, first)
    assert second.endswith("warning: broker went away (attempts 3, seconds 1.500, why timeout)")


def test_without_a_kind_only_warnings_are_printed(capfd):
    configure_logs(None)
    saved()
    lost()
    failed()
    first, second = capfd.readouterr().err.splitlines()
    assert first == "warning: broker went away (attempts 3, seconds 1.500, why timeout)"
    assert re.fullmatch(r"error: run failed \(error ValueError, place test_logs\.py:\d+\)", second)


def test_sentences_of_shoal_are_printed_in_full(capfd):
    text = "schema.keep: column ward has 99 different values in 100 rows"
    configure_logs("json")
    sentence(LOG, logging.WARNING, "warned", text)
    record = json.loads(capfd.readouterr().err)
    assert (record["level"], record["event"], record["text"]) == ("warning", "warned", text)
    configure_logs(None)
    sentence(LOG, logging.WARNING, "warned", text)
    assert capfd.readouterr().err == f"warning: {text}\n"


def test_what_was_set_up_before_is_replaced(capfd):
    for kind in ("text", "json", "text", "json"):
        configure_logs(kind)
    lost()
    (line,) = capfd.readouterr().err.splitlines()
    assert json.loads(line)["attempts"] == 3


@pytest.mark.parametrize("kind", ["jsno", "JSON", ""])
def test_another_kind_is_refused(kind):
    with pytest.raises(ParameterError, match="--log: must be text or json"):
        configure_logs(kind)


# -- never a value ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["json", "text", None])
def test_records_made_without_care_are_withheld(kind, capfd):
    """However a module below ``shoal`` logs, the formatters show no value."""
    configure_logs(kind)
    LOG.warning("row of CANARY")
    LOG.warning("row of %s", CANARY)
    LOG.warning("row read", extra={"fields": {"subject": f"{CANARY} 1", CANARY: 1, "n": 1}})
    LOG.warning("row read", extra={"fields": CANARY, "raised": CANARY, "sentence": 7})
    LOG.warning(ValueError(CANARY))
    LOG.warning("stopped here", stack_info=True)
    try:
        int(CANARY)
    except ValueError:
        LOG.exception("run failed")
        LOG.exception(f"{CANARY} failed")
    err = capfd.readouterr().err
    assert CANARY not in err
    assert len(err.splitlines()) == 8
    assert err.count(WITHHELD) == 5
    assert err.count("ValueError") == 2


def test_where_a_withheld_record_comes_from(capfd):
    configure_logs("json")
    LOG.warning("row of CANARY")
    record = json.loads(capfd.readouterr().err)
    assert record["event"] == WITHHELD
    assert re.fullmatch(r"test_logs\.py:\d+", record["place"])


def test_other_handlers_get_nothing(capfd):
    other = logging.StreamHandler(sys.stderr)
    logging.getLogger().addHandler(other)
    try:
        configure_logs("json")
        lost()
    finally:
        logging.getLogger().removeHandler(other)
    assert len(capfd.readouterr().err.splitlines()) == 1


HEADER = "person,age,town,illness,ward\n"
GOOD = "".join(f"{CANARY}{i},{20 + i},berlin,{CANARY}{i % 2},{CANARY}W\n" for i in range(30))
ALIKE = "".join(f"{CANARY}{i},{20 + i},berlin,{CANARY},{CANARY}W\n" for i in range(30))
BAD = f"{CANARY},{CANARY},berlin,{CANARY},A\n"
JOBS = {
    "done": (HEADER + GOOD, "", 0),
    "quarantined": (HEADER + GOOD + BAD, "", 0),
    "stopped at a bad row": (HEADER + GOOD + BAD, 'action = "stop"', 3),
    "nothing published": (HEADER + ALIKE, "", 3),
    "too many bad rows": (HEADER + 30 * BAD, "", 3),
    "without a header": (ALIKE, "", 2),
}


@pytest.mark.parametrize("name", JOBS)
def test_real_jobs_log_no_value(name, tmp_path):
    data, bad_rows, code = JOBS[name]
    job = write_job(tmp_path, bad_rows=bad_rows)
    (tmp_path / "in.csv").write_text(data)
    words = ["run", str(job), "-i", str(tmp_path / "in.csv"), "-o", str(tmp_path / "out.csv")]
    words += ["--log", "json"]
    done = logged(f"import sys; sys.argv[1:] = {words!r}\nfrom shoal.cli import main; main()")
    assert done.returncode == code, done.stderr
    assert CANARY not in done.stderr
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    end = {0: "run ended"}.get(code, "command failed")
    end = name if name == "nothing published" else end
    assert {"warning", end} <= {line["event"] for line in lines}


# -- who listens -----------------------------------------------------------------------------------


def logged(code: str, **options: object) -> subprocess.CompletedProcess[str]:
    """Run some code in a process of its own, with logs as JSON."""
    start = "from shoal.cli.logs import configure_logs; configure_logs('json')\n"
    return subprocess.run(
        [sys.executable, "-c", start + code],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        text=True,
        timeout=600,
        **({"stderr": subprocess.PIPE, "stdout": subprocess.PIPE} | options),
    )


TALK = """
import logging
from shoal.events import event
for i in range(5):
    event(logging.getLogger("shoal"), logging.WARNING, "still here", number=i)
print("done")
"""


def test_a_reader_that_went_away_does_not_end_the_run():
    reading, writing = os.pipe()
    os.close(reading)
    done = logged(TALK, stderr=writing)
    os.close(writing)
    assert (done.returncode, done.stdout) == (0, "done\n")


def test_no_stderr_at_all_does_not_end_the_run(monkeypatch):
    configure_logs("json")
    monkeypatch.setattr(sys, "stderr", None)
    lost()


def test_a_record_that_cannot_be_written_does_not_end_the_run(monkeypatch, tmp_path):
    configure_logs("json")
    with (tmp_path / "log").open("w") as closed:
        pass
    monkeypatch.setattr(sys, "stderr", closed)
    lost()
    assert Path(closed.name).read_text() == ""
