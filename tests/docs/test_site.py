"""The site: built as `make docs` builds it, with links checked, and opened in a real browser."""

from __future__ import annotations

import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests import browser
from tests.browser import Browser

pytest.importorskip("sphinx", reason="needs the extra docs")

ROOT = Path(__file__).parents[2]
#: The site of this checkout is large: about a minute of a processor.
pytestmark = pytest.mark.nightly


def build(root: Path, site: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Build the site of a checkout without a network: every connection is refused."""
    guard = site.parent / "guard"
    guard.mkdir(exist_ok=True)
    (guard / "sitecustomize.py").write_text(
        "import socket\n"
        "def refuse(*_, **__):\n"
        "    raise RuntimeError('the site must be built without a network')\n"
        "socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse\n"
    )
    path = [str(guard), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join(path)}
    command = [sys.executable, str(root / "docs/site/build.py"), str(site), *options]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=3600)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A checkout with few pages."""
    root = tmp_path / "checkout"
    (root / "docs").mkdir(parents=True)
    shutil.copytree(ROOT / "docs" / "site", root / "docs" / "site")
    rows = "| page | what |\n|---|---|\n"
    index = f"# Index\n\n## Tutorials\n\n{rows}| [One](one.md) | x |\n\n## Reference\n\n"
    index += f"{rows}| [Two](two.md) | x |\n| [Changes](../CHANGELOG.md) | x |\n"
    (root / "docs" / "index.md").write_text(index)
    (root / "docs" / "one.md").write_text("# One\n\n[there](two.md#a-place-1), [x](../run.py)\n")
    (root / "docs" / "two.md").write_text("# Two\n\n## A place\n\n## A place\n\n[one](one.md)\n")
    (root / "CHANGELOG.md").write_text("# Changelog\n\n[two](docs/two.md)\n")
    (root / "run.py").write_text("print('hello')\n")
    return root


def test_a_small_site_is_built(small: Path, tmp_path: Path) -> None:
    done = build(small, tmp_path / "site")
    assert done.returncode == 0, done.stderr
    one, two = ((tmp_path / "site" / name).read_text() for name in ("one.html", "two.html"))
    [place] = re.findall(r'href="two\.html#([^"]+)"', one)
    assert f'id="{place}"' in two
    assert 'id="a-place-1"' in two  # a link from elsewhere has the anchor of the repository
    assert 'href="source/run.py.html"' in one
    assert "hello" in (tmp_path / "site" / "source" / "run.py.html").read_text()
    assert 'href="all-versions.html"' in one
    assert "development" in (tmp_path / "site" / "all-versions.html").read_text()


@pytest.mark.parametrize(
    ("page", "text", "said"),
    [
        ("one.md", "[a](three.md)", "three.md"),
        ("one.md", "[a](../docs/three.md)", "three.md"),
        ("one.md", "[a](two.md#nowhere)", "nowhere"),
        ("one.md", "[a](#nowhere)", "nowhere"),
        ("one.md", "![a](three.svg)", "three.svg"),
        ("three.md", "# Three", "three.md"),
    ],
    ids=["link", "link-out", "anchor", "own-anchor", "picture", "page-without-a-kind"],
)
def test_what_is_broken_fails_the_build(
    page: str, text: str, said: str, small: Path, tmp_path: Path
) -> None:
    with (small / "docs" / page).open("a") as file:
        file.write(f"\n{text}\n")
    done = build(small, tmp_path / "site")
    assert done.returncode == 1
    assert said in done.stderr
    assert not (tmp_path / "site").exists()


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_a_tag_is_built_by_its_own_sources(small: Path, tmp_path: Path) -> None:
    def git(*words: str) -> None:
        who = ["-c", "user.name=x", "-c", "user.email=x@shoal.example"]
        subprocess.run(["git", *who, *words], cwd=small, check=True, capture_output=True)

    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "one")
    git("tag", "v0.1.0")
    (small / "docs" / "two.md").write_text("# Two\n\n## A place\n\n## A place\n\nnewer words\n")
    done = build(small, tmp_path / "site", "--tag", "v0.1.0")
    assert done.returncode == 0, done.stderr
    new, old = ((tmp_path / "site" / name).read_text() for name in ("two.html", "v0.1.0/two.html"))
    assert "newer words" in new
    assert "newer words" not in old
    assert "v0.1.0" in old
    assert 'href="../all-versions.html"' in old
    assert 'href="v0.1.0/index.html"' in (tmp_path / "site" / "all-versions.html").read_text()


