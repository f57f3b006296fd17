"""The figures of a run that an observer may see: a frozen, coarse snapshot."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self, TypeAlias

from shoal.metrics import Summary
from shoal.metrics.bad_rows import OTHER
from shoal.metrics.histogram import Histogram

__all__ = ["Buckets", "Figures", "Reasons"]

#: Upper bounds, the last one infinite, each with the count of numbers up to it.
Buckets: TypeAlias = tuple[tuple[float, int], ...]

#: Counts by reason.
Reasons: TypeAlias = tuple[tuple[str, int], ...]

#: The most reasons that are told apart.
_REASONS = 12
#: The bounds of delays: steps of about three, from 10 rows and from a tenth of a second.
_ROWS = tuple(n * 10**power for power in range(1, 7) for n in (1, 3))
_SECONDS = (0.1, 0.3, 1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000)
#: The bounds of group sizes: k times powers of two up to this one.
_DOUBLINGS = 8
#: The decimal places of the mean loss.
_PLACES = 4
#: The decimal places of a share of subjects: whole percents.
_SHARE_PLACES = 2


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of a run at one moment, as coarse as an observer may see them.

    There are no sums of delays or of group sizes beside the buckets: the difference of two sums
    would be the delay of a row that left alone, or the size of a single group.

    Parameters
    ----------
    algorithm, k
        The name of the algorithm, and the least number of subjects in a group.
    n_in, n_published, n_suppressed, n_quarantined, n_late, n_reused, n_alone
        Rows so far. Published ones include late and reused ones, and these include those that left
        without enough company.
    n_held
        Rows that are held now.
    loss
        The mean over published rows, rounded; None if there is none.
    lag
        How much waits unread, in the unit of the source; None if unknown.
    checkpoint_bytes, checkpoint_seconds
        The size and the duration of the last checkpoint; None if there is none. The duration of one
        that a run before this one has saved is None, too.
    delay_rows, delay_seconds
        The delays of published rows; no seconds where the stream has no time.
    group_subjects
        The numbers of subjects of groups.
    z, k_anonymous
        Under z-anonymity the current z, and the rounded share of the subjects of the latest window
        who are k-anonymous; else None.
    loss_sum
        The sum of the losses of published rows: two of them give the mean loss of an interval. The
        output tells the same.
    suppressed_for, quarantined_for
        Rows by reason, the most frequent first. A reason of suppression is a promise of the job,
        not a property of a row; one of quarantine names a column.
    journal_entries
        How many entries of the journal a restart would replay; None without checkpoints.
    blocked_seconds
        For how many whole seconds the run has waited because its sink was too slow; None if
        unknown.
    n_audited
        How many groups the live audit has judged in this run; None without one.
    n_skipped
        What was received and is no row, such as the deletes of a change stream.
    shards
        The rows of each shard: in, published, suppressed, held; empty where there is one engine.
    batch_at
        When the last committed batch began, in seconds since 1970; None without batches. It is
        finer than an observer may see: only its age is shown, in whole intervals.
    """

    algorithm: str
    k: int
    n_in: int
    n_published: int
    n_suppressed: int
    n_quarantined: int
    n_late: int
    n_reused: int
    n_alone: int
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
    loss_sum: float = 0.0
    suppressed_for: Reasons = ()
    quarantined_for: Reasons = ()
    journal_entries: int | None = None
    blocked_seconds: int | None = None
    n_audited: int | None = None
    n_skipped: int = 0
    shards: tuple[tuple[int, int, int, int], ...] = ()
    batch_at: float | None = None

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
        journal_entries: int | None = None,
        blocked_seconds: float | None = None,
        n_audited: int | None = None,
        shards: Sequence[Summary] = (),
        batch_at: float | None = None,
    ) -> Self:
        """Take a snapshot of a summary, which may change later.

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
            n_alone=summary.reuse.n_alone,
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
            loss_sum=0.0 if loss is None else loss * summary.n_published,
            suppressed_for=_ranked(summary.suppression.reasons),
            quarantined_for=_ranked(summary.bad_rows.reasons),
            journal_entries=journal_entries,
            blocked_seconds=None if blocked_seconds is None else int(blocked_seconds),
            n_audited=n_audited,
            n_skipped=summary.skipped.total(),
            shards=tuple(
                (one.n_in, one.n_published, one.suppression.count, one.n_held) for one in shards
            ),
            batch_at=batch_at,
        )


def _ranked(reasons: Counter[str]) -> Reasons:
    """Return the most frequent reasons; the rest is counted as one."""
    ranked = reasons.most_common()
    rest = sum(n for _, n in ranked[_REASONS:])
    return (*ranked[:_REASONS], (OTHER, rest)) if rest else tuple(ranked)


def _buckets(numbers: Histogram, bounds: Sequence[float]) -> Buckets:
    folded = zip(bounds, numbers.fold(bounds), strict=True)
    return (*folded, (math.inf, numbers.count))
