"""Where the loss of SABRE comes from: groups that are filled late take what is left."""

from __future__ import annotations

import numpy as np

from benchmarks.figures.model import Reading
from benchmarks.figures.sabre.settings import ALGORITHMS, LABELS, SabreSizes, run
from benchmarks.figures.sabre.trial import Ran
from benchmarks.markdown import table

__all__ = ["order_text"]

N_PARTS = 10


def order_text(sizes: SabreSizes) -> str:
    """The loss of groups in the order in which they were formed."""
    names = [name for name in ALGORITHMS if name != "t-incognito"]
    columns = [_by_order(run(sizes, sizes.usual, name).runs) for name in names]
    lines = [
        [f"{part + 1} of {N_PARTS}", *(str(column[part]) for column in columns)]
        for part in range(N_PARTS)
    ]
    return (
        "## Loss by the order of groups\n\n"
        f"{sizes.rows:,} rows, {sizes.n_quasi} quasi attributes, k = {sizes.k}, "
        f"t = {sizes.t:g}: the mean loss of groups, the first tenth of them that was formed, the "
        "second, and so on. SABRE fills one group after the other with the nearest rows that are "
        "left in each bucket; what is left for the last groups lies far apart. tMondrian cuts all "
        "rows in halves, and no group is the last.\n\n"
        + table(["groups", *(LABELS[name] for name in names)], lines)
    )


def _by_order(runs: tuple[Ran, ...]) -> list[Reading]:
    """A reading for each tenth of the groups."""
    means = []
    for ran in runs:
        groups = np.concatenate([some.groups for some in ran.decisions])
        losses = np.concatenate([some.loss for some in ran.decisions])[np.argsort(groups)]
        means.append([float(part.mean()) for part in np.array_split(losses, N_PARTS)])
    return [Reading(values) for values in zip(*means, strict=True)]
