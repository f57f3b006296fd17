"""Secrecy: nothing is in the output but public columns, and none of them is the subject."""

from __future__ import annotations

import numpy as np

from shoal.audit.columns import column, same, take
from shoal.audit.evidence import Evidence
from shoal.audit.report import Verdict, decide
from shoal.audit.shape import expected_columns

__all__ = ["check"]


def check(evidence: Evidence) -> Verdict:
    """Look for columns that nobody asked to publish, and for the subject under another name."""
    names = evidence.published.schema.names
    expected = set(expected_columns(evidence))
    private = {evidence.schema.subject, evidence.schema.time} - expected
    exposed = [name for name in names if name in private]
    others = [name for name in names if name not in expected and name not in private]
    flaws = []
    if exposed:
        flaws.append(f"private columns are in the output: {', '.join(exposed)}")
    if others:
        flaws.append(f"columns that the schema doesn't publish: {', '.join(others)}")
    if evidence.published.schema.metadata:
        flaws.append("the file carries metadata of its own, which may hold anything")
    disguised = _disguised(evidence)
    if disguised:
        flaws.append(f"columns that repeat the subject in every row: {', '.join(disguised)}")
    return decide(
        "secrecy",
        flaws,
        kept="no column but the public ones",
        figures={"n_extra": len(exposed) + len(others)},
    )


def _disguised(evidence: Evidence) -> list[str]:
    """Columns published as they are whose values are those of the subject."""
    if evidence.trace is None or evidence.schema.each_row:
        return []
    rows = np.flatnonzero((evidence.line >= 0) & evidence.in_group)
    if len(np.unique(evidence.subjects[rows])) < 2:
        return []
    subject = take(evidence.trace.subject, evidence.line[rows])
    found = []
    for name in evidence.schema.payload:
        array = column(evidence.published, name)
        if array is not None and bool(np.all(same(take(array, rows), subject))):
            found.append(name)
    return found
