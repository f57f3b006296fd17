"""What an observer of a run may see of its figures: a frozen, coarse snapshot."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self, TypeAlias

from shoal.metrics import Summary
from shoal.metrics.histogram import Histogram

__all__ = ["Buckets", "Figures"]

#: Upper bounds, the last of them infinite, each with how many numbers it isn't exceeded by.
Buckets: TypeAlias = tuple[tuple[float, int], ...]

#: Delays are told in steps of about three, from 10 rows and from a tenth of a second on.
_ROWS = tuple(n * 10**power for power in range(1, 7) for n in (1, 3))
_SECONDS = (0.1, 0.3, 1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000)
#: Groups are told in powers of two times k.
_DOUBLINGS = 8
#: The mean loss is told to so many places.
_PLACES = 4
#: A share of subjects is told to so many places: whole percents.
_SHARE_PLACES = 2


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of a run at one moment, as coarse as an observer may see them.

    There are no sums of delays or of group sizes beside the buckets: the difference of two sums
    would be the delay of a row that left alone, or the size of a single group.

    Parameters
    ----------
    algorithm, k
        By what name, and how many subjects at least are in a group.
    n_in, n_published, n_suppressed, n_quarantined, n_late, n_reused
        Rows so far. Late ones and reused ones are among those published.
    n_held
        Rows that are held at the moment.
    loss
        The mean over published rows, rounded; None if there is none.
    lag
        How much waits unread, in whatever the source counts; None if unknown.
    checkpoint_bytes, checkpoint_seconds
        How large the last checkpoint is, and how long it took; None if there is none.
    delay_rows, delay_seconds
        How many published rows waited how long; no seconds where the stream has no time.
    group_subjects
        How many groups had how many subjects.
    z, k_anonymous
        Where values are published one by one, the z in force, and the share of the subjects of the
        latest window that can't be told from k - 1 others, rounded; else None.
    """

    algorithm: str
    k: int
    n_in: int
    n_published: int
    n_suppressed: int
    n_quarantined: int
    n_late: int
    n_reused: int
    n_held: int
    loss: float | None
    lag: int | None
    checkpoint_bytes: int | None
    checkpoint_seconds: float | None
    delay_rows: Buckets
    delay_seconds: Buckets | None
    group_subjects: Buckets
    z: int | None = None
    k_anonymous: float | None = None

    @classmethod
    def of(
        cls,
        summary: Summary,
        *,
        algorithm: str,
        k: int,
        lag: int | None = None,
        checkpoint_bytes: int | None = None,
        checkpoint_seconds: float | None = None,
    ) -> Self:
        """Take a snapshot of a summary, which may go on changing.

        >>> summary = Summary()
        >>> summary.n_in = 12
        >>> Figures.of(summary, algorithm="castle", k=10).group_subjects[:2]
        ((20, 0), (40, 0))
        """
        loss = summary.loss.published
        seconds, cells = summary.delay.seconds, summary.cells
        share = None if cells is None else cells.share
        return cls(
            algorithm=algorithm,
            k=k,
            n_in=summary.n_in,
            n_published=summary.n_published,
            n_suppressed=summary.suppression.count,
            n_quarantined=summary.n_quarantined,
            n_late=summary.n_late,
            n_reused=summary.reuse.count,
            n_held=summary.n_held,
            loss=None if loss is None else round(loss, _PLACES),
            lag=lag,
            checkpoint_bytes=checkpoint_bytes,
            checkpoint_seconds=checkpoint_seconds,
            delay_rows=_buckets(summary.delay.rows, _ROWS),
            delay_seconds=_buckets(seconds, _SECONDS) if seconds.count else None,
            group_subjects=_buckets(
                summary.groups.subjects, tuple(k * 2**i for i in range(1, _DOUBLINGS + 1))
            ),
            z=None if cells is None else cells.z,
            k_anonymous=None if share is None else round(share, _SHARE_PLACES),
        )


def _buckets(numbers: Histogram, bounds: Sequence[float]) -> Buckets:
    folded = zip(bounds, numbers.fold(bounds), strict=True)
    return (*folded, (math.inf, numbers.count))
