"""Claims that several figures make, and how they are judged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from benchmarks.figures.model import Claim, Measured, Reading, Verdict, rises
from benchmarks.figures.sabre.settings import LABELS, SabreSizes
from benchmarks.figures.sabre.trial import Found

__all__ = [
    "flat", "not_uniform", "promise_text", "setting_text", "times_as_fast", "trends", "widens",
]  # fmt: skip

#: "Not much effect": the most is so little more than the least.
FLAT = 0.1


def setting_text(sizes: SabreSizes) -> str:
    """What isn't varied."""
    return (
        f"{sizes.rows:,} rows, {sizes.n_quasi} quasi attributes, k = {sizes.k}, t = {sizes.t:g}, "
        "except for the varied parameter."
    )


def promise_text(found: Iterable[Found]) -> str:
    """How much was judged; what is broken never comes so far."""
    judged = {ran.trial: ran.judged for one in found for ran in one.runs}
    n_groups = sum(one.n_groups for one in judged.values())
    return (
        f"All {n_groups:,} groups of the {len(judged)} runs were counted and measured again: none "
        "breaks its promise."
    )


def trends(
    words: str,
    found: Mapping[str, Sequence[Measured]],
    *,
    falls: bool = False,
    labels: Mapping[str, str] = LABELS,
) -> list[Claim]:
    """The same trend of every algorithm."""
    return [
        Claim(f"{words} ({labels[one]}).", *rises(cells, falls=falls))
        for one, cells in found.items()
    ]


def flat(cells: Sequence[Measured]) -> tuple[Verdict, str]:
    """Whether a measure hardly changes.

    >>> flat([Reading((0.50,)), Reading((0.52,))])
    ('holds', 'from 0.500 to 0.520, 4 % apart; up to 10 % counts as little')
    """
    least, most = (pick(cells, key=lambda cell: cell.mean) for pick in (min, max))
    apart = most.mean / least.mean - 1
    evidence = (
        f"from {cells[0].tell(cells[0].mean)} to {cells[-1].tell(cells[-1].mean)}, "
        f"{100 * apart:.0f} % apart; up to {100 * FLAT:.0f} % counts as little"
    )
    return ("holds" if apart <= FLAT else "doesn't hold"), evidence


def widens(ours: Sequence[Measured], others: Sequence[Measured]) -> tuple[Verdict, str]:
    """Whether the others lose more and more than we do.

    >>> widens([Reading((0.1,)), Reading((0.2,))], [Reading((0.2,)), Reading((0.5,))])
    ('holds', 'from 0.100 to 0.300')
    """
    # As wide as both together can be apart.
    gaps = [
        Reading((other.least - one.most, other.mean - one.mean, other.most - one.least))
        for one, other in zip(ours, others, strict=True)
    ]
    return rises(gaps)


def not_uniform(cells: Sequence[Measured]) -> tuple[Verdict, str]:
    """Whether a measure neither rises nor falls all along.

    >>> not_uniform([Reading((value,)) for value in (0.1, 0.3, 0.2)])[0]
    'holds'
    """
    up, evidence = rises(cells)
    down, _ = rises(cells, falls=True)
    return ("doesn't hold" if "holds" in (up, down) else "holds"), evidence


def times_as_fast(
    quick: Sequence[Measured], slow: Sequence[Measured], times: float
) -> tuple[Verdict, str]:
    """Whether one takes this many times less than the other, everywhere or mostly.

    >>> times_as_fast([Reading((0.1,))], [Reading((20.0,))], 100)
    ('holds', '200 to 200 times')
    """
    ratios = [other.mean / one.mean for one, other in zip(quick, slow, strict=True)]
    n = sum(ratio >= times for ratio in ratios)
    evidence = f"{min(ratios):.3g} to {max(ratios):.3g} times"
    if n == len(ratios):
        return "holds", evidence
    return ("holds in general" if 2 * n > len(ratios) else "doesn't hold"), evidence
