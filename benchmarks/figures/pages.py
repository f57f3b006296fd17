"""The pages that figures are written to: their heads and their sections."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.figures import (
    fig_5_5,
    fig_5_6,
    fig_5_7,
    fig_5_8,
    fig_5_9,
    fig_5_10,
    fig_5_11,
    fig_5_12,
    shards,
)
from benchmarks.figures.burel import page as burel
from benchmarks.figures.castle_audit import audited, audited_text
from benchmarks.figures.fast import kept, reuse, rounds, sweeps, window
from benchmarks.figures.fast import speed as fast_speed
from benchmarks.figures.fast.settings import FastSizes
from benchmarks.figures.idea import added, loss, match, threshold
from benchmarks.figures.idea import speed as idea_speed
from benchmarks.figures.idea.data import INFORMS, TREES
from benchmarks.figures.idea.settings import IdeaSizes
from benchmarks.figures.model import Figure
from benchmarks.figures.sabre import basic, order, utility
from benchmarks.figures.sabre import mondrians as sabre_mondrians
from benchmarks.figures.sabre.heads import SABRE_HEAD
from benchmarks.figures.sabre.settings import SabreSizes
from benchmarks.figures.salaries import NEEDS as SALARIES
from benchmarks.figures.sizes import Sizes
from benchmarks.figures.sliding import mondrians as sliding_mondrians
from benchmarks.figures.sliding import sweeps as sliding_sweeps
from benchmarks.figures.sliding.heads import SLIDING_HEAD
from benchmarks.figures.sliding.settings import SlidingSizes
from benchmarks.figures.streams import ADULT
from benchmarks.figures.trees import page as trees
from benchmarks.figures.z import page as z
from benchmarks.tide import page as tide

__all__ = ["PAGES", "BrokenError", "Page", "Section"]

#: Makes a figure, or the text of a section; tiny if it is quick.
Section = Callable[[bool], Figure | str]


class BrokenError(Exception):
    """The section was made, and something in it is broken."""

    def __init__(self, what: str, section: str) -> None:
        super().__init__(what)
        self.section = section


@dataclass(frozen=True)
class Page:
    """A page: its head, its sections by name, and the files that all of them need but some."""

    name: str
    head: str
    sections: dict[str, Section]
    needs: tuple[Path, ...]
    free: frozenset[str] = frozenset()

    def lacks(self, section: str) -> list[str]:
        """The files that a section needs and that aren't there."""
        if section in self.free:
            return []
        return [f"../shared/data/{path.name}" for path in self.needs if not path.exists()]


CASTLE_HEAD = """\
# CASTLE: the figures of the thesis

Made by `python -m benchmarks.figures`; don't edit. The figures are those of J. Cao's thesis (NUS,
2010), §5.7.1 to §5.7.4. Loss is the average information loss of §2.3, from 0 to 1: the mean over
seeds, ± half of the distance between the least and the largest (the bars in the pictures). Whether
a claim of the thesis holds is computed from the numbers: a difference counts if it is larger than
the spreads of both sides together. The thesis' text gives orderings and trends to compare with, and
one number, for Figure 5.9.

The thesis has two tables: UCI-Adult with 30,162 rows, which is here, and SFU-Adult with 45,222. The
latter are the complete rows of Adult's train and test files together (30,162 and 15,060); the test
file isn't among the data here, so that the curves of SFU-Adult are missing.
"""

FAST_HEAD = f"""\
# FAST: the figures of the paper

Made by `python -m benchmarks.figures fast`; don't edit. The figures are those of the paper on FAST,
§5, on UCI Adult: six numbers and four categories, and a tenth of the people twice, at random
places. Numbers are means over {FastSizes().seeds} seeds, which are other places, ± half of the
distance between the least and the largest (the bars in the pictures). Whether a claim holds is
computed from the numbers: a difference counts if it is larger than the spreads of both sides
together. The paper's pictures aren't in its text, which has one number, for Figure 8.

As in the paper, a row joins the covering group that loses least (`reuse = "best"`), which leaks;
what the safe way [costs](#what-safe-reuse-costs) is below. Loss is that of the paper's Equation 7
(`loss = "lm"`), from 0 to 1.

As in the paper, rows are held by count (`capacity`), and kept groups get older by rounds. *By
arrival* is what Shoal does by default: a row is due when as many have arrived after it, so that no
row is ever late. Then the window is emptied by each group that leaves. The two are different
[algorithms](../algorithms/fads.md#by-arrival-and-by-count), and some claims of the paper hold in
one of them only.
"""

IDEA_HEAD = f"""\
# IDEA: the figures of the paper

Made by `python -m benchmarks.figures idea`; don't edit. The figures are those of the paper on IDEA,
§5, with the attributes of its Table 1. Numbers are means over {IdeaSizes().seeds} seeds, which put
the gaps elsewhere, ± half of the distance between the least and the largest (the bars in the
pictures). Whether a claim holds is computed from the numbers: a difference counts if it is larger
than the spreads of both sides together. The paper's pictures aren't in its text, which has one
number, for Figures 7 and 9.

- The paper prints no hierarchies, only their heights and leaves; all trees here have those. They
  are the ARX tool's for Adult's occupation, relationship and sex and for INFORMS' race and years of
  education; this package's for Adult's education and marital status. The ARX trees of work class (3
  levels in place of 5), race (2 in place of 3) and INFORMS' marital status (2 in place of 4) are
  lower than the table says: those three were written for this page.
- INFORMS: rows with a missing value and the 30 with a negative income, which the table's range
  leaves out, were dropped; 30,187 are left. With 7 of its 7 attributes missing a row has nothing to
  lose, so at most 5 are.
- Which numbers of missing attributes and of rows are the default can't be seen in the paper's text;
  here they are those of its example, 3 and 30,000.
- K-VARP and IoT are reconstructed from the few sentences that the paper has on them.

As in the paper, a row joins the covering group that loses least (`reuse = "best"`), which leaks;
what the safe way costs is shown [beside FAST](fast.md). Loss is that of Definition 10
(`loss = "lm"`).

As in the paper (Algorithm 1, line 6), a row is decided when δ rows are held (`capacity`). *By
arrival* is what Shoal does by default: it is decided when δ rows have arrived after it, so that no
row is ever late. The two are different [algorithms](../algorithms/fads.md#by-arrival-and-by-count).
"""


