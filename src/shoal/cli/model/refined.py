"""What ``shoal model z`` adds on request: the exact probability, and classes of subjects."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from shoal.cli.model.text import percent
from shoal.errors import JobError, Problem
from shoal.models.z import (
    ByClass,
    Scenario,
    by_class,
    classes_of_activity,
    classes_of_interest,
    exact,
)
from shoal.models.z.exact import MOST_ATTRIBUTES

__all__ = ["check_classes", "refined_json", "refined_lines"]

#: How subjects may differ, and the number that says how much.
KINDS: dict[str, Callable[[Scenario, float], tuple[Scenario, Scenario]]] = {
    "activity": classes_of_activity,
    "interest": classes_of_interest,
}


def check_classes(text: str) -> tuple[str, float]:
    """Return the kind and the number of ``activity=10``; raise if it isn't one."""
    kind, _, number = text.partition("=")
    try:
        found = float(number)
    except ValueError:
        found = math.nan
    low, high = (0.0, math.inf) if kind == "activity" else (-1.0, 1.0)
    if kind not in KINDS or not (math.isfinite(found) and low <= found <= high):
        raise JobError(
            Problem(
                "--classes", "must be activity= and a number of at least 0, or interest= and a "
                "number between -1 and 1", repr(text), "For example --classes activity=10",
            )
        )  # fmt: skip
    return kind, found


def _check_attributes(scenario: Scenario, option: str) -> None:
    if scenario.n_attributes > MOST_ATTRIBUTES:
        raise JobError(
            Problem(
                option, f"takes at most {MOST_ATTRIBUTES} attributes, since it visits all their "
                "sets", f"{scenario.n_attributes:,}", "Give fewer --attributes, or leave it out",
            )
        )  # fmt: skip


def _classes(scenario: Scenario, text: str) -> ByClass:
    kind, number = check_classes(text)
    _check_attributes(scenario, "--classes")
    if scenario.n_subjects < 2:
        raise JobError(Problem("--classes", "needs at least two --users", None, "Give more"))
    return by_class(KINDS[kind](scenario, number))


def _exact(scenario: Scenario) -> float:
    _check_attributes(scenario, "--exact")
    return exact(scenario)


def refined_json(scenario: Scenario, *, with_exact: bool, classes: str | None) -> dict[str, Any]:
    """Return both for JSON; None where it wasn't asked for."""
    found = None if classes is None else _classes(scenario, classes)
    return {
        "exact": _exact(scenario) if with_exact else None,
        "classes": None
        if found is None
        else {
            "n_subjects": list(found.n_subjects),
            "probabilities": list(found.probabilities),
            "overall": found.overall,
            "entropy": found.entropy,
        },
    }


def refined_lines(scenario: Scenario, *, with_exact: bool, classes: str | None) -> list[str]:
    """Return both in words; no line for what wasn't asked for."""
    lines = []
    if with_exact:
        share = percent(_exact(scenario))
        lines.append(f"exact: {share}, over all sets of attributes")
    if classes is not None:
        found = _classes(scenario, classes)
        each = " and ".join(
            f"{percent(share)} of {n:,}"
            for share, n in zip(found.probabilities, found.n_subjects, strict=True)
        )
        lines.append(f"classes ({classes}): {each}, {percent(found.overall)} of all")
    return lines
