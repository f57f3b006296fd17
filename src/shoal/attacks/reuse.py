"""Find who joined an old group."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shoal.attacks.kept import Kept
from shoal.attacks.releases import Releases, StreamAttack, covers, kbound
from shoal.attacks.result import AttackResult
from shoal.attacks.setting import Setting
from shoal.attacks.shares import Share
from shoal.audit.trace import REUSE

__all__ = ["Reuse"]


class Reuse(StreamAttack):
    """Find who joined an old group.

    - **Knows**: at which instant a row joined a group that was published before, without or with
      the values of the people who left then; or the values of everybody who came within a delay,
      and which groups were kept.
    - **Does**: names one of those who left at that instant (in the smallest box that covers the
      victim); or weighs everybody who came in time and whom the box covers: not at all if a kept
      box that loses less covers them too, where rows join the best; by one in n if n kept boxes
      cover them, where rows join any.
    - **Bound**: 1/k, as for any published row. It doesn't hold for rows that leave alone
      (``joins = "alone"``, or where company can't be had).
    - **Baseline**: for the last grade, the same people, all equally likely.
    """

    name: ClassVar[str] = "reuse"

    def run(self, setting: Setting) -> Iterator[AttackResult]:
        """Make the attack with each grade of knowledge."""
        releases = Releases.of(setting)
        within = releases.releases_of(setting)
        among = (within >= 0) & (setting.outcome == REUSE)
        rows = setting.targets(setting.random(self.name), among)
        exact = not setting.is_sample(rows, among)
        if not len(rows):
            yield AttackResult(self.name, "-", notes=("no row joined a group published before",))
            return
        own = within[rows]
        bound, source = kbound(setting)
        together = [releases.together(release) for release in own]
        covering = [
            releases.tightest(each, point)
            for each, point in zip(together, setting.points[rows], strict=True)
        ]
        share = np.count_nonzero(setting.outcome == REUSE) / max(1, setting.is_published.sum())
        for knowledge, found in (
            ("instant of release", together),
            ("instant of release, all quasi values", covering),
        ):
            yield AttackResult(
                self.name,
                knowledge,
                Share(float(releases.chances(own, found).sum()), len(rows), exact),
                bound=bound,
                bound_from=source,
                notes=(f"{100 * share:.1f} % of the published rows joined an old group",),
            )
        chances, even = _by_choice(setting, releases, rows, own)
        yield AttackResult(
            self.name,
            "values of everybody, and which groups were kept",
            Share(float(chances.sum()), len(rows)),
            baseline=float(even.mean()),
            bound=bound,
            bound_from=source,
        )


def _by_choice(
    setting: Setting, releases: Releases, rows: NDArray[np.int64], own: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the weight of the right person, with and without what the choice tells."""
    kept = Kept.of(setting, releases)
    boxes = setting.boxes
    chances, even = np.zeros(len(rows)), np.zeros(len(rows))
    for i, (row, release) in enumerate(zip(rows, own, strict=True)):
        waiting = releases.by_arrival[releases.waiting(release)]
        others = kept.before(releases, release)
        if kept.best:
            others = kept.that_lose_less(others, release)
        n_covering = covers(boxes, releases.box[others], setting.points[waiting]).sum(axis=1)
        weight = np.where(n_covering == 0, 1.0, 0.0) if kept.best else 1 / np.maximum(1, n_covering)
        people, who = np.unique(setting.subjects[waiting], return_inverse=True)
        heaviest = np.zeros(len(people))
        np.maximum.at(heaviest, who.reshape(-1), weight)
        is_right = people == setting.subjects[row]
        even[i] = 1 / max(1, len(people))
        chances[i] = heaviest[is_right].sum() / max(heaviest.sum(), 1e-12)
    return chances, even
