"""The pages on the papers count the claims as the figures judge them."""

from __future__ import annotations

import re

import pytest
from benchmarks.papers import FIGURES, PAGES, PAPERS, VERDICTS, text_of

AGAIN = "count them again: .venv/bin/python -m benchmarks.papers"


@pytest.mark.parametrize("paper", PAGES)
def test_the_claims_are_counted_as_the_figures_judge_them(paper: str) -> None:
    page = (PAPERS / f"{paper}.md").read_text(encoding="utf-8")
    there = page.partition("<!-- claims:begin -->")[2].partition("<!-- claims:end -->")[0]
    assert there.strip() == text_of(paper), AGAIN


def test_every_paper_has_a_page_and_every_verdict_is_counted() -> None:
    assert {path.stem for path in PAPERS.glob("*.md")} == set(PAGES)
    for page in (each for pages in PAGES.values() for each in pages):
        text = (FIGURES / f"{page}.md").read_text(encoding="utf-8")
        assert set(re.findall(r"\| \*\*([a-z' ]+)\*\* *\|", text)) <= set(VERDICTS)
