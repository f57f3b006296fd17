"""Reasons of bad rows are counted in bounded memory."""

from __future__ import annotations

from shoal.metrics import Summary
from shoal.metrics.bad_rows import LISTED, MOST, OTHER, BadRowCounts, listed


def test_reasons_without_end_are_counted_together() -> None:
    counts = BadRowCounts()
    counts.add(f"{n} fields where 3 are expected" for n in range(10 * MOST))
    counts.add(["0 fields where 3 are expected"])
    assert len(counts.reasons) == MOST + 1
    assert counts.reasons[OTHER] == 9 * MOST
    assert counts.reasons["0 fields where 3 are expected"] == 2


def test_merged_counts_are_bounded_as_well() -> None:
    one, other = BadRowCounts(), BadRowCounts()
    one.add(f"a{n}" for n in range(MOST))
    other.add(["a0", "b", "b"])
    one.merge(other)
    assert (one.reasons["a0"], one.reasons[OTHER], one.reasons["b"]) == (2, 2, 0)


def test_a_terminal_shows_the_most_frequent_ones() -> None:
    text = listed({f"reason {n}": n + 1 for n in range(LISTED + 3)})
    assert text.startswith(f"reason {LISTED + 2} ({LISTED + 3}), ")
    assert text.endswith(", and 3 more reasons")


def test_a_summary_says_why_rows_were_quarantined_and_keeps_it_in_its_state() -> None:
    summary = Summary()
    summary.n_in, summary.n_quarantined = 10, 3
    summary.bad_rows.add(["age is missing", "age is missing", "town is missing"])
    restored = Summary()
    restored.restore(summary.state())
    for each in (summary, restored):
        why = "age is missing (2), town is missing (1)"
        assert each.lines()[-1] == f"quarantine: 3 rows, 30.0 % of those read: {why}"
        assert each.as_dict()["quarantine"] == {
            "count": 3,
            "share": 0.3,
            "reasons": {"age is missing": 2, "town is missing": 1},
        }
