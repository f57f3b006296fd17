"""Audit a stream whose promise has changed: each part by the promise that was in force.

When a job changes, all that it holds is decided under the former promise first. So each part of the
output belongs to one part of the input and of the trace, and is judged like a run of its own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.audit.removed import judged_by_rest, lost_files, rest_of
from shoal.audit.report import Report, Verdict
from shoal.audit.run import audit
from shoal.audit.trace import whole_numbers
from shoal.errors import ParameterError
from shoal.spec.policy import Policy
from shoal.spec.schema import Schema

__all__ = ["Part", "audit_parts"]


@dataclass(frozen=True)
class Part:
    """A part of a stream, from a change of the job to the next one.

    Parameters
    ----------
    policy, options
        What was promised, and how it was published, as `audit` takes it.
    what
        What changed where it begins, in words; empty for the first part.
    rows_in, taken_in, published
        How many rows were read, taken in and published before it.
    since
        The latest time of the rows before; NaN if there is none.
    """

    policy: Policy
    options: Mapping[str, Any] = field(default_factory=dict)
    what: str = ""
    rows_in: int = 0
    taken_in: int = 0
    published: int = 0
    since: float = math.nan


def audit_parts(
    schema: Schema,
    parts: Sequence[Part],
    published: pa.Table,
    *,
    trace: pa.Table | None = None,
    original: pa.Table | None = None,
    original_rows: NDArray[np.int64] | None = None,
    n_unreadable: int = 0,
    files: Sequence[Path] = (),
    numbers: Sequence[int] = (),
) -> Report:
    """Judge each part of an output by the promise that was in force; the parameters are `audit`'s.

    The verdicts of each part have its number in their names. Of a stream that never changed the
    report is that of `audit`. ``numbers`` are those of the files of the trace, if it has numbered
    files: if some of them are missing, there is a verdict about the trace, too.
    """
    _check(parts, published)

    def judge(lines: pa.Table | None) -> Report:
        return _judge(
            schema, parts, published, trace=lines, original=original, original_rows=original_rows,
            n_unreadable=n_unreadable, files=files,
        )  # fmt: skip

    part, rest = parts[-1], None
    if trace is not None:
        delays = [None if one.policy.delay is None else one.policy.delay.rows for one in parts]
        known = [each for each in delays if each is not None]
        rest = rest_of(
            published, trace, numbers, most_held=max(known) if len(known) == len(delays) else None,
            reuse=part.options.get("reuse"),
        )  # fmt: skip
    if rest is None:
        found = judge(trace)
        lost = lost_files(numbers)
        return found if lost is None else replace(found, verdicts=(*found.verdicts, lost))

    def judge_rest(chosen: tuple[pa.Table, pa.Table] | None, *, can: bool) -> Report | None:
        if chosen is None or not can or part.published > rest.first:
            return None
        return audit(
            schema, part.policy, chosen[0], trace=chosen[1], original=original,
            original_rows=original_rows, **part.options,
        )  # fmt: skip

    # Where rows leave in the order of their arrival, a group may have lines in a removed file.
    is_whole = part.options.get("order") in ("released", "shuffled")
    return judged_by_rest(
        part.policy, judge(None), rest, judge_rest(rest.rows, can=True),
        judge_rest(rest.groups, can=is_whole),
    )  # fmt: skip


def _judge(
    schema: Schema,
    parts: Sequence[Part],
    published: pa.Table,
    *,
    trace: pa.Table | None,
    original: pa.Table | None,
    original_rows: NDArray[np.int64] | None,
    n_unreadable: int,
    files: Sequence[Path],
) -> Report:
    if len(parts) == 1:
        return audit(
            schema, parts[0].policy, published, trace=trace, original=original,
            original_rows=original_rows, n_unreadable=n_unreadable, files=files,
            **parts[0].options,
        )  # fmt: skip
    lines = None if trace is None else whole_numbers(trace, "row")
    if original is not None and original_rows is None:
        original_rows = np.arange(original.num_rows)
    verdicts: list[Verdict] = []
    each_row = False
    ends = [*parts[1:], None]
    for number, (part, after) in enumerate(zip(parts, ends, strict=True), start=1):
        last = published.num_rows if after is None else after.published
        mine = published.slice(part.published, last - part.published)
        own_lines = own_rows = given = None
        if trace is not None and lines is not None:
            own_lines = _own_lines(trace, lines, part, after)
        if original is not None and original_rows is not None:
            chosen = np.flatnonzero(_inside(original_rows, part, after))
            given, own_rows = original.take(chosen), original_rows[chosen] - part.rows_in
        found = audit(
            schema, part.policy, mine, trace=own_lines, original=given, original_rows=own_rows,
            # What is about all rows is said once.
            n_unreadable=n_unreadable if number == 1 else 0, files=files if number == 1 else (),
            since=part.since, **part.options,
        )  # fmt: skip
        if part.what:
            verdicts.append(_note(part, number, len(parts)))
        verdicts += [
            replace(each, name=f"{each.name}, part {number} of {len(parts)}")
            for each in found.verdicts
        ]
        each_row = found.each_row
    return Report(tuple(verdicts), published.num_rows, each_row=each_row)


def _note(part: Part, number: int, n_parts: int) -> Verdict:
    detail = f"{part.what}, from published row {part.published:,} on"
    figures = {"published": part.published, "rows_in": part.rows_in}
    return Verdict(f"change of the job, part {number} of {n_parts}", "kept", detail, figures)


def _check(parts: Sequence[Part], published: pa.Table) -> None:
    if not parts:
        raise ParameterError("parts", "must have at least one")
    starts = [part.published for part in parts]
    if starts != sorted(starts) or starts[0] != 0 or starts[-1] > published.num_rows:
        raise ParameterError(
            "published",
            f"should have at least {starts[-1]:,} rows, which were published before the job was "
            "last changed",
            got=f"{published.num_rows:,}",
            fix="Give the whole output, from its first row on",
        )


def _inside(rows: NDArray[np.int64], part: Part, after: Part | None) -> NDArray[np.bool_]:
    """Return which numbers of input rows lie in a part; a line without one is in the first."""
    first = -1 if part.rows_in == 0 else part.rows_in
    inside: NDArray[np.bool_] = rows >= first
    return inside if after is None else inside & (rows < after.rows_in)


def _own_lines(
    trace: pa.Table, rows: NDArray[np.int64], part: Part, after: Part | None
) -> pa.Table:
    """Return the lines of a part, numbered from its own beginning."""
    lines = trace.take(np.flatnonzero(_inside(rows, part, after)))
    bases = {
        "row": part.rows_in, "arrived": part.taken_in, "published": part.taken_in,
        "window": part.taken_in, "seq": part.published,
    }  # fmt: skip
    for name, base in bases.items():
        if name in lines.schema.names:
            known = whole_numbers(lines, name)
            # What points before the part fits nothing in it, and must not look like nothing.
            moved = np.where(known < base, known + (1 << 60), known - base)
            array = pa.array(moved, pa.int64(), mask=known < 0)
            lines = lines.set_column(lines.schema.names.index(name), name, array)
    return lines