# -- the whole site -------------------------------------------------------------------------------


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves files and says nothing."""

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The whole site, served on loopback."""
    site = tmp_path_factory.mktemp("docs") / "site"
    done = build(ROOT, site)
    assert done.returncode == 0, done.stderr
    handler = partial(Handler, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def until(condition: Callable[[], Any], what: str) -> Any:
    for _ in range(600):
        if found := condition():
            return found
        time.sleep(0.1)
    raise AssertionError(what)


#: By how many pixels tables are wider than the place that they are shown in.
CUT_TABLES = """
return [...document.querySelectorAll('.table-wrapper')]
    .map(e => e.scrollWidth - e.clientWidth).filter(wide => wide > 0)
"""


def background(page: Browser) -> int:
    """How light the page is, from 0 to 255."""
    script = "return getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3)"
    return sum(map(int, page.run(script))) // 3


@pytest.mark.skipif(browser.MISSING is not None, reason=str(browser.MISSING))
def test_the_site_in_a_browser(address: str) -> None:
    with Browser() as page:
        page.show(width=1280, dark=False)
        page.open(f"{address}/index.html")
        captions = "return [...document.querySelectorAll('.caption-text')].map(e => e.textContent)"
        assert page.run(captions) == [
            "Tutorials", "How-to guides", "Reference", "Explanation", "Project"
        ]  # fmt: skip
        # Light and dark: by what the reader prefers, and by the switch on the page.
        assert background(page) > 240
        page.show(width=1280, dark=True)
        assert background(page) < 40
        page.show(width=1280, dark=False)
        switch = "[...document.querySelectorAll('.theme-toggle')].find(e => e.offsetParent).click()"
        page.run(switch)
        assert page.run("return document.body.dataset.theme") == "dark"
        assert background(page) < 40
        page.run(switch)
        assert page.run("return document.body.dataset.theme") == "light"
        assert background(page) > 240
        # Search finds a word that few pages have, and leads there.
        page.open(f"{address}/search.html?q=journal")
        script = "return [...document.querySelectorAll('ul.search li a')].map(e => e.href)"
        said = "return document.body.innerText"
        until(lambda: "Search finished" in page.run(said), "search doesn't end")
        results = page.run(script)
        assert any("checkpoints.html" in link for link in results)
        # A desk: figures of a table aren't cut at its right.
        page.show(width=1280, dark=False)
        for name in ("which", "figures/castle", "benchmarks", "attacks"):
            page.open(f"{address}/{name}.html")
            assert page.run(CUT_TABLES) == [], f"{name} has tables that are cut"
        # A phone: nothing is wider than the screen, whatever the page.
        page.show(width=390, dark=True)
        names = ("index", "job-keys", "commands", "api/shoal", "cli", "deviations", "attacks")
        for name in names:
            page.open(f"{address}/{name}.html")
            assert page.run("return document.title")
            wide = page.run(browser.OVERFLOW)
            assert wide <= 0, f"{name} is {wide} pixels wider than the screen"
        errors = [entry for entry in page.log("browser") if entry["level"] == "SEVERE"]
        assert errors == []
        hosts = {urlsplit(url).hostname for url in requested(page)}
        assert hosts <= {"127.0.0.1", None, ""}


def requested(page: Browser) -> Iterator[str]:
    for entry in page.log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            yield message["params"]["request"]["url"]
