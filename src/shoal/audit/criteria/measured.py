"""What t-closeness, beta-likeness and delta-disclosure have in common: groups against windows.

With a trace every group is measured at its release and whenever rows joined it, against the window
that the trace names, with the values of the original.

Without a trace the windows of a stream aren't known. A table that is published at once has one
window, the table, and an outsider sees boxes only. They are what the definitions are about: a class
is the set of all rows that look alike. If every group keeps such a promise, so does their union,
because distances, gains and shares of a union lie between those of its parts; so a box that breaks
it holds a group that does, and boxes that keep it are all that was promised. But suppressed rows
count in the table. Where it isn't certain that there are none, boxes are compared with what was
published, and the verdict is unverifiable.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from shoal.audit.columns import Array, column, take
from shoal.audit.criteria.moments import (
    Moments,
    lines_by_arrival,
    moments_of_stream,
    moments_of_table,
    values_by_arrival,
)
from shoal.audit.criteria.phrases import plural, some
from shoal.audit.criteria.sensitive_values import SensitiveValues, read_values
from shoal.audit.criteria.window_counts import WindowCounts, repeats
from shoal.audit.evidence import Evidence
from shoal.audit.report import Figure, Verdict, decide
from shoal.spec.hierarchy import Domain
from shoal.spec.policy import Measured, Window
from shoal.spec.schema import Sensitive

__all__ = ["SLACK", "Counts", "Judge", "Measure", "check_attributes"]

#: How far a figure may lie beyond its limit, relatively: shares are fractions, limits are floats.
SLACK = 1e-9

#: How often each value occurs, by group and value: in the group itself, or in its window.
Counts: TypeAlias = NDArray[np.int64]
#: Takes the counts of groups and windows; returns whether each group holds, and its figure.
Judge: TypeAlias = Callable[[Counts, Counts], tuple[NDArray[np.bool_], NDArray[np.float64]]]


@dataclass(frozen=True, slots=True)
class Measure:
    """How one criterion measures a group.

    Parameters
    ----------
    name
        The figure.
    limit
        What is promised: its key among the figures, and its value.
    breach
        What is wrong with a group that doesn't hold.
    judge_of
        Makes the judge, for a domain and the places of the values in it.
    """

    name: str
    limit: tuple[str, float]
    breach: str
    judge_of: Callable[[Domain | None, NDArray[np.float64]], Judge]


@dataclass(frozen=True, slots=True, repr=False)
class _Measurement:
    """For every moment whether it holds and has a value that its window lacks; the worst figure."""

    holds: NDArray[np.bool_]
    lacks: NDArray[np.bool_]
    worst: float


def check_attributes(evidence: Evidence, criterion: Measured, measure: Measure) -> list[Verdict]:
    """Judge a criterion for each sensitive attribute that it concerns."""
    return [
        _check_attribute(evidence, criterion, attribute, measure)
        for attribute in evidence.schema.sensitive
        if criterion.attribute in (None, attribute.name)
    ]


def _check_attribute(
    evidence: Evidence, criterion: Measured, attribute: Sensitive, measure: Measure
) -> Verdict:
    title = f"{criterion.name} of {attribute.name}"
    shown = column(evidence.published, attribute.name)
    if shown is None:
        return Verdict(title, "unverifiable", f"column {attribute.name} isn't in the output")
    prepared = _prepared(evidence, attribute, shown)
    if isinstance(prepared, str):
        return Verdict(title, "unverifiable", prepared, dict([measure.limit]))
    moments, values, subjects, doubt = prepared
    judge = measure.judge_of(attribute.domain, values.places)
    window = evidence.policy.window
    rows = window.rows if isinstance(window, Window) else None
    by_rows = _measure(moments, values, judge, rows)
    by_people: float | None = None
    if evidence.schema.each_row:
        by_people = by_rows.worst
    elif subjects is not None:
        people = subjects, evidence.subjects
        by_people = _measure(moments, values, judge, rows, people).worst
    return _verdict(title, moments, measure, (by_rows, by_people), doubt)


_Prepared: TypeAlias = tuple[Moments, SensitiveValues, NDArray[np.int64] | None, str | None]


def _prepared(evidence: Evidence, attribute: Sensitive, shown: Array) -> _Prepared | str:
    """Return moments, values, the subjects that arrived and a doubt; or why that can't be done."""
    trace = evidence.trace
    if trace is None:
        return _table(evidence, attribute, shown)
    if not evidence.fits:
        return "the trace doesn't fit the output row by row"
    if trace.has_shards:
        return (
            "rows were decided in several shards, each of which has a distribution of its own: "
            "what a group was measured against can't be told"
        )
    lines = lines_by_arrival(trace)
    if lines is None:
        return "the trace doesn't tell in which order rows arrived"
    arrived = values_by_arrival(evidence, trace, lines, attribute.name)
    if isinstance(arrived, str):
        return arrived
    values = read_values(arrived, shown, attribute.domain)
    if (why := _why_unknown(evidence, attribute, values)) is not None:
        return why
    classes = next(classes for classes in evidence.classes if classes.kind == "group")
    moments = moments_of_stream(evidence, trace, classes, len(lines))
    return moments, values, evidence.people[lines], None


