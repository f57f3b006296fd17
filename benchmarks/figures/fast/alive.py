"""How many kept groups are within their age at any time, told from the decisions of a run."""

from __future__ import annotations

import numpy as np

from benchmarks.figures.trial import Ran
from shoal.engine.base import Outcome
from shoal.engine.kernels.arrays import Ints

__all__ = ["n_alive", "n_to_choose_from"]


def n_alive(ran: Ran, *, age: int, kept: int, at: Ints, renewed: bool) -> Ints:
    """How many groups are kept and within their age after all that is decided at these moments.

    Parameters
    ----------
    ran
        The run; every group that it made was kept. If their age counts rounds, a run in rounds.
    age
        For how many rows or rounds a group can be used again, since it was published or renewed.
    kept
        How many of the latest groups are kept at all.
    at
        Row counts or rounds, as in ``published``.
    renewed
        Whether reuse makes a group young again (as in FAST).
    """
    made = ran.outcomes == Outcome.group
    _, first = np.unique(ran.groups[made], return_index=True)
    made_at = ran.published[made][first]
    # A group is dropped when this many others have been made.
    dropped_at = np.full(len(made_at), np.iinfo(np.int64).max)
    dropped_at[: max(0, len(made_at) - kept)] = made_at[kept:]
    used = made | (renewed & (ran.outcomes == Outcome.reuse))
    group, begin = np.unique(np.stack([ran.groups[used], ran.published[used]]), axis=1)
    end = np.minimum(begin + age + 1, np.maximum(dropped_at[group], begin))
    # It counts once: until it is over, or until it becomes young again.
    again = np.flatnonzero(group[1:] == group[:-1])
    end[again] = np.minimum(end[again], begin[again + 1])
    n_begun = np.searchsorted(np.sort(begin), at, side="right")
    return n_begun - np.searchsorted(np.sort(end), at, side="right")


def n_to_choose_from(ran: Ran, *, age: int, kept: int, renewed: bool) -> Ints:
    """For each row, how many groups it could have joined but for their boxes: those which were
    kept before the instant of its decision, and weren't too old then.
    """
    at = ran.published - 1
    return n_alive(ran, age=age - 1, kept=kept, at=at, renewed=renewed)
