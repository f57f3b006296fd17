"""Draw the pictures of docs/compare.md: a comparison on a made-up census of 30,000 rows.

python -m benchmarks.comparison         docs/figures/compare-*.svg, and the table on stdout
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.picture import chart_of
from shoal import Delay, DistinctLDiversity, KAnonymity, Policy
from shoal.compare.comparing import compare
from shoal.compare.page import page
from shoal.datasets import census

FOLDER = Path(__file__).parents[1] / "docs" / "figures"
ALGORITHMS = ["castle", "fads", "fast", "idea", "min-delay", "tide"]
#: The pictures, by the beginning of the title of their chart.
PICTURES = {
    "compare-risk": "Loss against risk",
    "compare-k": "Loss over k",
    "compare-attributes": "Loss by attribute",
    "compare-delay": "tide: how long rows waited",
}


def main() -> None:
    """Compare, print the table, and write the pictures."""
    stream = census(30_000, seed=1)
    policies = [
        Policy(KAnonymity(k), DistinctLDiversity(3), delay=Delay(rows=3000)) for k in (5, 10, 20)
    ]
    found = compare(stream.table(), stream.schema, policies, ALGORITHMS, jobs=2)
    print(found)
    report = page(found, "census")
    for name, title in PICTURES.items():
        (FOLDER / f"{name}.svg").write_text(chart_of(report, title), encoding="utf-8")


if __name__ == "__main__":
    main()
