"""The state of a run of the R-tree family, and its constants."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.engine.kernels.arrays import Floats, Ints, Records
from shoal.engine.kernels.boxes import Sides
from shoal.engine.kernels.held import Held
from shoal.engine.kernels.predicate import Limits
from shoal.engine.rtree.chain_sampling import Chains
from shoal.engine.rtree.coverage import Coverage
from shoal.engine.rtree.queue import Queue
from shoal.engine.rtree.tree import RTree
from shoal.engine.space import Deadlines

__all__ = ["MARKS", "LeafOdds", "TreeRules", "TreeState"]

#: The number of groups so far, the number of the instant, the current time, when the next leaf is
#: due (infinity: none is, or instants are rows), the mean time between two rows, the time of the
#: latest row, and whether some leaf that may be published has no due time yet (`TreeRules.drawn`).
MARKS = np.dtype(
    [
        ("groups", "i8"),
        ("instants", "i8"),
        ("now", "f8"),
        ("due", "f8"),
        ("gap", "f8"),
        ("before", "f8"),
        ("undrawn", "?"),
    ]
)


class TreeState(NamedTuple):
    """The state of a run. ``until`` is the time until which a row may be held back again."""

    held: Held
    until: Floats
    tree: RTree
    queue: Queue
    coverage: Coverage
    counter: Records
    chains: Chains
    marks: Records
    rng: Ints


class LeafOdds(NamedTuple):
    """The parameters of the probability that a leaf is published.

    ``needed`` is the fewest subjects of a group; ``decay`` is log(1 + alpha); ``samples`` is 0
    where density isn't used; ``clock`` is the quasi attribute that is the time, or -1; ``end`` and
    ``per_second`` are the end of its range and the loss of a second.
    """

    needed: int
    decay: float
    samples: int
    instant: float
    clock: int
    end: float
    per_second: float


class TreeRules(NamedTuple):
    """The constants of a run: space, limits and knobs.

    ``diverse`` says whether a group needs more than enough subjects; ``sampled`` is the number of
    rows over which averages are taken; ``neighbours`` is 0 where no row is held back; ``restless``
    says whether the weights of leaves depend on the current time; ``drawn`` whether the due time of
    a leaf is drawn once, when it becomes mature, and not at every instant. ``each_row`` says that
    each row is of another subject: then ``counter`` stays empty, and rows are counted.
    """

    sides: Sides
    limits: Limits
    deadlines: Deadlines
    odds: LeafOdds
    diverse: bool
    capacity: int
    sampled: int
    neighbours: int
    restless: bool
    drawn: bool
    each_row: bool
