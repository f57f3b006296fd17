"""What was found about z-anonymity, as Markdown."""

from __future__ import annotations

from typing import Any

from benchmarks.markdown import met, spread, table

__all__ = ["text"]

NAMED = {"without": "", "with": ", pseudonyms"}


def text(results: dict[str, Any]) -> str:
    """All results."""
    where = results["machine"]
    parts = [
        "Measured on {processor}, {cores} cores, with Python {python}, NumPy {numpy}, "
        "Numba {numba}, PyArrow {pyarrow}, while other programs used {others:.0%} of the machine. "
        "Medians, with minimum and maximum in brackets; ratios are per repeat. ".format(
            **where, others=results["others"]
        )
        + f"z = {results['z']}."
    ]
    if "peer" in results:
        parts += ["### Events: the kernel beside `zanon`", _peer(results["peer"])]
    if results["files"]:
        parts += ["### Events: from file to file", _files(results["files"])]
        parts += ["### Events: who has company", _company(results["files"], results)]
    parts += ["### Events: values with ladders", _ladders(results["ladders"], results["paths"])]
    parts += ["### Events: more rows, longer windows", _growth(results["growth"])]
    return "\n\n".join(parts)


def _rates(found: dict[str, Any], digits: int = 0) -> str:
    return spread({n: found[n] / 1000 for n in ("median", "least", "most")}, digits)


def _peer(found: dict[str, Any]) -> str:
    rows = [
        [name, spread(found["seconds"][key], 3), _rates(found["rows_per_second"][key])]
        for name, key in (
            (f"`zanon` {found['version']}, its loop", "zanon"), ("the kernel", "z-anonymity"),
        )
    ]  # fmt: skip
    same = "Both publish the same events" if found["alike"] else "**They publish different events**"
    return (
        f"{found['n_rows']:,} events of {found['n_subjects']:,} users, {found['n_values']:,} "
        f"values of popularity 1/rank, a window of {found['window']:,.0f} of them.\n\n"
        + table(["", "s", "1000 events/s"], rows)
        + f"\n\nTimes as fast: {spread(found['gain'], 0)}; target, at least {found['target']:g}: "
        f"{met(found['met'])}. {same}, {found['published']:.1%} of them."
    )


def _files(found: list[dict[str, Any]]) -> str:
    rows = [
        [
            one["title"] + NAMED[name], f"{one['n_rows']:,}", _rates(speed["pass-through"]),
            _rates(speed["z-anonymity"]), spread(speed["ratio"]), met(speed["met"]),
        ]
        for one in found
        for name, speed in one["pseudonyms"].items()
    ]  # fmt: skip
    head = [
        "events, window", "events", "pass-through, 1000/s", "z-anonymity, 1000/s", "ratio",
        f"at most {found[0]['target']:g}",
    ]  # fmt: skip
    return table(head, rows)


def _company(found: list[dict[str, Any]], results: dict[str, Any]) -> str:
    rows = [
        [
            one["title"], f"{one['published']:.1%}", one["verdict"], f"{one['n_windows']:,}",
            f"{one['n_subjects']:,}", f"{one['k_anonymous']:.1%}", f"{one['modelled']:.1%}",
            one["chosen"]["by_model"], one["chosen"]["by_count"],
        ]
        for one in found
    ]  # fmt: skip
    k, wanted = results["k"], f"{results['probability']:.0%}"
    head = [
        "events, window", "published", "audit", "windows", "subjects in one",
        f"{k}-anonymous, measured", "by the model", f"z for {wanted}, by the model", "counted",
    ]  # fmt: skip
    return table(head, rows)


def _ladders(alone: dict[str, Any], files: dict[str, Any]) -> str:
    speeds, of_files = alone["rows_per_second"], files["rows_per_second"]
    rows = [
        [
            name, _rates(speeds[key]), _rates(of_files[key]["pass-through"]),
            _rates(of_files[key]["z-anonymity"]), spread(of_files[key]["ratio"]),
            met(of_files[key]["met"]),
        ]
        for name, key in (("as they are", "flat"), (f"paths of {files['levels']}", "ladders"))
    ]  # fmt: skip
    head = [
        "values", "kernel, 1000/s", "pass-through, 1000/s", "z-anonymity, 1000/s", "ratio",
        f"at most {files['target']:g}",
    ]  # fmt: skip
    shares = ", ".join(f"{share:.1%}" for share in alone["published"]["ladders"])
    return (
        f"The same {alone['n_rows']:,} events as above.\n\n"
        + table(head, rows)
        + f"\n\nA path takes {spread(alone['ratio'])} times as long in the kernel, and "
        f"{spread(files['ratio'])} times from file to file. As they are, "
        f"{alone['published']['flat'][0]:.1%} are published; of the paths, from the finest level "
        f"to the coarsest, {shares}."
    )


def _growth(found: dict[str, Any]) -> str:
    ratios = found["ratios"]
    return (
        _runs(found["lengths"])
        + f"\n\n{found['rows']:g} times the rows: {spread(ratios['time'])} times the time, "
        + ("linear" if found["linear"] else "**not linear**")
        + f"; {spread(ratios['peak'])} times the peak memory and {spread(ratios['tables'])} times "
        + "the tables, "
        + ("bounded" if found["bounded"] else "**not bounded**")
        + " by the window.\n\n"
        + _runs(found["windows"])
        + f"\n\n{found['times_window']:g} times the window: {spread(ratios['tables_of_windows'])} "
        + "times the tables, which "
        + ("follow" if found["follows"] else "**outgrow**")
        + " it."
    )


def _runs(found: list[dict[str, Any]]) -> str:
    rows = [
        [
            f"{one['n_rows']:,}", f"{one['window']:,.0f}", spread(one["seconds"]),
            *(f"{one[n]['median'] / 2**20:,.0f}" for n in ("peak", "growth", "steady")),
            f"{one['tables']['median'] / 2**20:,.2f}",
        ]
        for one in found
    ]  # fmt: skip
    head = [
        "rows", "window", "s", "peak memory, MiB", "of it by the run", "second half", "tables, MiB",
    ]  # fmt: skip
    return table(head, rows)
