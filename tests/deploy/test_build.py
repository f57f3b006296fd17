"""The steps of the image, run for real: root builds into a fresh prefix, another user runs it."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.world import people, write, write_job

ROOT = Path(__file__).parents[2]
#: Debian's own Python, as in the image: others can't read one that is in a home folder.
PYTHON = "/usr/bin/python3"
USER = "10001"
NAMES = "castle"


def _missing() -> str | None:
    if os.getuid():
        return "needs root, as the build of an image has it"
    if shutil.which("setpriv") is None:
        return "needs setpriv (apt: util-linux)"
    if subprocess.call(
        [PYTHON, "-c", "import ensurepip, sys; sys.exit(sys.version_info < (3, 11))"]
    ):
        return "needs Debian's Python 3.11 or later with python3-venv"
    return None


pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def built() -> Iterator[Path]:
    """What the steps make, in a folder that everybody may enter."""
    if (missing := _missing()) is not None:
        pytest.skip(missing)
    with tempfile.TemporaryDirectory(prefix="shoal-image-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        environment = os.environ | {
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "PREFIX": f"{name}/shoal",
            "KERNELS": f"{name}/kernels", "ALGORITHMS": NAMES,
        }  # fmt: skip
        environment.pop("PYTHONPATH", None)
        for step in (["install", str(ROOT)], ["kernels"]):
            subprocess.run(["sh", ROOT / "deploy" / "image.sh", *step], env=environment, check=True)
        yield folder


def as_user(built: Path, state: Path, *words: object, **more: str) -> tuple[float, str]:
    """Run a command as the user of the image; give its seconds of processor, and what it said."""
    prefix, kernels = built / "shoal", built / "kernels"
    before = os.times()
    done = subprocess.run(
        [
            "setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--no-new-privs",
            prefix / "bin" / "shoal", *map(str, words),
        ],
        env={
            "PATH": f"{prefix}/bin:/usr/bin:/bin", "SHOAL_SHARED_CACHE_DIR": str(kernels),
            "SHOAL_CACHE_DIR": str(state / "cache"), **more,
        },
        cwd=state, capture_output=True, text=True,
    )  # fmt: skip
    after = os.times()
    assert done.returncode == 0, done.stderr
    used = after.children_user + after.children_system
    return used - before.children_user - before.children_system, done.stderr


@pytest.fixture
def state(built: Path, tmp_path: Path) -> Iterator[Path]:
    """A folder that the user owns, with a job of theirs."""
    with tempfile.TemporaryDirectory(prefix="shoal-state-") as name:
        folder = Path(name)
        write_job(folder)
        write(people(2000), folder / "in.csv")
        for path in (folder, *folder.iterdir()):
            os.chown(path, int(USER), int(USER))
        yield folder


def test_root_owns_the_kernels_and_nobody_else_can_write_them(built: Path) -> None:
    found = list((built / "kernels").rglob("*"))
    assert len([path for path in found if path.suffix == ".nbc"]) > 100
    for path in found:
        status = path.lstat()
        assert (status.st_uid, status.st_mode & 0o022) == (0, 0)
        assert stat.S_ISDIR(status.st_mode) or status.st_mode & 0o444 == 0o444


def test_another_user_compiles_next_to_nothing_at_the_first_start(built: Path, state: Path) -> None:
    words = ["run", "job.toml", "-i", "in.csv", "--force", "-o"]
    first, said = as_user(built, state, *words, "one.csv")
    assert "isn't used" not in said
    # What a job needs and the small runs of `shoal warm` didn't.
    assert len(list((state / "cache").rglob("*.nbc"))) <= 3
    second, _ = as_user(built, state, *words, "two.csv")
    assert (state / "one.csv").read_bytes() == (state / "two.csv").read_bytes()
    # A start that compiles takes more than ten times as long as one that doesn't.
    assert first < 3 * second


def test_a_processor_without_the_level_uses_the_other_kernels(built: Path, state: Path) -> None:
    words = ["run", "job.toml", "-i", "in.csv", "-o"]
    as_user(built, state, *words, "one.csv")
    generic = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    as_user(built, state, *words, "two.csv", **generic)
    assert len(list((state / "cache").rglob("*.nbc"))) <= 6
    assert (state / "one.csv").read_bytes() == (state / "two.csv").read_bytes()


def test_it_is_not_too_large(built: Path) -> None:
    """Without the kernels of the other algorithms, and without Debian itself."""
    n_bytes = sum(path.lstat().st_blocks * 512 for path in (built / "shoal").rglob("*"))
    assert n_bytes < 500e6


def test_the_installer_is_gone(built: Path) -> None:
    assert not re.findall("pip", " ".join(path.name for path in (built / "shoal/bin").iterdir()))
