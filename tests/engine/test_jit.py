"""Where compiled kernels are kept, and that importing the package loads none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numba
import pytest

import shoal
from shoal.engine import jit as _jit


def python(code: str, **environment: str) -> str:
    path = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_importing_the_package_loads_neither_numba_nor_arrow() -> None:
    code = (
        "import sys, shoal; print([m for m in ('numba', 'numpy', 'pyarrow') if m in sys.modules])"
    )
    assert python(code) == "[]"


def test_public_names_are_found_when_they_are_used() -> None:
    for name in shoal.__all__:
        assert getattr(shoal, name) is not None
    assert dir(shoal) == sorted(shoal.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = shoal.nothing


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SHOAL_CACHE_DIR", str(tmp_path))
    return tmp_path / "shoal"


def test_the_folder_is_named_by_the_sources(cache: Path) -> None:
    folder = _jit._cache_folder()
    assert folder == cache / f"kernels-{_jit.sources_digest()}"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert _jit._cache_folder() == folder


def test_an_edit_anywhere_in_the_package_changes_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "package"
    (package / "kernels").mkdir(parents=True)
    (package / "_jit.py").write_text("")
    other = package / "kernels" / "criteria.py"
    other.write_text("k = 1")
    monkeypatch.setattr(_jit, "__file__", str(package / "_jit.py"))
    digests = [_jit.sources_digest()]
    other.write_text("k = 2")
    digests.append(_jit.sources_digest())
    other.rename(other.with_name("renamed.py"))
    digests.append(_jit.sources_digest())
    assert len(set(digests)) == 3
    assert _jit.sources_digest() == digests[-1]


def test_folders_of_former_versions_go_the_oldest_first(cache: Path) -> None:
    for age in range(1, 6):
        former = cache / f"kernels-former{age}"
        former.mkdir(parents=True)
        os.utime(former, (10_000 - age, 10_000 - age))
    folder = _jit._cache_folder()
    assert folder is not None
    left = {path.name for path in cache.iterdir()}
    kept = {f"kernels-former{age}" for age in range(1, 1 + _jit.FORMER_VERSIONS_KEPT)}
    assert left == {folder.name, *kept}


def test_a_folder_that_cannot_be_made_means_no_cache(cache: Path) -> None:
    cache.write_text("a file is in the way")
    assert _jit._cache_folder() is None


def test_a_folder_of_somebody_else_is_not_used(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getuid", lambda: -1)
    assert _jit._cache_folder() is None


def test_a_folder_that_cannot_be_written_is_not_used(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert _jit._cache_folder() is None


def test_the_cache_lies_where_the_environment_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SHOAL_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert str(_jit._cache_folder()).startswith(str(tmp_path / "xdg" / "shoal"))
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert str(_jit._cache_folder()).startswith(str(tmp_path / "home" / ".cache" / "shoal"))


@pytest.mark.parametrize("writable", [True, False])
def test_a_kernel_is_cached_where_it_can_be(tmp_path: Path, writable: bool) -> None:
    if not writable:
        (tmp_path / "shoal").write_text("a file is in the way")
    code = "import numpy, shoal.engine.kernels.predicate as c; c.count_subjects(numpy.arange(3))"
    python(code, SHOAL_CACHE_DIR=str(tmp_path), NUMBA_DISABLE_JIT="0")
    assert bool(list(tmp_path.rglob("*.nbi"))) is writable


def test_without_a_cache_a_kernel_still_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_jit, "_folder", None)
    before = numba.config.CACHE_DIR

    @_jit.kernel
    def double(x: int) -> int:
        return 2 * x

    assert double(21) == 42
    assert before == numba.config.CACHE_DIR


def test_plain_python_makes_no_folder(tmp_path: Path) -> None:
    python("import shoal.engine.base", SHOAL_CACHE_DIR=str(tmp_path), NUMBA_DISABLE_JIT="1")
    assert list(tmp_path.iterdir()) == []
