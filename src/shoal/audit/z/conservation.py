"""Conservation: every cell of the input is accounted for exactly once, and so is every row."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.audit.columns import mask
from shoal.audit.report import Figure, Verdict, decide
from shoal.audit.z.evidence import ZEvidence
from shoal.audit.z.quarantine import Unexplained, unexplained
from shoal.audit.z.trace import GROUP, MISSING, OUTCOMES, QUARANTINED, CellTrace

__all__ = ["check"]


def check(cells: ZEvidence) -> Verdict:
    """Count the cells and rows of the input, of the trace and of the output against each other."""
    trace = cells.trace
    if trace is None:
        doubt = "what became of the cells can't be told without a trace"
        return decide("conservation", [], kept="", doubt=doubt)
    flaws = [
        *_lines(cells, trace),
        *_rows(cells, trace),
        *_places(cells, trace),
        *_cells(cells, trace),
        *_input(cells, trace),
    ]
    found = Unexplained(0, 0)
    if cells.original is not None:
        flaws += _missing(cells, trace)
        found = unexplained(cells, trace)
    if found.n_good:
        flaws.append(f"{found.n_good:,} rows are called quarantined and nothing is wrong with them")
    doubts = []
    if n_unread := _n_unread(cells, trace):
        doubts.append(f"{n_unread:,} rows of the input come after all lines: they may not be read")
    if found.n_doubtful:
        doubts.append(f"why {found.n_doubtful:,} rows are called quarantined can't be told")
    n_in = len(np.unique(trace.row[trace.row >= 0]))
    figures: dict[str, Figure] = {"n_in": n_in, "n_out": cells.n_rows}
    for code, name in enumerate(OUTCOMES):
        figures[f"n_{name}"] = int(np.count_nonzero(trace.outcome == code))
    figures["n_unexplained"] = found.n_good + found.n_doubtful
    counts = ", ".join(f"{figures[f'n_{name}']:,} {name}" for name in OUTCOMES[:3])
    kept = (
        f"each cell of {n_in:,} rows is accounted for once: {counts}; "
        f"{figures['n_quarantined']:,} rows quarantined"
    )
    return decide(
        "conservation",
        flaws,
        kept=kept,
        doubt="; ".join(doubts) or None,
        figures=figures,
    )


def _lines(cells: ZEvidence, trace: CellTrace) -> list[str]:
    """Check that each line is of one cell, or of a quarantined row."""
    is_bad = trace.outcome == QUARANTINED
    flaws = _counted(
        ("lines of the trace have no known outcome", trace.outcome < 0),
        ("lines of the trace have no row", trace.row < 0),
        ("lines of the trace have no attribute of the schema", ~is_bad & (trace.attribute < 0)),
        ("lines of quarantined rows have an attribute", is_bad & (trace.attribute != -1)),
    )
    quarantined, n_lines = np.unique(trace.row[is_bad], return_counts=True)
    width = len(cells.schema.quasi) + 1
    pairs = trace.row[~is_bad] * width + trace.attribute[~is_bad]
    twice = len(pairs) - len(np.unique(pairs)) + int(np.count_nonzero(n_lines > 1))
    if twice:
        flaws.append(f"{twice:,} cells or rows have more than one line in the trace")
    known = np.unique(trace.row[trace.row >= 0])
    lost = int(known[-1]) + 1 - len(known) if len(known) else 0
    if lost:
        flaws.append(f"{lost:,} rows have no line in the trace")
    return flaws + _counted(
        ("decided cells have no line in the trace", cells.rows.line < 0),
        ("rows are both quarantined and decided", np.isin(quarantined, cells.rows.number)),
    )


def _rows(cells: ZEvidence, trace: CellTrace) -> list[str]:
    """Check that `arrived` counts the valid rows in order, and that the lines of a row agree."""
    rows, first = cells.rows, cells.rows.first
    is_bad = trace.outcome == QUARANTINED
    arrived = trace.arrived[first][np.argsort(rows.number)]
    flaws = _counted(
        ("rows have a wrong position of arrival", arrived != np.arange(len(arrived))),
        ("quarantined rows have a position of arrival", trace.arrived[is_bad] >= 0),
    )
    differs = np.zeros(len(rows), dtype=np.bool_)
    for line in rows.line.T:
        for place in (trace.arrived, trace.seq):
            differs |= (line >= 0) & (place[line] != place[first])
    return flaws + _counted(("rows have lines that tell of different places", differs))


def _places(cells: ZEvidence, trace: CellTrace) -> list[str]:
    """Check that rows with a published cell, and no others, are in the output, once."""
    seq = trace.seq[cells.rows.first]
    has_any, has_place = cells.is_published.any(axis=1), seq >= 0
    is_bad = trace.outcome == QUARANTINED
    flaws = _counted(
        ("rows with a published cell have no place in the output", has_any & ~has_place),
        ("quarantined rows have a place in the output", is_bad & (trace.seq >= 0)),
    )
    if cells.suppressed == "drop":
        flaws += _counted(("rows without a published cell are in the output", ~has_any & has_place))
    else:
        flaws += _counted(
            ("rows without a published cell aren't in the output", ~has_any & ~has_place)
        )
        empty = np.ones(cells.n_rows, dtype=np.bool_)
        for name in cells.public_columns:
            if (array := cells.shown(name)) is not None:
                empty &= mask(array.is_null())
        shown = cells.seq[~has_any & (cells.seq >= 0)]
        flaws += _counted(("suppressed rows in the output aren't empty", ~empty[shown]))
    places = np.unique(seq[has_place])
    if twice := int(np.count_nonzero(has_place)) - len(places):
        flaws.append(f"{twice:,} places in the output are those of several rows")
    if len(places) != cells.n_rows or (places != np.arange(len(places))).any():
        flaws.append(
            f"the output has {cells.n_rows:,} rows, the trace tells of {len(places):,} places"
        )
    return flaws


def _cells(cells: ZEvidence, trace: CellTrace) -> list[str]:
    """Check that a published cell has a label, and any other cell none."""
    flaws = []
    rows = np.flatnonzero(cells.seq >= 0)
    for a, (attribute, is_null) in enumerate(zip(cells.schema.quasi, cells.is_null, strict=True)):
        if is_null is None:
            continue
        nothing, published = is_null[cells.seq[rows]], cells.is_published[rows, a]
        flaws += _counted(
            (f"published cells of column {attribute.name} show nothing", published & nothing),
            (f"hidden cells of column {attribute.name} are shown", ~published & ~nothing),
        )
    n_levels = (trace.level >= 0) & (trace.outcome != GROUP)
    return flaws + _counted(("cells that aren't published have a level", n_levels))


def _input(cells: ZEvidence, trace: CellTrace) -> list[str]:
    flaws = []
    n_quarantined = int(np.count_nonzero(trace.outcome == QUARANTINED))
    if cells.n_quarantined is not None and cells.n_quarantined != n_quarantined:
        flaws.append(
            f"the quarantine has {cells.n_quarantined:,} rows, the trace tells of {n_quarantined:,}"
        )
    if cells.original is None:
        return flaws
    known = _given_rows(cells)
    if cells.original_rows is None:
        # Where rows couldn't be read, the original has positions.
        beyond = trace.row >= len(known)
    else:
        beyond = ~np.isin(trace.row, known) & (trace.outcome != QUARANTINED)
    lost = ~np.isin(known, trace.row)
    if cells.may_hold:
        lost &= known < trace.row.max(initial=-1)
    return flaws + _counted(
        ("rows of the input have no line in the trace", lost),
        ("lines of the trace are of rows that the input doesn't have", beyond),
    )


def _given_rows(cells: ZEvidence) -> NDArray[np.int64]:
    assert cells.original is not None
    rows = cells.original_rows
    return np.arange(cells.original.num_rows) if rows is None else rows


def _n_unread(cells: ZEvidence, trace: CellTrace) -> int:
    """Return how many rows come after all that have a line, in a job that may go on with them."""
    if cells.original is None or not cells.may_hold:
        return 0
    return int(np.count_nonzero(_given_rows(cells) > trace.row.max(initial=-1)))


def _missing(cells: ZEvidence, trace: CellTrace) -> list[str]:
    """Check that missing values of the original are called missing, or their rows quarantined."""
    rows = np.flatnonzero(cells.positions >= 0)
    flaws = []
    for a, (attribute, ladders) in enumerate(zip(cells.schema.quasi, cells.ladders, strict=True)):
        lacks = ladders.lacks[cells.positions[rows]]
        line = cells.rows.line[rows, a]
        is_missing = (trace.outcome[line] == MISSING) & (line >= 0)
        name = attribute.name
        if cells.policy.missing == "quarantine":
            flaws += _counted((f"rows that lack {name} aren't quarantined", lacks))
        else:
            flaws += _counted((f"gaps of column {name} aren't called missing", lacks & ~is_missing))
        flaws += _counted((f"values of column {name} are called missing", is_missing & ~lacks))
    return flaws + _counted(("rows without a subject aren't quarantined", cells.subjects[rows] < 0))


def _counted(*found: tuple[str, NDArray[np.bool_]]) -> list[str]:
    return [f"{n:,} {what}" for what, where in found if (n := int(np.count_nonzero(where)))]