def _table(evidence: Evidence, attribute: Sensitive, shown: Array) -> _Prepared | str:
    """Return the same without a trace, for a table."""
    if evidence.policy.window != "all":
        return "what a group was measured against can't be told without a trace"
    if not evidence.classes:
        return str(evidence.doubt)
    classes = evidence.classes[0]
    n_rows, original = len(classes.rows), evidence.original
    doubt = None
    if original is not None and original.num_rows == n_rows:
        arrived = column(original, attribute.name)
    else:
        arrived = take(shown, classes.rows)
        if evidence.suppressed == "drop" or n_rows < evidence.n_rows:
            doubt = "which rows were suppressed can't be told without a trace"
    values = read_values(arrived, shown, attribute.domain)
    if (why := _why_unknown(evidence, attribute, values)) is not None:
        return why
    return moments_of_table(classes, n_rows), values, None, doubt


def _why_unknown(evidence: Evidence, attribute: Sensitive, values: SensitiveValues) -> str | None:
    """Return why the values of a window aren't known, or None."""
    n = values.n_outside
    if attribute.name in evidence.policy.in_place(evidence.schema):
        n += values.n_missing
    if not n:
        return None
    return f"{n:,} rows that arrived have no value of {attribute.name} within its domain"


def _measure(
    moments: Moments,
    values: SensitiveValues,
    judge: Judge,
    rows: int | None,
    people: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None,
) -> _Measurement:
    """Measure every moment by rows, or by people: each subject's different values count once.

    ``people`` are the subjects of the rows that arrived, and of those that were published.
    """
    n_values = len(values.places)
    shown = values.shown[moments.rows]
    earlier, once = None, None
    if people is not None:
        subjects, subjects_shown = people
        earlier = repeats(values.arrived, subjects)
        class_of = moments.class_of[moments.moment]
        once = repeats(shown, subjects_shown[moments.rows], class_of) < 0
    tallies = WindowCounts(values.arrived, n_values, rows=rows, earlier=earlier)
    holds = np.ones(len(moments.end), dtype=np.bool_)
    lacks = np.zeros(len(moments.end), dtype=np.bool_)
    worst = -math.inf
    for some_moments, counts in moments.counts(shown, n_values, once):
        end = moments.end[some_moments]
        known = end >= 0
        here = np.flatnonzero(known) + some_moments.start
        ends, which = np.unique(end[known], return_inverse=True)
        inside, beside = counts[known], tallies.at(ends)[which]
        lacking = ((inside > 0) & (beside == 0)).any(axis=1)
        if lacking.any():
            lacks[here[lacking]], worst = True, math.inf
            here, inside, beside = here[~lacking], inside[~lacking], beside[~lacking]
        if len(here):
            holds[here], figure = judge(inside, beside)
            worst = max(worst, float(figure.max()))
    return _Measurement(holds, lacks, worst)


def _verdict(
    title: str,
    moments: Moments,
    measure: Measure,
    found: tuple[_Measurement, float | None],
    doubt: str | None,
) -> Verdict:
    by_rows, by_people = found
    classes, kind, n_classes = moments.classes, moments.classes.kind, moments.n_classes
    flaws = list(moments.flaws)
    beyond = ~by_rows.holds | by_rows.lacks
    for text, wrong in (
        ("a value that the window lacks", by_rows.lacks),
        (measure.breach, ~by_rows.holds),
    ):
        if wrong.any():
            numbers = classes.number[np.unique(moments.class_of[wrong])].tolist()
            flaws.append(f"{text}: {some(classes, numbers, n_classes)}")
    worst, over_people = _finite(by_rows.worst), _finite(by_people)
    figures: dict[str, Figure] = dict([measure.limit])
    figures |= {
        f"n_{classes.kinds}": n_classes,
        f"n_{classes.kinds}_beyond": len(np.unique(moments.class_of[beyond])),
        "n_moments": len(moments.class_of),
        "n_windows": len(np.unique(moments.end[moments.end >= 0])),
        f"worst_{kind}_{measure.name}_by_rows": worst,
        f"worst_{kind}_{measure.name}_by_subjects": over_people,
    }
    measured = "" if worst is None else f"; {measure.name} {worst:.4g} at worst"
    if worst is not None and over_people is not None:
        measured += f", by subjects {over_people:.4g}"
    if doubt is not None:
        state = "; ".join(flaws) or f"nothing is wrong with {plural(n_classes, kind)}"
        doubt = f"against what was published, {state}{measured}; but {doubt}"
        return decide(title, [], kept="", doubt=doubt, figures=figures)
    if flaws:
        flaws[-1] += measured
    name, limit = measure.limit
    kept = f"within {name} = {limit:g} of its window in each of {plural(n_classes, kind)}{measured}"
    return decide(title, flaws, kept=kept, figures=figures)


def _finite(figure: float | None) -> float | None:
    return figure if figure is not None and math.isfinite(figure) else None
