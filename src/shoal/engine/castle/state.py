"""The state of a run of CASTLE, and its constants."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.engine.kernels.arrays import Floats, Ints, Records
from shoal.engine.kernels.boxes import Sides
from shoal.engine.kernels.held import Held
from shoal.engine.kernels.kept_groups import KeptGroups
from shoal.engine.kernels.leaf_losses import LeafLosses
from shoal.engine.kernels.predicate import Limits
from shoal.engine.space import Deadlines

__all__ = ["MARKS", "SLOT", "CastleRules", "CastleState", "OpenClusters"]

#: An open cluster: its number by birth (-1: the slot is free), how many subjects it has, and the
#: positions of its first and last row.
SLOT = np.dtype([("birth", "i8"), ("n_subjects", "i8"), ("first", "i8"), ("last", "i8")])
#: How many clusters are open; how many clusters, groups, instants and losses there have been; and
#: the mean of the latest losses.
MARKS = np.dtype(
    [
        ("n_open", "i8"),
        ("births", "i8"),
        ("groups", "i8"),
        ("instants", "i8"),
        ("losses", "i8"),
        ("threshold", "f8"),
    ]
)


class OpenClusters(NamedTuple):
    """The open clusters, each in a slot. Boxes have attributes along the first axis.

    The box of a free slot is empty and its loss is -infinity, so that every row enlarges it
    infinitely, and the search for the least enlargement needn't skip free slots.

    The rows of a cluster are a chain in order of arrival, by the ``following`` of held rows.
    """

    lo: Floats
    hi: Floats
    loss: Floats
    slots: Records


class CastleState(NamedTuple):
    """The whole state of a run of CASTLE."""

    held: Held
    open: OpenClusters
    counter: Records
    kept: KeptGroups
    recent: Floats
    marks: Records
    rng: Ints


class CastleRules(NamedTuple):
    """What doesn't change in a run of CASTLE: space, policy and knobs.

    ``by_leaf`` is what open clusters would lose with a row, and follows from the state. ``best``
    and ``together`` say how kept groups are reused: the one of least loss, and in company.
    ``hopeless`` says that diversity is required, and that rows which aren't diverse all together
    have no diverse part (not so with entropy, recursive diversity and measured criteria).
    ``each_row`` says that each row is of another subject, so that rows are counted alone.
    """

    sides: Sides
    shown: Sides
    limits: Limits
    deadlines: Deadlines
    by_leaf: LeafLosses
    best: bool
    together: bool
    hopeless: bool
    each_row: bool
