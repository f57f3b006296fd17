"""What `make setup` compiles while it installs: with nothing but NumPy and Numba."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal import algorithms
from shoal.algorithms.registry import DEFAULT
from shoal.cli.demo.stream import ALGORITHM
from shoal.run.ahead import N_ROWS, run_engine
from tests.engine.test_cache import python

ROOT = Path(__file__).parents[2]


def test_it_is_the_algorithm_of_the_demo() -> None:
    assert DEFAULT == ALGORITHM


@pytest.mark.parametrize("name", ["tide", "castle", "min-delay"])
def test_all_rows_are_decided(name: str) -> None:
    assert algorithms.find(name)().publishes == "rows"
    assert run_engine(name) == N_ROWS


def test_it_needs_no_other_package() -> None:
    """What isn't installed yet can't be imported."""
    code = (
        "import sys\n"
        "for name in ('pyarrow', 'pydantic', 'typer', 'rich', 'tomlkit', 'pandas'):\n"
        "    sys.modules[name] = None\n"
        "from shoal.run.ahead import run_engine\n"
        "print(run_engine('tide'))"
    )
    assert python(code, NUMBA_DISABLE_JIT="1") == str(N_ROWS)


def test_the_makefile_runs_it_before_all_is_installed() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    first, _, then = text.partition("shoal.run.ahead")
    assert "compiler.txt" in first
    assert "$(call editable,live)" in then
    assert "$(call many,$(EXTRA))" in then
