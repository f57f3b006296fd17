"""The results of `benchmarks.trees` as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from benchmarks import growth
from benchmarks.markdown import met, spread, table

__all__ = ["SECTIONS"]


def _rate(found: Mapping[str, Any]) -> str:
    return f"{found['median']:,.0f}"


def _files(found: Mapping[str, Any]) -> str:
    rows = [
        ["pass-through", spread(found["seconds"]), _rate(found["rows_per_second"]), "1", "–", "–"]
    ]
    rows += [
        [
            f"`{line['algorithm']}`",
            spread(line["seconds"]),
            _rate(line["rows_per_second"]),
            spread(line["ratio"]),
            f"{line['loss']['published']:.3f}",
            "–" if line["target"] is None else met(line["met"]),
        ]
        for line in found["algorithms"]
    ]
    return (
        f"{found['n_rows']:,} rows with {found['n_quasi']} quasi attributes, k = {found['k']}, at "
        f"most {found['capacity']:,} rows held; the target is a ratio to the pass-through of at "
        f"most {found['target']:g}.\n\n"
        + table(["", "s", "rows/s", "ratio", "loss", "target"], rows)
    )


def _engines(found: Mapping[str, Any]) -> str:
    rows = [
        [f"`{name}`", spread(seconds), _rate(found["rows_per_second"][name])]
        for name, seconds in found["seconds"].items()
    ]
    return (
        f"{found['n_rows']:,} encoded rows, as above.\n\n"
        + table(["", "s", "rows/s"], rows)
        + f"\n\nThe full method takes {spread(found['ratio'])} times as long as the density-aware "
        f"one; target, at most {found['target']:g}: {met(found['met'])}."
    )


def _twins(found: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        [
            f"`{one['algorithm']}`",
            spread(one["seconds"]["twin"]),
            spread(one["seconds"]["kernel"], 4),
            spread(one["ratio"], 0),
        ]
        for one in found
    ]
    odd = [one["algorithm"] for one in found if not one["alike"]]
    first = found[0]
    return (
        f"{first['n_rows']:,} encoded rows, k = {first['k']}, at most {first['capacity']:,} rows "
        "held. "
        + (f"**Decided differently: {', '.join(odd)}.**" if odd else "All decided as their twins.")
        + "\n\n"
        + table(["", "naive twin, s", "kernel, s", "ratio"], rows)
    )


def _lengths(found: Mapping[str, Any]) -> str:
    rows = [[f"{one['n_rows']:,}", spread(one["seconds"])] for one in found["runs"]]
    return (
        f"`{found['algorithm']}` from file to file.\n\n"
        + table(["rows", "s"], rows)
        + f"\n\n{found['times']:g} times the rows take {spread(found['ratio'])} times as long: "
        + ("linear." if found["linear"] else "**not linear**.")
    )


def _memory(found: Sequence[dict[str, Any]]) -> str:
    return "\n\n".join(f"`{one['algorithm']}`:\n\n{growth.text(one)}" for one in found)


#: The title of each part, and what tells it.
SECTIONS: dict[str, tuple[str, Callable[[Any], str]]] = {
    "files": ("R-trees: from file to file", _files),
    "engines": ("R-trees: the engines alone", _engines),
    "twins": ("R-trees: kernels and their twins", _twins),
    "lengths": ("R-trees: more rows", _lengths),
    "memory": ("R-trees: ten times the rows", _memory),
}
