"""Shape and secrecy of an output of cells."""

from __future__ import annotations

import re

import numpy as np

from shoal.audit.columns import encoded, is_text, same, take
from shoal.audit.report import Verdict
from shoal.audit.secrecy import judge_secrecy
from shoal.audit.shape import judge_columns, unreadable_lines
from shoal.audit.z.evidence import ZEvidence
from shoal.spec.hierarchy import Hierarchy, Range
from shoal.spec.ladder import AnyDomain, Grid, level_labels

__all__ = ["check", "secrecy"]

_INTERVAL = re.compile(r"\[([^\s,\[\]()]+), [^\s,\[\]()]+\)")
_CELL = re.compile(r"([^\s,/]+),([^\s,/]+)/[0-9]+")


def check(cells: ZEvidence) -> Verdict:
    """Check that the public columns are there once and in order, and their labels in the domain.

    Further columns are a matter of secrecy, not of shape.
    """
    names = cells.published.schema.names
    order = "pseudonym, quasi, kept, time"
    labels = [*unreadable_lines(cells.n_unreadable), *_labels(cells)]
    return judge_columns(names, cells.public_columns, order, labels)


def _labels(cells: ZEvidence) -> list[str]:
    flaws = []
    for attribute in cells.schema.quasi:
        domain, array = attribute.domain, cells.shown(attribute.name)
        if array is None or not isinstance(domain, Hierarchy | Range | Grid):
            continue
        indices, labels = encoded(array)
        if not is_text(array.type):
            labels = [None if label is None else str(label) for label in labels]
        wrong = [label is not None and not _is_label(domain, label) for label in labels]
        if n := int(np.count_nonzero(np.array(wrong, dtype=np.bool_)[indices])):
            flaws.append(f"column {attribute.name} has no label of its domain in {n:,} rows")
    return flaws


def _is_label(domain: AnyDomain, label: str) -> bool:
    """Return whether a value of the domain has exactly this label."""
    if isinstance(domain, Hierarchy):
        node = domain.node(label)
        return node is not None and (node > 0 or len(domain) == 1)
    parts = (_INTERVAL if isinstance(domain, Range) else _CELL).fullmatch(label)
    try:
        values = [float(part) for part in parts.groups()] if parts else []
        # The lower end of an interval lies in it, and so does the middle of a cell.
        value = values[0] if isinstance(domain, Range) else (values[0], values[1])
        return label in level_labels(domain, value)
    except (IndexError, ValueError, OverflowError):
        return False


def secrecy(cells: ZEvidence) -> Verdict:
    """Look for columns that the schema doesn't publish, and for the subject under another name."""
    disguised = _disguised(cells)
    return judge_secrecy(
        cells.published, cells.schema, cells.public_columns, disguised, cells.files
    )


def _disguised(cells: ZEvidence) -> list[str]:
    """Return the published columns whose values are those of the subject."""
    if cells.trace is None:
        return []
    found = []
    for name in cells.public_columns:
        array = cells.shown(name)
        if array is None:
            continue
        rows = np.flatnonzero(cells.seq >= 0)
        shown = take(array, cells.seq[rows])
        rows, shown = rows[(given := np.asarray(shown.is_valid()))], shown.filter(given)
        subject = take(cells.trace.subject, cells.rows.first[rows])
        if len(subject.unique()) > 1 and bool(np.all(same(shown, subject))):
            found.append(name)
    return found
