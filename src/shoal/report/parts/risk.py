"""Part 3: how likely an attacker finds a person, counted in people, with denominators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from shoal.audit.evidence import EquivalenceClasses
from shoal.audit.trace import QUARANTINED
from shoal.engine.kernels.arrays import Ints
from shoal.errors import ParameterError
from shoal.metrics.reading import read_codes, read_sides
from shoal.metrics.risk import Risk, attribute_shares, covered, risk
from shoal.metrics.uniqueness import codes_of, uniqueness
from shoal.report.charts import Axis, Bar, bars, histogram
from shoal.report.markup import Markup
from shoal.report.page import Section, note, paragraph, side, table
from shoal.report.release import Release
from shoal.report.words import chance, count, percent
from shoal.spec.schema import Schema

__all__ = ["measure", "show"]

TITLE = "3. Risk: who can be found"
_BINS = 24
#: Fewer bars don't look like a distribution.
_LEAST_BINS = 8


def measure(release: Release) -> dict[str, Any]:
    """Return highest and average risk, sizes of groups, uniqueness, and attributes' shares."""
    if release.policy.per_value:
        return {
            "applies": False,
            "why": "Under z-anonymity values leave one by one, and there are no groups of people. "
            "Each published value is that of at least z people; nothing is promised of rows as a "
            "whole, so that the risk of a row has no bound. Part 5 has what was measured.",
        }
    evidence = release.evidence
    figures: dict[str, Any] = {
        "applies": True,
        "counted_in": "people" if release.knows_people else "rows",
        "bound": 1 / release.policy.k,
        "k": release.policy.k,
    }
    found: dict[str, Risk] = {
        each.kind: _risk(each, evidence.subjects) for each in evidence.classes
    }
    figures["classes"] = {kind: each.as_dict() for kind, each in found.items()}
    figures["sizes"] = {
        kind: _distribution(each.sizes) for kind, each in found.items() if len(each.sizes)
    }
    figures["journalist"] = _journalist(release)
    figures["unique"] = _unique(release, found)
    figures["shares"] = _shares(release)
    return figures


def show(figures: dict[str, Any], *, public: bool = False) -> Section:
    """Return the part as a section."""
    if not figures["applies"]:
        return Section(TITLE, [note("Doesn't apply. ", figures["why"])])
    unit = figures["counted_in"]
    parts: list[Markup | Section] = []
    if unit == "rows":
        parts.append(
            note(
                "Whose rows these are isn't known here, so that rows are counted. If people have "
                "several rows, groups have fewer people than rows, and the risk is higher than "
                "these figures.",
                kind="warning",
            )
        )
    parts.append(_attackers(figures))
    parts.append(
        paragraph(
            "A class is the rows that the attacker can't distinguish: all rows with equal labels "
            "(a box), or, for an attacker who knows when a group was released, the rows that left "
            f"together (a group). The promise k = {figures['k']} bounds the highest risk by "
            f"{chance(figures['bound'])}. Boxes may overlap: then an attacker has more candidates "
            "than these, never fewer. Somebody with several rows in a class is found more often by "
            "who picks any of its rows: the promise counts people and doesn't bound that."
        )
    )
    pictures = [_sizes_chart(kind, each, unit) for kind, each in figures["sizes"].items()]
    if pictures:
        parts.append(side(*pictures))
    said, charts = _uniqueness(figures["unique"], public=public)
    parts += [said, side(*charts, *_shares_chart(figures["shares"], unit))]
    return Section(TITLE, parts)


# -- figures ---------------------------------------------------------------------------------------


def _risk(classes: EquivalenceClasses, subjects: Ints) -> Risk:
    codes = np.repeat(np.arange(len(classes)), np.diff(classes.starts))
    return risk(codes, subjects[classes.rows])


