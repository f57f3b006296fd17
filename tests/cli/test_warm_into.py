"""``shoal warm --into``: a cache that other users and other machines only read."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

import pytest

from shoal.cli import warm_into as module
from shoal.cli.warm_into import warm_into
from shoal.errors import ParameterError, ResourceError
from tests.engine.test_cache import python

#: Stands for the process that compiles: it tells what it got, and leaves files of its owner alone.
PRETEND = """
import os, pathlib, sys
folder = pathlib.Path(os.environ["SHOAL_CACHE_DIR"], "shoal", "kernels-x")
folder.mkdir(parents=True, mode=0o700)
(folder / "lock").touch(mode=0o600)
(folder / "f.nbi").write_bytes(bytes(100))
(folder / "f.nbi").chmod(0o660)
names = "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES", "SHOAL_SHARED_CACHE_DIR", "SHOAL_SHIPPED_KERNELS"
print(sys.argv[1:], *(os.environ.get(name, "none") for name in names))
"""


@pytest.fixture
def pretended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "COMMAND", (sys.executable, "-c", PRETEND))
    monkeypatch.setattr(module, "lacking", lambda _: [])
    monkeypatch.setenv("SHOAL_SHARED_CACHE_DIR", "/somewhere")
    monkeypatch.delenv("NUMBA_CPU_NAME", raising=False)
    monkeypatch.delenv("NUMBA_CPU_FEATURES", raising=False)


def test_everybody_can_read_it_and_nobody_else_write(pretended, tmp_path: Path, capfd) -> None:
    folder = tmp_path / "a" / "cache"
    assert warm_into(folder, ["castle"], cpu="x86-64-v3", quiet=True) == 0
    assert capfd.readouterr() == ("['castle', '--quiet'] x86-64-v3  none off\n", "")
    paths = {path: stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.rglob("*"))}
    kernels = folder / "shoal" / "kernels-x"
    assert paths == {
        folder: 0o755, folder / "shoal": 0o755, kernels: 0o755, kernels / "f.nbi": 0o644,
    }  # fmt: skip


def test_it_says_how_large_it_is_and_where_to_name_it(pretended, tmp_path: Path, capfd) -> None:
    assert warm_into(tmp_path / "cache", [], for_demo=True) == 0
    said = capfd.readouterr()
    assert said.out == "['--demo'] none none none off\n"
    assert said.err == f"{tmp_path}/cache has 0.0 MB; name it in SHOAL_SHARED_CACHE_DIR\n"


def test_a_relative_folder_is_one_below_the_current(
    pretended, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert warm_into(Path("cache"), [], cpu="host", quiet=True) == 0
    assert (tmp_path / "cache" / "shoal" / "kernels-x" / "f.nbi").exists()


def test_a_failure_is_handed_on(pretended, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(module, "COMMAND", (sys.executable, "-c", "raise SystemExit(4)"))
    assert warm_into(tmp_path, [], quiet=True) == 4


def test_a_folder_that_cannot_be_made_is_named(pretended, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ResourceError, match=r"file: can't be made a shared cache \(File exists\)"):
        warm_into(tmp_path / "file", [], quiet=True)


def test_a_level_needs_a_folder(pretended) -> None:
    with pytest.raises(ParameterError, match="--cpu: was given without --into"):
        warm_into(None, [], cpu="x86-64-v3")


def test_an_unknown_level_is_refused(pretended, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"got x86-64-v9\. Choose one of x86-64-v3, generic"):
        warm_into(tmp_path, [], cpu="x86-64-v9")


def test_a_level_above_this_processor_is_refused(pretended, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(module, "lacking", lambda _: ["avx2"])
    with pytest.raises(ParameterError, match="this processor lacks avx2"):
        warm_into(tmp_path, [], cpu="x86-64-v3")


def test_an_unknown_algorithm_is_refused_before_any_is_compiled(pretended, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="isn't the name of an anonymizer"):
        warm_into(tmp_path / "cache", ["cattle"])
    assert not (tmp_path / "cache").exists()


@pytest.mark.nightly
def test_who_reads_it_compiles_nothing(tmp_path: Path) -> None:
    made, own = tmp_path / "made", tmp_path / "own"
    into = "from pathlib import Path; from shoal.cli.warm_into import warm_into; "
    python(
        f"{into}warm_into(Path({str(made)!r}), ['mondrian'], cpu='generic', quiet=True)",
        NUMBA_DISABLE_JIT="0",
    )
    code = "from shoal.cli.small_run import run_once; run_once('mondrian')"
    environment = {"SHOAL_SHARED_CACHE_DIR": str(made), "NUMBA_DISABLE_JIT": "0"}
    python(code, SHOAL_CACHE_DIR=str(own), **environment)
    assert not list(own.rglob("*.nb?"))
