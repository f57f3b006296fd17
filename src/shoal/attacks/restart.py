"""Put two releases of one input together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

import numpy as np

from shoal.attacks.releases import Releases, StreamAttack, common_value
from shoal.attacks.result import AttackResult
from shoal.attacks.setting import Setting
from shoal.attacks.shares import Share

__all__ = ["Restart"]


class Restart(StreamAttack):
    """Put two releases of one input together, as if a job had been started over.

    - **Knows**: two outputs of one job over the same rows under different seeds, which row of the
      one is which of the other (by a kept column, say), and values and arrivals of everybody; or
      in which group of each the victim is.
    - **Does**: names one of the people who fit both boxes in their time; or names the sensitive
      value that both groups have, the likeliest by the product of its shares. The second output is
      made for this, in memory.
    - **Bound**: none: a promise is about one release. Whoever publishes a row twice gives away that
      it lies where both boxes overlap.
    - **Baseline**: the same with the first release alone.
    """

    name: ClassVar[str] = "restart"

    def misfit(self, setting: Setting) -> str | None:
        """Return why there can't be a second release, or why the attack doesn't fit."""
        delay = setting.policy.delay
        if setting.rerun is None:
            return "the job can't be run again: there is none"
        if delay is not None and delay.by_wall(setting.schema):
            return "a delay by the wall clock can't be run again"
        return super().misfit(setting)

    def run(self, setting: Setting) -> Iterator[AttackResult]:
        """Run the job again, and intersect."""
        assert setting.rerun is not None
        random = setting.random(self.name)
        again = setting.rerun(setting.original, int(random.integers(2**31)))
        other = replace(setting, published=again.published, trace=again.trace, original_rows=None)
        first, second = Releases.of(setting), Releases.of(other)
        at = (first.releases_of(setting), second.releases_of(other))
        rows = setting.targets(random, (at[0] >= 0) & (at[1] >= 0))
        both, alone = np.zeros(len(rows)), np.zeros(len(rows))
        for i, row in enumerate(rows.tolist()):
            people = first.fitting(at[0][row])
            left = np.intersect1d(people, second.fitting(at[1][row]), assume_unique=True)
            alone[i], both[i] = 1 / max(1, len(people)), 1 / max(1, len(left))
        yield AttackResult(
            self.name,
            "two releases under different seeds",
            Share(float(both.sum()), len(rows)),
            baseline=float(alone.mean()) if len(rows) else None,
            notes=(f"{int((both == 1).sum()):,} of {len(rows):,} people alone fit both boxes",),
        )
        for here, there in zip(setting.secrets, other.secrets, strict=True):
            # The numbers of values are those of each output; the originals are the same.
            number = np.full(int(max(there.original.max(), there.published.max())) + 1, -1)
            number[there.original] = here.original
            before, after = first.values(here.published), second.values(number[there.published])
            found = [
                (common_value([before[a]], value), common_value([before[a], after[b]], value))
                for a, b, value in zip(at[0][rows], at[1][rows], here.original[rows], strict=True)
            ]
            yield AttackResult(
                self.name,
                f"two releases under different seeds; guesses {here.name}",
                Share(float(sum(each[1] for each in found)), len(found)),
                baseline=float(np.mean([each[0] for each in found])) if found else None,
            )
