"""Lines of a trace about changes of the job: what they say, and what can't be read."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from shoal.audit import changes_in, without_changes
from shoal.errors import ParameterError

SAID = {
    "time": 1.0,
    "what": ["policy.k 3 → 8"],
    "weaker": False,
    "sections": {"policy": {"k": 3}, "algorithm": {"name": "castle"}},
}


def trace(*outcomes: Any, **columns: Any) -> pa.Table:
    n = len(outcomes)
    numbers = {"row": 7, "arrived": 6, "seq": 5, "arrived_s": 2.5} | columns
    return pa.table({"outcome": outcomes} | {name: [one] * n for name, one in numbers.items()})


def change(**others: Any) -> str:
    return f"changed {json.dumps(SAID | others)}"


def test_a_change_is_read_with_its_place() -> None:
    found = changes_in(trace("group", change(), None, "held"))
    assert found == [
        {
            "what": ["policy.k 3 → 8"],
            "weaker": False,
            "sections": SAID["sections"],
            "rows_in": 7,
            "taken_in": 6,
            "published": 5,
            "latest": 2.5,
        }
    ]


def test_changes_come_in_the_order_of_the_trace() -> None:
    lines = trace(change(what=["a"]), "group", change(what=["b"], weaker=True))
    assert [(one["what"], one["weaker"]) for one in changes_in(lines)] == [
        (["a"], False),
        (["b"], True),
    ]


def test_numbers_may_be_text_and_a_time_may_be_missing() -> None:
    (found,) = changes_in(trace(change(), row="7", arrived="0", seq="0", arrived_s=None))
    assert (found["rows_in"], found["taken_in"], found["published"]) == (7, 0, 0)
    assert found["latest"] is None


def test_outcomes_of_a_dictionary_are_read() -> None:
    lines = trace("group", change())
    coded = lines.set_column(0, "outcome", lines["outcome"].dictionary_encode())
    assert len(changes_in(coded)) == 1
    assert without_changes(coded)["outcome"].to_pylist() == ["group"]


@pytest.mark.parametrize(
    "line",
    [
        trace("group", "changed", "changes {}", None),
        pa.table({"outcome": [1, 2]}),
        pa.table({"row": [1]}),
        trace(),
    ],
)
def test_other_lines_are_no_changes(line: pa.Table) -> None:
    assert changes_in(line) == []
    assert without_changes(line).equals(line)


@pytest.mark.parametrize(
    "line",
    [
        trace("changed "),
        trace("changed {"),
        trace("changed 7"),
        trace("changed " + "[" * 100_000),
        trace(f"changed {json.dumps({'what': [], 'weaker': False})}"),
        trace(change(sections=7)),
        trace(change(what=7)),
        trace(change(), row=None),
        trace(change(), seq=None),
        trace(change(), arrived=None),
        trace(change(), row="x"),
        pa.table({"outcome": [change()]}),
    ],
)
def test_a_line_that_cant_be_read_is_an_error_without_its_content(line: pa.Table) -> None:
    with pytest.raises(
        ParameterError, match="a line about a change of the job that can't"
    ) as error:
        changes_in(line)
    assert "castle" not in str(error.value)


def test_what_is_about_rows_stays() -> None:
    lines = trace("group", change(), None, "held")
    assert without_changes(lines)["outcome"].to_pylist() == ["group", None, "held"]
