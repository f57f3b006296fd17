"""Where the loss of SABRE comes from: groups that are filled late take what is left."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from benchmarks.figures.model import Reading
from benchmarks.figures.sabre.settings import LABELS, OURS, SabreSizes, axes, run
from benchmarks.figures.sabre.trial import Ran
from benchmarks.figures.sabre.words import promise_text
from benchmarks.markdown import table

__all__ = ["order_text"]

N_PARTS = 10
SHOWN = (*OURS, "t-mondrian")


def order_text(sizes: SabreSizes) -> str:
    """The loss of groups in the order in which they were formed, and how many there are by t."""
    settings = sizes.usual, replace(sizes.usual, t=max(sizes.ts))
    found = {(one.t, name): run(sizes, one, name) for one in settings for name in SHOWN}
    columns = [_by_order(one.runs) for one in found.values()]
    lines = [
        [f"{part + 1} of {N_PARTS}", *(str(column[part]) for column in columns)]
        for part in range(N_PARTS)
    ]
    return (
        "## Loss by the order of groups\n\n"
        f"{sizes.rows:,} rows, {sizes.n_quasi} quasi attributes, k = {sizes.k}. The mean loss of "
        "groups: of the first tenth of them that was formed, of the second, and so on. "
        f"{promise_text(found.values())}\n\n"
        + table(["groups", *(f"{LABELS[name]}, t = {t:g}" for t, name in found)], lines)
        + "\n\nSABRE fills one group after the other with the nearest rows that are left in each "
        "bucket, and every group takes of each bucket about its share. Where the salary goes with "
        "the quasi attributes, the poor that are left in the end don't live beside the rich that "
        "are left. tMondrian cuts the table in halves as long as t allows: no group is the last, "
        "and its groups may be as far from the table as t says. No group is much farther than 0.5 "
        "from a table of equally frequent classes; a larger t asks nothing.\n\n"
        + _numbers_text(sizes)
    )


def _numbers_text(sizes: SabreSizes) -> str:
    """How many groups there are by t."""
    lines = []
    for one in axes(sizes)["t"].settings:
        found = [run(sizes, one, name).runs for name in SHOWN]
        cells = [
            Reading(tuple(float(ran.judged.n_groups) for ran in runs), digits=0) for runs in found
        ]
        lines.append([f"{one.t:g}", *map(str, cells)])
    return (
        "How many groups there are:\n\n"
        + table(["t", *(LABELS[name] for name in SHOWN)], lines)
        + "\n\nA coarser bucket uses up more of t. SABRE makes buckets as coarse as t allows, and "
        "where hardly anything of t is left then, a group can hardly differ from the shares of the "
        "table: it has to be large. So a larger t isn't always better."
    )


def _by_order(runs: tuple[Ran, ...]) -> list[Reading]:
    """A reading for each tenth of the groups."""
    means = []
    for ran in runs:
        groups = np.concatenate([some.groups for some in ran.decisions])
        losses = np.concatenate([some.loss for some in ran.decisions])[np.argsort(groups)]
        means.append([float(part.mean()) for part in np.array_split(losses, N_PARTS)])
    return [Reading(values) for values in zip(*means, strict=True)]
