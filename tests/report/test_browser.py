"""A report in a real browser: it renders, fetches nothing, can be read by all, and prints."""

import base64
import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.report.browser import MISSING, Browser
from tests.report.world import CELLS, GROUPS, people, released, reported

pytestmark = [
    pytest.mark.skipif(MISSING is not None, reason=str(MISSING)),
    # One browser for all of them.
    pytest.mark.xdist_group("browser"),
]

#: Texts whose contrast with what is behind them is below 4.5, or 3 if they are large.
CONTRAST = """
const parts = c => (c.match(/[\\d.]+/g) || []).map(Number);
const light = c => { const [r, g, b] = parts(c).slice(0, 3).map(v => v / 255)
    .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const behind = e => { for (; e; e = e.parentElement) {
    const c = getComputedStyle(e).backgroundColor, p = parts(c);
    if (p.length === 3 || p[3] > 0) return c; } return "rgb(255, 255, 255)"; };
const bad = [];
for (const e of document.querySelectorAll("body *")) {
  if (e.closest("title, desc, style")) continue;
  if (![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())) continue;
  const s = getComputedStyle(e);
  const ink = e.namespaceURI.endsWith("svg") ? s.fill : s.color;
  const [low, high] = [light(ink), light(behind(e))].sort((a, b) => a - b);
  const least = parseFloat(s.fontSize) >= 24 ? 3 : 4.5;
  if ((high + 0.05) / (low + 0.05) < least) bad.push([e.tagName, e.textContent, ink]);
}
return bad;
"""
#: What lacks a name for those who don't see it.
UNNAMED = """
const bad = [];
for (const e of document.querySelectorAll("svg"))
  if (e.getAttribute("role") !== "img" || !e.getAttribute("aria-label")) bad.push("svg");
for (const e of document.querySelectorAll("figure"))
  if (!e.querySelector("figcaption")?.textContent.trim()) bad.push("figure");
for (const e of document.querySelectorAll("table")) {
  if (!e.caption?.textContent.trim()) bad.push("table");
  for (const h of e.querySelectorAll("th")) if (!h.scope) bad.push("th");
}
for (const e of document.querySelectorAll("a"))
  if (!document.querySelector(e.getAttribute("href"))) bad.push("a");
const ids = [...document.querySelectorAll("[id]")].map(e => e.id);
if (new Set(ids).size !== ids.length) bad.push("ids");
if (!document.documentElement.lang || !document.title) bad.push("document");
return bad;
"""
#: Pictures without a size, and texts that leave their picture.
CUT_OFF = """
const bad = [];
for (const svg of document.querySelectorAll("svg")) {
  const frame = svg.getBoundingClientRect();
  if (frame.width < 100 || frame.height < 40) bad.push("svg");
  for (const text of svg.querySelectorAll("text")) {
    const r = text.getBoundingClientRect();
    if (r.left < frame.left - 2 || r.right > frame.right + 2) bad.push(text.textContent);
  }
}
return bad;
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder, rows, pages = tmp_path_factory.mktemp("pages"), people(), []
    for name, job in (("groups", GROUPS), ("z", CELLS)):
        pages.append(folder / f"{name}.html")
        few = ["linking", "inference"]
        reported(job, rows, released(job, rows), attacks=few).write(pages[-1])
    return pages


@pytest.mark.parametrize("which", [0, 1], ids=["groups", "z"])
def test_a_report_is_readable_by_all(browser: Browser, pages: list[Path], which: int) -> None:
    browser.open(pages[which])
    levels = browser.run(
        "return [...document.querySelectorAll('h1,h2,h3,h4')].map(e => +e.tagName[1])"
    )
    assert levels.count(1) == 1
    assert levels.count(2) == 7
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    assert browser.run(UNNAMED) == []
    for width in (1200, 390):
        for dark in (False, True):
            browser.show(width=width, dark=dark)
            assert browser.run("return matchMedia('(prefers-color-scheme: dark)').matches") is dark
            assert browser.run(CONTRAST) == []
            assert browser.run(CUT_OFF) == []
            overflow = (
                "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
            )
            assert browser.run(overflow) <= 0
    # The smallest text of a picture on a phone, in pixels.
    assert browser.run(
        "return Math.min(...[...document.querySelectorAll('svg text')]"
        ".map(e => 14 * e.ownerSVGElement.getBoundingClientRect().width"
        " / e.ownerSVGElement.viewBox.baseVal.width))"
    ) >= 10  # fmt: skip


def test_a_report_prints(browser: Browser, pages: list[Path]) -> None:
    browser.open(pages[0])
    assert base64.b64decode(browser.pdf()).startswith(b"%PDF-")


def test_nothing_is_fetched_and_nothing_complains(browser: Browser, pages: list[Path]) -> None:
    browser.log("performance")
    browser.log("browser")
    for page in pages:
        browser.open(page)
    messages = [json.loads(each["message"])["message"] for each in browser.log("performance")]
    fetched = [
        each["params"]["request"]["url"]
        for each in messages
        if each["method"] == "Network.requestWillBeSent"
    ]
    assert sorted(set(fetched)) == sorted(page.as_uri() for page in pages)
    assert browser.log("browser") == []
