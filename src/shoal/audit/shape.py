"""Shape: the output has the columns it should have, and every label can be read."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.audit.evidence import Evidence
from shoal.audit.report import Verdict, decide

__all__ = ["check", "expected_columns", "judge_columns", "unreadable", "unreadable_lines"]


def expected_columns(evidence: Evidence) -> tuple[str, ...]:
    """Return the public columns, in order: quasi, sensitive, kept."""
    return (*evidence.public_quasi, *evidence.schema.payload)


def check(evidence: Evidence) -> Verdict:
    """Check that the public columns are there once and in order, and their labels in the domain.

    Further columns are a matter of secrecy, not of shape.
    """
    labels = unreadable_lines(evidence.n_unreadable)
    labels += [flaw for side in evidence.sides for flaw in side.flaws]
    names, expected = evidence.published.schema.names, expected_columns(evidence)
    return judge_columns(names, expected, "quasi, sensitive, kept", labels)


def unreadable_lines(n_lines: int) -> list[str]:
    """Return what is wrong with an output that has lines that aren't rows; nothing if it hasn't."""
    return [unreadable(n_lines)] if n_lines else []


def unreadable(n_lines: int) -> str:
    """Say how many lines of an output aren't rows.

    >>> unreadable(1)
    "1 line isn't a row, and may hold anything"
    """
    if n_lines == 1:
        return "1 line isn't a row, and may hold anything"
    return f"{n_lines:,} lines aren't rows, and may hold anything"


def judge_columns(
    names: Sequence[str], expected: tuple[str, ...], order: str, labels: Sequence[str]
) -> Verdict:
    """Judge the columns of an output; ``order`` is the expected order in words.

    ``labels`` is what is wrong with their labels.
    """
    missing = [name for name in expected if name not in names]
    twice = [name for name in expected if names.count(name) > 1]
    flaws = []
    if missing:
        flaws.append(f"missing columns: {', '.join(missing)}")
        if len(missing) == len(expected):
            flaws.append("none of the expected columns is there: does the file have a header?")
    if twice:
        flaws.append(f"columns that are there twice: {', '.join(twice)}")
    if not missing and not twice and tuple(name for name in names if name in expected) != expected:
        flaws.append(f"the columns are in another order than {order}")
    return decide(
        "shape",
        [*flaws, *labels],
        kept=f"{len(expected)} columns as expected, every label within its domain",
        figures={"n_columns": len(names), "n_expected": len(expected)},
    )
