"""Say why a run published nothing."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.metrics.bad_rows import hint, listed
from shoal.metrics.shortfall import promise_of, span_of
from shoal.metrics.summary import Summary
from shoal.spec.policy import Policy

__all__ = ["why_nothing"]


def why_nothing(policy: Policy, summary: Summary, shortfall: Sequence[str] = ()) -> str | None:
    """Return why nothing of an input was published; None if something was, or it was empty.

    Parameters
    ----------
    policy, summary
        What was promised, and the figures at the end.
    shortfall
        What was short, as `shoal.metrics.shortfall.Shortfall` counts it.
    """
    if not summary.n_in or summary.n_published:
        return None
    why = listed(summary.bad_rows.reasons)
    bad = f"{summary.n_quarantined:,} of {summary.n_in:,} rows can't be used"
    bad += f": {why}." if why else "."
    if summary.n_quarantined == summary.n_in:
        fix = "Correct the rows, or what the job says about these columns."
        encoding = hint(summary.bad_rows.reasons)
        return " ".join(filter(None, (f"nothing was published: {bad}", encoding, fix)))
    n = f"{summary.suppression.count:,} of {summary.n_in:,} rows were suppressed"
    if policy.per_value:
        promise = f"no value of them had z = {policy.z:,} people within {span_of(policy)}"
    else:
        within = "" if policy.delay is None else f" within {span_of(policy)}"
        promise = f"no group of them keeps {promise_of(policy)}{within}"
    parts = [f"nothing was published: {n}, since {promise}.", *shortfall]
    if summary.n_quarantined:
        parts.append(bad[:1].upper() + bad[1:])
    return " ".join(parts)
