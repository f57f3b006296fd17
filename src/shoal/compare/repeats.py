"""Several runs of one cell under different seeds: their means and how far they spread."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

from shoal.compare.cells import Cell
from shoal.compare.measure import Figures
from shoal.compare.pool import Outcome

__all__ = ["SPREAD", "combined", "joined", "repeated"]

#: The figures whose standard deviation over the seeds is told.
SPREAD = (
    "loss", "loss_with_suppressed", "query_error", "suppression", "delay_mean", "risk",
    "attack_success", "rows_per_s",
)  # fmt: skip
#: From the best to the worst.
_AUDIT = ("kept", "unverifiable", "broken")
_ATTACK = ("skipped", "unbounded", "within", "unverifiable", "exceeded")


def repeated(cells: Sequence[Cell], seeds: int) -> list[Cell]:
    """Return each cell as often as there are seeds, those of one cell together."""
    return [replace(cell, repeat=i) for cell in cells for i in range(seeds)]


def joined(outcomes: Sequence[Outcome], seeds: int) -> list[Outcome]:
    """Return one outcome for each cell, given those of all of its repeats."""
    return [combined(outcomes[i : i + seeds]) for i in range(0, len(outcomes), seeds)]


def combined(outcomes: Sequence[Outcome]) -> Outcome:
    """Return what came of a cell: a failure if one failed, else the means of those that were run.

    >>> combined([Outcome("not run"), Outcome("not run")]).status
    'not run'
    """
    for each in outcomes:
        if each.status in ("failed", "unsupported"):
            return each
    found = [each.figures for each in outcomes if each.figures is not None]
    if not found or len(outcomes) == 1:
        return outcomes[0]
    return Outcome("done", mean_of(found), cached=all(each.cached for each in outcomes))


def mean_of(found: Sequence[Figures]) -> Figures:
    """Return the means of figures; of verdicts the worst, of extremes the most extreme."""
    first = found[0]
    columns = {field.name: [getattr(each, field.name) for each in found] for field in fields(first)}
    values: dict[str, Any] = {name: _mean(column) for name, column in columns.items()}
    values |= {
        "loss_by_attribute": {
            name: _mean([each.loss_by_attribute.get(name) for each in found])
            for name in first.loss_by_attribute
        },
        "smallest_group": min(filter(None, columns["smallest_group"]), default=None),
        "delay_most": max(filter(None, columns["delay_most"]), default=first.delay_most),
        "audit": max(columns["audit"], key=_AUDIT.index),
        "audit_detail": "; ".join(dict.fromkeys(filter(None, columns["audit_detail"]))),
        "attack_verdict": max(columns["attack_verdict"], key=_ATTACK.index),
        "delay_unit": first.delay_unit,
        "n_seeds": len(found),
        "spread": {name: _spread(columns[name]) for name in SPREAD},
        "waits": first.waits,
        "wait_bounds": first.wait_bounds,
    }
    for name in ("n_rows", "n_published", "n_suppressed", "n_quarantined", "n_groups"):
        values[name] = round(statistics.fmean(columns[name]))
    if all(each.wait_bounds == first.wait_bounds for each in found):
        waits = zip(*(each.waits for each in found), strict=True)
        values["waits"] = tuple(round(statistics.fmean(each)) for each in waits)
    return Figures(**values)


def _mean(column: Sequence[Any]) -> Any:
    known = [each for each in column if isinstance(each, int | float)]
    return statistics.fmean(known) if known else None


def _spread(column: Sequence[float | None]) -> float | None:
    """Return the standard deviation; None of fewer than two."""
    known = [each for each in column if each is not None]
    return statistics.stdev(known) if len(known) > 1 else None
