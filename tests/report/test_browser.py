"""A report in a real browser: it renders, fetches nothing, can be read by all, and prints."""

import base64
import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser import CONTRAST, CUT_OFF, MISSING, OVERFLOW, UNNAMED, Browser
from tests.report.world import CELLS, GROUPS, people, released, reported

pytestmark = [
    pytest.mark.skipif(MISSING is not None, reason=str(MISSING)),
    # One browser for all of them.
    pytest.mark.xdist_group("browser"),
]


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
            assert browser.run(OVERFLOW) <= 0
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