def _castle(make: Callable[[Sizes], Figure]) -> Section:
    return lambda quick: make(Sizes.quick() if quick else Sizes())


def _fast(make: Callable[[FastSizes], Figure]) -> Section:
    return lambda quick: make(FastSizes.quick() if quick else FastSizes())


def _idea(make: Callable[[IdeaSizes], Figure]) -> Section:
    return lambda quick: make(IdeaSizes.quick() if quick else IdeaSizes())


def _sabre(make: Callable[[SabreSizes], Figure | str]) -> Section:
    return lambda quick: make(SabreSizes.quick() if quick else SabreSizes())


def _sliding(make: Callable[[SlidingSizes], Figure]) -> Section:
    return lambda quick: make(SlidingSizes.quick() if quick else SlidingSizes())


def _audit(quick: bool) -> str:
    found = audited(Sizes.quick() if quick else Sizes())
    text = audited_text(found)
    if found.report.exit_code != 0:
        raise BrokenError("the audit of UCI Adult doesn't find every promise kept", text)
    return text


def _reuse(quick: bool) -> str:
    if quick:
        return reuse.reuse_text(FastSizes.quick(), IdeaSizes.quick())
    return reuse.reuse_text(FastSizes(), IdeaSizes())


def _window(quick: bool) -> str:
    if quick:
        return window.window_text(FastSizes.quick(), IdeaSizes.quick())
    return window.window_text(FastSizes(), IdeaSizes())


PAGES = (
    Page(
        "castle",
        CASTLE_HEAD,
        {
            "5.5": _castle(fig_5_5.figure),
            "5.6": _castle(fig_5_6.figure),
            "5.7": _castle(fig_5_7.figure),
            "5.8": _castle(fig_5_8.figure),
            "5.9": _castle(fig_5_9.figure),
            "5.10": _castle(fig_5_10.figure),
            "5.11": _castle(fig_5_11.figure),
            "5.12": _castle(fig_5_12.figure_5_12),
            "5.13": _castle(fig_5_12.figure_5_13),
            "audit": _audit,
        },
        needs=(ADULT,),
        free=frozenset({"5.7"}),
    ),
    Page(
        "fast",
        FAST_HEAD,
        {
            "fast-3": _fast(sweeps.figure_3),
            "fast-4": _fast(kept.figure_4),
            "fast-5": _fast(kept.figure_5),
            "fast-6": _fast(fast_speed.figure_6),
            "fast-7": _fast(sweeps.figure_7),
            "fast-8": _fast(rounds.figure_8),
            "fast-reuse": _reuse,
            "fast-window": _window,
        },
        needs=(ADULT, TREES),
    ),
    Page(
        "idea",
        IDEA_HEAD,
        {
            "idea-4": _idea(loss.figure_4),
            "idea-5": _idea(loss.figure_5),
            "idea-6": _idea(match.figure_6),
            "idea-7": _idea(idea_speed.figure_7),
            "idea-8": _idea(added.figure_8),
            "idea-9": _idea(idea_speed.figure_9),
            "idea-threshold": _idea(threshold.figure_threshold),
        },
        needs=(ADULT, INFORMS, TREES),
    ),
    Page(
        "sabre",
        SABRE_HEAD,
        {
            "3.7": _sabre(basic.figure_3_7),
            "3.8": _sabre(basic.figure_3_8),
            "3.9": _sabre(basic.figure_3_9),
            "3.10": _sabre(basic.figure_3_10),
            "3.11": _sabre(basic.figure_3_11),
            "3.12": _sabre(utility.figure_3_12),
            "3.13": _sabre(utility.figure_3_13),
            "3.14": _sabre(basic.figure_3_14),
            "sabre-order": _sabre(order.order_text),
            "sabre-mondrian": _sabre(sabre_mondrians.figure_mondrians),
        },
        needs=SALARIES,
    ),
    Page(
        "sliding",
        SLIDING_HEAD,
        {name: _sliding(make) for name, make in sliding_sweeps.FIGURES.items()}
        | {"sliding-mondrian": _sliding(sliding_mondrians.figure_mondrians)},
        needs=SALARIES,
    ),
    Page("burel", burel.HEAD, dict(burel.SECTIONS), needs=SALARIES),
    Page("z", z.HEAD, dict(z.SECTIONS), needs=()),
    Page("shards", shards.HEAD, dict(shards.SECTIONS), needs=shards.NEEDS),
    Page("tide", tide.HEAD, dict(tide.SECTIONS), needs=tide.NEEDS),
    Page("trees", trees.HEAD, dict(trees.SECTIONS), needs=trees.NEEDS, free=trees.FREE),
)
