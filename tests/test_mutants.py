"""Mutation testing finds what tests miss, and its list of explained mutants is up to date."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.mutants.__main__ import EXPLAINED, ROOT, all_mutants, explanations
from tests.mutants.changes import mutants_of
from tests.mutants.collected import in_order
from tests.mutants.modules import TESTS

SOURCE = '''\
"""A docstring: 1 < 2."""

from __future__ import annotations

__all__ = ["may_leave"]


def may_leave(n_subjects: int, k: int = 2) -> bool:
    """Return whether there are enough of them."""
    if n_subjects < k:
        return False
    return n_subjects > 0 and k > 0
'''
GOOD_TESTS = """\
from shoal.rule import may_leave

def test_it():
    assert [may_leave(n, 2) for n in (1, 2, 3)] == [False, True, True]
    assert not may_leave(1)
    assert may_leave(2)
    assert not may_leave(0, 0)
    assert not may_leave(1, 0)
    assert may_leave(1, 1)
"""
#: k = 2 alone, and no borderline.
POOR_TESTS = """\
from shoal.rule import may_leave

def test_it():
    assert not may_leave(0, 2)
    assert may_leave(3, 2)
"""
#: Changes that a test notices only if it runs where the module is imported anew, or on disk.
ELSEWHERE = """\
LIMIT = 3


class Box:
    def __init__(self):
        self._n = 0

    @property
    def n(self):
        return self._n + 1

    @n.setter
    def n(self, value):
        self._n = value + 7


def is_below(n=2):
    return n < LIMIT


def in_a_process():
    return 1


def at_collection():
    return 5
"""
TESTS_ELSEWHERE = """\
import subprocess, sys
from shoal.rule import Box, at_collection, in_a_process, is_below

FOUND = at_collection()

def test_a_property():
    box = Box()
    assert box.n == 1
    box.n = 1
    assert box.n == 9

def test_a_constant_and_a_default():
    assert is_below()
    assert not is_below(3)

def test_a_process():
    code = "from shoal.rule import in_a_process as f; raise SystemExit(f() - 1)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0

def test_what_was_found_while_tests_were_collected():
    assert FOUND == 5
"""


def changed(source: str) -> set[tuple[str, str]]:
    return {(mutant.before, mutant.after) for mutant in mutants_of(source)}


def test_each_place_that_can_decide_is_changed_and_nothing_else() -> None:
    assert changed(SOURCE) == {
        ("def may_leave(n_subjects: int, k: int = 2) -> bool:",
         "def may_leave(n_subjects: int, k: int = 3) -> bool:"),
        ("if n_subjects < k:", "if (n_subjects <= k):"),
        ("if n_subjects < k:", "if (not (n_subjects < k)):"),
        ("return False", "return True"),
        ("return n_subjects > 0 and k > 0", "return (n_subjects > 0 or k > 0)"),
        ("return n_subjects > 0 and k > 0", "return (n_subjects >= 0) and k > 0"),
        ("return n_subjects > 0 and k > 0", "return n_subjects > 0 and (k >= 0)"),
        ("return n_subjects > 0 and k > 0", "return n_subjects > 1 and k > 0"),
        ("return n_subjects > 0 and k > 0", "return n_subjects > 0 and k > 1"),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("line", "after"),
    [
        ("x[0] = 1", "pass"),
        ("x.n += 1", "x.n -= 1"),
        ("x.n += 1", "pass"),
        ("raise ValueError(x)", "pass"),
        ("forget(x)", "pass"),
        ("return min(x, y)", "return max(x, y)"),
        ("return x is not None", "return (x is None)"),
        ("return not x", "return (x)"),
        ("return (ä + x) * y", "return ((ä - x)) * y"),
    ],
)
def test_the_kinds_of_changes(line: str, after: str) -> None:
    source = f"def f(x, y, ä):\n    for _ in x:\n        {line}\n"
    assert (line, after) in changed(source)


@pytest.mark.parametrize(
    "line", ["event(log, 1, 'ended')", "log.info(1)", "x: dict[1, 2]", "x = f'{1}'", "'''1 < 2'''"]
)
def test_logs_and_texts_are_left_alone(line: str) -> None:
    assert changed(f"def f(x):\n    {line}\n") == set()


@pytest.fixture
def world(tmp_path: Path) -> Path:
    (tmp_path / "src" / "shoal").mkdir(parents=True)
    (tmp_path / "src" / "shoal" / "__init__.py").write_text("")
    (tmp_path / "src" / "shoal" / "rule.py").write_text(SOURCE)
    (tmp_path / "explained.toml").write_text("")
    return tmp_path


def run(world: Path, tests: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run it in a process of its own: Shoal must not be imported yet."""
    (world / "test_rule.py").write_text(tests)
    code = f"""
import sys
from pathlib import Path
from tests.mutants.__main__ import main
world = Path({str(world)!r})
sys.exit(main(
    {list(options)!r}, sources=world / "src", explained=world / "explained.toml",
    tests={{"rule.py": (str(world / "test_rule.py"),)}},
))
"""
    return subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )


