"""Which runs of a grid nothing beats, and which one is recommended, with the reason in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from shoal.compare.cells import Cell, Promise
from shoal.compare.measure import Figures
from shoal.compare.pool import Outcome
from shoal.spec.policy import Policy

__all__ = ["GridRun", "Recommendation", "pareto_front", "recommend", "told"]

#: Losses that differ by less than this share are taken for equal; COUNT queries decide then.
NEAR = 0.01


class GridRun(NamedTuple):
    """A cell of the grid and what came of it."""

    cell: Cell
    outcome: Outcome

    @property
    def figures(self) -> Figures | None:
        """What was measured; None if it couldn't be run."""
        return self.outcome.figures

    @property
    def loss(self) -> float:
        """The loss with suppressed rows as 1; 1 if nothing is known."""
        found = None if self.figures is None else self.figures.loss_with_suppressed
        return 1.0 if found is None else found


class Recommendation(NamedTuple):
    """The place of the recommended run in the grid, and the reason in sentences."""

    place: int
    reason: tuple[str, ...]


def pareto_front(runs: Sequence[GridRun]) -> frozenset[int]:
    """Return the places of the runs that no other beats in both loss and risk.

    Compared are runs that keep their promise under the same other promises: a stricter l or t, or a
    shorter delay, protects or costs in ways that neither figure shows. k shows in the risk.
    """
    points = {
        i: (_others(run.cell.promise), found.loss_with_suppressed, found.risk)
        for i, run in enumerate(runs)
        if (found := run.figures) is not None
        and found.audit != "broken"
        and found.loss_with_suppressed is not None
        and found.risk is not None
    }
    return frozenset(
        i
        for i, point in points.items()
        if not any(_beats(other, point) for other in points.values())
    )


def _others(promise: Promise) -> tuple[tuple[str, object], ...]:
    return tuple((key, value) for key, value in promise.items() if key != "k")


def _beats(one: tuple[object, float, float], other: tuple[object, float, float]) -> bool:
    return one[0] == other[0] and one[1:] != other[1:] and one[1] <= other[1] and one[2] <= other[2]


def recommend(runs: Sequence[GridRun], own: Policy | None = None) -> Recommendation | None:
    """Recommend a run; None if none keeps its promise, by the audit and by the attack.

    What to promise isn't for a measurement to decide: it is the policy that was asked for
    (``own``), if the grid has it, else the strictest one that can be kept. Of the algorithms that
    keep it, the one that loses least is recommended.
    """
    kept = [i for i, run in enumerate(runs) if _keeps(run)]
    if not kept:
        return None
    policies = list(dict.fromkeys(runs[i].cell.policy for i in kept))
    policy = own if own in policies else max(policies, key=_strictness)
    rivals = [i for i in kept if runs[i].cell.policy == policy]
    least = min(runs[i].loss for i in rivals)
    near = [i for i in rivals if runs[i].loss <= least * (1 + NEAR)]
    best = min(near, key=lambda i: (_error(runs[i]), runs[i].loss))
    reason = [_why_policy(runs[best], own, policies), *_why_algorithm(runs, best, rivals)]
    return Recommendation(best, (*reason, *_instead(runs, best, kept)))


def _keeps(run: GridRun) -> bool:
    found = run.figures
    return (
        found is not None
        and found.audit == "kept"
        and found.attack_verdict != "exceeded"
        and found.n_published > 0
    )


def _error(run: GridRun) -> float:
    found = run.figures
    return float("inf") if found is None or found.query_error is None else found.query_error


def _strictness(policy: Policy) -> tuple[float, ...]:
    """Order policies: the larger k, then l, the smaller t and likewise, then the shorter delay."""
    needed = max((criterion.needed for criterion in policy.diversity), default=1)
    bounds = [
        float(getattr(criterion, name))
        for criterion in policy.measured
        for name in ("t", "beta", "delta")
        if hasattr(criterion, name)
    ]
    delay = policy.delay
    rows = float("inf") if delay is None or delay.rows is None else delay.rows
    seconds = float("inf") if delay is None or delay.seconds is None else float(delay.seconds)
    k = policy.z or policy.k
    return k, needed, len(bounds), -min(bounds, default=0.0), -rows, -seconds


# -- in words --------------------------------------------------------------------------------------


def told(promise: Promise) -> str:
    """Return a promise in words.

    >>> told({"k": 5, "l": 3, "delay": 100})
    'k = 5, l = 3, delay = 100 rows'
    """
    return ", ".join(
        f"{key} = {value} rows" if key == "delay" and isinstance(value, int) else f"{key} = {value}"
        for key, value in promise.items()
    )


def _why_policy(best: GridRun, own: Policy | None, policies: Sequence[Policy]) -> str:
    promise, name = told(best.cell.promise), best.cell.label
    if best.cell.policy == own:
        return f"{name} with {promise}: that is what the job promises."
    if len(policies) == 1:
        return f"{name} with {promise}: the only promise of the grid that was kept."
    return f"{name} with {promise}: the strictest promise of the grid that was kept."


def _why_algorithm(runs: Sequence[GridRun], best: int, rivals: Sequence[int]) -> list[str]:
    found = runs[best].figures
    assert found is not None
    lost = f"{runs[best].loss:.3f}"
    others = sorted((i for i in rivals if i != best), key=lambda i: runs[i].loss)
    if not others:
        return [f"It is the only algorithm that kept it, with a loss of {lost}."]
    next_best = runs[others[0]]
    if next_best.loss < runs[best].loss:
        return [
            f"It loses {lost}, nearly as little as {next_best.cell.label} "
            f"({next_best.loss:.3f}), and answers COUNT queries better: their median error is "
            f"{_error(runs[best]):.3f} instead of {_error(next_best):.3f}."
        ]
    return [
        f"It loses least of {len(rivals)} algorithms that kept it: {lost}, before "
        f"{next_best.cell.label} with {next_best.loss:.3f}."
    ]


def _instead(runs: Sequence[GridRun], best: int, kept: Sequence[int]) -> list[str]:
    """Return what the least loss under each other promise is: the price of the promise."""
    least: dict[Policy, int] = {}
    for i in kept:
        policy = runs[i].cell.policy
        if policy != runs[best].cell.policy and (
            policy not in least or runs[i].loss < runs[least[policy]].loss
        ):
            least[policy] = i
    if not least:
        return []
    mine = runs[best].cell.promise
    prices = [
        f"{told(_differing(runs[i].cell.promise, mine))} would lose {runs[i].loss:.3f} "
        f"({runs[i].cell.label})"
        for i in least.values()
    ]
    shown = prices[:8] + ([f"and {len(prices) - 8} more"] if len(prices) > 8 else [])
    return [f"Instead, {'; '.join(shown)}."]


def _differing(promise: Promise, other: Promise) -> Promise:
    return {key: value for key, value in promise.items() if other.get(key) != value}
