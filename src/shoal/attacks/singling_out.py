"""Single a person out: find a predicate that selects exactly one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shoal.attacks.base import Attack
from shoal.attacks.predicates import isolates, rarest_values
from shoal.attacks.result import AttackResult
from shoal.attacks.setting import Setting
from shoal.attacks.shares import Share

__all__ = ["SinglingOut"]


class SinglingOut(Attack):
    """Find predicates that select exactly one person of the original.

    - **Knows**: the release, and nobody in it.
    - **Does**: takes a box as a predicate; then the box together with the rarest sensitive values
      among its rows. A success is a predicate that exactly one person of the original fulfils. Each
      attempt is another box, and aims at one person.
    - **Bound**: 0 for boxes: each holds k people. With sensitive values k gives none: who is alone
      with a value in a group is singled out by it, without being named.
    - **Baseline**: predicates of as many parts, each drawn by itself from what is published.
    """

    name: ClassVar[str] = "singling-out"
    has_control: ClassVar[bool] = False

    def run(self, setting: Setting) -> Iterator[AttackResult]:
        """Try boxes, and boxes with sensitive values."""
        random = setting.random(self.name)
        boxes, k = setting.boxes, setting.policy.k
        chosen = np.sort(
            random.choice(len(boxes), min(setting.n_targets, len(boxes)), replace=False)
        )
        lo, hi = boxes.lo[chosen], boxes.hi[chosen]
        mixed_lo, mixed_hi, mixed = _mixed(setting, random, len(chosen))
        yield AttackResult(
            self.name,
            "boxes",
            Share(int(isolates(setting, lo, hi).sum()), len(chosen)),
            baseline=_rate(isolates(setting, mixed_lo, mixed_hi)),
            bound=0.0 if k > 1 else None,
            bound_from=f"k people in each box, k = {k}" if k > 1 else "",
        )
        if setting.secrets:
            rows = rarest_values(setting, chosen)
            secrets = _secrets(setting, rows)
            yield AttackResult(
                self.name,
                "boxes and sensitive values",
                Share(int(isolates(setting, lo, hi, secrets).sum()), len(chosen)),
                baseline=_rate(isolates(setting, mixed_lo, mixed_hi, mixed)),
            )


def _mixed(
    setting: Setting, random: np.random.Generator, n: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Draw each side, and each sensitive value, from a published row of its own."""
    boxes = setting.boxes
    rows = np.flatnonzero(boxes.of_row >= 0)
    if not len(rows):
        return boxes.lo[:0], boxes.hi[:0], np.empty((0, len(setting.secrets)), np.int64)
    n_quasi = boxes.lo.shape[1]
    drawn = boxes.of_row[random.choice(rows, (n, n_quasi))]
    sides = np.arange(n_quasi)
    values = [each.published[random.choice(rows, n)] for each in setting.secrets]
    mixed = np.stack(values, axis=1) if values else np.empty((n, 0), np.int64)
    return boxes.lo[drawn, sides], boxes.hi[drawn, sides], mixed


def _secrets(setting: Setting, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.stack([each.published[rows] for each in setting.secrets], axis=1)


def _rate(found: NDArray[np.bool_]) -> float | None:
    return float(found.mean()) if len(found) else None
