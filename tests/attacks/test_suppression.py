"""Suppression: who is missing, and what that tells."""

from __future__ import annotations

import pytest

from tests.attacks.world import crowd, made, rate, setting


def test_whom_no_box_covers_is_known_to_be_missing():
    rows = [*crowd(3, 4, ["cold", "rash"]), *[(f"x{i}", 90, "Bari", "flu", None) for i in range(5)]]
    absent, value = made("suppression", setting(rows))
    assert rate(absent) == 1.0
    assert absent.baseline == 0.0
    assert absent.success is not None
    assert absent.success.attempts == 5
    assert rate(value) == 0.0


def test_whom_a_box_covers_is_not():
    rows = [*crowd(3, 4, ["flu"]), *[(f"x{i}", i, "Oslo", "flu", None) for i in range(5)]]
    absent, value = made("suppression", setting(rows))
    assert rate(absent) == 0.0
    assert rate(value) == 1.0
    assert value.baseline == pytest.approx(1.0)


def test_nobody_is_missing():
    absent, _ = made("suppression", setting(crowd(3, 4)))
    assert absent.verdict == "skipped"
    assert "0 rows" in absent.notes[0]
