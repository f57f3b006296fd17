"""Ask z-anonymity by invented people whether somebody has a value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.attacks.cells import CellAttack, cells_of
from shoal.attacks.result import AttackResult
from shoal.attacks.setting import Setting
from shoal.attacks.shares import Share
from shoal.audit.columns import column, trace_text
from shoal.audit.z.evidence import ZEvidence
from shoal.audit.z.trace import GROUP, SUPPRESSED, read_cell_trace

__all__ = ["Oracle"]

#: The most questions in one stream: more would be seen in every window.
MOST = 200
#: What invented people are called, before a number.
INVENTED = "an invented person "


class Oracle(CellAttack):
    """Ask by invented people whether somebody has a value that is too rare to be published.

    - **Knows**: a value that the victim may expose, and z. Can send rows under z - 1 names.
    - **Does**: lets z - 1 invented people expose the value, then one of them once more, before the
      victim comes and after. The last row is published as it is if and only if somebody real has
      exposed the value in the window. A success: no before, and yes after.
    - **Bound**: none. z counts ids, and invented ones count as any other.
    - **Baseline**: how often the answer was yes before the victim came: it was somebody else.
    """

    name: ClassVar[str] = "oracle"

    def misfit(self, setting: Setting) -> str | None:
        """Return why rows can't be sent: not z, or no job to run again."""
        if (reason := super().misfit(setting)) is not None:
            return reason
        return None if setting.rerun is not None else "the job can't be run again: there is none"

    def run(self, setting: Setting) -> Iterator[AttackResult]:
        """Ask about values that were hidden in the release."""
        assert setting.rerun is not None
        random = setting.random(self.name)
        asked = _questions(setting, cells_of(setting), random)
        if not len(asked.row):
            yield AttackResult(self.name, "-", notes=("no value was hidden or generalized",))
            return
        table, before, after = _injected(setting, asked, random)
        run = setting.rerun(table, int(random.integers(2**31)))
        trace = read_cell_trace(run.trace, [each.name for each in setting.schema.quasi])
        as_it_is = np.flatnonzero((trace.outcome == GROUP) & (trace.level == 0))
        width = len(setting.schema.quasi)
        shown = trace.row[as_it_is] * width + trace.attribute[as_it_is]
        was_there = np.isin(before * width + asked.attribute, shown)
        answered = np.isin(after * width + asked.attribute, shown)
        yield AttackResult(
            self.name,
            "a value, z; sends rows of z - 1 invented people",
            Share(int((answered & ~was_there).sum()), len(asked.row)),
            baseline=float(was_there.mean()),
        )


class _Questions(NamedTuple):
    """A row of the original, one of its attributes, and how many people to invent."""

    row: NDArray[np.int64]
    attribute: NDArray[np.int64]
    n_invented: NDArray[np.int64]


def _questions(setting: Setting, cells: ZEvidence, random: np.random.Generator) -> _Questions:
    """Draw cells that weren't published as they are, each of another value and person."""
    trace = cells.trace
    assert trace is not None
    hidden = (trace.outcome == SUPPRESSED) | ((trace.outcome == GROUP) & (trace.level > 0))
    lines = random.permutation(np.flatnonzero(hidden & (trace.attribute >= 0)))
    at = cells.places(trace.row[lines])
    allowed = at >= 0
    if setting.among is not None:
        allowed &= setting.among[at]
    lines, at = lines[allowed], at[allowed]
    leaf = np.full(len(lines), -1, dtype=np.int64)
    for d, ladders in enumerate(cells.ladders):
        own = trace.attribute[lines] == d
        value = ladders.value[at[own]]
        leaf[own] = np.where(value >= 0, ladders.nodes[value, 0], -1)
    lines, at, leaf = lines[leaf >= 0], at[leaf >= 0], leaf[leaf >= 0]
    # The first question about each value, then the first about each person.
    width = len(setting.schema.quasi)
    _, first = np.unique(leaf * width + trace.attribute[lines], return_index=True)
    first = np.sort(first)
    _, of_person = np.unique(cells.subject_of_input[at[first]], return_index=True)
    chosen = first[np.sort(of_person)][: min(MOST, setting.n_targets)]
    chosen = chosen[np.argsort(at[chosen], kind="stable")]
    return _Questions(
        at[chosen], trace.attribute[lines[chosen]], np.maximum(0, trace.z[lines[chosen]] - 1)
    )


def _injected(
    setting: Setting, asked: _Questions, random: np.random.Generator
) -> tuple[pa.Table, NDArray[np.int64], NDArray[np.int64]]:
    """Return the input with the rows of invented people, and where both answers to each are.

    An invented row has the value that is asked for and the victim's time; all else is of any row.
    """
    schema, n = setting.schema, setting.original.num_rows
    # Before the victim: everybody invented, and the first one again. After: the first one again.
    n_before = asked.n_invented + 1
    question = np.repeat(np.arange(len(asked.row)), n_before + 1)
    ends = np.cumsum(n_before + 1)
    place = np.arange(len(question)) - np.repeat(ends - n_before - 1, n_before + 1)
    after = place == n_before[question]
    # The place in the input: the rows of a question stand around the victim's.
    keys = np.concatenate([2.0 * np.arange(n), 2.0 * asked.row[question] + np.where(after, 1, -1)])
    order = np.argsort(keys, kind="stable")
    where = np.empty(len(order), dtype=np.int64)
    where[order] = np.arange(len(order))
    victim = asked.row[question]
    any_row = random.integers(n, size=len(question))
    name = place % np.maximum(1, asked.n_invented[question])
    name[after | (place == n_before[question] - 1)] = 0
    columns = {}
    for title in schema.columns:
        array = column(setting.original, title)
        assert array is not None
        if title == schema.subject:
            own = trace_text(array)
            parts = own.chunks if isinstance(own, pa.ChunkedArray) else [own]
            invented = pa.array([f"{INVENTED}{i}" for i in name.tolist()], pa.large_string())
            columns[title] = pa.chunked_array([*parts, invented]).take(pa.array(order))
            continue
        same = np.full(len(question), title == schema.time)
        for d, attribute in enumerate(schema.quasi):
            if title in attribute.columns:
                same |= asked.attribute[question] == d
        rows = np.concatenate([np.arange(n), np.where(same, victim, any_row)])
        columns[title] = array.take(pa.array(rows[order]))
    first_of = ends - n_before - 1
    before_at, after_at = where[n + first_of + n_before - 1], where[n + first_of + n_before]
    return pa.table(columns), before_at, after_at
