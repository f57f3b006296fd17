"""Run tests on mutants in processes that have collected the tests before.

One process imports the tests of a module. In a fork of it all of them run on the unchanged module,
to learn which functions each test calls. Then each mutant is a fork, too: the functions of the
module get the code of the mutant, and the tests run that call the changed function. So a mutant
costs the time of these tests, until one fails.

A mutant changes what runs at import if it is a constant of a module, the default of a parameter, or
in a function that is called while tests are collected. Then all tests of the module run, in a
process that imports it (`running`).
"""

from __future__ import annotations

import gc
import importlib
import inspect
import os
import pickle
import signal
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import IO, Any, NamedTuple

import pytest

from tests.mutants.running import Job, Result, Tree, limit, run_all, run_pytest

__all__ = ["FailsUnchangedError", "in_order", "run_module"]

#: The name of some code with the classes and functions around it, and the number of one of several
#: with this name, such as the getter and the setter of a property.
Name = tuple[str, int]
#: A test that starts processes may reach the module there, where nobody notes what is called.
STARTS_PROCESS = "Popen.__init__"
#: The file with the test that fails without a change.
FAILED = "failed"


class FailsUnchangedError(Exception):
    """A test fails without a change, or tests can't be collected; with what pytest said."""


class Calls(NamedTuple):
    """What the tests of a module call while it is unchanged."""

    #: Functions that are called while tests are collected.
    at_import: frozenset[str]
    #: For each test its seconds of processor time, and the functions that it calls.
    by_test: dict[str, tuple[float, frozenset[str]]]

    def tests_of(self, within: str) -> tuple[str, ...]:
        """Return the tests that may notice a change of a function, those of a file by time."""
        files = list(dict.fromkeys(_file(test) for test in self.by_test))
        found = [
            test
            for test, (_, names) in self.by_test.items()
            if within in names or STARTS_PROCESS in names
        ]
        found.sort(key=lambda test: (files.index(_file(test)), self.by_test[test][0]))
        return tuple(found)

    def limit(self, tests: Sequence[str]) -> float:
        """Return how many seconds tests may take with a change."""
        return limit(sum(self.by_test[test][0] for test in tests))


def _file(test: str) -> str:
    return test.partition("::")[0]


def in_order(items: Sequence[pytest.Item], tests: Sequence[str]) -> list[pytest.Item]:
    """Return collected tests in the order of their files in a list; pytest has another for workers.

    Those of a file stay as they are.
    """
    files = [Path(_file(test)).absolute() for test in tests]
    return sorted(items, key=lambda item: files.index(item.path))


def run_module(jobs: Sequence[Job], sources: Path, folder: Path, workers: int) -> Iterator[Result]:
    """Run the tests of mutants of one module, some at a time; yield how each ended."""
    left = {job.source: job for job in jobs}
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        _collect(jobs, sources, folder, workers, write)
    os.close(write)
    with os.fdopen(read, "rb") as file:
        try:
            calls = _next(file)
            if calls is None:
                failed = folder / FAILED
                said = failed if failed.exists() else folder / "log"
                raise FailsUnchangedError(said.read_text(errors="replace")[-3000:])
            while (result := _next(file)) is not None:
                yield result._replace(job=left.pop(result.job.source))
        finally:
            # The children of that process end with it, in `run_all`.
            os.kill(pid, signal.SIGTERM)
            os.waitpid(pid, 0)
    whole = calls.limit(list(calls.by_test))
    fresh = [job._replace(seconds=whole) for job in left.values()]
    if fresh:
        (control,) = run_all([fresh[0]._replace(source=None)], sources, folder / "control", 1)
        if control.end != "passed":
            log = folder / "control" / "0" / "log"
            raise FailsUnchangedError(log.read_text(errors="replace")[-3000:])
    yield from run_all(fresh, sources, folder / "fresh", workers)


def _next(file: IO[bytes]) -> Any:
    """Read what the other process sends; None at the end."""
    try:
        return pickle.load(file)
    except EOFError:
        return None


def _collect(jobs: Sequence[Job], sources: Path, folder: Path, workers: int, write: int) -> None:
    """Be the process that has collected; send `Calls`, unless a test fails, and the results."""
    folder.mkdir(exist_ok=True)
    output = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(output, stream)
    os.environ["NUMBA_DISABLE_JIT"] = "1"
    try:
        with os.fdopen(write, "wb") as file:
            plugin = _Collected(jobs, sources, folder, workers, file)
            run_pytest(sources, jobs[0].tests, [plugin])
    finally:
        os._exit(0)


# -- the code of a module -------------------------------------------------------------------------


def _codes(source: str, path: Path) -> dict[Name, CodeType]:
    """Return all code of a source: of the module, its classes, and its functions."""
    found: dict[Name, CodeType] = {}
    seen: Counter[str] = Counter()
    waiting = [compile(source, str(path), "exec", dont_inherit=True)]
    while waiting:
        one = waiting.pop()
        found[one.co_qualname, seen[one.co_qualname]] = one
        seen[one.co_qualname] += 1
        waiting += [const for const in one.co_consts[::-1] if isinstance(const, CodeType)]
    return found


