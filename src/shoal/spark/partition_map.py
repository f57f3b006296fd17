"""The partition map: it cuts code space into shards that hold about as many rows each.

Rows that are near each other should be in one shard, so that groups stay tight. The map is the top
of a kd-tree. Each part is cut in two at one value of one attribute: of the cuts that keep shards
about equally full, the one after which two rows of a part lose least together.
(Ranges of the Hilbert curve are more equally full, but lose more: they cut through tree nodes.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from shoal.engine.kernels.arrays import Floats, Ints
from shoal.engine.kernels.boxes import Sides
from shoal.engine.space import Space
from shoal.errors import CheckpointError, ParameterError

__all__ = ["MOST_SHARDS", "Cut", "PartitionMap", "Tree"]

MOST_SHARDS = 10_000
#: How much fuller than the part itself one of its halves may be, for a better cut.
SLACK = 1.1
#: How many pairs of rows the loss of two rows together is estimated from.
N_PAIRS = 16_384
#: How many cuts of an attribute are compared: those nearest to equally full halves.
MOST_CUTS = 64


class Cut(NamedTuple):
    """Rows whose value is at most ``at`` go to ``low``, all others to ``high``.

    Rows without a value go to ``high``.
    """

    side: int
    at: float
    low: Tree
    high: Tree


#: A cut, or the number of a shard.
Tree: TypeAlias = Cut | int


class _Found(NamedTuple):
    """A cut between two values, and how many shards the lower part gets."""

    score: float
    side: int
    at: float
    n_low: int


@dataclass(frozen=True, slots=True, repr=False)
class PartitionMap:
    """A map from codes to shards.

    Under any map every row has one shard: the promise doesn't depend on the map, only how tight
    groups are does.

    Parameters
    ----------
    n_shards
        How many shards there are; some may be unused.
    n_quasi
        How many values a row has.
    root
        The first cut, or the only shard in use.

    >>> from shoal import Delay, KAnonymity, Policy, Quasi, Range, Schema
    >>> schema = Schema("person", [Quasi("age", Range(0, 100)), Quasi("weight", Range(0, 100))])
    >>> space = Space(schema, Policy(KAnonymity(2), delay=Delay(rows=10)))
    >>> sample = np.array([[20.0, 60.0], [70.0, 61.0], [22.0, 62.0], [71.0, 63.0]])
    >>> partition_map = PartitionMap.learn(space, sample, 2)
    >>> partition_map, partition_map.shards(np.array([[30.0, 80.0], [60.0, 40.0], [np.nan, 50.0]]))
    (PartitionMap(2 shards, 2 quasi attributes), array([0, 1, 1]))
    """

    n_shards: int
    n_quasi: int
    root: Tree

    def __repr__(self) -> str:
        return f"PartitionMap({self.n_shards} shards, {self.n_quasi} quasi attributes)"

    @classmethod
    def learn(cls, space: Space, values: Floats, n_shards: int) -> PartitionMap:
        """Cut a space into shards, by a sample of rows.

        The map doesn't depend on the order of the rows. A value that is in more rows than a shard
        should have can't be cut: then shards are unevenly full, and some may be empty.

        Parameters
        ----------
        space
            The sides of boxes and their losses.
        values
            Rows as in `Codes.values`; NaN where a value is missing.
        n_shards
            How many shards are wanted.
        """
        whole = isinstance(n_shards, int | np.integer) and not isinstance(n_shards, bool)
        if not whole or not 1 <= n_shards <= MOST_SHARDS:
            what = f"must be a whole number from 1 to {MOST_SHARDS:,}"
            raise ParameterError("n_shards", what, got=repr(n_shards))
        if space.z:
            raise ParameterError(
                "PartitionMap.learn",
                "cuts a space of boxes, and z-anonymity has none",
                fix="Route each value by the top of its ladder",
            )
        n_quasi = len(space.sides.attributes)
        _check_width(values, n_quasi)
        if n_shards > 1 and len(values) == 0:
            raise ParameterError(
                "PartitionMap.learn", "needs rows to learn where to cut", got="none",
                fix="Wait for the first rows, or pass others that are like them",
            )  # fmt: skip
        # Sorted, so that the map doesn't depend on the order of arrival; then shuffled, so that
        # neighbours are random pairs.
        ordered = values[np.lexsort(values.T)]
        shuffled = ordered[np.random.default_rng(0).permutation(len(ordered))]
        share = len(values) / n_shards
        return cls(int(n_shards), n_quasi, _grow(space.sides, shuffled, 0, int(n_shards), share))

    def shards(self, values: Floats) -> Ints:
        """Return the number of the shard of each row."""
        _check_width(values, self.n_quasi)
        found = np.empty(len(values), np.int64)
        waiting: list[tuple[Tree, Ints]] = [(self.root, np.arange(len(values)))]
        while waiting:
            tree, rows = waiting.pop()
            if isinstance(tree, int):
                found[rows] = tree
                continue
            is_low = values[rows, tree.side] <= tree.at
            waiting += [(tree.low, rows[is_low]), (tree.high, rows[~is_low])]
        return found

    @property
    def sides(self) -> frozenset[int]:
        """The quasi attributes that are cut anywhere."""
        return frozenset(cut.side for cut in _cuts(self.root))

    def state(self) -> dict[str, Any]:
        """Return the map as numbers, lists and a dictionary, for JSON."""
        return {"n_shards": self.n_shards, "n_quasi": self.n_quasi, "root": _list_of(self.root)}

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> PartitionMap:
        """Restore a map from its state."""
        try:
            n_shards, n_quasi = state["n_shards"], state["n_quasi"]
            return cls(n_shards, n_quasi, _tree_of(state["root"], n_shards, n_quasi))
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointError(
                "the partition map is damaged: it isn't a tree of cuts. Restore the former "
                "checkpoint, or start again: docs/checkpoints.md says from where"
            ) from error


def _check_width(values: Floats, n_quasi: int) -> None:
    if values.ndim != 2 or values.shape[1] != n_quasi:
        raise ParameterError(
            "values",
            f"must be rows of {n_quasi} quasi attributes",
            got=f"an array of shape {values.shape}",
        )


# -- trees as lists --------------------------------------------------------------------------------


def _cuts(tree: Tree) -> Iterator[Cut]:
    if isinstance(tree, Cut):
        yield tree
        yield from _cuts(tree.low)
        yield from _cuts(tree.high)


def _list_of(tree: Tree) -> list[Any] | int:
    if isinstance(tree, int):
        return tree
    return [tree.side, tree.at, _list_of(tree.low), _list_of(tree.high)]


def _tree_of(listed: Any, n_shards: int, n_quasi: int) -> Tree:
    if isinstance(listed, int):
        if not 0 <= listed < n_shards:
            raise ValueError("there is no such shard")
        return listed
    side, at, low, high = listed
    if not 0 <= side < n_quasi or not np.isfinite(at):
        raise ValueError("there is no such cut")
    return Cut(
        int(side), float(at), _tree_of(low, n_shards, n_quasi), _tree_of(high, n_shards, n_quasi)
    )


# -- learning --------------------------------------------------------------------------------------


def _grow(sides: Sides, rows: Floats, first: int, n_shards: int, share: float) -> Tree:
    """Cut rows into ``n_shards`` shards from ``first`` on, or fewer if they are too alike."""
    cut = _best_cut(sides, rows, n_shards, share) if n_shards > 1 else None
    if cut is None:
        return first
    is_low = rows[:, cut.side] <= cut.at
    return Cut(
        cut.side,
        cut.at,
        _grow(sides, rows[is_low], first, cut.n_low, share),
        _grow(sides, rows[~is_low], first + cut.n_low, n_shards - cut.n_low, share),
    )


def _best_cut(sides: Sides, rows: Floats, n_shards: int, share: float) -> _Found | None:
    """Of the cuts that keep shards about equally full, return the one with the least loss."""
    cuts_of = [_Cuts.of(rows[:, d], n_shards, share) for d in range(rows.shape[1])]
    least = min((float(cuts.fullness.min(initial=np.inf)) for cuts in cuts_of), default=np.inf)
    if not np.isfinite(least):
        return None
    own = len(rows) / (n_shards * share)
    allowed = max(least, SLACK * max(1.0, own))
    one, other = _pairs(len(rows))
    losses = _losses_together(sides, rows[one], rows[other])
    best: _Found | None = None
    for d, cuts in enumerate(cuts_of):
        tried = np.flatnonzero(cuts.fullness <= allowed)
        tried = tried[np.argsort(cuts.fullness[tried], kind="stable")[:MOST_CUTS]]
        if not len(tried):
            continue
        scores = _scores(cuts, tried, rows[one, d], rows[other, d], losses)
        winner = int(np.argmin(scores))
        if best is None or scores[winner] < best.score:
            c = tried[winner]
            at = _between(sides, d, cuts.lows[c], cuts.highs[c])
            best = _Found(float(scores[winner]), d, at, int(cuts.n_low[c]))
    return best


class _Cuts(NamedTuple):
    """All cuts of one attribute.

    Of each the values on both sides (NaN: only missing ones are above), the share of rows below,
    how many shards these get, and how full the fuller side is.
    """

    lows: Floats
    highs: Floats
    below: Floats
    n_low: Ints
    fullness: Floats

    @classmethod
    def of(cls, column: Floats, n_shards: int, share: float) -> _Cuts:
        values, counts = np.unique(column[~np.isnan(column)], return_counts=True)
        n_below = np.cumsum(counts)
        highs = np.append(values[1:], np.nan)
        if len(values) and n_below[-1] == len(column):
            values, highs, n_below = values[:-1], highs[:-1], n_below[:-1]
        n_above = len(column) - n_below
        # The lower part gets about its share of the shards, rounded down or up.
        fewer = np.clip(np.floor(n_below / share), 1, n_shards - 1).astype(np.int64)
        more = np.clip(fewer + 1, 1, n_shards - 1)

        def fullness(n_low: Ints) -> Floats:
            return np.maximum(n_below / n_low, n_above / (n_shards - n_low)) / share

        n_low = np.where(fullness(more) < fullness(fewer), more, fewer)
        return cls(values, highs, n_below / max(1, len(column)), n_low, fullness(n_low))


def _pairs(n: int) -> tuple[Ints, Ints]:
    """Return pairs of different rows, each row about equally often."""
    distances = np.arange(1, min(n, -(-N_PAIRS // n) + 1))
    one = np.tile(np.arange(n), len(distances))
    return one, (one + np.repeat(distances, n)) % n


def _scores(cuts: _Cuts, tried: Ints, one: Floats, other: Floats, losses: Floats) -> Floats:
    """The mean loss of two rows of the same side, for each cut."""
    at = cuts.lows[tried, np.newaxis]
    one_low, other_low = one <= at, other <= at
    low, high = one_low & other_low, ~(one_low | other_low)
    mean_low = low @ losses / np.maximum(1, low.sum(axis=1))
    mean_high = high @ losses / np.maximum(1, high.sum(axis=1))
    below = cuts.below[tried]
    scores: Floats = below * mean_low + (1.0 - below) * mean_high
    return scores


def _losses_together(sides: Sides, one: Floats, other: Floats) -> Floats:
    """The loss of two rows in one box. A side that only one of them has is lost entirely."""
    losses = np.zeros(len(one))
    for d, side in enumerate(sides.attributes):
        a, b = one[:, d], other[:, d]
        known = ~np.isnan(a) & ~np.isnan(b)
        if side["first_leaf"] < 0:
            losses[known] += side["unit"] * np.abs(a[known] - b[known])
        else:
            nodes = _covers(sides, d, a[known], b[known])
            losses[known] += sides.nodes["loss"][nodes]
        losses[np.isnan(a) != np.isnan(b)] += side["weight"]
    return losses


def _covers(sides: Sides, d: int, one: Floats, other: Floats) -> Ints:
    """The lowest node above two leaves, for each pair."""
    nodes: Ints = sides.leaf_node[sides.attributes["first_leaf"][d] + one.astype(np.int64)].copy()
    lows, highs, parents = (sides.nodes[name] for name in ("lo", "hi", "parent"))
    while (outside := (highs[nodes] < other) | (lows[nodes] > other)).any():
        nodes[outside] = parents[nodes[outside]]
    return nodes


def _between(sides: Sides, d: int, low: float, high: float) -> float:
    """Return where to cut between two neighbouring values of a sample, without revealing either.

    Categories are cut between two children of the lowest node above both, since a cut through a
    child would separate rows that share a better label.
    """
    side = sides.attributes[d]
    if np.isnan(high):
        return float(side["highest"])
    if side["first_leaf"] < 0:
        middle = low / 2.0 + high / 2.0
        return float(middle if low <= middle < high else low)
    node = int(sides.leaf_node[side["first_leaf"] + int(low)])
    while sides.nodes["hi"][sides.nodes["parent"][node]] < high:
        node = int(sides.nodes["parent"][node])
    return float(sides.nodes["hi"][node])
