"""Intersect the boxes of a person who comes again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shoal.attacks.releases import Releases, StreamAttack, common_value, kbound
from shoal.attacks.result import AttackResult
from shoal.attacks.setting import Secrets, Setting
from shoal.attacks.shares import Share

__all__ = ["Intersection"]

#: How many releases of a person are put together.
TIMES = (1, 2, 4, 8)


class Intersection(StreamAttack):
    """Intersect the boxes of a person who comes again.

    - **Knows**: that some published rows are of one person (by a kept column, a rare value, or a
      habit), and values and arrivals of everybody; or in which groups the victim was, and that
      their sensitive value stays.
    - **Does**: keeps the people who fit the first row's box and time, then of these the ones who
      fit the second's, and so on; names one of those left. Or names the value that all groups of
      the victim have, the likeliest by the product of its shares.
    - **Bound**: 1/k for one box. For several of one person *no promise gives any*: k, l and t are
      about one group each.
    - **Baseline**: one of all people who were published; for values, the best guess from the first
      group alone.
    """

    name: ClassVar[str] = "intersection"

    def run(self, setting: Setting) -> Iterator[AttackResult]:
        """Put 1, 2, 4 and 8 releases together, of people who have as many."""
        releases = Releases.of(setting)
        people, paths = _paths(setting, releases, setting.random(self.name))
        if not people:
            yield AttackResult(self.name, "-", notes=("nobody is in two releases",))
            return
        n_people = len(np.unique(releases.subjects))
        bound, source = kbound(setting)
        chances = [_narrowed(releases, path) for path in paths]
        for times in TIMES:
            found = [chance[times - 1] for chance in chances if len(chance) >= times]
            if not found:
                continue
            n_alone = sum(chance == 1 for chance in found)
            yield AttackResult(
                self.name,
                f"{times} box{'es' if times > 1 else ''} of one person",
                Share(float(sum(found)), len(found)),
                baseline=1 / n_people,
                bound=bound if times == 1 else None,
                bound_from=source if times == 1 else "",
                notes=(f"{n_alone:,} of {len(found):,} people alone fit {times:,} of their boxes",),
            )
        for secrets in setting.secrets:
            yield from self._values(setting, releases, secrets, people, paths)

    def _values(
        self,
        setting: Setting,
        releases: Releases,
        secrets: Secrets,
        people: list[int],
        paths: list[NDArray[np.int64]],
    ) -> Iterator[AttackResult]:
        """Name the value of people who have one only."""
        stays = _values_that_stay(setting, secrets, people)
        values = releases.values(secrets.published)
        for times in TIMES[1:]:
            first, all_of_them = [], []
            for value, path in zip(stays, paths, strict=True):
                if value < 0 or len(path) < times:
                    continue
                groups = [values[release] for release in path[:times].tolist()]
                first.append(common_value(groups[:1], value))
                all_of_them.append(common_value(groups, value))
            if all_of_them:
                yield AttackResult(
                    self.name,
                    f"{times} groups of one person, {secrets.name} stays",
                    Share(float(sum(all_of_them)), len(all_of_them)),
                    baseline=float(np.mean(first)),
                )


def _paths(
    setting: Setting, releases: Releases, random: np.random.Generator
) -> tuple[list[int], list[NDArray[np.int64]]]:
    """Draw people who are in several releases; return them, and the first releases of each."""
    n_releases = np.diff(releases.starts)
    release = np.repeat(np.arange(len(releases)), n_releases)
    order = np.lexsort((release, releases.subjects))
    people, starts, counts = np.unique(
        releases.subjects[order], return_index=True, return_counts=True
    )
    often = np.flatnonzero(counts > 1)
    if setting.among is not None:
        often = often[np.isin(people[often], setting.subjects[setting.among])]
    if len(often) > setting.n_targets:
        often = np.sort(random.choice(often, setting.n_targets, replace=False))
    paths = [release[order[starts[i] : starts[i] + counts[i]]][: TIMES[-1]] for i in often]
    return people[often].tolist(), paths


def _narrowed(releases: Releases, path: NDArray[np.int64]) -> list[float]:
    """Return the chance to name the right person after each release of a path."""
    chances: list[float] = []
    left: NDArray[np.int64] | None = None
    for release in path.tolist():
        if left is None or len(left) > 1:
            fitting = releases.fitting(release)
            left = fitting if left is None else np.intersect1d(left, fitting, assume_unique=True)
        chances.append(1 / max(1, len(left)))
    return chances


def _values_that_stay(setting: Setting, secrets: Secrets, people: list[int]) -> list[int]:
    """Return the value that each person has in all of their published rows; -1: several."""
    rows = np.flatnonzero(np.isin(setting.subjects, people) & setting.is_published)
    pairs = np.unique(np.stack([setting.subjects[rows], secrets.original[rows]]), axis=1)
    who, starts, counts = np.unique(pairs[0], return_index=True, return_counts=True)
    stays = dict(
        zip(who.tolist(), np.where(counts == 1, pairs[1][starts], -1).tolist(), strict=True)
    )
    return [stays.get(person, -1) for person in people]
