"""Link a known person to a published row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shoal.attacks.base import Attack
from shoal.attacks.knowledge import grades
from shoal.attacks.result import AttackResult
from shoal.attacks.setting import Setting
from shoal.attacks.shares import Share

__all__ = ["Linking", "linked"]

SEVERAL = "k counts people, not rows: who has most rows of a box is found more often than 1/k"


class Linking(Attack):
    """Link a known person to a published row.

    - **Knows**: the victim's quasi values: all of them, half of them (which half is drawn for each
      victim), or those of ``--known``; and that the victim has a row in the stream. Where people
      were suppressed, also that the victim wasn't.
    - **Does**: takes the smallest box that covers what is known, and picks one of its rows at
      random. A success is a row of the victim.
    - **Bound**: 1/k where nobody has several rows: a box has rows of at least k people, and nothing
      distinguishes them. k counts people, not rows: somebody with most rows of a box is found more
      often, and whoever has few rows there less often, so that 1/k is mostly, but not always, kept
      on average. People who were suppressed are never found, so those who were published are judged
      by themselves as well.
    - **Baseline**: a row picked at random from all that was published.
    """

    name: ClassVar[str] = "linking"
    needs_trace: ClassVar[bool] = True

    def run(self, setting: Setting) -> Iterator[AttackResult]:
        """Make the attack with each grade of knowledge."""
        random = setting.random(self.name)
        rows = setting.targets(random)
        for knowledge, known in grades(setting, random, len(rows)):
            yield self._result(setting, rows, knowledge, known)
        shown = setting.is_published
        if not np.all(shown[rows]):
            rows = setting.targets(random, shown)
            knowledge = "all quasi values, is published"
            yield self._result(setting, rows, knowledge, setting.knows(len(rows)), shown)

    def _result(
        self,
        setting: Setting,
        rows: NDArray[np.int64],
        knowledge: str,
        known: NDArray[np.bool_],
        among: NDArray[np.bool_] | None = None,
    ) -> AttackResult:
        """Attack people of whom so much is known; ``among``: the rows that they were drawn from."""
        k = setting.policy.k
        # Of somebody with several rows one was drawn, and the bound holds on average only.
        come_again = _come_again(setting, rows)
        exact = not setting.is_sample(rows, among) and not come_again
        success = Share(float(linked(setting, rows, known).sum()), len(rows), exact)
        exceeds = come_again and (success.rate or 0.0) > 1 / k
        return AttackResult(
            self.name,
            knowledge,
            success,
            baseline=_share_of_rows(setting, rows),
            bound=1 / k if k > 1 else None,
            bound_from=f"1/k, k = {k}" if k > 1 else "",
            notes=(SEVERAL,) if exceeds else (),
        )


def linked(
    setting: Setting, rows: NDArray[np.int64], known: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return the chance that a random row of the smallest box is the target's, by target."""
    matches = setting.boxes.tightest(setting.points[rows], known)
    own = setting.rows_of(setting.subjects[rows][matches.target], matches.box)
    n_own = np.bincount(matches.target, own, minlength=len(rows))
    n_all = np.bincount(matches.target, setting.boxes.n_rows[matches.box], minlength=len(rows))
    return np.divide(n_own, n_all, out=np.zeros(len(rows)), where=n_all > 0)


def _come_again(setting: Setting, rows: NDArray[np.int64]) -> bool:
    """Return whether a target has several rows."""
    return bool(np.any(np.bincount(setting.subjects)[setting.subjects[rows]] > 1))


def _share_of_rows(setting: Setting, rows: NDArray[np.int64]) -> float | None:
    """Return the chance that a random published row is the target's, on average."""
    grouped = setting.boxes.of_row >= 0
    if not len(rows) or not grouped.any():
        return None
    owners = setting.owner[grouped & (setting.owner >= 0)]
    n_rows = np.bincount(setting.subjects[owners], minlength=int(setting.subjects.max()) + 1)
    return float(n_rows[setting.subjects[rows]].mean() / np.count_nonzero(grouped))
