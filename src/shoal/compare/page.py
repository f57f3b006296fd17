"""A comparison as one offline HTML file, and as a part of a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TypeAlias

from shoal.compare.cells import Promise
from shoal.compare.choice import GridRun, told
from shoal.compare.comparison import Comparison
from shoal.compare.measure import Figures
from shoal.compare.words import (
    FIGURES,
    FRONT,
    columns_of,
    headline,
    nothing,
    reasons_of,
    row_of,
    why_none,
)
from shoal.report.charts import Axis, Bar, Mark, Series, bars, histogram, lines, scatter
from shoal.report.markup import Markup
from shoal.report.page import Section, bullets, document, fragment, note, paragraph, side, table
from shoal.report.scales import Scale

__all__ = ["notebook", "page"]

#: Runs that share their promises but for k, with their places.
Family: TypeAlias = tuple[Promise, list[tuple[int, GridRun]]]
#: The most algorithms in one chart of bars or waits: more can't be told apart.
MOST_SHOWN = 5


def page(comparison: Comparison, name: str) -> str:
    """Return an offline HTML file; ``name`` is that of the job."""
    lead = [paragraph(f"{headline(comparison)}.")]
    if not comparison.n_done:
        lead.append(note(nothing(comparison), kind="warning"))
    elif comparison.interrupted:
        lead.append(note("It was interrupted: not all runs are here.", kind="warning"))
    lead.append(
        note(
            "The figures were measured on the original rows. They have no value of a person, and "
            "are meant for those who decide what is published, not for the public."
        )
    )
    sections = []
    if comparison.n_done:
        sections = [
            Section("Recommended", _recommended(comparison)),
            Section("Utility against risk", _scatters(comparison)),
            Section("All runs", [_table(comparison), paragraph(FRONT)]),
        ]
    sections += [
        Section(title, parts)
        for title, parts in (
            ("Loss over k", _over_k(comparison)),
            ("Loss by attribute", _by_attribute(comparison)),
            ("Delay", _delays(comparison)),
            ("Not run", _not_run(comparison)),
        )
        if parts
    ]
    sections.append(Section("How it was measured", [bullets(_HOW)]))
    return document(f"Comparison of {name}", lead, sections)


def notebook(comparison: Comparison) -> str:
    """Return the scatter, the table and the choice, for a notebook."""
    lead = [paragraph(f"{headline(comparison)}.")]
    if not comparison.n_done:
        lead.append(note(nothing(comparison), kind="warning"))
        return fragment("Comparison", lead, [Section("Not run", _not_run(comparison))])
    sections = [
        Section("Utility against risk", _scatters(comparison)),
        Section("All runs", [_table(comparison), *_not_run(comparison)]),
        Section("Recommended", _recommended(comparison)),
    ]
    return fragment("Comparison", lead, sections)


_HOW = (
    "Each run is a pass over the same rows with the same seed, or the mean of several passes with "
    "different seeds, as is said above. Rows that can't be used are left out.",
    "Loss is the mean over all decided rows of how much of each domain a box covers, from 0 to 1; "
    "suppressed rows count as 1.",
    "Query error is the median relative error of 1,000 COUNT queries with predicates on three "
    "quasi attributes and the first sensitive one.",
    "Risk is the mean over people of 1 / people in the smallest group that they are in.",
    "Attack is the share of at most 1,000 people who were linked to a row of theirs by somebody "
    "who knows all of their quasi values; its bound is 1/k. It is marked with ! if the whole 95 % "
    "interval is above the bound.",
    "The audit judges each run by itself, with the original and the trace.",
    "Rows/s were measured on the machine of the comparison, with other runs beside them.",
)


def _recommended(comparison: Comparison) -> list[Markup]:
    chosen = comparison.recommended
    if chosen is None:
        return [note(f"None, since {why_none(comparison)}.", kind="warning")]
    return [paragraph(" ".join(chosen.reason))]


def _table(comparison: Comparison) -> Markup:
    runs = comparison.runs
    done = [place for place, run in enumerate(runs) if run.figures is not None]
    _, keys = columns_of(runs)
    chosen = comparison.recommended
    rows = []
    for place in done:
        name, *cells = row_of(runs[place], keys)
        signs = ["Pareto front"] if place in comparison.front else []
        signs += ["recommended"] if chosen is not None and chosen.place == place else []
        rows.append([name, *cells, ", ".join(signs)])
    heads = ["algorithm", *keys, *FIGURES, ""]
    numbers = range(1, len(heads) - 2)
    return table("All runs that were made", heads, rows, numbers=numbers)


def _not_run(comparison: Comparison) -> list[Markup]:
    found = reasons_of(comparison)
    return [bullets(found)] if found else []


# -- charts ----------------------------------------------------------------------------------------


def _families(comparison: Comparison) -> list[Family]:
    """Return the runs that were made, those that share all promises but k together."""
    found: dict[str, Family] = {}
    for place, run in enumerate(comparison.runs):
        if run.figures is not None:
            others = {key: value for key, value in run.cell.promise.items() if key != "k"}
            found.setdefault(told(others), (others, []))[1].append((place, run))
    return list(found.values())


def _scatters(comparison: Comparison) -> list[Markup]:
    """Return a scatter of loss against risk for each family."""
    charts = []
    for others, members in _families(comparison):
        names = _names_on_front(comparison, members)
        series = [
            Series(
                label,
                [
                    Mark(f.risk, run.loss, names.get(place, ""), place in comparison.front)
                    for place, run in runs
                    if (f := run.figures) is not None and f.risk is not None
                ],
            )
            for label, runs in _by_algorithm(comparison, members).items()
        ]
        if any(each.marks for each in series):
            charts.append(
                scatter(
                    f"Loss against risk{_under(comparison, others)}",
                    series,
                    Axis("risk", "%"),
                    Axis("loss", lo=0.0),
                    desc="Each mark is a run. The runs of the Pareto front are ringed.",
                    note="Lower and further left is better.",
                )
            )
    return [side(*charts)] if charts else [paragraph("No run has groups to show.")]


def _names_on_front(
    comparison: Comparison, members: Sequence[tuple[int, GridRun]]
) -> dict[int, str]:
    """Return names for the run of the front that loses least under each k: others are near it."""
    best: dict[int, int] = {}
    for place, run in sorted(members, key=lambda member: member[1].loss):
        if place in comparison.front:
            best.setdefault(run.cell.policy.k, place)
    return {place: f"k = {k}" for k, place in best.items()}


def _over_k(comparison: Comparison) -> list[Markup]:
    """Return the loss over k by algorithm, for each family with several k."""
    charts = []
    for others, members in _families(comparison):
        ks = {run.cell.policy.k for _, run in members}
        if len(ks) < 2:
            continue
        series = [
            Series(
                label,
                [Mark(float(run.cell.policy.k), run.loss) for _, run in runs],
            )
            for label, runs in _by_algorithm(comparison, members).items()
        ]
        title = f"Loss over k{_under(comparison, others)}"
        charts.append(lines(title, series, Axis("k", "people"), Axis("loss", lo=0.0)))
    return [side(*charts)] if charts else []


def _by_attribute(comparison: Comparison) -> list[Markup]:
    """Return the losses by attribute of the best algorithms, under the recommended promise."""
    runs = _best_of_one_promise(comparison)
    names = list(dict.fromkeys(name for run in runs for name in _losses(run)))
    if not names:
        return []
    values = [Bar(name, [_losses(run).get(name) for run in runs]) for name in names]
    chart = bars(
        f"Loss by attribute, {told(runs[0].cell.promise)}",
        values,
        Axis("loss", lo=0.0, hi=1.0),
        names=[run.cell.label for run in runs],
    )
    return [chart, paragraph(_of_the_best(comparison, runs))]


def _delays(comparison: Comparison) -> list[Markup]:
    """Return how long rows waited, by algorithm, under the recommended promise."""
    runs = _best_of_one_promise(comparison)
    waited = [
        (run.cell.label, found, _shares(found))
        for run in runs
        if (found := run.figures) is not None and found.waits and found.waits[-1]
    ]
    if not waited:
        return []
    # The same ends for all: charts beside each other are compared.
    rows = Axis("rows", "%", lo=0.0)
    rows = replace(rows, hi=Scale.of(rows, (each for *_, all_ in waited for each in all_), 0, 1).hi)
    longest = max(found.wait_bounds[-1] for _, found, _ in waited)
    charts = [
        histogram(
            f"{label}: how long rows waited",
            [0.0, *found.wait_bounds],
            [("", shares)],
            Axis("delay", found.delay_unit, hi=longest),
            rows,
            desc=f"Mean {found.delay_mean:.0f}, at most {found.delay_most:.0f}.",
        )
        for label, found, shares in waited
    ]
    return [side(*charts), paragraph(_of_the_best(comparison, runs))]


def _shares(found: Figures) -> list[float]:
    """Return the shares of published rows that waited between two bounds."""
    counts = [after - before for before, after in pairwise((0, *found.waits))]
    return [count / max(1, found.n_published) for count in counts]


def _best_of_one_promise(comparison: Comparison) -> list[GridRun]:
    """Return the runs that lose least, under the promise of the recommended one."""
    return _of_one_promise(comparison)[:MOST_SHOWN]


def _of_one_promise(comparison: Comparison) -> list[GridRun]:
    """Return the runs under the promise of the recommended one, those that lose least first."""
    chosen = comparison.recommended
    done = [run for run in comparison.runs if run.figures is not None]
    if not done:
        return []
    policy = (done[0] if chosen is None else comparison.runs[chosen.place]).cell.policy
    found = [run for run in done if run.cell.policy == policy]
    return sorted(found, key=lambda run: run.loss)


def _of_the_best(comparison: Comparison, runs: Sequence[GridRun]) -> str:
    n_all = sum(
        run.figures is not None and run.cell.policy == runs[0].cell.policy
        for run in comparison.runs
    )
    if n_all == 1:
        which = "The only algorithm that was run"
    elif n_all == len(runs):
        which = f"All {n_all} algorithms that were run"
    else:
        which = f"The {len(runs)} of {n_all} algorithms that lose least"
    return f"{which} under {told(runs[0].cell.promise)}."


def _losses(run: GridRun) -> dict[str, float | None]:
    return {} if run.figures is None else dict(run.figures.loss_by_attribute)


def _by_algorithm(
    comparison: Comparison, members: Sequence[tuple[int, GridRun]]
) -> dict[str, list[tuple[int, GridRun]]]:
    """Return runs by algorithm: those that lose least first, so that colours agree everywhere."""
    found: dict[str, list[tuple[int, GridRun]]] = {
        run.cell.label: [] for run in _of_one_promise(comparison)
    }
    for place, run in members:
        found.setdefault(run.cell.label, []).append((place, run))
    return found


def _under(comparison: Comparison, others: Promise) -> str:
    """Return the promises in which families differ, as the end of a title."""
    _, keys = columns_of(comparison.runs)
    shown = {key: value for key, value in others.items() if key in keys}
    return f", {told(shown)}" if shown else ""
