"""What `make` installs for a user, and what for a developer only."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOR_USERS, FOR_DEVELOPERS = "--editable '.[live]'", "--editable '.[dev]'"

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")


def steps(target: str, folder: Path, *settings: str) -> str:
    """Return what `make` would do in a fresh clone."""
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)
    done = subprocess.run(
        ["make", "-n", target, *settings], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.mark.parametrize("target", ["setup", "demo", "broker", "wheel"])
def test_a_user_gets_what_a_user_needs(target: str, tmp_path: Path) -> None:
    found = steps(target, tmp_path)
    assert FOR_USERS in found
    assert FOR_DEVELOPERS not in found
    assert found.index(FOR_USERS) < found.index("shoal warm --demo")


@pytest.mark.parametrize(
    "target",
    ["test", "lint", "types", "layers", "compiled", "plain", "nightly", "rest", "recompiled",
     "replain", "torture", "fuzz", "mutants", "soak", "bench", "figures"],
)  # fmt: skip
def test_a_developer_gets_everything_at_once(target: str, tmp_path: Path) -> None:
    """What a user needs is among it, and kernels compile meanwhile."""
    found = steps(target, tmp_path)
    made = found.index("python -m shoal.run.ahead &")
    assert made < found.index(FOR_DEVELOPERS, made) < found.index("shoal warm --demo")
    assert FOR_USERS not in found


@pytest.mark.parametrize(
    "target", ["nightly", "rest", "recompiled", "replain", "soak", "bench", "figures"]
)
def test_what_takes_hours_gets_more(target: str, tmp_path: Path) -> None:
    """Sphinx, marimo and the like aren't installed for `make test`."""
    assert "--editable '.[nightly]'" in steps(target, tmp_path)
    assert "--editable '.[nightly]'" not in steps("test", tmp_path)


def test_spark_is_installed_while_tests_run(tmp_path: Path) -> None:
    found = steps("test", tmp_path)
    assert (
        found.index("==> layers") < found.index("==> installing Spark") < found.index("==> types")
    )
    assert "Spark" not in steps("compiled", tmp_path)


def test_who_has_set_up_gets_the_rest(tmp_path: Path) -> None:
    (tmp_path / ".venv").mkdir()
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    done = tmp_path / ".venv/.installed"
    done.touch()
    os.utime(tmp_path / "pyproject.toml", (1, 1))
    (tmp_path / ".venv/bin").mkdir()
    python = tmp_path / ".venv/bin/python"
    python.write_text('#!/bin/sh\necho "$@"\n')
    python.chmod(0o755)
    found = subprocess.run(
        ["make", ".venv/.installed-dev"], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout
    assert "--editable .[dev]" in found
    assert "shoal.run.ahead" not in found
    assert (tmp_path / ".venv/.installed-dev").exists()


def test_the_site_is_built_with_little_more(tmp_path: Path) -> None:
    found = steps("docs", tmp_path)
    assert found.index(FOR_USERS) < found.index("--editable '.[docs]'") < found.index("build.py")
    assert "--tag v0.1.0 --tag v0.2.0" in steps("docs", tmp_path, "TAGS=v0.1.0 v0.2.0")


def test_a_wheel_has_the_kernels_that_were_compiled_for_it(tmp_path: Path) -> None:
    found = steps("wheel", tmp_path)
    compile_, build = "shoal warm --cpu x86-64-v3 --into build/kernels", "pip wheel"
    assert "rm -rf build/kernels" in found[: found.index(compile_)]
    assert found.index(compile_) < found.index("SHOAL_WHEEL_KERNELS=build/kernels")
    assert found.index("SHOAL_WHEEL_KERNELS=build/kernels") < found.index(build)


def test_an_environment_that_was_interrupted_is_made_again(tmp_path: Path) -> None:
    """`python -m venv` makes the interpreter first, and installs pip last."""
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / ".venv/bin").mkdir(parents=True)
    python = tmp_path / ".venv/bin/python"
    python.write_text("#!/bin/sh\nexit 1\n")
    python.chmod(0o755)
    maker = tmp_path / "maker"
    maker.write_text('#!/bin/sh\necho "$@" >> made\n')
    maker.chmod(0o755)
    subprocess.run(
        ["make", "setup", "PYTHON=./maker"], cwd=tmp_path, capture_output=True, check=False
    )
    assert "-m venv .venv" in (tmp_path / "made").read_text()
