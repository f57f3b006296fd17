"""The frame of a page: in order, escaped, and closed to the outside."""

import re
import xml.etree.ElementTree as ET

from shoal.report.page import Section, bullets, document, fragment, note, paragraph, table
from shoal.report.style import STYLE

EVIL = '<img src=x onerror="alert(1)">&'


def test_headings_go_down_by_one_level() -> None:
    inner = Section("Inner", [paragraph("text")])
    found = re.findall(r"<h(\d)>", document("Title", [], [Section("One", [inner]), Section("Two")]))
    assert found == ["1", "2", "3", "2"]
    assert re.findall(r"<h(\d)>", fragment("Title", [], [Section("One", [inner])])) == list("234")


def test_every_text_is_escaped() -> None:
    parts = [paragraph(EVIL), note(EVIL), bullets([EVIL]), table(EVIL, [EVIL], [[EVIL]])]
    html = document(EVIL, [paragraph(EVIL)], [Section(EVIL, parts)])
    assert "<img" not in html
    assert html.count("&lt;img") == html.count("onerror=")


def test_a_table_has_a_caption_and_scopes() -> None:
    found = ET.fromstring(table("Verdicts", ["name", "n"], [["k", "5"]], numbers=[1]))
    assert found.find("table/caption") is not None
    assert [each.get("scope") for each in found.iter("th")] == ["col", "col", "row"]
    assert [each.get("class") for each in found.iter("td")] == ["number"]


def test_nothing_is_fetched_and_no_script_runs() -> None:
    html = document("Title", [], [Section("One")])
    assert "default-src 'none'" in html.replace("&#x27;", "'")
    assert not re.search(r"https?:|<script|url\(|@import|\bon\w+=", html)


def test_the_contents_link_to_the_sections() -> None:
    html = document("Title", [], [Section("What & how"), Section("Risk")])
    targets = re.findall(r'href="#([^"]+)"', html)
    assert targets == ["what-how", "risk"]
    assert all(f'id="{target}"' in html for target in targets)


def _colours(block: str) -> dict[str, str]:
    return dict(re.findall(r"--(\w+): (#[0-9a-f]{6});", block))


def _light(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def _contrast(one: str, other: str) -> float:
    low, high = sorted((_light(one), _light(other)))
    return (high + 0.05) / (low + 0.05)


def test_colours_have_contrast_in_light_and_dark() -> None:
    blocks = re.findall(r"\{ (\n--back.*?)(?:color-scheme|font-size|\})", STYLE, re.DOTALL)
    assert len(blocks) == 3
    for colours in map(_colours, blocks):
        for name, colour in colours.items():
            if name not in {"back", "panel", "rule"}:
                least = 3.0 if name.startswith("c") else 4.5
                assert _contrast(colour, colours["back"]) >= least, name
                assert _contrast(colour, colours["panel"]) >= least, name
