"""``shoal algorithms``: what there is."""

from __future__ import annotations

import json

from shoal import algorithms
from tests.world import shoal


def test_words_for_people(monkeypatch, capfd):
    assert shoal(monkeypatch, "algorithms") == 0
    out = capfd.readouterr().out
    assert "castle: " in out
    assert "k-anonymity, l-diversity (distinct, entropy, recursive)" in out
    assert 'reuse = "random"' in out


def test_json_for_programs(monkeypatch, capfd):
    assert shoal(monkeypatch, "algorithms", "--json") == 0
    entries = {entry["name"]: entry for entry in json.loads(capfd.readouterr().out)}
    assert list(entries) == list(algorithms.names())
    castle = entries["castle"]
    assert castle["needs_delay"] is True
    assert castle["knobs"]["clusters"] == 50
    assert castle["knobs"]["loss"] == "glm"
    assert "CASTLE" in castle["reference"]
    assert castle["summary"]
