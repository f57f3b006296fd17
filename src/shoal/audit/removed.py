"""A trace whose oldest files were removed: what its other files still tell.

A long-running job keeps its trace in numbered files, and may remove the oldest. Without their lines
much can't be verified, but nothing is broken by that. Only what lies before the first line that is
left is excused: files and lines that are missing after it aren't removed, but lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.audit.changes import without_changes
from shoal.audit.report import Report, Verdict
from shoal.audit.trace import GROUP, REUSE, Trace, behind, read_trace, whole_numbers
from shoal.spec.policy import KAnonymity, Policy

__all__ = ["Rest", "judged_by_rest", "lost_files", "rest_of"]

#: The verdicts about single rows: lines that aren't there break none of them.
_OF_ROWS = ("secrecy", "delay", "cover")
#: Those about whole groups, if none of their lines was removed.
_OF_GROUPS = ("grouping", "order", "suppression", "missing", "loss")


@dataclass(frozen=True)
class Rest:
    """What is left of a trace, and the published rows that it can be judged with.

    Parameters
    ----------
    verdict
        About the trace itself.
    first
        The first published row that has a line; the number of all rows if none has.
    rows
        The rows from there on, and the lines left; None if there are none.
    groups
        The same without reuses of groups that were released before.
    """

    verdict: Verdict
    first: int
    rows: tuple[pa.Table, pa.Table] | None
    groups: tuple[pa.Table, pa.Table] | None


def lost_files(numbers: Sequence[int]) -> Verdict | None:
    """Return a verdict if files are missing between those with these numbers.

    >>> lost_files([3, 4, 7]).detail
    'the trace lacks files 5–6, though it has files before and after them: bring them back'
    """
    found = sorted(numbers)
    gaps = [_span(one + 1, other - 1) for one, other in pairwise(found) if other > one + 1]
    if not gaps:
        return None
    n = sum(other - one - 1 for one, other in pairwise(found))
    them = "it: bring it back" if n == 1 else "them: bring them back"
    detail = (
        f"the trace lacks {'file' if n == 1 else 'files'} {', '.join(gaps)}, though it has files "
        f"before and after {them}"
    )
    return Verdict("trace", "broken", detail, {"n_lost_files": n})


def rest_of(
    published: pa.Table,
    trace: pa.Table,
    numbers: Sequence[int],
    *,
    most_held: int | None = None,
    reuse: bool | None = None,
) -> Rest | None:
    """Return what is left of a trace whose files have these numbers; None if none was removed.

    Parameters
    ----------
    published, trace
        The output, and the lines that are left.
    numbers
        Those of the files of the trace.
    most_held
        The most rows for which a row may be held, if that was promised.
    reuse
        Whether rows may join groups that were published before. None: that isn't known.
    """
    n_removed = min(numbers, default=1) - 1
    if n_removed <= 0:
        return None
    trace = without_changes(trace)
    seq, n_rows = whole_numbers(trace, "seq"), int(published.num_rows)
    places = np.unique(seq[seq >= 0])
    first = int(places.min(initial=n_rows))
    end = int(places[-1]) + 1 if len(places) else n_rows
    what = (
        f"{'file' if n_removed == 1 else 'files'} {_span(1, n_removed)} of the trace "
        f"{'was' if n_removed == 1 else 'were'} removed, and with "
        f"{'it' if n_removed == 1 else 'them'} the lines of the first {first:,} published rows"
    )
    if end < n_rows:
        what += f"; {behind(n_rows - end)}"
    flaws = []
    n_shown = int(np.count_nonzero(places < n_rows))
    if n := min(end, n_rows) - first - n_shown:
        flaws.append(f"{n:,} published rows after them have no line, though later ones have")
    if n := len(places) - n_shown:
        flaws.append(f"{n:,} lines are of published rows that the output doesn't have")
    # A trace of cells has several lines of each row.
    lines = None if "attribute" in trace.schema.names else read_trace(trace)
    if lines is not None:
        flaws += _flaws(lines, most_held)
    if (lost := lost_files(numbers)) is not None:
        flaws.append(lost.detail)
    verdict = Verdict(
        "trace",
        "broken" if flaws else "unverifiable",
        "; ".join([what, *flaws]),
        {"n_removed_files": n_removed, "n_removed_rows": first},
    )
    if lines is None or first == n_rows:
        return Rest(verdict, first, None, None)
    # A reuse in a job that keeps no group for it is a flaw, whatever it joins.
    is_orphan = lines.has(REUSE) & (lines.group >= 0) & (reuse is not False)
    is_orphan &= ~np.isin(lines.group, lines.group[lines.has(GROUP)])
    rows, groups = (
        _without(published, trace, first, seq, leave_out)
        for leave_out in (np.zeros_like(is_orphan), is_orphan)
    )
    return Rest(verdict, first, rows, groups)


def _without(
    published: pa.Table,
    trace: pa.Table,
    first: int,
    seq: NDArray[np.int64],
    leave_out: NDArray[np.bool_],
) -> tuple[pa.Table, pa.Table]:
    """Return the published rows from one on, and the lines, numbered anew, without some."""
    shown = np.setdiff1d(np.arange(first, published.num_rows), seq[leave_out])
    lines, seq = trace.filter(pa.array(~leave_out)), seq[~leave_out]
    # A place that no published row has is one behind the last.
    array = pa.array(np.searchsorted(shown, seq), pa.int64(), mask=seq < 0)
    lines = lines.set_column(lines.schema.names.index("seq"), "seq", array)
    return published.take(pa.array(shown)), lines


def _flaws(lines: Trace, most_held: int | None) -> list[str]:
    """Return what is wrong with the lines left, of which each is of a row of its own."""
    flaws = []
    for each, what in ((lines.seq, "a published row"), (lines.row, "a row")):
        known = each[each >= 0]
        if n := len(known) - len(np.unique(known)):
            flaws.append(f"{n:,} lines are of {what} that another line is of")
    if most_held is not None and (n := _n_lost_arrivals(lines, most_held)):
        flaws.append(f"{n:,} rows that arrived after them have no line, and aren't held any more")
    return flaws


def _n_lost_arrivals(lines: Trace, most_held: int) -> int:
    """Return how many rows have no line, though they were decided after those of removed lines.

    Lines are in the order of decision: who arrived after the first decision that is left wasn't
    decided before it. The last rows of a job that was stopped may still be held. Shards count their
    own rows, and aren't judged here.
    """
    moments = lines.published[lines.published >= 0]
    if lines.is_sharded or not len(moments):
        return 0
    due = np.arange(int(moments.min()) + 1, int(moments.max()) - most_held)
    return len(np.setdiff1d(due, lines.arrived))


def judged_by_rest(
    policy: Policy, whole: Report, rest: Rest, of_rows: Report | None, of_groups: Report | None
) -> Report:
    """Return the verdicts about all rows, with what the rest of the trace tells.

    Parameters
    ----------
    policy
        What was promised for the rows of the rest.
    whole
        The verdicts about all rows without a trace; of several parts, those of the last one are
        of the rest.
    rest
        What is left.
    of_rows, of_groups
        The verdicts about the rows of the rest, and about its groups, where they can be judged.
    """
    told: dict[str, tuple[Verdict, int]] = {}
    for report, names in ((of_groups, None), (of_rows, _OF_ROWS)):
        if report is not None:
            found = [each for each in report.verdicts if names is None or each.name in names]
            told |= {each.name: (each, report.n_rows) for each in found}
    safe = [each.name for each in policy.criteria if type(each) is KAnonymity]
    safe += [each.name for each in policy.diversity]
    last = {each.name.partition(", part ")[0]: at for at, each in enumerate(whole.verdicts)}
    verdicts = [_with(each, None) for each in whole.verdicts]
    for name, at in last.items():
        if name in (*_OF_ROWS, *_OF_GROUPS) or any(name.startswith(each) for each in safe):
            verdicts[at] = _with(whole.verdicts[at], told.get(name))
    return replace(whole, verdicts=(*verdicts, rest.verdict))


def _with(verdict: Verdict, told: tuple[Verdict, int] | None) -> Verdict:
    by = ""
    if told is not None:
        found, n_rows = told
        by = f"by the lines that are left, of {n_rows:,} published rows: {found.detail}"
        if found.verdict == "broken":
            return replace(found, name=verdict.name, detail=by)
    if verdict.verdict != "unverifiable":
        return verdict
    detail = "the oldest files of the trace were removed"
    return replace(verdict, detail=f"{detail}; {by}" if by else detail)


def _span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}–{last}"
