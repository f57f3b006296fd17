"""What `@kernel` does to a function, and that importing the package loads none."""

from __future__ import annotations

from pathlib import Path

import pytest

import shoal
from shoal.engine import cache
from shoal.engine.jit import inlined, kernel
from tests.engine.test_cache import python


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


@pytest.mark.parametrize("decorator", [kernel, inlined])
def test_without_a_cache_a_kernel_still_runs(decorator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_own", None)
    monkeypatch.setattr(cache, "_shared", None)

    @decorator
    def double(x: int) -> int:
        return 2 * x

    assert double(21) == 42


def test_plain_python_makes_no_folder(tmp_path: Path) -> None:
    python("import shoal.engine.base", SHOAL_CACHE_DIR=str(tmp_path), NUMBA_DISABLE_JIT="1")
    assert list(tmp_path.iterdir()) == []
