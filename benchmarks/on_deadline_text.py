"""The results of `benchmarks.on_deadline` as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from benchmarks import growth
from benchmarks.markdown import met, spread, table

__all__ = ["SECTIONS"]


def _files(found: Sequence[dict[str, Any]]) -> str:
    first = found[0]
    rows = []
    for one in found:
        where = f"{one['workload']}, {one['n_rows']:,} rows"
        rate = f"{one['rows_per_second']['median']:,.0f}"
        rows.append([where, "pass-through", spread(one["seconds"]), rate, "1", "–", "–"])
        rows += [
            [
                where,
                line["algorithm"],
                spread(line["seconds"]),
                f"{line['rows_per_second']['median']:,.0f}",
                spread(line["ratio"]),
                f"{line['loss']['published']:.3f}",
                "–" if line["target"] is None else met(line["met"]),
            ]
            for line in one["algorithms"]
        ]
    targets = {line["target"] for one in found for line in one["algorithms"]} - {None}
    return (
        f"k = {first['k']} and a delay of {first['delay']:,} rows, on {first['n_quasi']} quasi "
        "attributes; the target is a ratio to the pass-through of at most "
        f"{', '.join(f'{target:g}' for target in sorted(targets))}. The pass-through has the same "
        "file; where there are gaps, they are published as gaps by both.\n\n"
        + table(["workload", "algorithm", "s", "rows/s", "ratio", "loss", "target"], rows)
    )


def _workers(found: Sequence[dict[str, Any]]) -> str:
    first = found[0]
    rows = [
        [
            f"{one['delay']:,}",
            one["kept"],
            *(spread(one["seconds"][name]) for name in ("one", "two", "in_turn")),
            spread(one["gain"]),
            met(one["met"]),
            spread(one["by_threads"]),
            f"{one['at_work']['median']:.0%}",
            f"{one['loss']['one']:.3f} and {one['loss']['two']:.3f}",
        ]
        for one in found
    ]
    alike = all(one["alike"] for one in found)
    return (
        f"FAST's engine alone on {first['n_rows']:,} encoded rows, k = {first['k']}; the target is "
        f"that two workers are at least {first['target']:g} times as fast as one. Two workers "
        "search among fewer rows each, which gains time without any thread; what the threads "
        "alone give is shown by two workers one after the other. *In workers* is the share "
        "of their processor time that two threads could halve. At once and one after the other "
        f"they decided {'alike' if alike else '**differently**'}.\n\n"
        + table(
            ["delay, rows", "groups kept", "1 worker, s", "2 at once, s", "2 in turn, s", "gain",
             "target", "by threads alone", "in workers", "loss of 1 and 2"],
            rows,
        )
    )  # fmt: skip


def _twins(found: Sequence[dict[str, Any]]) -> str:
    rows = [
        [
            one["algorithm"],
            one["k"],
            f"{one['delay']:,}",
            f"{one['n_rows']:,}",
            one["gaps"],
            spread(one["seconds"]["twin"]),
            spread(one["seconds"]["kernel"], 4),
            f"{one['rows_per_second']['kernel']['median']:,.0f}",
            spread(one["ratio"], 0),
            met(one["met"]),
        ]
        for one in found
    ]
    odd = sorted({one["algorithm"] for one in found if not one["alike"]})
    return (
        "Encoded rows of the census; some of them lack up to *gaps* values. Processor seconds; a "
        "kernel runs many times for each run of its twin. The target is a ratio of at least "
        f"{found[0]['target']:g}. "
        + (f"**Decided differently: {', '.join(odd)}.**" if odd else "All decided as their twins.")
        + "\n\n"
        + table(
            ["", "k", "delay", "rows", "gaps", "naive twin, s", "kernel, s", "kernel, rows/s",
             "ratio", "target"],
            rows,
        )
    )  # fmt: skip


def _growth(found: Sequence[dict[str, Any]]) -> str:
    return "\n\n".join(f"`{one['algorithm']}`:\n\n{growth.text(one)}" for one in found)


#: The title of each part, and the function that writes it.
SECTIONS: dict[str, tuple[str, Callable[[Sequence[dict[str, Any]]], str]]] = {
    "files": ("On-deadline family: from file to file", _files),
    "workers": ("On-deadline family: workers of FAST", _workers),
    "twins": ("On-deadline family: kernels and their twins", _twins),
    "gaps": ("On-deadline family: kernels and their twins on rows with gaps", _twins),
    "growth": ("On-deadline family: ten times the rows", _growth),
}
