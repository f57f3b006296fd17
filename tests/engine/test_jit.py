"""What `@kernel` does to a function, and that importing the package loads none."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.engine import cache
from shoal.engine.jit import inlined, kernel, specialized
from tests.engine.test_cache import python


@pytest.mark.parametrize("decorator", [kernel, inlined, specialized])
def test_without_a_cache_a_kernel_still_runs(decorator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_own", None)
    monkeypatch.setattr(cache, "_read_only", ())

    @decorator
    def double(x: int) -> int:
        return 2 * x

    assert double(21) == 42


def test_plain_python_makes_no_folder(tmp_path: Path) -> None:
    python("import shoal.engine.base", SHOAL_CACHE_DIR=str(tmp_path), NUMBA_DISABLE_JIT="1")
    assert list(tmp_path.iterdir()) == []
