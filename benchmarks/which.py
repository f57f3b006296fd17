"""Which promise, which algorithm: ``python -m benchmarks.which [--quick] [--write docs/which.md]``.

Three kinds of data are published: a register in which everybody is once (UCI Adult), a made-up
census whose people come again, which needs no file, and a shop whose customers come again (Online
Retail). The first part compares algorithms over k by loss and risk, and draws a picture for each
data set. The second part attacks what one algorithm publishes, promise by promise. All numbers are
the same on any machine.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.arrivals import online_retail
from benchmarks.attacks import setting_of, streams
from benchmarks.markdown import replace_section, table
from benchmarks.measure import say
from benchmarks.options import add_common, add_parts, sizes_of
from benchmarks.picture import chart_of
from benchmarks.workloads import ROOT
from shoal.algorithms import find
from shoal.attacks import AttackReport, attack
from shoal.compare.comparing import compare
from shoal.compare.page import page
from shoal.datasets import Dataset
from shoal.spec.policy import (
    Criterion,
    Delay,
    DeltaDisclosure,
    DistinctLDiversity,
    EnhancedLikeness,
    EntropyLDiversity,
    KAnonymity,
    Policy,
    TCloseness,
    Window,
)

__all__ = ["Sizes", "main"]

#: From this share of suppressed rows on, a run is named.
MANY = 0.01
ALGORITHMS = ["tide", "castle", "fads", "tree-full", "min-delay"]
FIGURES = ROOT / "docs" / "figures"
#: The promises that are attacked, each together with k.
PROMISES: dict[str, tuple[Criterion, ...]] = {
    "k alone": (),
    "l = 3": (DistinctLDiversity(3),),
    "l = { entropy = 3 }": (EntropyLDiversity(3),),
    "t = 0.2": (TCloseness(0.2),),
    "beta = 1": (EnhancedLikeness(1),),
    "disclosure = 1": (DeltaDisclosure(1),),
}
#: Those that are measured against a window.
MEASURED = ("t = 0.2", "beta = 1", "disclosure = 1")
#: The attacks that are made, and which of their grades of knowledge is shown.
ATTACKS = {
    "linking": 0, "homogeneity": 0, "inference": 0, "skewness": 0, "similarity": 0,
    "singling-out": 1,
}  # fmt: skip


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    rows: int = 10_000
    delay: int = 1_000
    window: int = 4_000
    k: int = 10
    ks: tuple[int, ...] = (5, 10, 20, 50)
    targets: int = 1_000

    @classmethod
    def quick(cls) -> Sizes:
        """Enough to see that everything works, and for nothing else."""
        return cls(rows=300, delay=60, window=120, k=3, ks=(3, 6), targets=30)


def data_sets(rows: int) -> Iterator[Dataset]:
    """The data sets that are there."""
    yield from streams(rows)
    if (shop := online_retail()) is not None:
        yield Dataset.from_table(shop.table().slice(0, rows), shop.schema, name=shop.name)


def algorithms(sizes: Sizes, folder: Path | None) -> dict[str, Any]:
    """Algorithms over k, by data set; the picture of each goes to the folder."""
    policies = [Policy(KAnonymity(k), delay=Delay(rows=sizes.delay)) for k in sizes.ks]
    results = {}
    for data in data_sets(sizes.rows):
        say(f"which: {data.name}, {len(ALGORITHMS)} algorithms")
        found = compare(data.table(), data.schema, policies, ALGORITHMS, cache=False)
        if folder is not None:
            chart = chart_of(page(found, data.name), "Loss against risk")
            (folder / f"which-{data.name}.svg").write_text(chart, encoding="utf-8")
        results[data.name] = [
            {
                "algorithm": run.cell.label, "k": run.cell.policy.k, "loss": run.loss,
                "front": place in found.front, "risk": run.figures.risk,
                "attack": run.figures.attack_success, "delay": run.figures.delay_mean,
                "suppression": run.figures.suppression, "audit": run.figures.audit,
            }
            for place, run in enumerate(found.runs)
            if run.figures is not None
        ]  # fmt: skip
    return results


def promises(sizes: Sizes) -> dict[str, Any]:
    """What attacks achieve on one algorithm under each promise, by data set."""
    results: dict[str, Any] = {}
    for data in streams(sizes.rows):
        found = results[data.name] = {}
        for name, criteria in PROMISES.items():
            say(f"which: {data.name}, {name}")
            window = Window(rows=sizes.window) if name in MEASURED else None
            policy = Policy(
                KAnonymity(sizes.k), *criteria, delay=Delay(rows=sizes.delay), window=window
            )
            setting = setting_of(data, find("tide")(), policy, sizes.targets)
            assert setting.trace is not None
            losses = setting.trace["loss"].to_pylist()
            outcomes = setting.trace["outcome"].to_pylist()
            found[name] = {
                "loss": sum(losses) / len(losses),
                "suppressed": outcomes.count("suppressed") / len(outcomes),
                "attacks": dict(_shown(attack(setting, list(ATTACKS)))),
            }
    return results


def _shown(report: AttackReport) -> Iterator[tuple[str, dict[str, float | None]]]:
    for name, grade in ATTACKS.items():
        result = report.of(name)[grade]
        rate = None if result.success is None else result.success.rate
        yield name, {"success": rate, "baseline": result.baseline, "bound": result.bound}


# -- telling ---------------------------------------------------------------------------------------


def algorithms_text(sizes: Sizes, results: Mapping[str, Any]) -> str:
    """Loss and risk of the algorithms, a picture and a table for each data set."""
    parts = [
        f"The first {sizes.rows:,} rows of each data set, a delay of {sizes.delay:,} rows, default "
        "knobs, one seed. Each cell is the loss, with suppressed rows as 1, and the risk in "
        "brackets; **bold** is the Pareto front: no other run has both less loss and less risk."
    ]
    for name, runs in results.items():
        ks = list(dict.fromkeys(run["k"] for run in runs))
        rows = []
        for algorithm in dict.fromkeys(run["algorithm"] for run in runs):
            own = {run["k"]: run for run in runs if run["algorithm"] == algorithm}
            waits = sum(run["delay"] for run in own.values()) / len(own)
            rows.append([f"`{algorithm}`", *(_cell(own[k]) for k in ks), f"{waits:,.0f}"])
        head = [name, *(f"k = {k}" for k in ks), "mean wait, rows"]
        parts += [f"![Loss against risk, {name}](figures/which-{name}.svg)", table(head, rows)]
        verdicts = ", ".join(sorted({run["audit"] for run in runs}))
        strongest = max(run["attack"] * run["k"] for run in runs)
        many = [run for run in runs if run["suppression"] >= MANY]
        told = ", ".join(
            f"`{run['algorithm']}` at k = {run['k']} {run['suppression']:.0%}" for run in many
        )
        parts.append(
            f"The audit says of all runs: {verdicts}. The strongest linking attack reached "
            f"{strongest:.2f} of its bound of 1/k. Suppressed, where it is {MANY:.0%} of the rows "
            f"or more: {told or 'nowhere'}."
        )
    return "\n\n".join(parts)


def _cell(run: Mapping[str, Any]) -> str:
    text = f"{run['loss']:.3f} ({100 * run['risk']:.1f} %)"
    return f"**{text}**" if run["front"] else text


def promises_text(sizes: Sizes, results: Mapping[str, Any]) -> str:
    """Successes of attacks under each promise."""
    parts = [
        f"`tide`, the first {sizes.rows:,} rows, a delay of {sizes.delay:,} rows, k = {sizes.k} "
        f"with each promise; t, beta and disclosure in windows of {sizes.window:,} rows. Success "
        "in percent of the people attacked (of the boxes, for singling out by box and sensitive "
        "value), the baseline in brackets:"
    ]
    for name, found in results.items():
        rows = [
            [
                f"`{promise}`" if "=" in promise else promise, f"{one['loss']:.3f}",
                f"{one['suppressed']:.1%}", *(_success(each) for each in one["attacks"].values()),
            ]
            for promise, one in found.items()
        ]  # fmt: skip
        parts.append(table([name, "loss", "suppressed", *ATTACKS], rows))
    return "\n\n".join(parts)


def _success(one: Mapping[str, float | None]) -> str:
    if one["success"] is None:
        return "-"
    brackets = "" if one["baseline"] is None else f" ({100 * one['baseline']:.1f})"
    return f"{100 * one['success']:.1f}{brackets}"


PARTS = ("algorithms", "promises")


def main() -> None:
    """Measure, print, and write what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.which", description=__doc__)
    add_common(parser, rows="each data set")
    add_parts(parser, PARTS)
    options = parser.parse_args()
    sizes = sizes_of(Sizes, parser, options)
    results, texts = {}, {}
    for part in options.only or PARTS:
        if part == "algorithms":
            results[part] = algorithms(sizes, None if options.write is None else FIGURES)
            texts[part] = algorithms_text(sizes, results[part])
        else:
            results[part] = promises(sizes)
            texts[part] = promises_text(sizes, results[part])
    print("\n\n".join(texts.values()))
    if options.json is not None:
        options.json.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    if options.write is not None:
        for part, text in texts.items():
            replace_section(options.write, part, text)


if __name__ == "__main__":
    main()
