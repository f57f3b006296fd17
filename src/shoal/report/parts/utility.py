"""Part 5: what the release is still good for, and what is missing from it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from shoal.audit.evidence import Loss
from shoal.audit.loss import side_loss
from shoal.audit.trace import GROUP, HELD, QUARANTINED, REUSE, SUPPRESSED
from shoal.errors import ParameterError
from shoal.metrics.attributes import loss_by_attribute
from shoal.metrics.compared import Compared
from shoal.metrics.queries import query_error
from shoal.metrics.reading import read_sides
from shoal.metrics.summary import summarize
from shoal.report import distributions, values
from shoal.report.charts import Axis, Bar, bars
from shoal.report.markup import Markup
from shoal.report.page import Section, bullets, paragraph, table
from shoal.report.parts.risk import valid_rows
from shoal.report.reasons import quarantine_reasons, suppression_reasons
from shoal.report.release import Release
from shoal.report.words import count, number, percent

__all__ = ["measure", "show"]

TITLE = "5. Utility: what is left, and what is missing"
_N_QUERIES = 2000
_TOO_RARE = "each of their values was that of fewer than z people in its window"


def measure(release: Release) -> dict[str, Any]:
    """Return loss by attribute, query error, distributions, suppression and quarantine."""
    if release.policy.per_value:
        return {"cells": values.measure(release)} | _missing_of_cells(release)
    figures: dict[str, Any] = {"loss": _loss(release), "queries": None, "distributions": []}
    if figures["loss"] is not None:
        compared = _compared(release)
        if release.original is not None:
            found = query_error(compared, n_queries=_N_QUERIES)
            figures["queries"] = found.as_dict() | {"asked": _N_QUERIES}
        figures["distributions"] = distributions.measure(release, compared)
    return figures | _missing(release)


def show(figures: dict[str, Any]) -> Section:
    """Return the part as a section."""
    parts: list[Any] = []
    if "cells" in figures:
        parts.append(values.show(figures["cells"]))
    else:
        parts += [_show_loss(figures["loss"]), _show_queries(figures["queries"])]
    parts.append(_show_missing(figures))
    if figures.get("distributions"):
        parts.append(distributions.show(figures["distributions"]))
    return Section(TITLE, parts)


# -- figures ---------------------------------------------------------------------------------------


def _loss(release: Release) -> dict[str, Any] | None:
    """Return what published rows lose on average, and by attribute; None where labels don't tell.

    The loss of a row is the mean over the attributes that it has a value of, by their weights, as
    the run and the trace count it. Without a trace it is that of the labels, which don't tell
    whether a value at the root was missing.
    """
    evidence, schema = release.evidence, release.schema
    rows = release.published.take(pa.array(np.flatnonzero(evidence.in_group)))
    measure_name: Loss = release.options.get("loss") or "glm"
    try:
        lo, hi = read_sides(schema, rows)
        by_attribute = loss_by_attribute(schema, rows, measure=measure_name)
    except ParameterError:
        return None
    lost, weights = np.zeros(len(lo)), np.zeros(len(lo))
    for d, attribute in enumerate(schema.quasi):
        known = lo[:, d] <= hi[:, d]
        loss = side_loss(attribute.sided, lo[known, d], hi[known, d], measure_name)
        lost[known] += attribute.weight * loss
        weights[known] += attribute.weight
    mean = float((lost / np.where(weights > 0, weights, 1.0)).mean()) if len(lo) else None
    if evidence.trace is not None:
        traced = evidence.trace.loss[evidence.trace.has(GROUP, REUSE)]
        if len(traced) and not np.isnan(traced).any():
            mean = float(traced.mean())
    return {"measure": measure_name, "mean": mean, "by_attribute": by_attribute}


def _compared(release: Release) -> Compared:
    original = release.original
    if original is None:
        empty = {name: pa.array([], pa.string()) for name in release.schema.columns}
        valid = pa.table(empty)
    else:
        valid = original.take(pa.array(valid_rows(release)))
    rows = np.flatnonzero(release.evidence.in_group)
    return Compared.from_tables(release.schema, valid, release.published.take(pa.array(rows)))


def _missing(release: Release) -> dict[str, Any]:
    """Return how many rows aren't in the output, and why, by the trace and the original."""
    trace = release.evidence.trace
    if trace is None or release.trace is None:
        return {"rows": None, "suppression": None, "quarantine": None, "delay": None}
    summary = summarize(release.trace, k=release.policy.k).as_dict()
    people = release.evidence.people
    published = np.unique(people[(trace.seq >= 0) & ~trace.has(SUPPRESSED)])
    came = np.unique(people[~trace.has(QUARANTINED, HELD)])
    checks = {each.name: each.figures for each in release.audit.verdicts}
    return {
        "rows": summary["rows"],
        "suppression": {
            "rows": int(np.count_nonzero(trace.has(SUPPRESSED))),
            "people_without_a_row": None
            if release.schema.each_row
            else len(np.setdiff1d(came, published)),
            "people": None if release.schema.each_row else len(came),
            "needless": checks.get("suppression", {}).get("n_needless"),
            "reasons": suppression_reasons(release),
        },
        "quarantine": quarantine_reasons(release, np.unique(trace.row[trace.has(QUARANTINED)])),
        "delay": summary["delay"],
    }


