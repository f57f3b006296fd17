"""Draw the pictures of docs/compare.md: a comparison on a made-up census of 30,000 rows.

python docs/draw_comparison.py         docs/figures/compare-*.svg, and the table on stdout
"""

from __future__ import annotations

import re
from pathlib import Path

from shoal import Delay, DistinctLDiversity, KAnonymity, Policy
from shoal.compare.comparing import compare
from shoal.compare.comparison import Comparison
from shoal.compare.page import page
from shoal.datasets import census
from shoal.report.style import STYLE

FOLDER = Path(__file__).parent / "figures"
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
    for name, title in PICTURES.items():
        (FOLDER / f"{name}.svg").write_text(picture(found, title), encoding="utf-8")


def picture(found: Comparison, title: str) -> str:
    """Return a chart of the report as a file of its own, with its style."""
    charts = re.findall(r"<svg .*?</svg>", page(found, "census"), re.S)
    chart = next(each for each in charts if f"<title>{title}" in each)
    size = re.search(r'viewBox="0 0 (\d+) (\d+)"', chart)
    assert size is not None
    wide, high = size.groups()
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="shoal" width="{wide}" height="{high}" '
        f'viewBox="0 0 {wide} {high}"><style>{STYLE}</style>'
        f'<rect width="{wide}" height="{high}" fill="var(--back)"/>{chart}</svg>\n'
    )


if __name__ == "__main__":
    main()
