"""The index gives each page its kind, once; the site takes its navigation from there."""

from __future__ import annotations

import importlib.util
import os
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def load_builder(root: Path = ROOT) -> ModuleType:
    """Import the script that builds the site of a checkout."""
    spec = importlib.util.spec_from_file_location("site_builder", root / "docs/site/build.py")
    assert spec is not None and spec.loader is not None
    builder = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(builder)
    return builder


BUILDER = load_builder()


def listed(index: Path) -> dict[str, list[Path]]:
    found = BUILDER.sections(index.read_text(encoding="utf-8"))
    return {
        heading: [Path(os.path.normpath(index.parent / page)) for page in pages]
        for heading, pages in found.items()
    }


def navigation() -> list[Path]:
    """All pages that can be reached by the navigation, as often as they are there."""
    by_kind = listed(DOCS / "index.md")
    pages = [page for kind in BUILDER.KINDS for page in by_kind[kind]]
    for group in [page for page in pages if page.name == "index.md"]:
        text = group.read_text(encoding="utf-8")
        pages += [group.parent / row for row in BUILDER.first_links(text)]
    return pages


def test_the_index_has_the_four_kinds_and_the_project() -> None:
    kinds = [kind for kind in listed(DOCS / "index.md") if kind in BUILDER.KINDS]
    assert kinds == ["Tutorials", "How-to guides", "Reference", "Explanation", "Project"]


def test_every_page_is_in_the_navigation_exactly_once() -> None:
    counts = Counter(navigation())
    pages = {path for path in DOCS.rglob("*.md") if path != DOCS / "index.md"}
    pages |= {ROOT / name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")}
    assert sorted(map(str, pages - set(counts))) == [], "give these a kind in docs/index.md"
    assert sorted(map(str, set(counts) - pages)) == []
    assert [str(page) for page, n in counts.items() if n > 1] == []


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    BUILDER.Pages(ROOT, tmp_path).write()
    return tmp_path


def test_links_to_what_is_outside_lead_to_pages_that_show_it(pages: Path) -> None:
    index = (pages / "index.md").read_text(encoding="utf-8")
    assert "](source/examples/anonymize_a_csv.md)" in index
    assert "](changelog.md)" in index
    shown = (pages / "source/examples/anonymize_a_csv.md").read_text(encoding="utf-8")
    job = (ROOT / "examples/anonymize_a_csv/job.toml").read_text(encoding="utf-8")
    assert f"```toml\n{job.rstrip()}\n```" in shown
    assert "…and " in shown  # 500 rows are more than are shown
    assert "](../SECURITY.md)" not in (pages / "contributing.md").read_text(encoding="utf-8")


def test_code_on_a_page_is_left_as_it_is() -> None:
    text = "[a](b)\n```text\n[a](b)\n```\n`[a](b)` [`a`](b)\n"
    changed = BUILDER.outside_blocks(text, lambda part: part.replace("(b)", "(c)"))
    assert changed == "[a](c)\n```text\n[a](b)\n```\n`[a](b)` [`a`](c)\n"
