"""Learn from a row that no old group has taken."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shoal.attacks.kept import Kept
from shoal.attacks.releases import SLACK, Releases, StreamAttack, covers, kbound
from shoal.attacks.result import AttackResult
from shoal.attacks.setting import Setting
from shoal.attacks.shares import Share
from shoal.audit.trace import GROUP

__all__ = ["Negative"]


class Negative(StreamAttack):
    """Learn from a row that no old group has taken: who of a group was due.

    - **Knows**: the people of a group and their values, and which groups were kept.
    - **Does**: asks whose time was up when the group left, that is, who came exactly one delay
      before. Anybody whom a kept group covers would have joined that one (where rows join the
      best: one that loses less). Names one of the others.
    - **Bound**: 1/k: of k people nothing tells who came when. True without reuse. In company
      (``joins = "together"``) a covered row may have lacked company, so that nobody is excluded.
    - **Baseline**: any one of the group's people.
    """

    name: ClassVar[str] = "negative"

    def run(self, setting: Setting) -> Iterator[AttackResult]:
        """Name the person of each group whose time was up."""
        releases = Releases.of(setting)
        kept = Kept.of(setting, releases)
        within = releases.releases_of(setting)
        left = np.where(within >= 0, releases.left[within] if len(releases) else np.nan, np.nan)
        slack = SLACK if releases.unit == "seconds" else 0.0
        was_due = np.abs(left - releases.came - releases.longest) <= slack
        among = was_due & (setting.outcome == GROUP) & (within >= 0)
        rows = setting.targets(setting.random(self.name), among)
        if not len(rows):
            yield AttackResult(self.name, "-", notes=("no group left when a row was due",))
            return
        members = _rows_by_release(setting, releases)
        chances, even = np.zeros(len(rows)), np.zeros(len(rows))
        n_narrowed = 0
        for i, (row, release) in enumerate(zip(rows, within[rows], strict=True)):
            inside = members[0][members[1][release] : members[1][release + 1]]
            others = kept.before(releases, release)
            if kept.best:
                others = kept.that_lose_less(others, release)
            elif not kept.alone:
                others = others[:0]
            taken = covers(setting.boxes, releases.box[others], setting.points[inside]).any(axis=1)
            people = np.unique(setting.subjects[inside])
            free = np.unique(setting.subjects[inside[~taken]])
            even[i] = 1 / len(people)
            n_narrowed += len(free) < len(people)
            if np.any(inside[~taken] == row):
                chances[i] = 1 / len(free)
        bound, source = kbound(setting)
        yield AttackResult(
            self.name,
            "people of a group; learns who was due",
            Share(float(chances.sum()), len(rows), not setting.is_sample(rows, among)),
            baseline=float(even.mean()),
            bound=bound,
            bound_from=source,
            notes=(f"kept groups excluded people in {n_narrowed:,} of {len(rows):,} groups",),
        )


def _rows_by_release(
    setting: Setting, releases: Releases
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows of the original, release after release, and where each release begins."""
    shown = np.flatnonzero(releases.of_row >= 0)
    order = np.argsort(releases.of_row[shown], kind="stable")
    counts = np.bincount(releases.of_row[shown], minlength=len(releases))
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return setting.owner[shown[order]], starts
