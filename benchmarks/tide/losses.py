"""What TIDE loses on streams and tables beside the others, and whether that is what is wanted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.figures.model import Claim, Curve, Figure, Panel, Reading
from benchmarks.markdown import table
from benchmarks.tide.data import title_of
from benchmarks.tide.runs import KEPT, OTHERS, OWN, TABLES, Case, Seen, measured
from benchmarks.tide.settings import Bench

__all__ = [
    "Compared",
    "by_delay",
    "by_k",
    "compared",
    "loss_claims",
    "promise_claims",
    "promises",
    "ratios",
    "table_claims",
    "tables",
]  # fmt: skip

#: The targets: of what the best of the others loses, TIDE loses at most so much.
AT_LARGE_K, IN_THE_MEAN, AT_SMALL_K, PROMISED, AS_TABLE = 0.75, 0.70, 0.80, 0.80, 0.85
#: From here on k is large.
LARGE_K = 50


@dataclass(frozen=True)
class Compared:
    """What each method loses in one case; of the others the best is told."""

    case: Case
    own: dict[str, Seen]
    others: dict[str, Seen]

    @property
    def best(self) -> str:
        """The one of the others that loses least."""
        return min(self.others, key=lambda name: self.others[name].mean)

    def ratio(self, method: str) -> Reading:
        """What a form of TIDE loses of what the best of the others loses, order by order."""
        pairs = zip(self.own[method].loss, self.others[self.best].loss, strict=True)
        return Reading(tuple(a / b for a, b in pairs))

    @property
    def where(self) -> str:
        """The case in words."""
        return f"{title_of(self.case.data)}, {self.case.promise}"


def compared(bench: Bench, case: Case) -> Compared:
    """Measure all methods that can keep a promise."""
    own, others = (OWN, OTHERS) if case.delay else (("tide-table",), TABLES)
    sizes = bench.sizes
    orders = sizes.promise_repeats if case.further else sizes.repeats
    orders = orders if case.delay else sizes.table_repeats
    found = {name: measured(bench.store, case, name, orders) for name in own + others}
    kept = {name: seen for name, seen in found.items() if seen is not None}
    return Compared(
        case,
        {name: seen for name, seen in kept.items() if name in own},
        {name: seen for name, seen in kept.items() if name in others},
    )


def _grid(bench: Bench) -> list[Compared]:
    """Every data set, delay and k."""
    sizes = bench.sizes
    return [
        compared(bench, Case(data, sizes.rows, k, delay))
        for data in bench.data for delay in sizes.delays for k in sizes.ks
    ]  # fmt: skip


# -- figures ---------------------------------------------------------------------------------------


def _curves(found: Sequence[Compared]) -> tuple[Curve, ...]:
    """TIDE in its two forms, and each of the others in the form that loses least at that place."""
    own = [
        Curve(method, [Reading(one.own[method].loss) for one in found]) for method in OWN
    ]  # fmt: skip
    others = []
    for name in KEPT:
        best = [
            min(
                (seen for method, seen in one.others.items() if method.startswith(f"{name},")),
                key=lambda seen: seen.mean,
            )
            for one in found
        ]
        others.append(Curve(name, [Reading(seen.loss) for seen in best]))
    return (*own, *others)


def _setting(bench: Bench) -> str:
    return (
        f"{bench.sizes.rows:,} rows of each data set, each row a person, in {bench.sizes.repeats} "
        "random orders; a suppressed row has lost everything. Of each other method, the form that "
        "loses least at that point is shown: without reuse, with random reuse, or with the "
        "best group, which leaks. TIDE never reuses."
    )


def by_k(bench: Bench) -> Figure:
    """Vary k."""
    sizes, found = bench.sizes, _grid(bench)
    n = len(sizes.ks)
    panels = [
        Panel(
            f"{title_of(some[0].case.data)}, delay {some[0].case.delay:,}", "k", sizes.ks,
            _curves(some), what="Mean loss", log=True,
        )
        for some in (found[i : i + n] for i in range(0, len(found), n))
    ]  # fmt: skip
    return _figure("k", "loss over k", _setting(bench), panels, loss_claims(bench))


def by_delay(bench: Bench) -> Figure:
    """Vary the delay."""
    sizes = bench.sizes
    panels = []
    for data in bench.data:
        found = [
            compared(bench, Case(data, sizes.rows, sizes.k, delay)) for delay in sizes.more_delays
        ]
        panels.append(
            Panel(
                f"{title_of(data)}, k = {sizes.k}", "delay, rows", sizes.more_delays,
                _curves(found), what="Mean loss", log=True,
            )
        )  # fmt: skip
    return _figure("delay", "loss over the delay", _setting(bench), panels, ())


def _figure(
    name: str, title: str, setting: str, panels: Sequence[Panel], claims: Sequence[Claim]
) -> Figure:
    return Figure(
        name, title, setting, tuple(panels), tuple(claims), page="tide", source="target",
        one_axis=False, heading="Streams",
    )  # fmt: skip


# -- tables ----------------------------------------------------------------------------------------


def _lines(found: Sequence[Compared], own: Sequence[str]) -> str:
    head = ["data", "promise", "best of the others", "its loss"]
    for method in own:
        head += [f"`{method}`", "ratio"]
    rows = []
    for one in found:
        line = [
            title_of(one.case.data), one.case.promise, f"`{one.best}`",
            f"{one.others[one.best].mean:.3f}",
        ]  # fmt: skip
        for method in own:
            line += [f"{one.own[method].mean:.3f}", f"{one.ratio(method)}"]
        rows.append(line)
    return table(head, rows)


def _suppressed(found: Sequence[Compared]) -> str:
    most = max(max(seen.suppressed) for one in found for seen in one.own.values())
    if not most:
        return "TIDE suppressed no row."
    return f"TIDE suppressed at most {100 * most:.2f} % of the rows."


def ratios(bench: Bench) -> str:
    """What TIDE loses of what the best of the others loses, on streams under k."""
    found = _grid(bench)
    return "\n\n".join(
        [
            "## Streams: ratios",
            "*Ratio*: what `tide` loses of what the best of the others loses, which may be another "
            "method for each line: the mean over the orders of the rows, ± half of the difference "
            "between the smallest and the largest.",
            _lines(found, OWN),
            _suppressed(found),
        ]
    )


def _promised(bench: Bench) -> list[Compared]:
    sizes = bench.sizes
    asked = (("l", float(sizes.l)), ("t", sizes.t), ("gaps", float(sizes.gaps)))
    return [
        compared(bench, Case(data, sizes.promise_rows, sizes.k, sizes.delay, further, bound))
        for further, bound in asked for data in bench.data
    ]  # fmt: skip


def promises(bench: Bench) -> str:
    """Streams under further promises, and with missing values."""
    found = _promised(bench)
    return "\n\n".join(
        [
            "## Further promises",
            f"{bench.sizes.promise_rows:,} rows, {bench.sizes.promise_repeats} orders. Where l or "
            "t is promised, Adult has nine quasi attributes, and the occupation is the sensitive "
            "one, as in ACS income; of the government's employees it is the salary. t is measured "
            f"against the latest {2 * bench.sizes.delay:,} rows. With gaps, as many rows lack 0, "
            f'1, … {bench.sizes.gaps} values, `missing = "maybe"`. TIDE counts a quarter of an '
            "attribute as lost where a group mixes rows that have it with rows that lack it, which "
            "the loss shown here doesn't: it groups similar rows at a price.",
            _lines(found, OWN),
            _suppressed(found),
            _verdicts(promise_claims(bench)),
        ]
    )


def _tables(bench: Bench) -> list[Compared]:
    sizes = bench.sizes
    return [
        compared(bench, Case(data, sizes.table_rows, k, 0, further, bound))
        for data in bench.data
        for k, further, bound in (
            *((k, "", 0.0) for k in sizes.table_ks), (sizes.table_ks[0], "t", sizes.t),
        )
    ]  # fmt: skip


def tables(bench: Bench) -> str:
    """Whole tables."""
    found = _tables(bench)
    return "\n\n".join(
        [
            "## Whole tables",
            f"{bench.sizes.table_rows:,} rows as one table, in one order, against "
            f"{_listed(TABLES)}, as far as they can keep the promise.",
            _lines(found, ("tide-table",)),
            _suppressed(found),
            _verdicts(table_claims(bench)),
        ]
    )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


# -- targets ---------------------------------------------------------------------------------------


def _verdicts(claims: Sequence[Claim]) -> str:
    rows = [[claim.paper, f"**{claim.verdict}**", claim.evidence] for claim in claims]
    return table(["target", "here", "numbers"], rows, numbers=False)


def _at_most(words: str, found: Sequence[Compared], method: str, most: float) -> Claim:
    """Whether the ratio is small enough in all cases."""
    ratios = {one.where: one.ratio(method).mean for one in found}
    missed = [where for where, ratio in ratios.items() if ratio > most]
    evidence = f"{min(ratios.values()):.3f} to {max(ratios.values()):.3f}"
    if missed:
        worst = max(ratios, key=lambda where: ratios[where])
        evidence += f"; more in {len(missed)} of {len(ratios)}, most on {worst}"
    return Claim(words, "missed" if missed else "met", evidence)


def loss_claims(bench: Bench) -> list[Claim]:
    """The targets of the loss on streams under k."""
    found = [one for one in _grid(bench) if one.case.k in bench.sizes.target_ks]
    large = [one for one in found if one.case.k >= min(LARGE_K, max(bench.sizes.ks))]
    small = [one for one in found if one not in large]
    mean = float(np.mean([one.ratio("tide").mean for one in large]))
    claims = [
        _at_most(f"at most {AT_LARGE_K:.2f} at k ≥ {LARGE_K}", large, "tide", AT_LARGE_K),
        Claim(
            f"at most {IN_THE_MEAN:.2f} at k ≥ {LARGE_K}, in the mean",
            "met" if mean <= IN_THE_MEAN else "missed",
            f"{mean:.3f}",
        ),
    ]  # fmt: skip
    for method in OWN:
        words = f"at most {AT_SMALL_K:.2f} at k = 10, `{method}`"
        claims.append(_at_most(words, small, method, AT_SMALL_K))
    return claims


def promise_claims(bench: Bench) -> list[Claim]:
    """The targets of the loss under further promises."""
    found = _promised(bench)
    kinds = {"l": f"l = {bench.sizes.l}", "t": f"t = {bench.sizes.t:g}", "gaps": "gaps"}
    return [
        _at_most(
            f"at most {PROMISED:.2f} with {words}",
            [one for one in found if one.case.further == kind], "tide", PROMISED,
        )
        for kind, words in kinds.items()
    ]  # fmt: skip


def table_claims(bench: Bench) -> list[Claim]:
    """The targets of the loss on tables."""
    found = _tables(bench)
    return [
        _at_most(
            f"at most {AS_TABLE:.2f} as a table, under {words}",
            [one for one in found if one.case.further == kind], "tide-table", AS_TABLE,
        )
        for kind, words in (("", "k alone"), ("t", f"k and t = {bench.sizes.t:g}"))
    ]  # fmt: skip
