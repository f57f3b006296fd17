"""Kernels on demand: compiled when another one first calls them, and not before."""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path

import numba
import numpy as np
import pytest

from shoal.engine import on_demand as module
from shoal.engine.jit import kernel, on_demand
from tests.engine.test_cache import python

pytestmark = pytest.mark.skipif(
    bool(numba.config.DISABLE_JIT), reason="nothing is compiled in plain Python"
)


@on_demand
def rare(values: np.ndarray, n: int) -> int:
    if n < 0:
        raise ValueError("less than nothing")
    for i in range(len(values)):
        values[i] += n
    return len(values) * n


@on_demand
def rarest(values: np.ndarray) -> None:
    values[0] = -1


@kernel
def ask(values: np.ndarray, n: int, is_asked: bool) -> int:
    found = 0
    if is_asked:
        found = rare(values, n)
    elif n > 1000:
        rarest(values)
    return found + 1


@on_demand
def broken(values: np.ndarray) -> int:
    return values.no_such_thing


@kernel
def ask_broken(values: np.ndarray) -> int:
    return broken(values)


@on_demand
def slow(n: int) -> int:
    return n + 1


@kernel
def ask_slow(marks: np.ndarray) -> None:
    marks[0] = 1
    marks[1] = slow(5)
    marks[2] = 1


@on_demand
def shared(n: int) -> int:
    return 2 * n


@kernel
def ask_shared(n: int) -> int:
    return shared(n)


ASK = """
from numba.core import event
from tests.engine.test_on_demand import *
compiled = []
class Note(event.Listener):
    def on_start(self, event): compiled.append(event.data["dispatcher"].py_func.__name__)
    def on_end(self, event): pass
with event.install_listener("numba:compile", Note()):
    values = np.arange(3)
    print(ask(values, 2, {asked}), values.tolist(), compiled)
"""


@pytest.mark.nightly
def test_it_is_compiled_at_its_first_call_and_cached(tmp_path: Path) -> None:
    environment = {"SHOAL_CACHE_DIR": str(tmp_path), "NUMBA_DISABLE_JIT": "0"}
    not_asked, asked = ASK.format(asked=False), ASK.format(asked=True)
    assert python(not_asked, **environment) == "1 [0, 1, 2] ['ask']"
    # Its caller comes from the cache.
    assert python(asked, **environment) == "7 [2, 3, 4] ['rare']"
    assert python(asked, **environment) == "7 [2, 3, 4] []"


RELOAD = """
import importlib, pathlib, sys
sys.path.insert(0, FOLDER)
import reloaded_callee as callee, reloaded_caller as caller
print(caller.ask(-1), end=" ")
path = pathlib.Path(callee.__file__)
path.write_text(path.read_text().replace("-> int", "-> float").replace("x + 1", "x + 1000.5"))
importlib.reload(callee)
print(caller.ask(1), end=" ")
importlib.reload(caller)
print(caller.ask(1))
"""


def test_a_caller_gets_the_kernel_that_it_was_compiled_for(tmp_path: Path) -> None:
    """Its module may have been loaded again, and the new one may return another type."""
    (tmp_path / "reloaded_callee.py").write_text(
        "from __future__ import annotations\nfrom shoal.engine.jit import on_demand\n"
        "@on_demand\ndef rare(x) -> int:\n    return x + 1\n"
    )
    (tmp_path / "reloaded_caller.py").write_text(
        "from shoal.engine.jit import kernel\nfrom reloaded_callee import rare\n"
        "@kernel\ndef ask(x):\n    return rare(x) if x > 0 else 0\n"
    )
    environment = {"SHOAL_CACHE_DIR": str(tmp_path / "cache"), "NUMBA_DISABLE_JIT": "0"}
    found = python(RELOAD.replace("FOLDER", repr(str(tmp_path))), **environment)
    assert found == "0 2 1001.5"


def test_its_errors_are_those_of_its_caller() -> None:
    with pytest.raises(ValueError, match="less than nothing"):
        ask(np.arange(3), -1, True)


def test_python_can_call_it_too() -> None:
    values = np.arange(2)
    assert rare(values, 1) == 2
    assert values.tolist() == [1, 2]
    assert ask(values, 1, True) == 3
    assert values.tolist() == [2, 3]


def test_what_cannot_be_compiled_is_an_error_of_its_caller(caplog) -> None:
    with (
        caplog.at_level(logging.ERROR, "shoal.engine.on_demand"),
        pytest.raises(RuntimeError, match="broken couldn't be compiled"),
    ):
        ask_broken(np.arange(3))
    assert "no_such_thing" in caplog.text


def test_an_interrupt_waits_until_the_kernel_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    serve, interrupts = module._serve, [KeyboardInterrupt()]

    def interrupted(demand: module.Demand) -> int:
        if interrupts:
            raise interrupts.pop()
        assert serve is not None
        return serve(demand)

    monkeypatch.setattr(module, "_serve", interrupted)
    marks = np.zeros(3, np.int64)
    with pytest.raises(KeyboardInterrupt):
        ask_slow(marks)
        # The interrupt of a thread doesn't end a sleep, only what comes after it.
        for _ in range(6000):
            time.sleep(0.01)
    assert marks.tolist() == [1, 6, 1]


def test_threads_can_call_it_first() -> None:
    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(ask_shared(4))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [8] * 4


def test_it_must_say_what_it_returns() -> None:
    class Compiled:
        @staticmethod
        def py_func() -> np.ndarray: ...

    with pytest.raises(TypeError, match=r"np\.ndarray\..* return one of None, bool, int, float"):
        module.declare(Compiled, "digest")


def test_all_that_may_be_called_can_be_compiled_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, third = (
        module.Demand(name, "a.module", name, "digest", ()) for name in ("first", "second", "third")
    )
    served: list[str] = []

    def serve(demand: module.Demand) -> int:
        served.append(demand.name)
        # What is compiled may call more.
        module.promise((first, third))
        return 1

    monkeypatch.setattr(module, "_serve", serve)
    monkeypatch.setattr(module, "_demands", {})
    module.promise((second, first))
    module.compile_demands()
    assert served == ["first", "second", "third"]
