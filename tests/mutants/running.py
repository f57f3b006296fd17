"""Run tests on mutants, each in a process of its own and with a source tree of its own.

Processes are forks of one that has imported what is large and isn't Shoal, which takes pytest and
Arrow seconds.
"""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import Phase, settings

from tests.examples import examples

__all__ = ["End", "Job", "Result", "Tree", "limit", "limited", "run_all", "run_pytest"]

#: A mutant may take this many times what the tests take, and some seconds; then it hangs.
PATIENCE = 5
LEAST_SECONDS = 10
#: The most bytes of memory: a loop that never ends may fill it.
MEMORY = 6 << 30
#: Imported before the forks; naming them here is their use.
PRELOADED = (np, pa)
#: The exit code of a process in which something else has failed than a test.
BROKE = 99


class Job(NamedTuple):
    """A changed module and the tests that must notice it; without a source, it isn't changed.

    ``within`` is the function with the change.
    """

    module: str
    tests: tuple[str, ...]
    source: str | None = None
    seconds: float = float("inf")
    within: str = ""


#: How tests end: ``broke`` if it wasn't a test that failed, but what runs them.
End = Literal["passed", "failed", "timed out", "broke"]


class Result(NamedTuple):
    """How the tests of a job ended."""

    job: Job
    end: End


@dataclass
class Tree:
    """A copy of the sources, in which one module at a time is changed."""

    sources: Path
    folder: Path
    job: Job | None = None
    started: float = 0.0
    log: Path = field(init=False)

    def __post_init__(self) -> None:
        # With its bytecode, whose times are those of the sources.
        shutil.copytree(self.sources, self.folder / "src")
        self.log = self.folder / "log"

    def change(self, module: str, source: str | None) -> None:
        """Write a module, or put it back. Old bytecode might pass for that of a mutant."""
        path = self.folder / "src" / "shoal" / module
        for old in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
            old.unlink()
        if source is None:
            shutil.copy2(self.sources / "shoal" / module, path)
        else:
            path.write_text(source, encoding="utf-8")


def run_all(
    jobs: Sequence[Job],
    sources: Path,
    folder: Path,
    workers: int,
    test: Callable[[Tree, Job], int] | None = None,
) -> Iterator[Result]:
    """Run the tests of all jobs, some at a time; yield how each ended.

    ``test`` runs them in the process of a job and returns 0 if they pass; by default pytest does.
    """
    free = [Tree(sources, folder / str(i)) for i in range(workers)]
    busy: dict[int, Tree] = {}
    waiting = list(reversed(jobs))
    try:
        while waiting or busy:
            while waiting and free:
                tree = free.pop()
                busy[_start(tree, waiting.pop(), test or _test)] = tree
            for pid, tree in list(busy.items()):
                result = _ended(pid, tree)
                if result is not None:
                    del busy[pid]
                    free.append(tree)
                    yield result
            time.sleep(0.02)
    finally:
        for pid in busy:
            _kill(pid)
            os.waitpid(pid, 0)


def _start(tree: Tree, job: Job, test: Callable[[Tree, Job], int]) -> int:
    tree.job, tree.started = job, time.monotonic()
    if job.source is not None:
        tree.change(job.module, job.source)
    pid = os.fork()
    if pid == 0:
        try:
            limited(tree, job)
            code = test(tree, job)
        except BaseException:
            traceback.print_exc()
            code = BROKE
        os._exit(code)
    return pid


def limited(tree: Tree, job: Job) -> None:
    """Limit this process; let what it starts use the changed sources."""
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    output = os.open(tree.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(output, stream)
    if job.seconds < float("inf"):
        seconds = int(job.seconds) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    temporary = tree.folder / "tmp"
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    os.environ |= {
        "PYTHONPATH": str(tree.folder / "src"),
        "NUMBA_DISABLE_JIT": "1",
        "PYTEST_DEBUG_TEMPROOT": str(temporary),
    }


def _test(tree: Tree, job: Job) -> int:
    assert "shoal" not in sys.modules, "a mutant would be hidden by what is imported already"
    return run_pytest(tree.folder / "src", job.tests)


def run_pytest(sources: Path, tests: Sequence[str], plugins: Sequence[object] = ()) -> int:
    """Run tests of sources in this process; return pytest's exit code."""
    sys.path.insert(0, str(sources))
    # That an example fails is enough: to look for a smaller one takes longer than all the rest.
    # Nor is what fails for one mutant remembered for the next one.
    settings.register_profile(
        "mutants",
        phases=(Phase.explicit, Phase.generate),
        database=None,
        deadline=None,
        max_examples=examples(100),
    )
    options = ["-q", "-x", "-m", "not nightly", "--tb=short"]
    options += ["--hypothesis-profile=mutants", "--hypothesis-seed=0"]
    for plugin in ("cacheprovider", "cov"):
        options += ["-p", f"no:{plugin}"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    return int(pytest.main([*options, *tests], list(plugins)))


def _ended(pid: int, tree: Tree) -> Result | None:
    """Return how a process has ended, or None if it hasn't."""
    assert tree.job is not None
    job, waited = tree.job, time.monotonic() - tree.started
    # A mutant that waits takes no processor time. The machine may be busy with other things.
    hangs = waited > 20 * max(job.seconds, LEAST_SECONDS)
    if hangs:
        _kill(pid)
    ended, status = os.waitpid(pid, 0 if hangs else os.WNOHANG)
    if ended == 0:
        return None
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)  # what the tests have started
    if job.source is not None:
        tree.change(job.module, None)
    return Result(job, "timed out" if hangs else _end(os.waitstatus_to_exitcode(status)))


def _end(code: int) -> End:
    if code == pytest.ExitCode.OK:
        return "passed"
    # The limit of processor time is soft and hard at once.
    if code in (-signal.SIGXCPU, -signal.SIGKILL):
        return "timed out"
    # Without the change the same tests are found and run. A module that can't be imported is an
    # error of the collection, or of the command line if conftest.py imports it.
    return "broke" if code in (BROKE, pytest.ExitCode.INTERNAL_ERROR) else "failed"


def _kill(pid: int) -> None:
    """End a process and all of its group, if there are any."""
    # A process that has just been forked has no group of its own yet.
    for end in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError):
            end(pid, signal.SIGKILL)


def limit(seconds: float) -> float:
    """Return how many seconds tests may take that otherwise take this many."""
    return PATIENCE * seconds + LEAST_SECONDS
