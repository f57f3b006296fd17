"""Which groups were kept for reuse at an instant: it follows from what was published."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.attacks.releases import Releases
from shoal.attacks.setting import Setting
from shoal.audit.trace import GROUP

__all__ = ["Kept"]

#: By how much the same loss may differ, summed in another order.
_SLACK = 1e-12


@dataclass(frozen=True, slots=True, repr=False)
class Kept:
    """The groups that were good enough to be kept, as an observer computes them.

    Loss follows from boxes, and the rule from the knobs: `castle` keeps what loses no more than the
    mean of the latest groups, the others what loses less than a threshold. That a group stays for
    longer when it is used again isn't looked at, so fewer are taken for kept than were.

    Parameters
    ----------
    releases
        The releases of all groups that were kept at any time, in order.
    loss
        The loss of every release.
    is_new
        Which releases are of a group that was formed then.
    capacity, age
        How many are kept, and for how long.
    best
        Whether a row joins the one that loses least, instead of any.
    alone
        Whether rows join without company.
    """

    releases: NDArray[np.int64]
    loss: NDArray[np.float64]
    is_new: NDArray[np.bool_]
    capacity: int
    age: float
    best: bool
    alone: bool

    @classmethod
    def of(cls, setting: Setting, releases: Releases) -> Kept:
        """Read the rule from the knobs of a setting, and apply it to its releases."""
        knobs = setting.knobs
        loss = _losses(setting, releases)
        is_new = _formed(setting, releases)
        new = np.flatnonzero(is_new)
        if "recent" in knobs:
            good = loss[new] <= _means(loss[new], int(str(knobs["recent"])))
        else:
            good = loss[new] < float(str(knobs.get("threshold", 1.0)))
        age = knobs.get("age")
        in_rows = (
            age is not None and releases.unit != "seconds" and knobs.get("age_unit") != "rounds"
        )
        return cls(
            releases=new[good],
            loss=loss,
            is_new=is_new,
            capacity=int(str(knobs.get("kept", 0))),
            age=float(str(age)) if in_rows else np.inf,
            best=knobs.get("reuse") == "best",
            alone=knobs.get("joins") == "alone",
        )

    def before(self, releases: Releases, release: int) -> NDArray[np.int64]:
        """Return the kept groups that a row could have joined instead of leaving there."""
        if not self.capacity:
            return self.releases[:0]
        earlier = self.releases[: np.searchsorted(self.releases, release)]
        latest = earlier[releases.left[earlier] < releases.left[release]][-self.capacity :]
        young = releases.left[latest] >= releases.left[release] - self.age
        return np.asarray(latest[young], dtype=np.int64)

    def that_lose_less(self, releases: NDArray[np.int64], release: int) -> NDArray[np.int64]:
        """Return those of some releases that lose less than another one."""
        less = self.loss[releases] < self.loss[release] - _SLACK
        return np.asarray(releases[less], dtype=np.int64)


def _formed(setting: Setting, releases: Releases) -> NDArray[np.bool_]:
    """Return which releases have rows of a new group."""
    found = np.zeros(len(releases), dtype=np.bool_)
    shown = np.flatnonzero(releases.of_row >= 0)
    is_group = setting.outcome[setting.owner[shown]] == GROUP
    found[releases.of_row[shown[is_group]]] = True
    return found


def _losses(setting: Setting, releases: Releases) -> NDArray[np.float64]:
    """Return the loss of each release: that of the trace, or else the mean width of its sides."""
    widths = np.nan_to_num(setting.boxes.width[releases.box], nan=1.0)
    loss = widths.mean(axis=1) if widths.shape[1] else np.zeros(len(releases))
    lines = setting.lines
    if lines is not None:
        shown = np.flatnonzero(releases.of_row >= 0)
        found = lines.loss[setting.evidence.line[shown]]
        known = ~np.isnan(found)
        loss[releases.of_row[shown[known]]] = found[known]
    return loss


def _means(losses: NDArray[np.float64], recent: int) -> NDArray[np.float64]:
    """Return the mean of the latest losses up to each group.

    >>> _means(np.array([1.0, 3.0, 5.0]), 2).round(6).tolist()
    [1.0, 2.0, 4.0]
    """
    sums = np.concatenate([[0.0], np.cumsum(losses)])
    end = np.arange(1, len(losses) + 1)
    begin = np.maximum(0, end - recent)
    means = (sums[end] - sums[begin]) / (end - begin)
    return np.asarray(means + _SLACK, dtype=np.float64)
