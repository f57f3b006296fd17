"""What the paper's words are taken for, and how each is judged."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from benchmarks.figures.model import Measured, Reading, Verdict, below

__all__ = [
    "ABOUT", "BENT", "LITTLE", "SUBSTANTIAL", "about", "alike", "far_below", "joint", "less",
    "linear", "little", "slower_growth", "stable",
]  # fmt: skip

#: A point may be so far from a straight line, as a share of the line's rise.
BENT = 0.1
#: "About this many times", and "close": within this factor.
ABOUT = 2.0
#: "Substantially": at least this share less.
SUBSTANTIAL = 0.1
#: "Quite small", and "stable": at most this share.
LITTLE = 0.1
#: What differs this many times from seed to seed is compared by orders of magnitude.
FAR = 10.0


def joint(judged: Mapping[str, tuple[Verdict, str]]) -> tuple[Verdict, str]:
    """The verdict on a claim about several methods, and what is to say of each.

    >>> joint({"Basic": ("holds", "less"), "Full": ("doesn't hold", "more")})
    ('inconclusive', "Basic: less; Full (doesn't hold): more")
    """
    if len(judged) == 1:
        return next(iter(judged.values()))
    verdicts = [verdict for verdict, _ in judged.values()]
    evidence = "; ".join(
        f"{label}: {numbers}" if verdict == "holds" else f"{label} ({verdict}): {numbers}"
        for label, (verdict, numbers) in judged.items()
    )
    n_for = sum(verdict in ("holds", "holds in general") for verdict in verdicts)
    n_against = verdicts.count("doesn't hold")
    if verdicts.count("holds") == len(verdicts):
        return "holds", evidence
    if 2 * n_for > len(verdicts):
        return "holds in general", evidence
    return ("doesn't hold" if 2 * n_against > len(verdicts) else "inconclusive"), evidence


def less(ours: Sequence[Reading], others: Sequence[Reading]) -> tuple[Verdict, str]:
    """Whether each of ours is less than the other in the same place.

    >>> less([Reading((1.0, 2.0))], [Reading((4.0, 5.0))])
    ('holds', 'less in 1 of 1 (0.33 to 0.33 times)')
    >>> less([Reading((1.0, 2.0))], [Reading((1e3, 1e9))])
    ('holds', 'less in 1 of 1, by orders of magnitude')
    """
    if all(cell.most <= FAR * cell.least for cell in (*ours, *others)):
        return below(ours, others)
    verdict, evidence = below(*([_orders(cell) for cell in cells] for cells in (ours, others)))
    return verdict, f"{evidence.partition(' (')[0]}, by orders of magnitude"


def _orders(cell: Reading) -> Reading:
    return Reading(tuple(math.log10(value) for value in cell.values))


def stable(cells: Sequence[Measured]) -> tuple[Verdict, str]:
    """Whether the largest is at most a tenth above the least.

    >>> from benchmarks.figures.model import Reading
    >>> stable([Reading((1.0,)), Reading((1.05,))])
    ('holds', 'between 1.000 and 1.050')
    >>> stable([Reading((1.0, 2.0)), Reading((1.8, 2.2))])[0]  # within the spreads
    'inconclusive'
    """
    least, most = (pick(cells, key=lambda cell: cell.mean) for pick in (min, max))
    evidence = f"between {least.tell(least.mean)} and {most.tell(most.mean)}"
    apart = most.mean - least.mean
    if apart <= LITTLE * least.mean:
        return "holds", evidence
    within = apart <= least.spread + most.spread
    return ("inconclusive" if within else "doesn't hold"), evidence


def alike(ours: Sequence[Measured], others: Sequence[Measured]) -> tuple[Verdict, str]:
    """Whether each of ours is as much as the other, up to a tenth or to their spreads.

    >>> from benchmarks.figures.model import Reading
    >>> alike([Reading((1.0,))], [Reading((1.05,))])
    ('holds', '0.952 to 0.952 times')
    >>> alike([Reading((1.0,))], [Reading((2.0,))])[0]
    "doesn't hold"
    """
    pairs = list(zip(ours, others, strict=True))
    ratios = [one.mean / other.mean for one, other in pairs]
    n = sum(
        abs(one.mean - other.mean) <= max(LITTLE * other.mean, one.spread + other.spread)
        for one, other in pairs
    )
    return _of_all(n, len(pairs)), f"{min(ratios):.3g} to {max(ratios):.3g} times"


def linear(xs: Sequence[float], cells: Sequence[Measured]) -> tuple[Verdict, str]:
    """Whether a measure rises along a straight line, up to its spreads.

    >>> from benchmarks.figures.model import Reading
    >>> linear([1, 2, 3], [Reading((x,)) for x in (1.0, 2.0, 3.0)])
    ('holds', 'at most 0 % of its rise off a straight line')
    >>> linear([1, 2, 3], [Reading((x,)) for x in (1.0, 2.0, 5.0)])[0]
    "doesn't hold"
    """
    means = np.array([cell.mean for cell in cells])
    slope, at_zero = np.polyfit(xs, means, 1)
    rise = abs(slope) * (max(xs) - min(xs))
    off = np.abs(means - (slope * np.array(xs) + at_zero))
    bent = float(off.max() / rise)
    evidence = f"at most {100 * bent:.0f} % of its rise off a straight line"
    if slope > 0 and bent <= BENT:
        return "holds", evidence
    within = all(o <= cell.spread for o, cell in zip(off, cells, strict=True))
    return ("inconclusive" if slope > 0 and within else "doesn't hold"), evidence


def about(
    ours: Sequence[Measured], others: Sequence[Measured], times: float
) -> tuple[Verdict, str]:
    """Whether one is about this many times the other, everywhere or mostly.

    >>> from benchmarks.figures.model import Reading
    >>> about([Reading((5.0,))], [Reading((1.0,))], 7)
    ('holds', '5 to 5 times')
    >>> about([Reading((3.0,))], [Reading((1.0,))], 7)[0]
    "doesn't hold"
    """
    ratios = [one.mean / other.mean for one, other in zip(ours, others, strict=True)]
    n = sum(times / ABOUT <= ratio <= times * ABOUT for ratio in ratios)
    evidence = f"{min(ratios):.3g} to {max(ratios):.3g} times"
    return _of_all(n, len(ratios)), evidence


def far_below(ours: Sequence[Measured], others: Sequence[Measured]) -> tuple[Verdict, str]:
    """Whether one is substantially less than the other, everywhere or mostly.

    >>> from benchmarks.figures.model import Reading
    >>> far_below([Reading((0.5,))], [Reading((1.0,))])
    ('holds', '50 to 50 % less')
    >>> far_below([Reading((0.95,))], [Reading((1.0,))])[0]
    "doesn't hold"
    """
    shares = [1 - one.mean / other.mean for one, other in zip(ours, others, strict=True)]
    n = sum(share >= SUBSTANTIAL for share in shares)
    evidence = f"{100 * min(shares):.0f} to {100 * max(shares):.0f} % less"
    return _of_all(n, len(shares)), evidence


def little(cells: Sequence[Measured]) -> tuple[Verdict, str]:
    """Whether the last is only a little less than the first.

    >>> from benchmarks.figures.model import Reading
    >>> little([Reading((1.0,)), Reading((0.95,))])
    ('holds', '5.0 % less')
    >>> little([Reading((1.0,)), Reading((0.8,))])[0]
    "doesn't hold"
    """
    share = 1 - cells[-1].mean / cells[0].mean
    return ("holds" if share <= LITTLE else "doesn't hold"), f"{100 * share:.1f} % less"


def slower_growth(cells: Sequence[Measured], n: int) -> tuple[Verdict, str]:
    """Whether a measure grows less with each of the last n steps, on average, than before them.

    >>> from benchmarks.figures.model import Reading
    >>> slower_growth([Reading((x,)) for x in (1.0, 2.0, 3.0, 3.1, 3.2)], 2)
    ('holds', '0.100 a step, and 1.000 before')
    """
    tell = cells[0].tell
    before = (cells[-1 - n].mean - cells[0].mean) / (len(cells) - 1 - n)
    after = (cells[-1].mean - cells[-1 - n].mean) / n
    verdict: Verdict = "holds" if after < before else "doesn't hold"
    return verdict, f"{tell(after)} a step, and {tell(before)} before"


def _of_all(n: int, n_all: int) -> Verdict:
    if n == n_all:
        return "holds"
    return "holds in general" if 2 * n > n_all else "doesn't hold"