def _distribution(sizes: Ints) -> dict[str, Any]:
    """Return how many classes have how many people, in bins of whole numbers."""
    lo, hi = int(sizes.min()), int(np.quantile(sizes, 0.99)) + 1
    width = max(1, -(-(hi - lo) // _BINS))
    edges = np.arange(lo, max(hi, lo + _LEAST_BINS * width) + width, width)
    inside = np.minimum(sizes, edges[-1] - 1)
    return {
        "edges": edges.tolist(),
        "counts": np.histogram(inside, edges)[0].tolist(),
        "median": float(np.median(sizes)),
        "largest": int(sizes.max()),
        "beyond": int(np.count_nonzero(sizes >= edges[-1])),
    }


def _journalist(release: Release) -> dict[str, Any] | None:
    """Return the risk by the people of a population whose values lie in each box."""
    if release.population is None:
        return None
    names = release.population.column_names
    subject = release.schema.subject if release.schema.subject in names else None
    small = Schema(subject=subject, quasi=release.schema.quasi)
    try:
        codes, _ = read_codes(small, release.population)
    except ParameterError as error:
        # The reader calls every table that it reads the original.
        raise ParameterError("population", str(error).partition(": ")[2] or str(error)) from None
    evidence = release.evidence
    rows = np.flatnonzero(evidence.in_group)
    lo, hi = read_sides(release.schema, release.published.take(pa.array(rows)))
    sides = np.concatenate([lo, hi], axis=1)
    boxes, classes = np.unique(sides, axis=0, return_inverse=True)
    n = len(release.schema.quasi)
    people = covered(boxes[:, :n], boxes[:, n:], codes.values, codes.subjects)
    found = risk(classes.reshape(-1), evidence.subjects[rows], people)
    known = len(np.unique(codes.subjects)) if subject else len(codes.values)
    n_short = int(np.count_nonzero(people < found.sizes))
    return found.as_dict() | {"population": known, "boxes_with_too_few": n_short}


def _unique(release: Release, found: dict[str, Risk]) -> dict[str, Any]:
    """Return how many people are alone: in the original by their values, and as published."""
    after = found.get("box") or found.get("group")
    unique: dict[str, Any] = {"before": None, "after": None}
    if after is not None and release.knows_people:
        unique["after"] = {
            "people": after.n_people,
            "unique": after.n_unique,
            "below_k": int(np.count_nonzero(after.worst > 1 / release.policy.k)),
        }
    if release.original is not None:
        rows = valid_rows(release)
        quasi = [attribute.name for attribute in release.schema.quasi]
        valid = release.original.take(pa.array(rows))
        before = uniqueness(valid, quasi, release.schema.subject)
        unique["before"] = {
            "people": before.n_subjects,
            "unique": before.n_unique,
            "below_k": before.n_below(release.policy.k),
        }
    return unique


def valid_rows(release: Release) -> Ints:
    """Return the positions in the original of rows that weren't quarantined."""
    assert release.original is not None
    trace = release.evidence.trace
    if trace is None:
        return read_codes(release.schema, release.original)[1]
    places = release.evidence.located(trace.row[~trace.has(QUARANTINED)])
    return np.sort(places[places >= 0])


def _shares(release: Release) -> list[dict[str, Any]]:
    """Return each attribute's part of the average risk, before and after."""
    evidence, schema = release.evidence, release.schema
    rows = np.flatnonzero(evidence.in_group)
    columns = [_dense(side.labels[rows]) for side in evidence.sides]
    after = attribute_shares(columns, _dense(evidence.subjects[rows]))
    before: list[float] | None = None
    if release.original is not None:
        valid = release.original.take(pa.array(valid_rows(release)))
        people = (
            np.arange(valid.num_rows)
            if schema.subject is None
            else _dense(codes_of(valid[schema.subject])[0])
        )
        before = attribute_shares(
            [_dense(codes_of(valid[each.name])[0]) for each in schema.quasi], people
        )
    return [
        {
            "attribute": side.name,
            "before": None if before is None else before[i],
            "after": after[i],
        }
        for i, side in enumerate(evidence.sides)
    ]


def _dense(codes: Ints) -> Ints:
    dense: Ints = np.unique(codes, return_inverse=True)[1].astype(np.int64)
    return dense


# -- the page --------------------------------------------------------------------------------------


def _attackers(figures: dict[str, Any]) -> Markup:
    unit = figures["counted_in"]
    rows = []
    for kind, each in figures["classes"].items():
        classes = f"{count(each['classes'])} {'boxes' if kind == 'box' else 'groups'}"
        of = f"{count(each['people'])} {unit}"
        rows.append(
            [
                f"prosecutor, by {kind}", chance(each["highest"]), chance(each["average"]),
                f"{unit} of a {kind}, at least {count(each['smallest_class'])}",
                f"{of} in {classes}",
            ]
        )  # fmt: skip
        rows.append(
            [
                f"marketer, by {kind}", "doesn't apply", chance(each["marketer"]),
                f"{unit} of a {kind}, by any row", f"{of} in {classes}",
            ]
        )  # fmt: skip
        if unit == "people":
            rows.append(
                [
                    f"who picks any row of a {kind}", chance(each["highest_row_share"]),
                    "not measured", f"rows of a {kind}", f"{of} in {classes}",
                ]
            )  # fmt: skip
    journalist = figures["journalist"]
    if journalist is None:
        rows.append(
            ["journalist", "not measured", "not measured",
             "people of a population in a box", "no population was given"]
        )  # fmt: skip
    else:
        rows.append(
            [
                "journalist", chance(journalist["highest"]), chance(journalist["average"]),
                "people of the population in a box",
                f"{count(journalist['people'])} {unit}, of a population of "
                f"{count(journalist['population'])}",
            ]
        )  # fmt: skip
    heads = ["attacker", "highest", "average", "one of (denominator)", "averaged over"]
    return table("Risk that a person's row is found", heads, rows)


def _sizes_chart(kind: str, sizes: dict[str, Any], unit: str) -> Markup:
    kinds = "boxes" if kind == "box" else "groups"
    n = sizes["beyond"]
    more = f" {count(n)} larger {'one is' if n == 1 else 'ones are'} in the last bar." if n else ""
    desc = (
        f"From {sizes['edges'][0]} to {count(sizes['largest'])} {unit}, median {sizes['median']:g}."
    )
    return histogram(
        f"Sizes of {kinds}", sizes["edges"], [("", sizes["counts"])],
        Axis(f"size of a {kind}", unit), Axis(kinds, lo=0), desc=desc, note=desc + more,
    )  # fmt: skip


def _uniqueness(unique: dict[str, Any], *, public: bool) -> tuple[Markup, list[Markup]]:
    rows, found = [], []
    for name, key in (("in the original", "before"), ("as published", "after")):
        each = unique[key]
        if each is None:
            continue
        share = each["unique"] / each["people"] if each["people"] else None
        found.append(Bar(name, [share]))
        below = each["below_k"] / each["people"] if each["people"] else None
        rows.append(
            [
                name, count(each["people"]), count(each["unique"]), percent(share),
                percent(below),
            ]
        )  # fmt: skip
    if not rows:
        why = "public" if public else "known without the trace and the original"
        return paragraph(f"How many people are unique isn't {why}."), []
    heads = ["", "people", "unique", "share", "alike with fewer than k people"]
    caption = "People who are unique by their quasi values"
    chart = bars("Share of people who are unique", found, Axis("share of people", "%", lo=0, hi=1))
    return table(caption, heads, rows, numbers=(1, 2, 3, 4)), [chart]


def _shares_chart(shares: list[dict[str, Any]], unit: str) -> list[Markup]:
    if not shares:
        return []
    has_before = shares[0]["before"] is not None
    names = ["in the original", "as published"] if has_before else [""]
    values = [
        Bar(each["attribute"], [each["before"], each["after"]] if has_before else [each["after"]])
        for each in sorted(shares, key=lambda each: -(each["before"] or each["after"]))
    ]
    said = (
        "What knowing an attribute adds to the average risk, on average over all orders in which "
        f"attributes become known (Shapley value). Counted in {unit}."
    )
    axis = Axis("added to the average risk", "%", lo=0)
    return [bars("Each attribute's share of the risk", values, axis, names=names, note=said)]
