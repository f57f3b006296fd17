"""The parts of the benchmark of TIDE, and the page that is made of them."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.figures.model import Claim, Figure
from benchmarks.figures.salaries import NEEDS as SALARIES
from benchmarks.markdown import table
from benchmarks.tide import ablation, losses, speed, utility
from benchmarks.tide.settings import Bench, Sizes
from benchmarks.tide.store import NotMeasuredError
from benchmarks.workloads import ADULT, SHARED

__all__ = ["HEAD", "NEEDS", "PARTS", "SECTIONS"]

Make = Callable[[Bench], Figure | str]

#: What has to be there.
NEEDS = (ADULT, SHARED / "acs_income_2018.parquet", *SALARIES)

HEAD = """\
# TIDE: what it reaches

Made by `python -m benchmarks.figures tide`, from what `python -m benchmarks.tide` measured; don't
edit. [TIDE](../algorithms/tide.md) is Shoal's own method: there is no paper to compare with, only
targets. It is compared with the methods of the papers for streams, at equal promise and delay:
[CASTLE](../algorithms/castle.md), [FADS](../algorithms/fads.md), [IDEA](../algorithms/idea.md) and
[K-VARP](../algorithms/k-varp.md), each without reuse (`kept = 0`, the default), with random reuse
(`joins = "alone"`, as in the papers) and with the best group (`reuse = "best"`), which leaks.

Loss is `glm`, from 0 to 1: the mean over orders of the rows, ± half of the distance between the
least and the largest (the bars in the pictures). It is the same on any machine; seconds aren't.
"""


CLAIMS: dict[str, Callable[[Bench], list[Claim]]] = {
    "loss": losses.loss_claims,
    "promises": losses.promise_claims,
    "tables": losses.table_claims,
    "speed": speed.engine_claims,
    "speed, whole runs": speed.whole_claims,
}


def _targets(bench: Bench) -> str:
    """All targets with their verdicts."""
    rows, n_met = [], 0
    for part, claims_of in CLAIMS.items():
        try:
            claims = claims_of(bench)
        except NotMeasuredError:
            rows.append([part, "not measured yet", ""])
            continue
        rows += [[claim.paper, f"**{claim.verdict}**", claim.evidence] for claim in claims]
        n_met += sum(claim.verdict == "met" for claim in claims)
    return "\n\n".join(
        [
            "## Targets",
            f"{n_met} of {len(rows)} are met. The first ones are about the loss of `tide` in "
            "relation to the best of the others; of speed, means and medians count.",
            table(["target", "here", "numbers"], rows, numbers=False),
        ]
    )


#: The sections of the page, by part.
PARTS: dict[str, dict[str, Make]] = {
    "targets": {"tide-targets": _targets},
    "loss": {"tide-k": losses.by_k, "tide-ratios": losses.ratios, "tide-delay": losses.by_delay},
    "promises": {"tide-promises": losses.promises},
    "tables": {"tide-tables": losses.tables},
    "utility": {"tide-utility": utility.utility},
    "ablation": {"tide-effort": ablation.by_effort, "tide-without": ablation.without},
    "speed": {"tide-speed": speed.engine, "tide-whole": speed.whole},
}


def _section(part: str, name: str) -> Callable[[bool], Figure | str]:
    """A section of what was measured before; a quick one is measured now."""

    def make(quick: bool) -> Figure | str:
        if quick:
            return PARTS[part][name](Bench(Sizes.quick(), None))
        try:
            return PARTS[part][name](Bench(measures=False))
        except NotMeasuredError:
            title = name.removeprefix("tide-").capitalize()
            return f"## {title}\n\nNot measured yet: `python -m benchmarks.tide {part}` does it."

    return make


SECTIONS = {name: _section(part, name) for part, makes in PARTS.items() for name in makes}
