"""What `make` installs for a user, and what for a developer only."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOR_USERS, FOR_DEVELOPERS = "--editable '.[live]'", "--editable '.[dev]'"

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")


def steps(target: str, folder: Path) -> str:
    """Return what `make` would do in a fresh clone."""
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)
    done = subprocess.run(
        ["make", "-n", target], cwd=folder, capture_output=True, text=True, check=True
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
def test_a_developer_gets_the_rest_too(target: str, tmp_path: Path) -> None:
    found = steps(target, tmp_path)
    assert found.index(FOR_USERS) < found.index(FOR_DEVELOPERS)


def test_a_wheel_has_the_kernels_that_were_compiled_for_it(tmp_path: Path) -> None:
    found = steps("wheel", tmp_path)
    compile_, build = "shoal warm --cpu x86-64-v3 --into build/kernels", "pip wheel"
    assert "rm -rf build/kernels" in found[: found.index(compile_)]
    assert found.index(compile_) < found.index("SHOAL_WHEEL_KERNELS=build/kernels")
    assert found.index("SHOAL_WHEEL_KERNELS=build/kernels") < found.index(build)
