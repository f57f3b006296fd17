"""The results of `benchmarks.tide` as Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.markdown import table

__all__ = ["text"]


def text(results: Mapping[str, Any]) -> str:
    """All results that there are."""
    parts = [
        f"{results['rows']:,} rows of each data set, each row a person, in {results['orders']} "
        "orders: means, and the largest spread of a ratio. A suppressed row has lost everything. "
        "*Ratio*: what `tide` loses of what the best of the others loses. Rows/s: of the engine "
        "alone, per CPU second."
    ]
    titles = {"streams": "Streams", "promises": "Further promises", "tables": "Whole tables"}
    for part, title in titles.items():
        if part in results:
            parts += [f"### {title}", _part(results[part])]
    if "utility" in results:
        parts += ["### Queries", _utility(results["utility"])]
    return "\n\n".join(parts)


def _utility(lines: Sequence[Mapping[str, Any]]) -> str:
    """A line for each data set and method."""
    rows = [
        [
            line["data"], f"`{line['method']}`", f"{line['loss']:.3f}",
            "–" if line["query"] is None else f"{line['query']:.3f}", f"{line['kl']:.3f}",
        ]
        for line in lines
    ]  # fmt: skip
    head = ["data", "method", "loss", "median error of COUNT queries", "KL divergence of cubes"]
    return table(head, rows)


def _part(lines: Sequence[Mapping[str, Any]]) -> str:
    """A line for each data set and promise."""
    ours = list(lines[0]["ratios"])
    head = ["data", "promise", "best of the others", "loss"]
    for name in ours:
        head += [f"`{name}`", "ratio", "rows/s"]
    rows = []
    for line in lines:
        what = line.get("promise") or f"k = {line['k']}, delay {line['delay']:,}"
        row = [line["data"], what, line["best"], _loss(line, line["best"])]
        for name in ours:
            rate = float(np.mean(line["methods"][name]["rate"]))
            ratio = f"{np.mean(line['ratios'][name]):.3f}"
            row += [_loss(line, name), ratio, f"{rate / 1000:,.0f}k"]
        rows.append(row)
    spread = max(max(r) - min(r) for line in lines for r in line["ratios"].values())
    return table(head, rows) + f"\n\nRatios of the orders differ by at most {spread:.3f}."


def _loss(line: Mapping[str, Any], name: str) -> str:
    return f"{np.mean(line['methods'][name]['loss']):.3f}"
