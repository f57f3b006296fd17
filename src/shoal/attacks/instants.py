"""Find a person's row by the instants and the order of the output."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shoal.attacks.releases import Releases, StreamAttack, kbound
from shoal.attacks.result import AttackResult
from shoal.attacks.setting import Setting
from shoal.attacks.shares import Share

__all__ = ["Instants"]

#: How far above its mean a count may be by chance, in standard deviations. Guessing an order is the
#: one attack here that succeeds as often as the bound where the promise is kept.
LUCK = 4.0


class Instants(StreamAttack):
    """Find a person's row by the instants and the order of the output.

    - **Knows**: the instant at which the victim's row left, without or with all quasi values; or
      when they came, and that whoever is due leaves; or, of everybody who left with them in one
      box, who came before whom.
    - **Does**: names one of the people who left at that instant (in the smallest boxes that cover
      the victim); or of those who left exactly one delay after the victim came, if anybody did; or
      takes the i-th row of a box for that of the i-th who came.
    - **Bound**: 1/k. Whatever leaves at an instant are whole groups: true without reuse. Rows of a
      group are shuffled: true unless ``order = "arrival"``. For the order it is what a shuffled
      group of k people or more gives, 1/k for whoever left with fewer, and room for luck: four
      standard deviations.
    - **Baseline**: one of all people who were published; for the order, one of the rows of the box.
    """

    name: ClassVar[str] = "instants"

    def run(self, setting: Setting) -> Iterator[AttackResult]:
        """Make the attack with each grade of knowledge."""
        releases = Releases.of(setting)
        within = releases.releases_of(setting)
        random = setting.random(self.name)
        rows = setting.targets(random, within >= 0)
        exact = not setting.is_sample(rows, within >= 0)
        own = within[rows]
        together = [releases.together(release) for release in own]
        covering = [
            releases.tightest(each, point)
            for each, point in zip(together, setting.points[rows], strict=True)
        ]
        due = [releases.at(came + releases.longest) for came in releases.came[rows]]
        n_people = len(np.unique(releases.subjects))
        bound, source = kbound(setting)
        for knowledge, found in (
            ("instant of release", together),
            ("instant of release, all quasi values", covering),
            ("arrival, and who is due leaves", due),
        ):
            chances = releases.chances(own, found)
            n_due = sum(each.stop > each.start for each in due)
            yield AttackResult(
                self.name,
                knowledge,
                Share(float(chances.sum()), len(rows), exact),
                baseline=1 / n_people if n_people else None,
                bound=bound,
                bound_from=source,
                notes=(f"at the deadline of {n_due:,} of {len(rows):,} people somebody left",)
                if found is due
                else (),
            )
        yield self._by_order(setting, releases, rows)

    def _by_order(
        self, setting: Setting, releases: Releases, rows: NDArray[np.int64]
    ) -> AttackResult:
        """Take the i-th row of a release for that of the i-th who came."""
        shown = np.flatnonzero(releases.of_row >= 0)
        release, row = releases.of_row[shown], setting.owner[shown]
        by_output = np.lexsort((shown, release))
        by_arrival = np.lexsort((releases.came[row], release))
        # Both are sorted by release, so places of one are places of the other.
        guessed = np.full(setting.original.num_rows, -1, dtype=np.int64)
        guessed[row[by_arrival]] = row[by_output]
        hits = setting.subjects[guessed[rows]] == setting.subjects[rows]
        size = np.bincount(release, minlength=len(releases))
        own = releases.releases_of(setting)[rows]
        pairs = release * (int(setting.subjects.max(initial=0)) + 1) + setting.subjects[row]
        asked = own * (int(setting.subjects.max(initial=0)) + 1) + setting.subjects[rows]
        pairs.sort()
        n_own = np.searchsorted(pairs, asked, "right") - np.searchsorted(pairs, asked, "left")
        # What a shuffled group gives; above 1/k for whoever has many rows in it.
        shuffled = n_own / size[own]
        bound, source = kbound(setting)
        if bound is not None and len(rows):
            is_whole = np.diff(releases.starts)[own] >= setting.policy.k
            # A group of fewer than k people isn't what was promised: it can't raise the bound.
            least = max(bound, float(np.where(is_whole, shuffled, bound).mean()))
            luck = LUCK * math.sqrt(least * (1 - least) / len(rows))
            bound = min(1.0, least + luck)
            source = f"a shuffled group of k people, k = {setting.policy.k}, and luck"
        return AttackResult(
            self.name,
            "who came before whom in a group",
            Share(int(hits.sum()), len(rows)),
            baseline=float(shuffled.mean()) if len(rows) else None,
            bound=bound,
            bound_from=source,
        )