@pytest.mark.nightly
def test_good_tests_kill_all_but_what_makes_no_difference(world: Path) -> None:
    done = run(world, GOOD_TESTS)
    assert done.returncode == 1
    assert "9 = 8 + 0 + 0 + 1  all\n" in done.stdout
    assert "SURVIVED: src/shoal/rule.py:12 in may_leave\n" in done.stdout
    assert "  + return (n_subjects >= 0) and k > 0\n" in done.stdout
    explain(world, "return (n_subjects >= 0) and k > 0")
    done = run(world, GOOD_TESTS)
    assert done.returncode == 0
    assert "9 = 8 + 0 + 1 + 0  all\n" in done.stdout


def explain(world: Path, after: str) -> None:
    (world / "explained.toml").write_text(f"""\
[[mutant]]
module = "rule.py"
within = "may_leave"
before = "return n_subjects > 0 and k > 0"
after = "{after}"
reason = "k is above 0, and fewer than k were refused before"
""")


@pytest.mark.nightly
def test_an_explanation_of_what_is_noticed_fails(world: Path) -> None:
    explain(world, "return n_subjects > 0 and (k >= 0)")
    done = run(world, GOOD_TESTS)
    assert done.returncode == 1
    assert "EXPLAINED, BUT NOTICED: src/shoal/rule.py:12" in done.stdout


def test_poor_tests_let_mutants_survive_and_the_tree_stays_as_it_was(world: Path) -> None:
    done = run(world, POOR_TESTS)
    assert done.returncode == 1
    assert "  + if (n_subjects <= k):\n" in done.stdout
    assert (world / "src" / "shoal" / "rule.py").read_text() == SOURCE


@pytest.mark.nightly
def test_a_mutant_that_never_ends_is_killed(world: Path) -> None:
    endless = "def f(n):\n    while n > 0:\n        n -= 1\n    return 7\n"
    (world / "src" / "shoal" / "rule.py").write_text(endless)
    tests = "from shoal.rule import f\n\ndef test_it():\n    assert f(3) == 7\n"
    done = run(world, tests, "--count", "2", "--seed", "3")
    assert "2 = 0 + 2 + 0 + 0  all\n" in done.stdout


@pytest.mark.nightly
def test_what_breaks_outside_of_a_test_kills_no_mutant(world: Path) -> None:
    """One is tried in a process that has collected the tests, the other one in a fresh process."""
    (world / "src" / "shoal" / "rule.py").write_text("N = 1\n\n\ndef f():\n    return 1\n")
    tests = "from shoal.rule import N, f\n\ndef test_it():\n    f() == N or os._exit(99)\n"
    done = run(world, f"import os\n{tests}")
    assert done.returncode == 1
    assert "BROKE: src/shoal/rule.py:1 in the module\n" in done.stdout
    assert "BROKE: src/shoal/rule.py:5 in f\n" in done.stdout
    assert "2 = 0 + 0 + 0 + 2  all\n" in done.stdout


@pytest.mark.nightly
def test_no_change_escapes_because_the_module_was_imported_before(world: Path) -> None:
    (world / "src" / "shoal" / "rule.py").write_text(ELSEWHERE)
    done = run(world, TESTS_ELSEWHERE)
    assert done.returncode == 0, done.stdout
    assert "12 = 12 + 0 + 0 + 0  all\n" in done.stdout


@pytest.mark.nightly
def test_a_sample_is_drawn_by_seed(world: Path) -> None:
    tried = []
    for seed in ("1", "1", "2"):
        done = run(world, GOOD_TESTS, "--count", "3", "--seed", seed, "--workers", "1")
        tried.append([line for line in done.stdout.splitlines() if "rule.py:" in line])
    assert [len(lines) for lines in tried] == [3, 3, 3]
    assert tried[0] == tried[1] != tried[2]


@pytest.mark.nightly
def test_tests_that_fail_without_a_change_are_reported(world: Path) -> None:
    done = run(world, "def test_it():\n    assert 1 == 2\n")
    assert done.returncode == 2
    assert "without a change, tests fail" in done.stderr
    assert "test_rule.py::test_it" in done.stderr
    assert "assert 1 == 2" in done.stderr


def test_the_modules_and_their_tests_exist() -> None:
    for module, tests in TESTS.items():
        assert (ROOT / "src" / "shoal" / module).is_file()
        for name in tests:
            assert (ROOT / name.partition("::")[0]).is_file()


@pytest.mark.nightly
def test_every_explained_mutant_exists_and_has_a_reason() -> None:
    reasons = explanations(EXPLAINED)
    known = {one.name for one in all_mutants(ROOT / "src", sorted({n.module for n in reasons}))}
    assert set(reasons) <= known
    assert all(len(reason.split()) >= 5 for reason in reasons.values())


def test_files_with_few_tests_run_first_if_they_are_listed_first() -> None:
    """What is listed may be a part of a file."""
    tests = ("tests/test_events.py::one", "tests/arrow/test_order.py", "tests/test_events.py::two")
    items: list[Any] = [
        SimpleNamespace(path=ROOT / path, name=name)
        for path, name in [(tests[1], "b"), (tests[1], "a"), ("tests/test_events.py", "c")]
    ]
    assert [item.name for item in in_order(items, tests)] == ["c", "b", "a"]
