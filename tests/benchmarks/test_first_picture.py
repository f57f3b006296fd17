"""The benchmark of a fresh clone, with commands of its own instead of the installation."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from benchmarks.first_picture import PICTURE, report, until_picture

from shoal.cli.demo.scene import Scene
from shoal.cli.demo.text import progress_line


def lines_of(code: str) -> list[str]:
    return list(until_picture([sys.executable, "-uc", code], Path(), {}))


def test_it_ends_with_the_first_picture() -> None:
    picture = progress_line(Scene(elapsed=2.1))
    assert PICTURE in picture
    code = f"import time; print('installing'); print({picture!r}); time.sleep(1000)"
    assert lines_of(code) == ["installing", picture.strip()]


def test_a_demo_that_shows_nothing_is_an_error() -> None:
    with pytest.raises(SystemExit, match="without a picture"):
        lines_of("print('failed')")


@pytest.mark.parametrize(("seconds", "verdict"), [(59.9, "60 s met"), (60.1, "60 s **not met**")])
def test_the_report_says_when_each_line_appeared(seconds: float, verdict: str) -> None:
    text = report([(0.0, "git clone"), (seconds, "1 s: 9 rows in, 0")], with_cache=False)
    assert f"{seconds} | 1 s: 9 rows in, 0" in " ".join(text.split())
    assert f"The first picture after {seconds} s, target {verdict}." in text
    assert "with no cache" in text
