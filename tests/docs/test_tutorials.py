"""The tutorials and the notebooks are followed to their end, and do what they say."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from shoal.testing.broker import NoBrokerError
from tests.docs.test_docs import ROOT
from tests.docs.tutorials import (
    FOLDER,
    INDEX,
    Pace,
    edited,
    follow,
    is_as_shown,
    line,
    pages,
    with_broker,
    with_line,
)

NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.py"))
#: What takes a few seconds in plain Python, and runs in `make test`; all others are nightly.
QUICK = ("4-events",)


@pytest.mark.parametrize("name", QUICK)
def test_a_quick_tutorial_does_what_it_says(name: str, tmp_path: Path) -> None:
    assert follow(FOLDER / f"{name}.md", tmp_path / "empty").n_commands >= 8


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["1-from-a-csv", "2-choose", "5-algorithm"])
def test_a_longer_tutorial_does_what_it_says(name: str, tmp_path: Path) -> None:
    assert follow(FOLDER / f"{name}.md", tmp_path / "empty").n_commands >= 8


@pytest.mark.nightly
def test_the_tutorial_on_kafka_does_what_it_says(tmp_path: Path) -> None:
    with ExitStack() as stack:
        try:
            here = with_broker(stack)
        except NoBrokerError as error:
            pytest.skip(str(error))
        assert follow(FOLDER / "3-kafka.md", tmp_path / "empty", here).n_commands >= 15


@pytest.mark.nightly
def test_the_tutorial_on_spark_does_what_it_says(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    assert follow(FOLDER / "6-spark.md", tmp_path / "empty").n_commands >= 15


def test_every_tutorial_is_followed_and_in_the_index() -> None:
    followed = {*QUICK, "1-from-a-csv", "2-choose", "3-kafka", "5-algorithm", "6-spark"}
    assert {page.stem for page in pages()} == followed
    assert all(f"]({page.name})" in INDEX.read_text(encoding="utf-8") for page in pages())


# -- the tutorials are really compared ----------------------------------------------------------

PAGE = """
```console
$ mkdir inner && cd inner
```

<!-- file names.txt -->
```text
Ann
Bea
```

<!-- edit names.txt -->
```diff
 Ann
-Bea
+Ben
```

<!-- more names.txt -->
```text
Cem
```

```console
$ cat names.txt
Ann
…
Cem
$ grep Dan names.txt
$ echo $?
1
```

<!-- by hand: it would end the shell -->
```console
$ exit 7
```
"""


def test_a_page_that_is_right_is_followed_to_its_end(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    assert follow(page, tmp_path / "empty").n_commands == 4
    assert (tmp_path / "empty" / "inner" / "names.txt").read_text() == "Ann\nBen\nCem\n"


@pytest.mark.parametrize(
    ("right", "wrong", "complaint"),
    [
        ("Ann\n…\nCem\n$", "Ann\n…\nDan\n$", "prints:"),
        ("…\nCem\n$", "Cem\n$", "prints:"),
        ("$ echo $?\n1\n", "", "has exit code 1"),
        ("-Bea", "-Dan", "0 places instead of one"),
    ],
)
def test_a_page_that_is_wrong_is_noticed(
    tmp_path: Path, right: str, wrong: str, complaint: str
) -> None:
    assert PAGE.count(right) == 1
    page = tmp_path / "page.md"
    page.write_text(PAGE.replace(right, wrong))
    with pytest.raises(AssertionError, match=re.escape(complaint)):
        follow(page, tmp_path / "empty")


def test_dots_stand_for_anything_and_nothing_else_does() -> None:
    assert is_as_shown("… rows, … s", "7 rows, 0.3 s\n")
    assert not is_as_shown("7 rows", "7 rows\nand more\n")
    assert not is_as_shown("", "something\n")
    assert is_as_shown("a\n…", "a\nb\nc\n")


def test_a_change_must_fit_one_place() -> None:
    assert edited("a\nb\nc\n", " a\n-b\n+d\n") == "a\nd\nc\n"
    with pytest.raises(AssertionError, match="2 places"):
        edited("a\na\n", "-a\n+b\n")


def test_a_line_of_the_times_is_replaced_and_the_others_stay() -> None:
    first, *_, last = pages()
    index = INDEX.read_text(encoding="utf-8")
    for page, n_commands in [(last, 7), (first, 8), (first, 9)]:
        index = with_line(index, page, line(page, Pace(n_commands, 2.0, 1.0)))
    lines = [each for each in index.splitlines() if each.endswith("| 2 s | 1 s |")]
    assert [f"({page.name})" in each for page, each in zip((first, last), lines, strict=True)] == [
        True,
        True,
    ]
    assert ["| 9 |" in lines[0], "| 7 |" in lines[1]] == [True, True]


# -- notebooks ----------------------------------------------------------------------------------


def definitions(name: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Run a notebook without a browser; return what its cells define."""
    pytest.importorskip("marimo")
    monkeypatch.setenv("MPLBACKEND", "agg")
    path = ROOT / "examples" / "notebooks" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    _, found = module.app.run()
    return dict(found)


def n_drawn(figure: Any) -> int:
    """How many lines and rectangles a figure has."""
    return sum(len(axes.lines) + len(axes.patches) for axes in figure.axes)


@pytest.mark.nightly
def test_a_table_is_explored(monkeypatch: pytest.MonkeyPatch) -> None:
    found = definitions("explore_a_table", monkeypatch)
    assert found["alone"].share > 0.5
    assert found["report"].verdict == "kept"
    # A line for the people, and a rectangle for each box.
    assert n_drawn(found["boxes_figure"]) == 1 + len(found["boxes"])
    assert 10 <= len(found["boxes"]) <= 40
    for losses in found["losses"].values():
        assert losses == sorted(losses)
    assert n_drawn(found["ages_figure"]) > 10
    assert n_drawn(found["losses_figure"]) == 2


@pytest.mark.nightly
def test_a_stream_is_pushed_from_python(monkeypatch: pytest.MonkeyPatch) -> None:
    found = definitions("stream_from_python", monkeypatch)
    assert len(found["published"]) + found["stream"].summary.suppression.count == 400
    assert max(found["n_held"]) <= 50
    assert found["reasons"] == [
        "age is out of its range",
        "zone has a category that its hierarchy lacks",
    ]
    assert found["verdicts"] == {"kept"}
    for losses in found["losses"].values():
        assert losses[-1] < losses[0]
    assert n_drawn(found["flow_figure"]) == 4
    assert n_drawn(found["waiting_figure"]) == 2


@pytest.mark.nightly
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_a_program_and_of_the_form_that_marimo_writes(path: Path) -> None:
    pytest.importorskip("marimo")
    checked = subprocess.run(
        [sys.executable, "-m", "marimo", "check", "--strict", str(path)],
        capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert checked.returncode == 0, checked.stdout + checked.stderr
