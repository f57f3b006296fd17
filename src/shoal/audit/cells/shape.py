"""Shape and secrecy of an output whose cells are published one by one."""

from __future__ import annotations

import re

import numpy as np

from shoal.audit.cells.evidence import Cells
from shoal.audit.columns import encoded, is_text, same, take
from shoal.audit.report import Verdict, decide
from shoal.hierarchy import Hierarchy, Range
from shoal.ladder import AnyDomain, Grid, rungs

__all__ = ["check", "secrecy"]

_INTERVAL = re.compile(r"\[([^\s,\[\]()]+), [^\s,\[\]()]+\)")
_CELL = re.compile(r"([^\s,/]+),([^\s,/]+)/[0-9]+")


def check(cells: Cells) -> Verdict:
    """Check that the public columns are there once and in order, and their labels in the domain.

    Columns that are there beyond these are a matter of secrecy, not of shape.
    """
    expected, names = cells.public_columns, cells.published.schema.names
    missing = [name for name in expected if name not in names]
    twice = [name for name in expected if names.count(name) > 1]
    flaws = []
    if missing:
        flaws.append(f"missing columns: {', '.join(missing)}")
    if twice:
        flaws.append(f"columns that are there twice: {', '.join(twice)}")
    if not missing and not twice and tuple(name for name in names if name in expected) != expected:
        flaws.append("the columns are in another order than pseudonym, quasi, kept, time")
    flaws += _labels(cells)
    return decide(
        "shape",
        flaws,
        kept=f"{len(expected)} columns as expected, every label within its domain",
        figures={"n_columns": len(names), "n_expected": len(expected)},
    )


def _labels(cells: Cells) -> list[str]:
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
    """Whether something in the domain has this label, which is said in one way only."""
    if isinstance(domain, Hierarchy):
        node = domain.node(label)
        return node is not None and (node > 0 or len(domain) == 1)
    parts = (_INTERVAL if isinstance(domain, Range) else _CELL).fullmatch(label)
    try:
        values = [float(part) for part in parts.groups()] if parts else []
        # The lower end of an interval lies in it, and so does the middle of a cell.
        value = values[0] if isinstance(domain, Range) else (values[0], values[1])
        return label in rungs(domain, value)
    except (IndexError, ValueError, OverflowError):
        return False


def secrecy(cells: Cells) -> Verdict:
    """Look for columns that nobody asked to publish, and for the subject under another name."""
    names, expected = cells.published.schema.names, set(cells.public_columns)
    private = {cells.schema.subject, cells.schema.time} - expected
    exposed = [name for name in names if name in private]
    others = [name for name in names if name not in expected and name not in private]
    flaws = []
    if exposed:
        flaws.append(f"private columns are in the output: {', '.join(exposed)}")
    if others:
        flaws.append(f"columns that the schema doesn't publish: {', '.join(others)}")
    if cells.published.schema.metadata:
        flaws.append("the file carries metadata of its own, which may hold anything")
    if disguised := _disguised(cells):
        flaws.append(f"columns that repeat the subject in every row: {', '.join(disguised)}")
    return decide(
        "secrecy",
        flaws,
        kept="no column but the public ones",
        figures={"n_extra": len(exposed) + len(others)},
    )


def _disguised(cells: Cells) -> list[str]:
    """Columns that are published and whose values are those of the subject."""
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
