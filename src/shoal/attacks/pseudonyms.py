"""Link the pseudonyms of a person across their change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shoal.attacks.cells import CellAttack, cells_of
from shoal.attacks.result import AttackResult
from shoal.attacks.setting import Setting
from shoal.attacks.shares import Share
from shoal.audit.columns import column, distinct_codes, mask
from shoal.audit.z.evidence import ZEvidence

__all__ = ["Pseudonyms"]


class Pseudonyms(CellAttack):
    """Link the pseudonyms of a person across their change.

    - **Knows**: the output with its pseudonyms, and when they change; that the victim is published
      in two periods that follow each other.
    - **Does**: compares what was published under the victim's pseudonym with what was published
      under each of the next period: values that both have count, rare ones more. Takes the most
      alike for the victim.
    - **Bound**: none. z is about single values; a set of them may be one person's alone.
    - **Baseline**: one of all pseudonyms of the next period.
    """

    name: ClassVar[str] = "pseudonyms"

    def misfit(self, setting: Setting) -> str | None:
        """Return that there are no pseudonyms, or why the attack doesn't fit."""
        if (reason := super().misfit(setting)) is not None:
            return reason
        shown = setting.pseudonym and setting.rotate is not None
        return None if shown else "no pseudonyms are published"

    def run(self, setting: Setting) -> Iterator[AttackResult]:
        """Link pseudonyms of each period to the next."""
        profiles = _Profiles.of(setting, cells_of(setting))
        random = setting.random(self.name)
        pairs = profiles.that_follow(random)
        if setting.among is not None:
            allowed = np.unique(cells_of(setting).subject_of_input[setting.among])
            pairs = pairs[np.isin(profiles.subject[pairs[:, 0]], allowed)]
        pairs = pairs[: setting.n_targets]
        if not len(pairs):
            yield AttackResult(
                self.name, "-", notes=("nobody is published in two periods that follow",)
            )
            return
        chances, even = np.zeros(len(pairs)), np.zeros(len(pairs))
        for i, (here, there) in enumerate(pairs):
            others = np.flatnonzero(profiles.period == profiles.period[there])
            alike = profiles.likeness(here)[others]
            best = others[alike >= alike.max() - 1e-12]
            even[i] = 1 / len(others)
            chances[i] = 1 / len(best) if np.any(best == there) else 0.0
        yield AttackResult(
            self.name,
            "what is published under each pseudonym",
            Share(float(chances.sum()), len(pairs)),
            baseline=float(even.mean()),
        )


@dataclass(frozen=True, slots=True, repr=False)
class _Profiles:
    """What is published under each pseudonym: values, with weights.

    ``name``, ``value`` and ``weight`` are pairs of a pseudonym and a value; sorted by pseudonym.
    ``by_value`` sorts them by value instead, ``ends`` is where each value ends there.
    """

    subject: NDArray[np.int64]
    period: NDArray[np.int64]
    name: NDArray[np.int64]
    value: NDArray[np.int64]
    weight: NDArray[np.float64]
    by_value: NDArray[np.int64]
    ends: NDArray[np.int64]

    @classmethod
    def of(cls, setting: Setting, cells: ZEvidence) -> _Profiles:
        rows = np.flatnonzero((cells.seq >= 0) & cells.is_published.any(axis=1))
        seq = cells.seq[rows]
        names, first, name = np.unique(
            distinct_codes(column(setting.published, "pseudonym"))[seq],
            return_index=True,
            return_inverse=True,
        )
        name = name.reshape(-1)
        pairs, offset = [], 0
        for title in (*(each.name for each in setting.schema.quasi), *setting.schema.payload):
            array = column(setting.published, title)
            if array is None:
                continue
            codes, there = distinct_codes(array)[seq], ~mask(array.is_null())[seq]
            pairs.append(np.stack([name[there], codes[there] + offset]))
            offset += int(codes.max(initial=-1)) + 1
        found, counts = np.unique(np.concatenate(pairs, axis=1), axis=1, return_counts=True)
        n_names = np.bincount(found[1], minlength=offset)
        rare = np.log(1 + len(names) / np.maximum(1, n_names))
        weight = np.log1p(counts) * rare[found[1]]
        length = np.sqrt(np.bincount(found[0], weight**2, minlength=len(names)))
        return cls(
            subject=cells.subjects[rows[first]],
            period=_periods(cells, rows[first]),
            name=found[0],
            value=found[1],
            weight=weight / np.maximum(length[found[0]], 1e-12),
            by_value=np.argsort(found[1], kind="stable"),
            ends=np.cumsum(n_names),
        )

    def that_follow(self, random: np.random.Generator) -> NDArray[np.int64]:
        """Return pairs of pseudonyms of one person in periods that follow, one for each person."""
        _, period = np.unique(self.period, return_inverse=True)
        order = np.lexsort((period, self.subject))
        here, there = order[:-1], order[1:]
        follows = (self.subject[here] == self.subject[there]) & (
            period.reshape(-1)[there] == period.reshape(-1)[here] + 1
        )
        pairs = random.permutation(np.stack([here[follows], there[follows]], axis=1))
        _, first = np.unique(self.subject[pairs[:, 0]], return_index=True)
        return np.asarray(pairs[np.sort(first)], dtype=np.int64)

    def likeness(self, name: int) -> NDArray[np.float64]:
        """Return how alike all pseudonyms are to one: the cosine of their weights."""
        begin, end = np.searchsorted(self.name, [name, name + 1])
        alike = np.zeros(len(self.subject))
        for value, weight in zip(self.value[begin:end], self.weight[begin:end], strict=True):
            low = self.ends[value - 1] if value else 0
            pairs = self.by_value[low : self.ends[value]]
            alike[self.name[pairs]] += weight * self.weight[pairs]
        return alike


def _periods(cells: ZEvidence, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the period of decided rows: all pseudonyms change at its end."""
    assert cells.trace is not None
    assert cells.rotate is not None
    if cells.window.seconds is None:
        clock = cells.trace.arrived[cells.rows.first[rows]].astype(np.float64)
    else:
        clock = cells.clock[rows]
    return np.floor(clock / cells.rotate).astype(np.int64)
