"""Secrecy: the output has public columns only, and none of them is the subject."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from shoal.audit.columns import column, same, take
from shoal.audit.evidence import Evidence
from shoal.audit.hidden import hidden_in
from shoal.audit.report import Verdict, decide
from shoal.audit.shape import expected_columns
from shoal.spec.schema import Schema

__all__ = ["check", "judge_secrecy"]


def check(evidence: Evidence) -> Verdict:
    """Look for columns that the schema doesn't publish, and for the subject under another name."""
    expected = expected_columns(evidence)
    disguised = _disguised(evidence)
    return judge_secrecy(evidence.published, evidence.schema, expected, disguised, evidence.files)


def judge_secrecy(
    published: pa.Table,
    schema: Schema,
    expected: Sequence[str],
    disguised: Sequence[str],
    files: Sequence[Path] = (),
) -> Verdict:
    """Judge the columns of an output beyond the expected ones, and what it holds beside rows.

    ``disguised`` are columns that repeat the subject; ``files`` are those the output was read from.
    """
    labels = [name for name in expected if name not in schema.payload]
    found = hidden_in(published, files, labels=labels)
    # A column that no table shows, such as one of lists, is in the files nevertheless.
    names = [*published.schema.names, *found.columns]
    private = {schema.subject, schema.time} - set(expected)
    exposed = [name for name in names if name in private]
    others = [name for name in names if name not in expected and name not in private]
    known = {*expected, *schema.columns}
    flaws = []
    if exposed:
        flaws.append(f"private columns are in the output: {', '.join(exposed)}")
    if others:
        flaws.append(f"columns that the schema doesn't publish: {_listed(others, known)}")
    if found.has_metadata:
        flaws.append("the file carries metadata of its own, which may hold anything")
    if found.described:
        flaws.append(f"columns with metadata of their own: {_listed(found.described, known)}")
    if found.unused:
        flaws.append(f"columns with values that no row has: {_listed(found.unused, known)}")
    if disguised:
        flaws.append(f"columns that repeat the subject in every row: {', '.join(disguised)}")
    return decide(
        "secrecy",
        flaws,
        kept="no column but the public ones",
        figures={
            "n_extra": len(exposed) + len(others),
            "n_described": len(found.described),
            "n_with_unused": len(found.unused),
        },
    )


def _listed(names: Sequence[str], known: Collection[str]) -> str:
    """Name the columns that the job knows, and count the others: in a file without a header, the
    names of its columns are values of a person.

    >>> _listed(["ward", "Ann;10115"], {"ward"})
    "ward, and 1 that isn't in the schema"
    """
    shown = [name for name in names if name in known]
    n = len(names) - len(shown)
    if n:
        shown.append(
            f"{'and ' if shown else ''}{n:,} that {'is' if n == 1 else 'are'}n't in the schema"
        )
    return ", ".join(shown)


def _disguised(evidence: Evidence) -> list[str]:
    """Return the columns published as they are whose values are those of the subject."""
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
