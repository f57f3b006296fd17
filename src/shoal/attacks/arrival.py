"""Find a person's row by when they came."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from shoal.attacks.releases import Releases, StreamAttack, kbound
from shoal.attacks.result import AttackResult
from shoal.attacks.setting import Setting
from shoal.attacks.shares import Share

__all__ = ["Arrival"]

#: How exactly the arrival is known, as shares of the delay.
SHARES = (0.0, 0.1, 1.0)


class Arrival(StreamAttack):
    """Find a person's row by when they came.

    - **Knows**: when the victim came, exactly or to within a tenth of the delay or a delay; without
      or with all of their quasi values.
    - **Does**: looks at what left from then on until the delay was over; with values, at the
      smallest boxes among it that cover them. Names one of the people in there at random.
    - **Bound**: 1/k. Whatever leaves, leaves in a box of at least k people: true without reuse. A
      row that joins an old group leaves without them.
    - **Baseline**: one of all people who were published.
    """

    name: ClassVar[str] = "arrival"

    def run(self, setting: Setting) -> Iterator[AttackResult]:
        """Make the attack with each grade of knowledge."""
        releases = Releases.of(setting)
        within = releases.releases_of(setting)
        rows = setting.targets(setting.random(self.name), within >= 0)
        exact = not setting.is_sample(rows, within >= 0)
        n_people = len(np.unique(releases.subjects))
        bound, source = kbound(setting)
        held = releases.longest
        if not np.isfinite(held):
            held = float(np.nanmax(releases.left, initial=0.0))
        for share in SHARES:
            blur = share * held
            if releases.unit == "rows":
                blur = np.ceil(blur)
            seen = [
                releases.between(came - blur, came + blur + releases.longest)
                for came in releases.came[rows]
            ]
            when = f"arrival ± {blur:,.6g} {releases.unit}" if share else "arrival"
            covering = [
                releases.tightest(each, point)
                for each, point in zip(seen, setting.points[rows], strict=True)
            ]
            for knowledge, found in ((when, seen), (f"{when}, all quasi values", covering)):
                chances = releases.chances(within[rows], found)
                yield AttackResult(
                    self.name,
                    knowledge,
                    Share(float(chances.sum()), len(rows), exact),
                    baseline=1 / n_people if n_people else None,
                    bound=bound,
                    bound_from=source,
                )
