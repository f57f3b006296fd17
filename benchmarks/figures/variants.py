"""Which Mondrian: the rival of the thesis, whose side, cut and tries its text leaves open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from benchmarks.figures.model import Claim, Measured, below
from benchmarks.figures.salaries import Sample

__all__ = ["OPENING", "SAMPLES", "VARIANTS", "Knobs", "compared", "concluded", "told"]

#: Knobs of an algorithm that aren't its defaults.
Knobs: TypeAlias = tuple[tuple[str, str | bool], ...]

_WIDEST, _TREE, _ONCE = ("side", "widest"), ("cut", "hierarchy"), ("retry", False)
#: What is compared, by the name of its curve.
VARIANTS: dict[str, Knobs] = {
    "loss, code": (),
    "loss, hierarchy": (_TREE,),
    "widest, code": (_WIDEST,),
    "widest, hierarchy": (_WIDEST, _TREE),
    "widest, code, once": (_WIDEST, _ONCE),
    "widest, hierarchy, once": (_WIDEST, _TREE, _ONCE),
}
#: The data, in the words of the pages.
SAMPLES: dict[Sample, str] = {
    "equal": "50 classes of near equal frequency",
    "frequencies": "classes as frequent as the thesis'",
    "attributes": "the thesis' quasi attributes",
}

Cells: TypeAlias = Sequence[Measured]


def compared(
    words: str, sample: Sample, ours: Cells, rivals: Mapping[str, Cells], places: Sequence[str]
) -> list[Claim]:
    """Judge whether ours loses less than each variant of the rival."""
    return [
        Claim(f"{words} ({variant}; {SAMPLES[sample]}).", *below(ours, cells, places))
        for variant, cells in rivals.items()
    ]


def told(claims: Sequence[Claim]) -> str:
    """Say in a sentence how the verdict depends on the variant.

    >>> told([Claim("a", "holds", ""), Claim("b", "doesn't hold", "")])
    'The claim holds or holds in general in 1 of 2 cases, and doesn\'t hold in 1.'
    """
    good = sum(claim.verdict in ("holds", "holds in general") for claim in claims)
    bad = sum(claim.verdict == "doesn't hold" for claim in claims)
    rest = len(claims) - good - bad
    open_ = f"; {rest} can't be decided" if rest else ""
    return (
        f"The claim holds or holds in general in {good} of {len(claims)} cases, and doesn't hold "
        f"in {bad}{open_}."
    )


def concluded(claims: Sequence[Claim], rival: str, ours: str) -> str:
    """Say what follows for the verdict on the default variant.

    >>> concluded([Claim("a", "holds", ""), Claim("b", "doesn't hold", "")], "Mondrian", "BUREL")
    "So the verdict on this claim above is one on Shoal's own Mondrian as well as on BUREL."
    >>> concluded([Claim("a", "doesn't hold", "")] * 2, "Mondrian", "BUREL")
    'So the verdict on this claim above depends on none of the variants.'
    """
    if all(claim.verdict == "doesn't hold" for claim in claims) or all(
        claim.verdict in ("holds", "holds in general") for claim in claims
    ):
        return "So the verdict on this claim above depends on none of the variants."
    return f"So the verdict on this claim above is one on Shoal's own {rival} as well as on {ours}."


#: What every section of this kind says at its beginning.
OPENING = (
    "The thesis says that its rival extends Mondrian, but not how: which side is cut first, where "
    "a category is cut, and whether other sides are tried when the first can't be cut. All figures "
    "of this page but this one have Shoal's defaults: the side that *loses* most, at the median "
    "of *code*s, and every side is tried. This figure has other variants: the *widest* side (as "
    "LeFevre et al. describe it), all children of a node of the *hierarchy* at once, and the first "
    "side only (*once*). It is the same data, the same promise and the same judge. The data "
    "are those of the page; the same with salaries cut into classes with the frequencies that the "
    "thesis states (0.2018 % to 4.8402 %, the most frequent is class 12, the least class 49); and "
    "`acs_income_2018`, which has the quasi attributes of the thesis' Table 3.4 (with 2 marital "
    "statuses in place of 6, 5 races in place of 9, 8 work classes in place of 10 and 225 birth "
    "places in place of 83), and no salary: its sensitive attribute is the occupation in the order "
    "of its codes, cut into classes of those frequencies."
)
