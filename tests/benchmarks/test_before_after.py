"""Warm runs of two checkouts, tiny, in plain Python."""

from __future__ import annotations

from benchmarks.before_after import report
from benchmarks.workloads import ROOT

from tests.benchmarks.test_commands import run


def test_a_checkout_is_compared_with_itself(tmp_path) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- before-after:begin -->\n<!-- before-after:end -->\n")
    options = ("--rows", 60, "--repeats", 1, "--cache", tmp_path, "--write", page)
    done = run("benchmarks.before_after", ROOT, "castle", *options)
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in page.read_text().splitlines() if line.startswith("| castle")]
    assert line.split("|")[-2].strip() == "same"


def test_kernels_for_a_level_are_compared_with_those_for_this_processor(tmp_path) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- cpu-level:begin -->\n<!-- cpu-level:end -->\n")
    options = ("--rows", 60, "--repeats", 1, "--cache", tmp_path, "--write", page)
    done = run("benchmarks.before_after", ROOT, "z-anonymity", "--cpu", "generic", *options)
    assert done.returncode == 0, done.stderr
    assert "generic / this processor" in page.read_text()


def test_another_output_is_said() -> None:
    found = {"fads": {"before": [1.0, 2.0, 4.0], "now": [1.1, 1.0, 4.0], "same": False}}
    text = report(found, 1000)
    assert "1.00 (0.50 to 1.10)" in text
    assert "another" in text
