"""``[audit]``: audit a sample of whole groups while a job runs, before they are written."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from shoal.arrow.order import Departures
from shoal.arrow.publishing import subjects_in
from shoal.arrow.release import Publish, Release
from shoal.audit import audit
from shoal.engine.base import Outcome
from shoal.engine.kernels.arrays import Ints
from shoal.errors import BrokenPromiseError, JobError, Problem
from shoal.io.typed import plain_batch
from shoal.job.file import Job
from shoal.spec.criteria import Measured
from shoal.spec.policy import Policy
from shoal.spec.schema import Schema

__all__ = ["LiveAudit", "live_audit_of"]

#: What is about the whole run, and can't be judged by some of its groups. A late row is counted,
#: and doesn't end a run: after an outage every row may be late.
WHOLE_RUN = frozenset({"order", "suppression", "arrival", "delay", "conservation", "loss"})


class LiveAudit:
    """Judge some of the groups of each release by the audit, before the release is written.

    Which groups are judged depends on their numbers alone: a run that was stopped by a broken
    promise and is started again finds the same group, and stops again.

    Parameters
    ----------
    schema, policy, publish
        The columns, the promise, and how a release looks.
    share
        The share of groups that is judged, above 0 and up to 1.
    """

    def __init__(self, schema: Schema, policy: Policy, publish: Publish, share: float) -> None:
        self._schema, self._publish, self._share = schema, publish, share
        # A sample is no window: what is measured against one can't be judged by it.
        here = [each for each in policy.criteria if not isinstance(each, Measured)]
        self._policy = Policy(*here, delay=policy.delay, missing=policy.missing)
        #: The number of groups that were judged. It only grows, so that another thread can read it.
        self.n_groups = 0

    def __call__(self, release: Release, departures: Departures, seq: Ints) -> None:
        """Judge a release before it is written; ``seq`` are the places of departures in the output.

        Raises
        ------
        BrokenPromiseError
            If a judged group breaks a promise. Nothing of the release may be written then.
        """
        rows = np.flatnonzero(departures.outcomes == Outcome.group)
        groups = departures.groups[departures.boxes[rows]]
        chosen = _drawn(groups) < self._share
        rows, groups = rows[chosen], groups[chosen]
        if not len(rows):
            return
        places = seq[rows] - release.first
        self.n_groups += len(np.unique(groups))
        report = audit(
            self._schema,
            self._policy,
            _plain(release.batch, places),
            numeric=self._publish.numeric,
            suppressed=self._publish.suppressed,
            trace=self._lines(departures, rows, groups),
        )
        broken = [
            each
            for each in report.verdicts
            if each.verdict == "broken" and each.name not in WHOLE_RUN
        ]
        if broken:
            why = "; ".join(f"{each.name}: {each.detail}" for each in broken)
            raise BrokenPromiseError(
                f"the live audit found a broken promise ({why}). Nothing of this release "
                "was published, and the run has ended. What was published before may be broken as "
                "well: audit it. Please report it."
            )

    def _lines(self, departures: Departures, rows: Ints, groups: Ints) -> pa.Table:
        """Return a line of a trace for each row of the sample, in its order."""
        n = len(rows)
        published = departures.published[rows]
        unknown = pa.nulls(n, pa.float64())
        return pa.table(
            {
                "row": pa.array(np.arange(n)),
                "subject": subjects_in(self._schema, departures.payload).take(pa.array(rows)),
                "outcome": pa.array([Outcome.group.name] * n),
                "arrived": pa.array(departures.rows[rows]),
                "published": pa.array(published),
                "arrived_s": unknown,
                "published_s": unknown,
                "group": pa.array(groups),
                "seq": pa.array(np.arange(n)),
            }
        )


def _drawn(groups: Ints) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return a number from 0 to 1 for each group, spread evenly (the finalizer of SplitMix64)."""
    mixed = groups.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return np.asarray((mixed >> np.uint64(11)).astype(np.float64) / 2.0**53)


def _plain(batch: pa.RecordBatch, places: Ints) -> pa.Table:
    """Return some rows as a reader of the output has them: without dictionaries."""
    types = [
        field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field
        for field in batch.schema
    ]
    sample = batch.take(pa.array(places))
    return pa.Table.from_batches([plain_batch(sample, pa.schema(types))])


def live_audit_of(job: Job) -> LiveAudit | None:
    """Return the live audit that a job asks for, or None.

    Raises
    ------
    JobError
        If there are no groups to judge, or none of them leaves as a whole.
    """
    if not job.audit_sample:
        return None
    key = "audit.sample"
    if job.policy.per_value:
        what = "judges whole groups, and z-anonymity publishes single values"
        raise JobError(Problem(key, what, None, "Leave it out, and use `shoal audit`"))
    if job.publish.order == "arrival":
        what = "judges whole groups, and in the order of arrival their rows leave one by one"
        raise JobError(Problem(key, what, None, "Leave it out, or publish.order"))
    return LiveAudit(job.schema, job.policy, job.publish, job.audit_sample)
