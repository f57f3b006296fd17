"""z-anonymity: at least z subjects exposed every published cell, in its window."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.audit.report import Figure, Verdict, decide
from shoal.audit.z.evidence import ZEvidence
from shoal.audit.z.node_subjects import redecide
from shoal.audit.z.trace import QUARANTINED, SUPPRESSED, CellTrace
from shoal.spec.ladder import n_levels

__all__ = ["check"]

_NAME = "z-anonymity"


@dataclass(frozen=True, slots=True, repr=False)
class _PublishedValues:
    """The published cells of one attribute: level, z in force, and number of subjects.

    ``n_coarser`` are those that the rule publishes at a finer level, ``n_hidden_more`` the hidden
    ones that it publishes.
    """

    name: str
    level: NDArray[np.int64]
    z: NDArray[np.int64]
    n_subjects: NDArray[np.int64]
    n_coarser: int
    n_hidden_more: int

    @property
    def n_broken(self) -> int:
        return int(np.count_nonzero(self.n_subjects < self.z))

    @property
    def flaw(self) -> str:
        return (
            f"in column {self.name} {self.n_broken:,} of {len(self.z):,} published cells had too "
            f"few subjects behind them, the worst {self.n_subjects[self.n_subjects < self.z].min()}"
        )


def check(cells: ZEvidence) -> Verdict:
    """Decide each cell again, from the original, and count the subjects of what was published.

    z is the one in force by the trace, which may not be below the promised one. A cell of a level
    that its attribute doesn't have, or of an invalid value, has no subjects. A cell that is coarser
    than necessary, or hidden without need, breaks nothing; it is reported.
    """
    trace = cells.trace
    flaws = [] if trace is None else _too_small(cells, trace)
    if trace is None or cells.original is None:
        what = "how many subjects exposed a value in a window"
        return decide(_NAME, flaws, kept="", doubt=f"{what} {cells.doubt}")
    found = [_behind(cells, trace, a) for a in range(len(cells.schema.quasi))]
    flaws += [one.flaw for one in found if one.n_broken]
    level, z, n_subjects = (
        np.concatenate([getattr(one, name) for one in found])
        for name in ("level", "z", "n_subjects")
    )
    n_coarser, n_hidden_more = (
        sum(getattr(one, name) for one in found) for name in ("n_coarser", "n_hidden_more")
    )
    figures: dict[str, Figure] = {
        "n_published": len(z),
        "n_broken": int(np.count_nonzero(n_subjects < z)),
        "n_coarser": n_coarser,
        "n_hidden_more": n_hidden_more,
        "smallest": int(n_subjects.min()) if len(z) else None,
        "largest_z": int(z.max()) if len(z) else None,
    }
    for i in range(max(n_levels(attribute.domain) for attribute in cells.schema.quasi)):
        figures[f"n_level_{i}"] = int(np.count_nonzero(level == i))
    by = ""
    if cells.count == "plain":
        by = " (by the plain rule: a parent may stand for one child that is rare)"
        flaws = [flaw + by for flaw in flaws]
    at_least = f"{cells.policy.z}"
    if len(z) and z.max() > cells.policy.z:
        at_least += f" subjects (up to {z.max()} where z was raised)"
    else:
        at_least += " subjects"
    kept = f"at least {at_least} behind each of {len(z):,} published cells{by}"
    if n_coarser or n_hidden_more:
        kept += (
            f"; but {n_coarser:,} of them could have been finer, "
            f"and {n_hidden_more:,} hidden cells could have been published"
        )
    return decide(_NAME, flaws, kept=kept, doubt=cells.doubt, figures=figures)


def _too_small(cells: ZEvidence, trace: CellTrace) -> list[str]:
    n = int(np.count_nonzero((trace.outcome != QUARANTINED) & (trace.z < cells.policy.z)))
    return [f"{n:,} cells were decided with a z below {cells.policy.z}"] if n else []


def _behind(cells: ZEvidence, trace: CellTrace, a: int) -> _PublishedValues:
    """Decide the cells of an attribute again, and count the subjects of the published ones."""
    ladders = cells.ladders[a]
    n_levels = ladders.nodes.shape[1]
    line, is_published = cells.rows.line[:, a], cells.is_published[:, a]
    value = np.where(cells.can_expose, cells.of_rows(ladders.value), -1)
    level = np.where(is_published, trace.level[line], -1)
    z = np.maximum(cells.policy.z, trace.z[line])
    allowed, n_subjects = redecide(
        ladders.nodes,
        ladders.parents,
        value,
        cells.subjects,
        cells.starts,
        z,
        level,
        residual=cells.count == "residual",
    )
    is_hidden = (line >= 0) & (trace.outcome[line] == SUPPRESSED)
    return _PublishedValues(
        cells.schema.quasi[a].name,
        level[is_published],
        z[is_published],
        n_subjects[is_published],
        n_coarser=int(np.count_nonzero((level > allowed) & (level < n_levels))),
        n_hidden_more=int(np.count_nonzero(is_hidden & (allowed < n_levels))),
    )
