"""How attributes are spread before and after, as far as that may be shown.

Bins are those of the domain that the job states, never of the data. What fewer people than a group
needs have is withheld of the original, with enough beside that it can't be computed from the rest.
Only sensitive values that enough people of the release have are named.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.arrow.columns import one_text
from shoal.engine.kernels.arrays import Floats, Ints
from shoal.metrics.axes import Axis as Line
from shoal.metrics.compared import Compared
from shoal.metrics.uniqueness import codes_of
from shoal.report.charts import Axis, Bar, bars, histogram
from shoal.report.markup import Markup
from shoal.report.page import Section, paragraph, side
from shoal.report.parts.risk import valid_rows
from shoal.report.release import Release
from shoal.spec.hierarchy import Hierarchy

__all__ = ["measure", "show"]

_MOST_BINS, _MOST_BARS = 20, 12
#: How many rows and how many people have a value.
_Counts: TypeAlias = dict[str, tuple[int, int]]


def measure(release: Release, compared: Compared) -> list[dict[str, Any]]:
    """Return shares of rows by bin or category, of the original (None: withheld) and the output."""
    people = _people(release)
    found = []
    for d, (quasi, line) in enumerate(zip(release.schema.quasi, compared.axes, strict=True)):
        domain = quasi.sided
        edges, labels = _categories(domain) if isinstance(domain, Hierarchy) else (None, None)
        bins = line.cut(_MOST_BINS) if edges is None else edges
        after = _after(compared, line, d, bins)
        before = None
        if people is not None and len(people) == len(compared.values):
            before = _before(compared.values[:, d], people, bins, release.least)
        shown: dict[str, Any] = {"attribute": quasi.name, "before": before, "after": after}
        if labels is None:
            step = line.step or 1.0
            shown["edges"] = [float((edge + line.origin) * step) for edge in bins]
        else:
            shown["labels"] = labels
        found.append(shown)
    values = (_values(release, each.name) for each in release.schema.sensitive)
    return found + [each for each in values if each is not None]


def show(found: list[dict[str, Any]]) -> Section:
    """Return all distributions as a section."""
    has_before = any(each["before"] is not None for each in found)
    said = (
        "Rows of a box count as spread evenly over it, because a reader of the release can "
        "assume no more."
    )
    if has_before:
        said += (
            " Of the original, what fewer people have than a group needs is withheld, and the next "
            "smallest too where it could be computed from the rest."
        )
    return Section(
        "Distributions before and after", [paragraph(said), side(*(_chart(each) for each in found))]
    )


def _people(release: Release) -> Ints | None:
    """Return whose the valid rows of the original are."""
    if release.original is None:
        return None
    rows = valid_rows(release)
    subject = release.schema.subject
    if subject is None:
        return np.arange(len(rows))
    return codes_of(release.original[subject].take(pa.array(rows)))[0]


def _categories(domain: Hierarchy) -> tuple[Floats, list[str]]:
    """Return where categories begin among the leaves: leaves, or the nodes below the root."""
    starts = np.arange(len(domain) + 1, dtype=np.float64)
    labels = [domain.label(leaf, leaf) for leaf in range(len(domain))]
    if len(domain) <= _MOST_BARS:
        return starts, labels
    root = domain.cover(0, len(domain) - 1)
    tops = [
        (int(domain.lows[node]), domain.labels[node])
        for node, parent in enumerate(domain.parents)
        if parent == root and node != root
    ]
    tops.sort()
    edges = np.array([*(low for low, _ in tops), len(domain)], np.float64)
    return edges, [label for _, label in tops]


def _before(values: Floats, people: Ints, bins: Floats, least: int) -> list[float | None]:
    known = ~np.isnan(values)
    at = np.clip(np.searchsorted(bins, values[known], side="right") - 1, 0, len(bins) - 2)
    n_rows = np.bincount(at, minlength=len(bins) - 1)
    width = int(people.max(initial=0)) + 1
    pairs = np.unique(at * width + people[known])
    n_people = np.bincount(pairs // width, minlength=len(bins) - 1)
    total = max(1, len(at))
    withheld = _withheld(n_people, least)
    return [
        None if hides else float(rows / total) for hides, rows in zip(withheld, n_rows, strict=True)
    ]


def _withheld(n_people: Ints, least: int) -> NDArray[np.bool_]:
    """Return which counts aren't shown: small ones, and more until their sum tells of nobody.

    Shares add up to one, so that a single one that is withheld could be computed.
    """
    withheld = (n_people > 0) & (n_people < least)
    if not withheld.any():
        return withheld
    for place in np.argsort(n_people, kind="stable"):
        if withheld.sum() > 1 and n_people[withheld].sum() >= least:
            break
        withheld[place] |= n_people[place] > 0
    return withheld


def _after(compared: Compared, line: Line, d: int, bins: Floats) -> list[float]:
    n_rows = np.bincount(compared.boxes, minlength=len(compared.lo))
    lo, hi = compared.lo[:, d], compared.hi[:, d] + line.unit
    known = lo <= hi
    lo, hi, n_rows = lo[known], hi[known], n_rows[known]
    length = hi - lo
    overlap = np.minimum(hi[:, None], bins[None, 1:]) - np.maximum(lo[:, None], bins[None, :-1])
    share = np.maximum(overlap, 0) / np.where(length > 0, length, 1)[:, None]
    at = np.clip(np.searchsorted(bins, lo, side="right") - 1, 0, len(bins) - 2)
    share[length <= 0] = np.eye(len(bins) - 1)[at[length <= 0]]
    spread = n_rows @ share
    return [float(each) for each in spread / max(1, n_rows.sum())]


def _values(release: Release, name: str) -> dict[str, Any] | None:
    """Return the shares of the sensitive values that the release shows most often."""
    if name not in release.published.column_names:
        return None
    least, rows = release.least, np.flatnonzero(release.evidence.in_group)
    after = _counted(release.published[name].take(pa.array(rows)), release.evidence.subjects[rows])
    named = [text for text, (_, n_people) in after.items() if n_people >= least]
    before: _Counts = {}
    people = _people(release)
    if release.original is not None and people is not None:
        before = _counted(release.original[name].take(pa.array(valid_rows(release))), people)
        # Without a trace, this is all that is known of how many people have a value.
        named = [text for text in named if before.get(text, (0, least))[1] >= least]
    named = sorted(named, key=lambda text: -after[text][0])[:_MOST_BARS]
    if not named:
        return None
    return {
        "attribute": name,
        "labels": named,
        "before": None if people is None else _shares(before, named, len(people)),
        "after": _shares(after, named, len(rows)),
        "n_values": len(after),
    }


def _shares(counts: _Counts, named: list[str], n_all: int) -> list[float]:
    return [counts.get(text, (0, 0))[0] / max(1, n_all) for text in named]


def _counted(column: Any, people: Ints) -> _Counts:
    """Return how many rows and how many people have each value."""
    text: Any = one_text(column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column)
    if isinstance(text, pa.ChunkedArray):
        text = pa.concat_arrays(text.chunks) if text.num_chunks else pa.array([], pa.string())
    if pa.types.is_dictionary(text.type):
        text = text.dictionary_decode()
    found = text.dictionary_encode()
    known = np.asarray(text.is_valid())
    codes = np.asarray(found.indices.drop_null()).astype(np.int64)
    pairs = np.unique(np.stack((codes, people[known])), axis=1)
    n_rows = np.bincount(codes, minlength=len(found.dictionary))
    n_people = np.bincount(pairs[0], minlength=len(found.dictionary))
    values = [
        each.decode("utf-8", "replace") if isinstance(each, bytes) else str(each)
        for each in found.dictionary.to_pylist()
    ]
    return dict(zip(values, zip(n_rows.tolist(), n_people.tolist(), strict=True), strict=True))


def _chart(each: dict[str, Any]) -> Markup:
    before, after = each["before"], each["after"]
    if "edges" in each:
        counts = [("published", after)]
        if before is not None:
            counts = [("original", before), ("published", after)]
        return histogram(
            each["attribute"], each["edges"], counts,
            Axis(each["attribute"]), Axis("share of rows", "%", lo=0),
        )  # fmt: skip
    names = ["published"] if before is None else ["original", "published"]
    shown = [
        Bar(label, [after[i]] if before is None else [before[i], after[i]])
        for i, label in enumerate(each["labels"])
    ]
    more = each.get("n_values", len(shown)) - len(shown)
    note = f"The most frequent values of the release; {more:,} others aren't shown." * (more > 0)
    return bars(
        each["attribute"], shown, Axis("share of rows", "%", lo=0),
        names=names, note=note, missing="withheld",
    )  # fmt: skip
