"""The table of algorithms and attacks."""

from __future__ import annotations

import sys

from benchmarks import attacks


def test_the_command_measures_algorithms_with_and_without_reuse(monkeypatch, tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text("<!-- attacks:begin -->\n<!-- attacks:end -->\n")
    command = ["attacks", "--quick", "--algorithms", "fads", "--write", str(page)]
    monkeypatch.setattr(sys, "argv", command)
    attacks.main()
    out = capsys.readouterr().out
    for word in ("`fads`", "`fads`, reuse", "linking", "skewness", "of 33.3"):
        assert word in out
    assert out.strip() in page.read_text()


def test_tables_and_values_are_measured_too(monkeypatch, capsys):
    monkeypatch.setattr(
        sys, "argv", ["attacks", "--quick", "--algorithms", "mondrian,burel,z-anonymity"]
    )
    attacks.main()
    out = capsys.readouterr().out
    assert out.count("`mondrian`") >= out.count("`z-anonymity` ") > 0
    for word in ("oracle", "pseudonyms", "`burel`"):
        assert word in out