def _missing_of_cells(release: Release) -> dict[str, Any]:
    if release.trace is None:
        return {"rows": None, "suppression": None, "quarantine": None, "delay": None}
    outcome = np.asarray(release.trace["outcome"].cast(pa.string()).to_numpy(zero_copy_only=False))
    row = np.asarray(release.trace["row"].to_numpy())
    quarantined = np.unique(row[outcome == "quarantined"])
    n_in, n_out = len(np.unique(row)), len(np.unique(row[outcome == "group"]))
    counts = {
        "in": n_in,
        "published": n_out,
        "suppressed": n_in - n_out - len(quarantined),
        "quarantined": len(quarantined),
        "held": 0,
    }
    return {
        "rows": counts,
        "suppression": {
            "rows": counts["suppressed"],
            "people_without_a_row": None,
            "people": None,
            "needless": None,
            "reasons": {_TOO_RARE: counts["suppressed"]} if counts["suppressed"] else {},
        },
        "quarantine": quarantine_reasons(release, quarantined),
        "delay": None,
    }


# -- the page --------------------------------------------------------------------------------------


def _show_loss(loss: dict[str, Any] | None) -> Section:
    if loss is None:
        said = "A midpoint doesn't show how wide its box was, so loss isn't measured."
        return Section("Loss", [paragraph(said)])
    values_of = [Bar(name, [value]) for name, value in loss["by_attribute"].items()]
    chart = bars(
        "Loss by attribute", values_of, Axis("mean loss of published rows", "%", lo=0, hi=1),
        desc=f"On average {percent(loss['mean'])}.",
    )  # fmt: skip
    said = (
        f"0 % is an exact value, 100 % the whole domain (measure: {loss['measure']}). The mean of "
        "rows, each over the attributes that it has and by their weights: "
        f"{percent(loss['mean'])}."
    )
    return Section("Loss", [paragraph(said), chart])


def _show_queries(queries: dict[str, Any] | None) -> Section:
    title = "COUNT queries"
    if queries is None:
        said = "How far COUNT queries are from the truth is measured with the original only."
        return Section(title, [paragraph(said)])
    said = (
        f"{count(queries['asked'])} random queries, each on up to three quasi attributes and the "
        "sensitive one, were answered from the release and from the original. "
        f"{count(queries['dropped'])} of them, true of nobody, are left out."
    )
    heads = ["", "a quarter below", "half below", "three quarters below", "95 % below", "mean"]
    keys = ("p25", "median", "p75", "p95", "mean")
    cells = [["error of queries", *(percent(queries[key]) for key in keys)]]
    grid = table("Relative error of COUNT queries", heads, cells, numbers=range(1, 6))
    return Section(title, [paragraph(said), grid])


def _show_missing(figures: dict[str, Any]) -> Section:
    rows = figures["rows"]
    title = "Suppression and quarantine"
    if rows is None:
        said = "Only a trace with lines of all published rows shows which rows aren't among them."
        return Section(title, [paragraph(said)])
    n_in = rows["in"] or 1
    cells = [
        [name, count(rows[name]), percent(rows[name] / n_in)]
        for name in ("in", "published", "suppressed", "quarantined", "held")
    ]
    parts: list[Markup] = [
        table("Outcome of all rows", ["rows", "count", "share"], cells, numbers=(1, 2))
    ]
    suppression = figures["suppression"]
    sentences = []
    if suppression["people_without_a_row"] is not None:
        sentences.append(
            f"{count(suppression['people_without_a_row'])} of {count(suppression['people'])} "
            "people have no row in the release, since all of theirs were suppressed."
        )
    if suppression["needless"]:
        sentences.append(
            f"The audit found that {count(suppression['needless'])} of them could have been "
            "published."
        )
    if sentences:
        parts.append(bullets(sentences))
    for title, found in (
        ("Suppressed rows by reason", suppression["reasons"]),
        ("Quarantined rows by reason", figures["quarantine"]),
    ):
        if found:
            reasons = [[why, count(n)] for why, n in found.items()]
            parts.append(table(title, ["reason", "rows"], reasons, numbers=(1,)))
    delay = figures["delay"]
    if delay and delay.get("rows"):
        waits = delay["rows"]
        parts.append(
            paragraph(
                f"Rows were held for {number(waits['mean'])} further rows on average, median "
                f"{number(waits['p50'])}, at most {number(waits['max'])}."
            )
        )
    return Section(title, parts)
