"""``shoal warm``: what is compiled, what is said, and where it is kept."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from shoal import algorithms
from shoal.cli import warm as module
from shoal.cli.small_run import _policies, run_once
from shoal.cli.terminal import Progress, compiling_bar
from shoal.cli.warm import warm
from shoal.engine.compile_watch import CompileWatch
from shoal.errors import ParameterError, ResourceError
from tests.cli.test_terminal import Screen
from tests.engine.test_cache import python


class Watch(CompileWatch):
    """Pretends that 12 of 40 kernels were compiled, in 3 seconds."""

    n_done, n_expected, seconds = 12, 40, 3.0


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names the algorithms that were run, while nothing is compiled."""
    names: list[str] = []
    watches: list[Watch] = []

    def watch(anonymizer: type, show: Callable[[Any], None]) -> Watch:
        watches.append(Watch(anonymizer, show))
        return watches[-1]

    def run(name: str) -> None:
        names.append(name)
        watches[-1]._show(watches[-1])

    monkeypatch.setattr(module, "CompileWatch", watch)
    monkeypatch.setattr(module, "run_once", run)
    monkeypatch.setattr(module, "compile_demands", lambda: names.append("demands"))
    monkeypatch.setattr(module, "cache_folder", lambda: tmp_path)
    return names


def test_it_compiles_what_is_named_and_says_where_it_is_kept(ran, tmp_path, capfd) -> None:
    assert warm(["castle", "fads"], quiet=False) == 0
    assert ran == ["castle", "demands", "fads", "demands"]
    said = capfd.readouterr()
    assert said.out == ""
    assert said.err.splitlines() == [
        "castle (1 of 2): compiling kernels, once for this machine (40 of them)",
        "fads (2 of 2): compiling kernels, once for this machine (40 of them)",
        f"compiled 24 kernels; the cache is {tmp_path}",
    ]


def test_without_a_name_it_compiles_all(ran, capfd) -> None:
    assert warm([], quiet=True) == 0
    assert tuple(ran[::2]) == algorithms.names()
    assert capfd.readouterr() == ("", "")


def test_on_a_terminal_there_is_a_bar(ran, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "150")
    assert warm(["castle"], quiet=False) == 0
    assert "compiled 12 kernels" in screen.getvalue()


def test_the_demo_says_what_it_needs(ran, tmp_path, monkeypatch: pytest.MonkeyPatch, capfd) -> None:
    asked: list[bool] = []

    def warm_up(is_plain: bool) -> int:
        asked.append(is_plain)
        print("shoal demo: warming up...", file=sys.stderr)
        return 7

    monkeypatch.setattr(module, "warm_up", warm_up)
    assert warm([], for_demo=True, quiet=False) == 0
    said = f"shoal demo: warming up...\ncompiled 7 kernels; the cache is {tmp_path}\n"
    assert capfd.readouterr() == ("", said)
    assert warm([], for_demo=True, quiet=True) == 0
    assert capfd.readouterr() == ("", "")
    assert asked == [True, True]
    assert ran == []


def test_the_demo_and_names_of_algorithms_exclude_each_other(ran) -> None:
    with pytest.raises(ParameterError, match=r"--demo: was given with castle"):
        warm(["castle"], for_demo=True, quiet=False)


def test_an_unknown_algorithm_is_refused_before_any_is_compiled(ran) -> None:
    with pytest.raises(ParameterError, match="isn't the name of an anonymizer"):
        warm(["castle", "cattle"], quiet=False)
    assert ran == []


def test_without_a_folder_there_is_nothing_to_warm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "cache_folder", lambda: None)
    with pytest.raises(ResourceError, match="SHOAL_CACHE_DIR"):
        warm(["castle"], quiet=False)


@pytest.mark.compiled
@pytest.mark.parametrize("name", algorithms.names())
def test_every_algorithm_can_be_run_once(name: str) -> None:
    run_once(name)
    anonymizer = algorithms.find(name)()
    if anonymizer.publishes != "values":
        for policy in _policies(anonymizer, measured=True):
            anonymizer.check(policy)


def test_the_bar_says_how_many_kernels_there_are() -> None:
    from rich.console import Console

    console = Console(width=120, record=True, file=Screen())
    console.print(compiling_bar(12, 40))
    assert "compiling kernels, once for this machine (12 of 40)" in console.export_text()


def test_the_time_of_the_compiler_is_no_time_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Screen())
    monkeypatch.setenv("TERM", "xterm")
    with Progress(quiet=False) as progress:
        progress.compiling(Watch(object, lambda _: None))
        progress._begin -= 4.0
        progress.show(SimpleNamespace(
            n_in=1000, n_published=0, n_held=1000, loss=SimpleNamespace(published=None)
        ))  # fmt: skip
        # Four seconds, of which three were the compiler's.
        [rate] = [part for part in str(progress._status.status).split(", ") if "rows/s" in part]
        assert 800 < int(rate.split()[0].replace(",", "")) <= 1000


@pytest.mark.nightly
def test_what_is_warm_is_not_compiled_again(tmp_path: Path) -> None:
    code = "from shoal.cli.warm import warm; warm(['mondrian'], quiet=True)"
    environment = {"SHOAL_CACHE_DIR": str(tmp_path), "NUMBA_DISABLE_JIT": "0"}
    python(code, **environment)
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.nb?")}
    assert kept
    python(code, **environment)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.nb?")} == kept
