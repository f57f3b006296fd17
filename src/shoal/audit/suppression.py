"""Suppression: a suppressed row had to be, and isn't in the output, or is a row of roots."""

from __future__ import annotations

import numpy as np

from shoal.audit.company import company
from shoal.audit.evidence import Evidence
from shoal.audit.report import Verdict, decide
from shoal.audit.trace import SUPPRESSED

__all__ = ["check"]


def check(evidence: Evidence) -> Verdict:
    """Check how suppressed rows appear in the output, and whether they had to be suppressed."""
    trace = evidence.trace
    if trace is None:
        doubt = "which rows were suppressed can't be told without a trace"
        return decide("suppression", [], kept="", doubt=doubt)
    lines = trace.has(SUPPRESSED)
    n_suppressed = int(np.count_nonzero(lines))
    seq = trace.seq[lines]
    shown = seq[(seq >= 0) & (seq < evidence.n_rows)]
    flaws = []
    if evidence.suppressed == "drop":
        if n := int(np.count_nonzero(seq >= 0)):
            flaws.append(f"{n:,} suppressed rows are in the output")
    else:
        if n := int(np.count_nonzero(seq < 0)):
            flaws.append(f"{n:,} suppressed rows aren't in the output, where they should be roots")
        if n := int(np.count_nonzero(~evidence.is_empty[shown])):
            flaws.append(f"{n:,} suppressed rows in the output hold more than roots and nulls")
    found = company(evidence, trace)
    needless = f"{found.n_needless:,} of them, though enough others were held for a group"
    if found.n_needless and found.is_certain:
        flaws.append(f"{n_suppressed:,} rows are called suppressed, {needless}")
    what = "is a row of roots and nulls" if evidence.suppressed == "root" else "is absent"
    return decide(
        "suppression",
        flaws,
        kept=f"each of {n_suppressed:,} suppressed rows {what}"
        + (f"; {needless}" if found.n_needless else ""),
        figures={
            "n_suppressed": n_suppressed,
            "n_judged": found.n_judged,
            "n_needless": found.n_needless,
        },
    )
