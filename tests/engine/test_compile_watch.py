"""What is told while kernels are compiled."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.engine.jit import kernel
from tests.engine.test_cache import python


class _Algorithm:
    def run(self, x: int) -> int:
        return outer(x)


@kernel
def inner(x):
    return x + 1


@kernel
def outer(x):
    return inner(x) + 1


@pytest.mark.nightly
def test_it_counts_the_kernels_that_are_compiled_and_the_time(tmp_path: Path) -> None:
    code = (
        "from shoal.engine.compile_watch import CompileWatch\n"
        "from tests.engine.test_compile_watch import _Algorithm\n"
        "seen = []\n"
        "watch = CompileWatch(_Algorithm, lambda w: seen.append((w.n_done, w.n_expected)))\n"
        "with watch.watching(): _Algorithm().run(1)\n"
        "print(seen, watch.seconds > 0.0)"
    )
    environment = {"SHOAL_CACHE_DIR": str(tmp_path), "NUMBA_DISABLE_JIT": "0"}
    assert python(code, **environment) == "[(0, 2), (0, 2), (1, 2), (2, 2)] True"
    # From the cache nothing is compiled.
    assert python(code, **environment) == "[] False"


def test_in_plain_python_nothing_is_expected() -> None:
    code = (
        "from shoal.engine.compile_watch import CompileWatch\n"
        "from tests.engine.test_compile_watch import _Algorithm\n"
        "print(CompileWatch(_Algorithm, print).n_expected)"
    )
    assert python(code, NUMBA_DISABLE_JIT="1") == "0"
