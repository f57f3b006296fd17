"""What a reader of the live output sees: which rows left together, and when.

Rows of one box that leave at one moment look like a group; a reader can't split them further. The
moments are those of the trace: whoever reads the output live has them from a clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from shoal.attacks.base import Attack
from shoal.attacks.boxes import Boxes
from shoal.attacks.setting import Setting

__all__ = ["Releases", "StreamAttack", "common_value", "covers", "kbound"]

#: By how many seconds two times may differ and be one.
SLACK = 1e-6
SHARDED = "several shards have decided, each of which counts rows for itself"


@dataclass(frozen=True, slots=True, repr=False)
class Releases:
    """The releases of an output: rows of one box that left at one moment.

    Parameters
    ----------
    of_row
        The release of each published row; -1 if it was suppressed, or isn't in the trace.
    box, left
        The box of each release and when it left. Releases are sorted by that.
    moment
        A number for the moment of each release; those of one moment stand beside each other.
    lo, hi, size
        The bounds of each release's box, by quasi attribute, and the logarithm of its volume.
    subjects, starts
        The different people of each release, release after release.
    before
        For each of ``subjects`` the place at which the same person was last; -1: nowhere.
    came
        When each row of the original came; NaN if it never did.
    by_arrival, clock, points, people_by_arrival
        The rows of the original that came, in their order; when, with which values (by quasi
        attribute), and whose they are.
    longest
        How long a row may be held; infinite if that isn't promised.
    unit
        Whether all of that is in rows or in seconds.
    """

    of_row: NDArray[np.int64]
    box: NDArray[np.int64]
    left: NDArray[np.float64]
    moment: NDArray[np.int64]
    lo: NDArray[np.float64]
    hi: NDArray[np.float64]
    size: NDArray[np.float64]
    subjects: NDArray[np.int64]
    starts: NDArray[np.int64]
    before: NDArray[np.int64]
    came: NDArray[np.float64]
    by_arrival: NDArray[np.int64]
    clock: NDArray[np.float64]
    points: NDArray[np.float64]
    people_by_arrival: NDArray[np.int64]
    longest: float
    unit: Literal["rows", "seconds"]

    @classmethod
    def of(cls, setting: Setting) -> Releases:
        """Read the releases of a setting, which must have a trace."""
        lines, delay = setting.lines, setting.policy.delay
        assert lines is not None
        in_seconds = delay is not None and delay.rows is None
        came = np.full(setting.original.num_rows, np.nan)
        at = setting.evidence.located(lines.row)
        arrived = lines.arrived_s if in_seconds else _known(lines.arrived)
        came[at[at >= 0]] = arrived[at >= 0]
        line = setting.evidence.line
        grouped = (line >= 0) & (setting.boxes.of_row >= 0) & (setting.owner >= 0)
        rows = np.flatnonzero(grouped)
        left = (lines.published_s if in_seconds else _known(lines.published))[line[rows]]
        keys = np.stack(
            [
                left,
                lines.published[line[rows]],
                lines.window[line[rows]],
                setting.boxes.of_row[rows],
            ]
        )
        # Sorted by the first key, the time; a moment is all keys but the box.
        releases, inverse = np.unique(keys, axis=1, return_inverse=True)
        of_row = np.full(len(line), -1, dtype=np.int64)
        of_row[rows] = inverse.reshape(-1)
        _, moment = np.unique(releases[:3], axis=1, return_inverse=True)
        members = np.unique(np.stack([of_row[rows], setting.subjects[setting.owner[rows]]]), axis=1)
        counts = np.bincount(members[0], minlength=releases.shape[1])
        order = np.argsort(came, kind="stable")
        order = order[: int(np.count_nonzero(~np.isnan(came)))]
        longest = np.inf
        if delay is not None:
            longest = float(delay.seconds or np.inf) if in_seconds else float(delay.rows or np.inf)
        box, boxes = releases[3].astype(np.int64), setting.boxes
        return cls(
            of_row=of_row,
            box=box,
            left=releases[0],
            moment=moment.reshape(-1).astype(np.int64),
            lo=np.ascontiguousarray(boxes.lo[box].T),
            hi=np.ascontiguousarray(boxes.hi[box].T),
            size=np.log(np.nan_to_num(boxes.width[box], nan=1.0)).sum(axis=1),
            subjects=members[1],
            starts=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            before=_last_seen(members[1]),
            came=came,
            by_arrival=order,
            clock=came[order],
            points=np.ascontiguousarray(setting.points[order].T),
            people_by_arrival=setting.subjects[order],
            longest=longest,
            unit="seconds" if in_seconds else "rows",
        )

    def __len__(self) -> int:
        return len(self.box)

    def n_people(self, found: slice | NDArray[np.int64]) -> int:
        """Return how many different people some releases have together."""
        if isinstance(found, slice):
            begin, end = self.starts[found.start], self.starts[found.stop]
            return int(np.count_nonzero(self.before[begin:end] < begin))
        parts = [self.subjects[self.starts[i] : self.starts[i + 1]] for i in found]
        return len(np.unique(np.concatenate(parts))) if parts else 0

    def between(self, earliest: float, latest: float) -> slice:
        """Return the releases that left in this time."""
        begin = int(np.searchsorted(self.left, earliest, "left"))
        return slice(begin, max(begin, int(np.searchsorted(self.left, latest, "right"))))

    def at(self, time: float) -> slice:
        """Return the releases that left at this time."""
        slack = 0.0 if self.unit == "rows" else SLACK
        return self.between(time - slack, time + slack)

    def together(self, release: int) -> slice:
        """Return the releases of the same moment as another one."""
        begin, end = np.searchsorted(self.moment, [self.moment[release], self.moment[release] + 1])
        return slice(int(begin), int(end))

    def tightest(self, among: slice, point: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return those of some releases whose boxes cover a point and are smallest."""
        found = np.arange(among.start, among.stop)
        for d, value in enumerate(point):
            if not np.isnan(value):
                # The first attribute is asked of a slice, which needs no copy.
                at = among if len(found) == among.stop - among.start else found
                found = found[(self.lo[d, at] <= value) & (value <= self.hi[d, at])]
        size = self.size[found]
        return np.asarray(found[size <= size.min(initial=np.inf) + 1e-9], dtype=np.int64)

    def waiting(self, release: int) -> NDArray[np.int64]:
        """Return who may have left then, as places in ``by_arrival``.

        They came, they weren't late, and the box covers them.
        """
        left = self.left[release]
        begin = int(np.searchsorted(self.clock, left - self.longest, "left"))
        end = int(np.searchsorted(self.clock, left, "right"))
        found = np.arange(begin, end)
        for d in range(len(self.points)):
            value = (
                self.points[d, begin:end] if len(found) == end - begin else self.points[d, found]
            )
            inside = (self.lo[d, release] <= value) & (value <= self.hi[d, release])
            found = found[inside | np.isnan(value)]
        return found

    def fitting(self, release: int) -> NDArray[np.int64]:
        """Return the people who may have left then.

        Whoever knows the values of everybody, and when they came, finds these.
        """
        return np.unique(self.people_by_arrival[self.waiting(release)])

    def values(self, published: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Return the values of each release, given those of all published rows."""
        shown = np.flatnonzero(self.of_row >= 0)
        order = shown[np.argsort(self.of_row[shown], kind="stable")]
        ends = np.cumsum(np.bincount(self.of_row[shown], minlength=len(self)))
        return np.split(published[order], ends[:-1])

    def chances(
        self, target: NDArray[np.int64], found: Sequence[slice | NDArray[np.int64]]
    ) -> NDArray[np.float64]:
        """Return the chance to name the right person among those of some releases.

        ``target`` is the release that each target is really in, ``found`` those that the attacker
        takes for possible. Where the right one isn't among them, the chance is 0.
        """
        chances = np.zeros(len(target))
        for i, releases in enumerate(found):
            if isinstance(releases, slice):
                is_in = releases.start <= target[i] < releases.stop
            else:
                is_in = bool(np.any(releases == target[i]))
            if is_in:
                chances[i] = 1 / self.n_people(releases)
        return chances

    def releases_of(self, setting: Setting) -> NDArray[np.int64]:
        """Return the release of each row of the original; -1 if it is in none."""
        found = np.full(setting.original.num_rows, -1, dtype=np.int64)
        rows = np.flatnonzero(self.of_row >= 0)
        found[setting.owner[rows]] = self.of_row[rows]
        return found


def covers(boxes: Boxes, box: NDArray[np.int64], points: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which points, in rows, some boxes, in columns, may hold; NaN fits every side."""
    found = np.ones((len(points), len(box)), dtype=np.bool_)
    for d in range(points.shape[1]):
        value = points[:, d, None]
        with np.errstate(invalid="ignore"):
            inside = (boxes.lo[box, d] <= value) & (value <= boxes.hi[box, d])
        found &= inside | np.isnan(value)
    return found


def common_value(groups: Sequence[NDArray[np.int64]], value: int) -> float:
    """Return the chance to name the value that somebody has in each of some groups.

    The guess is a value that all groups have, the likeliest by the product of its shares.

    >>> common_value([np.array([1, 2]), np.array([1, 3, 3])], value=1)
    1.0
    """
    logs: NDArray[np.float64] | None = None
    found = np.unique(groups[0])
    for group in groups:
        values, counts = np.unique(group, return_counts=True)
        found, old, new = np.intersect1d(found, values, return_indices=True)
        share = np.log(counts[new] / len(group))
        logs = share if logs is None else logs[old] + share
    if logs is None or not len(found):
        return 0.0
    likeliest = found[logs >= logs.max() - 1e-9]
    return 1 / len(likeliest) if np.any(likeliest == value) else 0.0


class StreamAttack(Attack):
    """An attack on people whose rows are in a stream, by somebody who reads it live."""

    needs_trace: ClassVar[bool] = True
    # Who isn't in the stream has no row that could be found in it.
    has_control: ClassVar[bool] = False

    def misfit(self, setting: Setting) -> str | None:
        """Return why the attack can't be made: z, or several shards with counts of their own."""
        if (reason := super().misfit(setting)) is not None or setting.trace is None:
            return reason
        return SHARDED if setting.lines is not None and setting.lines.has_shards else None


def kbound(setting: Setting) -> tuple[float | None, str]:
    """Return 1/k and its name; None where k isn't promised."""
    k = setting.policy.k
    return (1 / k, f"1/k, k = {k}") if k > 1 else (None, "")


def _last_seen(people: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the place at which each person was last.

    >>> _last_seen(np.array([7, 8, 7, 7])).tolist()
    [-1, -1, 0, 2]
    """
    order = np.argsort(people, kind="stable")
    last = np.full(len(people), -1, dtype=np.int64)
    same = people[order[1:]] == people[order[:-1]]
    last[order[1:][same]] = order[:-1][same]
    return last


def _known(moments: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.where(moments < 0, np.nan, moments.astype(np.float64))
