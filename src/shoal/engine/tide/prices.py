"""What it costs to have a row in a group at all, learned from the groups that were published.

Groups partition rows. The price of a row approximates its dual: a row that is far from all others
makes a whole group wide, whichever that is, and is charged for it. So a box grows by a row with a
high price earlier: the row costs as much later. A price is the sum of the prices of its features:
its leaf and the parent of that, or its bin of 64 and of 8, in each attribute.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from shoal.engine.jit import kernel
from shoal.engine.kernels.arrays import Ints, Records
from shoal.engine.tide.grid import SCALE, Grid, GridRows, ends_of

__all__ = ["Prices", "learn", "no_prices", "price_of"]

#: A number has this many fine bins, and this many coarse ones.
FINE, COARSE = 64, 8
#: Prices change by 1 / RATE of the error, in relation to how much they changed so far.
RATE = 100
#: Before anything is known, a group loses this much.
GUESS = 3 * SCALE // 10
#: The squares of changes are in units of 2**-32, and are forgotten by 2**-DECAY at a time.
UNIT, DECAY = 10, 12

#: The price of a feature, and the sum of the squares of its changes.
FEATURE = np.dtype([("price", "i8"), ("power", "i8")])
#: The price of every row, and the mean loss of the latest groups.
MEANS = np.dtype([("base", "i8"), ("loss", "i8")])


class Prices(NamedTuple):
    """The prices of features: those of all nodes, then for each attribute its bins and one more."""

    features: Records
    means: Records


def no_prices(grid: Grid) -> Prices:
    """Return the prices before any group."""
    n_features = len(grid.nodes) + (FINE + COARSE + 1) * len(grid.attributes)
    features, means = np.zeros(n_features, FEATURE), np.zeros(1, MEANS)
    features["power"] = 429_497
    means["base"] = means["loss"] = GUESS
    return Prices(features, means)


@kernel
def _features(grid: Grid, rows: GridRows, i: int, found: Ints) -> None:
    """Write the features of a row, two for each attribute."""
    own = len(grid.nodes)
    for a in range(len(rows.lo)):
        first_leaf = grid.attributes["first_leaf"][a]
        lo, hi = ends_of(rows, a, i)
        fine = coarse = own + FINE + COARSE
        if lo <= hi and first_leaf < 0:
            span = grid.attributes["span"][a] + 1
            fine = own + min(FINE - 1, lo * FINE // span)
            coarse = own + FINE + min(COARSE - 1, lo * COARSE // span)
        elif lo == hi:
            fine = grid.leaf_node[first_leaf + lo]
            coarse = grid.nodes["parent"][fine]
        found[2 * a], found[2 * a + 1] = fine, coarse
        own += FINE + COARSE + 1


@kernel
def price_of(grid: Grid, prices: Prices, rows: GridRows, i: int) -> int:
    """Return the price of a row."""
    found = np.empty(2 * len(rows.lo), np.int64)
    _features(grid, rows, i, found)
    price = prices.means["base"][0]
    for feature in found:
        price += prices.features["price"][feature]
    return price


@kernel
def learn(grid: Grid, prices: Prices, rows: GridRows, members: Ints, loss: int) -> None:
    """Move the prices of the rows of a group, in the mean, towards what the group lost."""
    n, width = len(members), 2 * len(rows.lo)
    found = np.empty((n, width), np.int64)
    total = n * prices.means["base"][0]
    for j in range(n):
        _features(grid, rows, members[j], found[j])
        for f in found[j]:
            total += prices.features["price"][f]
    error = loss - total // n
    prices.means["base"][0] += error // (10 * RATE)
    prices.means["loss"][0] += (loss - prices.means["loss"][0]) // 50
    for c in range(width):
        for j in range(n):
            feature, count = found[j, c], 0
            if feature < 0:
                continue
            for i in range(j, n):
                if found[i, c] == feature:
                    count += 1
                    found[i, c] = -1
            _step(prices, feature, error * count // n)


@kernel
def _step(prices: Prices, feature: int, change: int) -> None:
    """Change the price of a feature (AdaGrad): less, the more it changed so far."""
    features = prices.features
    power, small = features["power"][feature], change >> UNIT
    power += small * small - (power >> DECAY)
    features["power"][feature] = power
    # The square root of a whole number below 2**53 is the same everywhere.
    root = max(1, int(math.sqrt(power)))
    features["price"][feature] += (change << (26 - UNIT)) // root // RATE
