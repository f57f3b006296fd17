"""Small random releases, and the slow way to tell what utility they have."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pyarrow as pa

from shoal.arrow.labels import Labels
from shoal.engine.kernels.arrays import Floats
from shoal.metrics.axes import Axis
from shoal.metrics.compared import Compared
from shoal.metrics.queries import Queries
from shoal.spec.hierarchy import Hierarchy, Range
from shoal.spec.schema import Quasi, Schema, Sensitive

Tables = tuple[pa.Table, pa.Table]

PETS = Hierarchy.from_dict({"*": {"Mammal": ["Cat", "Dog"], "Bird": ["Owl", "Jay", "Hen"]}})
SCHEMA = Schema(
    subject=None,
    quasi=[
        Quasi("age", Range(17, 40, step=1)),
        Quasi("pet", PETS),
        Quasi("height", Range(1.0, 2.0)),
    ],
    sensitive=[Sensitive("salary", Range(0, 9, step=1))],
)


def release(seed: int, n_rows: int = 40, n_groups: int = 8, suppressed: int = 5) -> Tables:
    """Random rows in random groups; the last this many aren't published."""
    random = np.random.default_rng(seed)
    age = random.integers(17, 41, n_rows)
    pet = random.integers(0, len(PETS), n_rows)
    # Some people are exactly as tall as others: a group of them is a point.
    height = random.integers(8, 17, n_rows) / 8
    salary = random.integers(0, 10, n_rows)
    original = pa.table(
        {"age": age, "pet": [PETS.leaves[p] for p in pet], "height": height, "salary": salary}
    )
    values = np.stack([age, pet, height], axis=1).astype(np.float64)
    group = random.integers(0, n_groups, n_rows - suppressed)
    lo, hi = np.empty((n_groups, 3)), np.empty((n_groups, 3))
    for g in range(n_groups):
        members = values[: n_rows - suppressed][group == g]
        lo[g] = members.min(axis=0, initial=np.inf)
        hi[g] = members.max(axis=0, initial=-np.inf)
        if len(members):
            node = PETS.cover(int(lo[g, 1]), int(hi[g, 1]))
            lo[g, 1], hi[g, 1] = PETS.lows[node], PETS.highs[node]
    labels = Labels(SCHEMA)
    columns = dict(zip(labels.schema.names, labels.columns(lo, hi, group), strict=True))
    published = pa.table({**columns, "salary": salary[: n_rows - suppressed]})
    return original, published


def slow_count(compared: Compared, queries: Queries, i: int) -> int:
    """How many rows a query is true of, row by row."""
    low, high = queries.secrets[i]
    return sum(
        low <= secret <= high
        and all(
            queries.first[i, p] <= row[d] <= queries.last[i, p]
            for p, d in enumerate(queries.attributes[i])
        )
        for row, secret in zip(compared.values, compared.secrets, strict=True)
    )


def slow_estimate(compared: Compared, queries: Queries, i: int) -> float:
    """How many rows a query finds, row by row and, of cells, cell by cell."""
    found = 0.0
    low, high = queries.secrets[i]
    for box, secret in zip(compared.boxes, compared.published_secrets, strict=True):
        if not low <= secret <= high:
            continue
        share = 1.0
        for p, d in enumerate(queries.attributes[i]):
            side = compared.lo[box, d], compared.hi[box, d]
            share *= slow_share(compared.axes[d], side, queries.first[i, p], queries.last[i, p])
        found += share
    return found


def slow_share(axis: Axis, side: tuple[float, float], first: float, last: float) -> float:
    lo, hi = side
    if axis.unit:
        cells = range(int(lo), int(hi) + 1)
        return sum(first <= cell <= last for cell in cells) / len(cells)
    if lo == hi:
        return float(first <= lo <= last)
    return max(0.0, min(hi, last) - max(lo, first)) / (hi - lo)


def slow_divergence(compared: Compared, attributes: tuple[int, ...], n_bins: int) -> float:
    """The divergence of one cube, every cell of it looked at; points are put in this many bins."""
    bins = []
    for d in attributes:
        axis = compared.axes[d]
        n = int(axis.length) if axis.unit else n_bins
        bins.append([(i * axis.length / n, (i + 1) * axis.length / n) for i in range(n)])
    secrets = sorted(set(compared.secrets))
    n_suppressed = compared.n_rows - compared.n_published

    def cell(d: int, place: float, edges: list[tuple[float, float]]) -> int:
        place -= compared.axes[d].lowest
        return next(
            (i for i, (low, high) in enumerate(edges) if low <= place < high), len(edges) - 1
        )

    true = Counter(
        (*(cell(d, row[d], edges) for d, edges in zip(attributes, bins, strict=True)), secret)
        for row, secret in zip(compared.values, compared.secrets, strict=True)
    )
    total = 0.0
    for key, n in true.items():
        found = n_suppressed / len(secrets) * math.prod(1 / len(edges) for edges in bins)
        for box, secret in zip(compared.boxes, compared.published_secrets, strict=True):
            if secret != key[-1]:
                continue
            share = 1.0
            for d, edges, i in zip(attributes, bins, key[:-1], strict=True):
                share *= _bin_share(compared.axes[d], compared.lo[box, d], compared.hi[box, d],
                                    edges, i)  # fmt: skip
            found += share
        total += n / compared.n_rows * math.log(n / found)
    return total


def _bin_share(axis: Axis, lo: float, hi: float, edges: list[tuple[float, float]], i: int) -> float:
    lo, hi = lo - axis.lowest, hi - axis.lowest
    touched = [
        j for j, (low, high) in enumerate(edges) if (lo < high or j == len(edges) - 1) and hi >= low
    ]
    return (i in touched) / len(touched)


def slow_closeness(own: list[int], window: list[int], tree: Hierarchy | None) -> float:
    """The Earth Mover's Distance as §3.2 writes it: node by node, or value by value."""
    q, p = Counter(own), Counter(window)

    def extra(leaf: int) -> float:
        return q[leaf] / len(own) - p[leaf] / len(window)

    if tree is None:
        values = sorted(p)
        sums = itertools.accumulate(extra(value) for value in values[:-1])
        return sum(abs(s) for s in sums) / max(1, len(values) - 1)
    children: dict[int, list[int]] = {}
    for node, parent in enumerate(tree.parents[1:], start=1):
        children.setdefault(parent, []).append(node)

    def height(node: int) -> int:
        return max((1 + height(child) for child in children.get(node, [])), default=0)

    def moved(node: int) -> float:
        if node not in children:
            return extra(tree.lows[node])
        return sum(moved(child) for child in children[node])

    total = 0.0
    for node, below in children.items():
        flows = [moved(child) for child in below]
        out, into = sum(f for f in flows if f > 0), -sum(f for f in flows if f < 0)
        total += height(node) / height(0) * min(out, into)
    return total


def places(*rows: tuple[float, ...]) -> Floats:
    return np.array(rows, np.float64)
