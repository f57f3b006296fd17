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
    """The loss of groups by the order in which they were formed, and what it depends on."""
    usual = sizes.usual
    variants = {
        "as it is": usual,
        "salaries shuffled": replace(usual, shuffled=True),
        f"t = {max(sizes.ts):g}": replace(usual, t=max(sizes.ts)),
    }
    found = {
        (words, name): run(sizes, one, name) for words, one in variants.items() for name in SHOWN
    }
    columns = [_by_order(found["as it is", name].runs) for name in SHOWN]
    names = [LABELS[name] for name in SHOWN]
    lines = [
        [f"{part + 1} of {N_PARTS}", *(str(column[part]) for column in columns)]
        for part in range(N_PARTS)
    ]
    means = [[words, *(str(found[words, name].loss) for name in SHOWN)] for words in variants]
    return (
        "## Loss by the order of groups\n\n"
        f"{sizes.rows:,} rows, {sizes.n_quasi} quasi attributes, k = {sizes.k}, t = {sizes.t:g}. "
        "The mean loss of groups: of the first tenth of them that was formed, of the second, and "
        f"so on. {promise_text(found.values())}\n\n"
        + table(["groups", *names], lines)
        + "\n\nSABRE fills one group after the other with the nearest rows that are left in each "
        "bucket, and every group takes about its share of each bucket. Where the salary correlates "
        "with the quasi attributes, the poor people who are left in the end aren't near the rich "
        "people who are left. tMondrian cuts the table in halves as long as t allows: no group is "
        "the last, and its groups may be as far from the table as t says. How much of the loss is "
        "due to that shows if salaries are shuffled among the rows; and if t is so large that it "
        "demands nothing, because no group is much farther than 0.5 from a table of equally "
        "frequent classes:\n\n"
        + table(["mean loss", *names], means)
        + "\n\n"
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
        "if hardly anything of t is left, a group can hardly differ from the shares of the "
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
