"""The benchmark of TIDE from beginning to end, tiny, in plain Python."""

from __future__ import annotations

import json
from pathlib import Path

from tests.benchmarks.test_commands import run


def test_tide_is_compared_with_the_others(tmp_path: Path) -> None:
    page, values = tmp_path / "page.md", tmp_path / "values.json"
    page.write_text("# Page\n<!-- tide:begin -->\n<!-- tide:end -->\nend\n")
    done = run(
        "benchmarks.tide", "--quick", "--rows", 120, "--data-set", "census", "--json", values,
        "--write", page,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(values.read_text())
    for part in ("streams", "promises", "tables"):
        for line in found[part]:
            best = line["methods"][line["best"]]["loss"]
            assert line["best"] not in line["ratios"]
            for name, ratios in line["ratios"].items():
                own = line["methods"][name]["loss"]
                assert ratios == [a / b for a, b in zip(own, best, strict=True)]
    assert {line["method"] for line in found["utility"]} >= {"batch", "rolling", "castle, none"}
    assert "### Whole tables" in page.read_text()
