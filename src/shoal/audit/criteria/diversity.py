"""What the three forms of l-diversity have in common: classes, tallies and moments.

Every form needs l different subjects with l different values at the moment of release; rows that
join later only add to them. The evenness of the values can be lost again, so entropy and recursive
diversity are measured at the release and after each moment at which rows joined.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from shoal.audit.criteria.phrases import below, plural
from shoal.audit.evidence import EquivalenceClasses, Evidence
from shoal.audit.matching import matching
from shoal.audit.report import Figure, Verdict, decide
from shoal.spec.policy import LDiversity

__all__ = ["Evenness", "Tally", "check_attributes", "moments"]


class Tally:
    """How often each value occurs in a class to which rows are added.

    >>> tally = Tally([7, 7, 8, 9])
    >>> tally.largest_and_tail(2), round(tally.entropy() / math.log(2), 6)
    ((2, 2), 1.5)
    """

    __slots__ = ("_weight", "counts", "total")

    def __init__(self, values: Iterable[int]) -> None:
        self.counts = Counter(values)
        self.total = self.counts.total()
        self._weight = math.fsum(n * math.log(n) for n in self.counts.values())

    def add(self, value: int) -> None:
        """Count one more."""
        n = self.counts.get(value, 0)
        self.counts[value] = n + 1
        self.total += 1
        self._weight += (n + 1) * math.log(n + 1) - (n * math.log(n) if n else 0.0)

    def entropy(self) -> float:
        """Return the entropy of the values, in nats: log N - (sum of n log n) / N."""
        return math.log(self.total) - self._weight / self.total

    def largest_and_tail(self, l: int) -> tuple[int, int]:  # noqa: E741 - the letter of the papers
        """Return the count r1 of the most frequent value, and the sum r_l + r_(l+1) + …"""
        ordered = sorted(self.counts.values(), reverse=True)
        return ordered[0], sum(ordered[l - 1 :])


@dataclass(frozen=True, slots=True)
class Evenness:
    """A form of diversity that can be lost again when rows join.

    ``judge`` returns whether a tally is even enough, and its figure; ``worst`` chooses the worse of
    two figures: min where more is better, max where less is.
    """

    name: str
    judge: Callable[[Tally], tuple[bool, float]]
    worst: Callable[[float, float], float]


@dataclass(slots=True)
class _DiversityFigures:
    """The figures of the classes of one kind."""

    n_classes: int = 0
    few: list[int] = field(default_factory=list)
    uneven: list[int] = field(default_factory=list)
    n_values: float = math.inf
    n_matched: float = math.inf
    by_rows: float | None = None
    by_people: float | None = None


def check_attributes(
    evidence: Evidence, criterion: LDiversity, measure: Evenness | None
) -> list[Verdict]:
    """Judge a criterion for each sensitive attribute that it concerns."""
    names = [attribute.name for attribute in evidence.schema.sensitive]
    if criterion.attribute is not None:
        names = [criterion.attribute]
    return [_check_attribute(evidence, criterion, name, measure) for name in names]


def _check_attribute(
    evidence: Evidence, criterion: LDiversity, attribute: str, measure: Evenness | None
) -> Verdict:
    title = f"{criterion.name} of {attribute}"
    codes = evidence.values(attribute)
    if codes is None:
        return Verdict(title, "unverifiable", f"column {attribute} isn't in the output")
    flaws: list[str] = []
    kept: list[str] = []
    figures: dict[str, Figure] = {"l": criterion.l}
    people_known = evidence.doubt is None
    for classes in evidence.classes:
        subjects = evidence.subjects[classes.rows].tolist()
        values = codes[classes.rows].tolist()
        found = _examine(classes, subjects, values, criterion.needed, measure)
        kind = classes.kind
        kept.append(plural(found.n_classes, kind))
        figures[f"n_{classes.kinds}"] = found.n_classes
        figures[f"n_{classes.kinds}_below"] = len({*found.few, *found.uneven})
        figures[f"smallest_{kind}_n_values"] = _finite(found.n_values)
        figures[f"smallest_{kind}_n_subjects_with_values"] = (
            _finite(found.n_matched) if people_known else None
        )
        if measure is not None:
            figures[f"worst_{kind}_{measure.name}_by_rows"] = _finite(found.by_rows)
            figures[f"worst_{kind}_{measure.name}_by_subjects"] = (
                _finite(found.by_people) if people_known else None
            )
        if found.few:
            flaws.append(
                f"{below(classes, found.few, found.n_classes)} fewer than {criterion.needed:,} "
                "different subjects with different values"
            )
        if found.uneven:
            later = " or later" if kind == "group" else ""
            few = below(classes, found.uneven, found.n_classes)
            flaws.append(f"{few}{later} values that are too uneven")
    doubt = evidence.doubt
    if doubt is not None and evidence.trace is None and evidence.classes:
        doubt = f"the rows of every box are diverse enough, but {doubt}"
    held = f"at least {criterion.needed:,} different subjects with different values"
    held += " and even enough" if measure is not None else ""
    held += f" in each of {' and '.join(kept)}"
    return decide(title, flaws, kept=held, doubt=doubt, figures=figures)


def _examine(
    classes: EquivalenceClasses,
    subjects: list[int],
    values: list[int],
    needed: int,
    measure: Evenness | None,
) -> _DiversityFigures:
    found = _DiversityFigures()
    bounds = classes.starts.tolist()
    ends_moment = classes.ends_moment.tolist()
    numbers = classes.number.tolist()
    for i, first in enumerate(classes.n_first.tolist()):
        if first == 0:  # a matter of grouping
            continue
        found.n_classes += 1
        start, end = bounds[i], bounds[i + 1]
        who, what = subjects[start : start + first], values[start : start + first]
        pairs = set(zip(who, what, strict=True))
        n_values = len(set(what))
        found.n_values = min(found.n_values, n_values)
        # Where every subject has one value, each value has a subject of its own.
        alone = len(pairs) == len(set(who))
        matched = n_values if alone else matching(pairs, max(needed, found.n_matched))
        found.n_matched = min(found.n_matched, matched)
        if matched < needed:
            found.few.append(numbers[i])
        if measure is not None and not _stays_even(
            moments(subjects[start:end], values[start:end], first, ends_moment[start:end]),
            measure,
            found,
            # A box may be that of several groups, and one person counts in each of them: over
            # people the promise is about each group (over rows it follows for boxes).
            by_people=classes.kind == "group",
        ):
            found.uneven.append(numbers[i])
    return found


def moments(
    subjects: list[int], values: list[int], n_first: int, ends_moment: list[bool]
) -> Iterator[tuple[Tally, Tally]]:
    """Yield the tallies by rows and by people, at the release and after each later moment.

    ``ends_moment`` tells which rows are the last that joined at their moment; the order of rows
    inside a moment means nothing.

    By people means over the different pairs of a subject and a value, so that nobody's repetitions
    make a class look even. The two tallies are the same objects at every moment.
    """
    pairs = set(zip(subjects[:n_first], values[:n_first], strict=True))
    rows, people = Tally(values[:n_first]), Tally(value for _, value in pairs)
    yield rows, people
    joined = zip(subjects[n_first:], values[n_first:], ends_moment[n_first:], strict=True)
    for subject, value, is_last in joined:
        rows.add(value)
        if (subject, value) not in pairs:
            pairs.add((subject, value))
            people.add(value)
        if is_last:
            yield rows, people


def _stays_even(
    tallies: Iterable[tuple[Tally, Tally]],
    measure: Evenness,
    found: _DiversityFigures,
    *,
    by_people: bool,
) -> bool:
    even = True
    for rows, people in tallies:
        rows_hold, by_rows = measure.judge(rows)
        people_hold, over_people = measure.judge(people)
        even = even and rows_hold and (people_hold or not by_people)
        found.by_rows = by_rows if found.by_rows is None else measure.worst(found.by_rows, by_rows)
        found.by_people = (
            over_people if found.by_people is None else measure.worst(found.by_people, over_people)
        )
    return even


def _finite(figure: float | None) -> Figure:
    if figure is None or not math.isfinite(figure):
        return None
    return figure
