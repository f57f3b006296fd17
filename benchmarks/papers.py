"""Count the claims of each paper that hold: ``python -m benchmarks.papers``.

It reads the verdicts on the pages in docs/figures, which were computed from measurements, and
writes the tables of docs/papers. `tests/docs/test_papers.py` fails if one of them is old.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from benchmarks.markdown import replace_section, table
from benchmarks.workloads import ROOT

__all__ = ["FIGURES", "PAGES", "PAPERS", "VERDICTS", "main", "text_of"]

PAPERS = ROOT / "docs" / "papers"
FIGURES = ROOT / "docs" / "figures"
#: The pages of figures that belong to each paper.
PAGES = {
    "thesis": ("sabre", "burel", "castle", "sliding"),
    "fast": ("fast",),
    "idea": ("idea",),
    "trees": ("trees",),
    "z-anonymity": ("z",),
}
VERDICTS = ("holds", "holds in general", "inconclusive", "doesn't hold")


def text_of(paper: str) -> str:
    """The claims of a paper, figure by figure."""
    rows = [row for page in PAGES[paper] for row in _rows(FIGURES / f"{page}.md")]
    total = [sum(int(row[i + 1]) for row in rows) for i in range(len(VERDICTS))]
    return table(["figure", *VERDICTS], [*rows, ["all", *total]])


def _rows(page: Path) -> Iterator[list[str]]:
    for section in page.read_text(encoding="utf-8").split("\n## ")[1:]:
        title = section.partition("\n")[0]
        found = re.findall(r"\| \*\*([a-z' ]+)\*\* *\|", section)
        counts = [found.count(verdict) for verdict in VERDICTS]
        if any(counts):
            yield [f"[{title}](../figures/{page.name}#{_anchor(title)})", *map(str, counts)]


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def main() -> None:
    """Write all tables."""
    for paper in PAGES:
        replace_section(PAPERS / f"{paper}.md", "claims", text_of(paper))


if __name__ == "__main__":
    main()
