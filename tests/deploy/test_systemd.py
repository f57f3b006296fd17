"""The systemd unit, judged by systemd."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.test_docs import CLI, COMMANDS, options_of, section

UNIT = Path(__file__).parents[2] / "deploy" / "shoal@.service"
needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="needs systemd-analyze (apt: systemd)"
)


def value(key: str) -> str:
    (found,) = re.findall(rf"^{key}=(.*)$", UNIT.read_text(), re.M)
    return str(found)


def analyze(*words: object) -> str:
    done = subprocess.run(
        ["systemd-analyze", *map(str, words)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@needs_systemd
def test_systemd_finds_no_fault_with_it(tmp_path: Path) -> None:
    # The program that the unit starts isn't where it will be; anything that can be run is.
    made = tmp_path / "shoal@hospital.service"
    made.write_text(UNIT.read_text().replace("/opt/shoal/bin/shoal", sys.executable))
    said = analyze("verify", "--man=no", "--recursive-errors=no", made)
    assert [line for line in said.splitlines() if "shoal@" in line] == []


@needs_systemd
def test_what_it_may_do_is_little(tmp_path: Path) -> None:
    made = tmp_path / "shoal@hospital.service"
    shutil.copy(UNIT, made)
    # From 0, nothing, to 100, everything; what runs unguarded has 96.
    analyze("security", "--offline=yes", "--threshold=15", "--no-pager", made)


def test_what_a_restart_repeats_is_not_restarted() -> None:
    known = set(re.findall(r"^\| (\d+) \|", section(CLI, "Exit codes"), re.M))
    prevented = set(value("RestartPreventExitStatus").split())
    assert prevented < known
    # Done, and ended by a signal, need no restart anyway; an environment that is away does.
    assert known - prevented == {"0", "4", "130", "143"}
    assert value("Restart") == "on-failure"
    assert value("SuccessExitStatus") == "143"


def test_the_command_is_one_of_shoals() -> None:
    words = value("ExecStart").split() + re.findall(r"SHOAL_OPTIONS=(.*)\"", UNIT.read_text())
    options = {word for line in words for word in line.split() if word.startswith("--")}
    assert {"--log", "--metrics"} <= options <= options_of(COMMANDS.commands["run"])
