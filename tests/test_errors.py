"""The exception tree and the shape of its messages."""

from __future__ import annotations

import ast
import pickle
import re
from pathlib import Path

import pytest

import shoal
from shoal import errors
from shoal.errors import (
    HierarchyError,
    JobError,
    ParameterError,
    Problem,
    ShoalError,
    UnsupportedError,
    did_you_mean,
)


def test_every_exception_is_of_the_tree_and_has_the_exit_code_that_the_docs_draw() -> None:
    assert errors.__doc__ is not None
    drawn = dict(
        line.replace("│", " ").replace("├──", " ").replace("└──", " ").split()[:2]
        for line in errors.__doc__.splitlines()
        if "Error " in line and line.startswith("    ")
    )
    kinds = {
        name: kind
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, ShoalError)
    }
    assert {name: str(kind.exit_code) for name, kind in kinds.items()} == drawn


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        (Problem("k", "is wrong"), "k: is wrong."),
        (Problem("k", "is wrong", "0"), "k: is wrong; got 0."),
        (Problem("k", "is wrong", None, "Try 10"), "k: is wrong. Try 10."),
        (Problem("k", "is wrong", "0", "Did you mean 1?"), "k: is wrong; got 0. Did you mean 1?"),
        (Problem("k", "is wrong!"), "k: is wrong!"),
    ],
)
def test_a_problem_says_what_was_got_and_how_to_fix_it(problem: Problem, text: str) -> None:
    assert str(problem) == text


def test_a_job_error_lists_all_problems() -> None:
    problems = [Problem("a", "is wrong"), Problem("b", "is wrong, too")]
    assert str(JobError(problems)) == "2 problems:\n  - a: is wrong.\n  - b: is wrong, too."
    assert str(JobError(problems, where="job.toml")).startswith("2 problems in job.toml:")
    assert str(JobError(problems[:1], where="job.toml")) == "job.toml: a: is wrong."
    assert str(JobError(problems[0])) == "a: is wrong."
    assert JobError(iter(problems)).problems == tuple(problems)


def test_the_short_forms() -> None:
    assert str(ParameterError("k", "is wrong")) == "k: is wrong."
    assert str(ParameterError("k", "is wrong", got=0)) == "k: is wrong; got 0."
    assert str(HierarchyError("isn't a tree")) == "hierarchy: isn't a tree."
    assert str(HierarchyError("isn't one", where="a.csv", fix="Fix")) == "a.csv: isn't one. Fix."
    assert str(UnsupportedError("can't")) == "algorithm: can't."
    assert isinstance(UnsupportedError("can't"), JobError)


def test_a_problem_can_be_sent_to_another_process() -> None:
    problem = Problem("k", "is wrong", "0")
    assert pickle.loads(pickle.dumps(problem)) == problem


def test_did_you_mean() -> None:
    assert did_you_mean("castel", ["castle", "fads"]) == "Did you mean 'castle'?"
    assert did_you_mean("x", ["castle", "fads"]) == "Known: castle, fads"
    assert did_you_mean("x", []) is None
    assert did_you_mean("zzz", [f"name{i}" for i in range(21)]) is None


def test_advice_to_start_over_says_what_that_does() -> None:
    """Rows that are published twice are a leak: see docs/checkpoints.md."""
    found = 0
    for path in Path(shoal.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Raise | ast.Return | ast.Assign):
                continue
            text = ast.unparse(node)
            if re.search(r"start (over|again)\b(?! in the)", text, re.IGNORECASE):
                found += 1
                # There the same command is to be repeated.
                is_repeated = "it was drained. Start again." in text
                is_said = "docs/checkpoints.md" in text or "PUBLISHES_AGAIN" in text
                assert is_said or is_repeated, f"{path}, line {node.lineno}"
    assert found > 20