def _same_at_import(before: dict[Name, CodeType], after: dict[Name, CodeType]) -> bool:
    """Return whether two sources of a module differ within functions only."""
    return before.keys() == after.keys() and all(
        code.co_freevars == after[name].co_freevars
        if code.co_flags & inspect.CO_OPTIMIZED
        else _by_itself(code) == _by_itself(after[name])
        for name, code in before.items()
    )


def _by_itself(code: CodeType) -> tuple[object, ...]:
    """Return what code does, apart from the functions in it; lines may have moved."""
    consts = [repr(const) for const in code.co_consts if not isinstance(const, CodeType)]
    return code.co_code, consts, code.co_names, code.co_varnames


# -- the process that has collected ---------------------------------------------------------------


class _Noted:
    """Notes which functions of a file are called."""

    def __init__(self, path: Path) -> None:
        self._path = str(path)
        self._names: set[str] = set()

    def start(self) -> None:
        self._names = set()
        threading.setprofile(self._note)
        sys.setprofile(self._note)

    def stop(self) -> frozenset[str]:
        """Stop, and return the names since the start."""
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
        return frozenset(self._names)

    def _note(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and (
            code.co_filename == self._path or code.co_qualname == STARTS_PROCESS
        ):
            self._names.add(code.co_qualname.replace(".<locals>", ""))


class _Failures:
    """Notes the tests that have failed, as a plugin of pytest."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note it, be it the test or what it needs."""
        if report.failed:
            self.said.append(f"{report.nodeid}\n{report.longreprtext}")


class _Collected:
    """A plugin of pytest that runs the collected tests in forks, again and again."""

    def __init__(
        self, jobs: Sequence[Job], sources: Path, folder: Path, workers: int, file: IO[bytes]
    ) -> None:
        self._jobs = jobs
        self._sources = sources
        self._folder = folder
        self._workers = workers
        self._file = file
        module = jobs[0].module
        self._path = sources / "shoal" / module
        self._import_name = ".".join(["shoal", *Path(module).with_suffix("").parts])
        self._noted = _Noted(self._path)
        self._noted.start()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run tests on all mutants, instead of all tests once."""
        importlib.import_module(self._import_name)
        at_import = self._noted.stop()
        items = in_order(session.items, self._jobs[0].tests)
        self._items = {item.nodeid: item for item in items}
        self._codes = _codes(self._path.read_text(encoding="utf-8"), self._path)
        self._functions = self._found()
        by_test = self._by_test()
        if not by_test:
            return True
        calls = Calls(at_import, by_test)
        self._send(calls)
        jobs = []
        for job in self._jobs:
            tests = calls.tests_of(job.within)
            if tests and job.within not in at_import and self._is_same_at_import(job):
                jobs.append(job._replace(tests=tests, seconds=calls.limit(tests)))
        folder = self._folder / "mutants"
        for result in run_all(jobs, self._sources, folder, self._workers, self._test):
            self._send(result)
        return True

    def _send(self, what: object) -> None:
        pickle.dump(what, self._file)
        self._file.flush()

    def _found(self) -> dict[Name, list[FunctionType]]:
        """Return the functions of the module, also those that others hold by now."""
        names = {
            (code.co_qualname, code.co_firstlineno): name for name, code in self._codes.items()
        }
        found: dict[Name, list[FunctionType]] = defaultdict(list)
        for one in gc.get_objects():
            if isinstance(one, FunctionType) and one.__code__.co_filename == str(self._path):
                code = one.__code__
                found[names[code.co_qualname, code.co_firstlineno]].append(one)
        return found

    def _is_same_at_import(self, job: Job) -> bool:
        assert job.source is not None
        return _same_at_import(self._codes, _codes(job.source, self._path))

    def _change(self, source: str) -> None:
        """Give the functions of the module the code of a source."""
        codes = _codes(source, self._path)
        for name, functions in self._functions.items():
            for function in functions:
                function.__code__ = codes[name]

    def _test(self, _: Tree, job: Job) -> int:
        assert job.source is not None
        self._change(job.source)
        return int(any(failed for _, failed in self._each(job.tests)))

    def _each(self, names: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
        """Run tests, and yield each with what has failed until then."""
        items = [self._items[name] for name in names]
        failures = _Failures()
        items[0].config.pluginmanager.register(failures)
        for item, following in zip(items, [*items[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            yield item.nodeid, failures.said

    def _by_test(self) -> dict[str, tuple[float, frozenset[str]]]:
        """Run all tests without a change; return their seconds and the functions that they call."""
        path = self._folder / "calls"

        def test(_: Tree, job: Job) -> int:
            self._change(self._path.read_text(encoding="utf-8"))
            found = {}
            began = time.process_time()
            self._noted.start()
            for name, failed in self._each(job.tests):
                if failed:
                    (self._folder / FAILED).write_text("\n".join(failed), encoding="utf-8")
                    return 1
                found[name] = time.process_time() - began, self._noted.stop()
                began = time.process_time()
                self._noted.start()
            self._noted.stop()
            path.write_bytes(pickle.dumps(found))
            return 0

        job = Job("", tuple(self._items))
        (result,) = run_all([job], self._sources, self._folder / "traced", 1, test)
        return pickle.loads(path.read_bytes()) if result.end == "passed" else {}
