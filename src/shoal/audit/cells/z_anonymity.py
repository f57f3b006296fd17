"""z-anonymity: every published cell had z people behind it, in its window and at its moment."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.audit.cells.crowds import crowds_behind
from shoal.audit.cells.evidence import Cells
from shoal.audit.cells.trace import QUARANTINED, CellTrace
from shoal.audit.report import Figure, Verdict, decide
from shoal.ladder import n_rungs

__all__ = ["check"]

_NAME = "z-anonymity"


@dataclass(frozen=True, slots=True, repr=False)
class _Found:
    """The published cells of one attribute: at which level, for which z, and for how many."""

    name: str
    level: NDArray[np.int64]
    z: NDArray[np.int64]
    n_subjects: NDArray[np.int64]

    @property
    def n_broken(self) -> int:
        return int(np.count_nonzero(self.n_subjects < self.z))

    @property
    def flaw(self) -> str:
        return (
            f"in column {self.name} {self.n_broken:,} of {len(self.z):,} published cells had too "
            f"few subjects behind them, the worst {self.n_subjects[self.n_subjects < self.z].min()}"
        )


def check(cells: Cells) -> Verdict:
    """Count again who was behind each published cell, from the original.

    z is the one that the trace says was in force, which may not be below the promised one. A cell
    of a level that its attribute doesn't have, or of a value that isn't one, has nobody behind it.
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
    figures: dict[str, Figure] = {
        "n_published": len(z),
        "n_broken": int(np.count_nonzero(n_subjects < z)),
        "smallest": int(n_subjects.min()) if len(z) else None,
        "largest_z": int(z.max()) if len(z) else None,
    }
    for rung in range(max(n_rungs(attribute.domain) for attribute in cells.schema.quasi)):
        figures[f"n_level_{rung}"] = int(np.count_nonzero(level == rung))
    by = ""
    if cells.count == "plain":
        by = " (by the plain rule: a parent may stand for one child that is rare)"
        flaws = [flaw + by for flaw in flaws]
    at_least = f"{cells.policy.z}"
    if len(z) and z.max() > cells.policy.z:
        at_least += f" subjects (up to {z.max()} where z was raised)"
    else:
        at_least += " subjects"
    return decide(
        _NAME,
        flaws,
        kept=f"at least {at_least} behind each of {len(z):,} published cells{by}",
        doubt=cells.doubt,
        figures=figures,
    )


def _too_small(cells: Cells, trace: CellTrace) -> list[str]:
    n = int(np.count_nonzero((trace.outcome != QUARANTINED) & (trace.z < cells.policy.z)))
    return [f"{n:,} cells were decided with a z below {cells.policy.z}"] if n else []


def _behind(cells: Cells, trace: CellTrace, a: int) -> _Found:
    """Count who is behind the published cells of an attribute."""
    ladders = cells.ladders[a]
    n_values, n_levels = ladders.nodes.shape
    line, is_published = cells.rows.line[:, a], cells.is_published[:, a]
    value = cells.of_rows(ladders.value)
    value[~cells.can_expose] = -1
    level = trace.level[line]
    # What there isn't stands in one more column and one more row.
    nodes = np.pad(ladders.nodes, ((0, 1), (0, 1)), constant_values=-1)
    is_level = (level >= 0) & (level < n_levels)
    node = nodes[value, np.where(is_published & is_level, level, n_levels)]
    z = np.maximum(cells.policy.z, trace.z[line])
    n_subjects = crowds_behind(
        node,
        ladders.parents,
        nodes[value, 0] if n_values else value,
        cells.subjects,
        cells.starts,
        z,
        residual=cells.count == "residual",
    )
    name = cells.schema.quasi[a].name
    return _Found(name, level[is_published], z[is_published], n_subjects[is_published])
