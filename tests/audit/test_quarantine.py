"""Quarantined rows of a run with groups: each must have something wrong with it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from shoal.audit import Verdict, audit
from shoal.spec.hierarchy import Hierarchy, Range
from shoal.spec.policy import Delay, KAnonymity, Policy, TCloseness
from shoal.spec.schema import Quasi, Schema, Sensitive

GOOD: dict[str, Any] = {"who": "ann", "age": 30, "town": "rome", "ill": "flu", "pay": 5, "at": 10.0}
SCHEMA = Schema(
    subject="who",
    quasi=[Quasi("age", Range(0, 100)), Quasi("town", Hierarchy.flat(["rome", "bari"]))],
    sensitive=[Sensitive("ill", Hierarchy.flat(["flu", "gout"])), Sensitive("pay", Range(0, 9))],
    time="at",
)


def judge(*bad: dict[str, Any], schema: Schema = SCHEMA, **policy: Any) -> Verdict:
    """Audit a run that held a good row and quarantined these."""
    rows = [GOOD, *({**GOOD, **one} for one in bad)]
    nothing = dict.fromkeys(["published", "arrived_s", "published_s", "group", "seq"])
    lines = [
        {
            **nothing, "row": i, "subject": row["who"], "outcome": "quarantined" if i else "held",
            "arrived": None if i else 0,
        }
        for i, row in enumerate(rows)
    ]  # fmt: skip
    names = ["age", "town", "ill", "pay"]
    return audit(
        schema,
        Policy(KAnonymity(2), delay=Delay(rows=9), **policy),
        pa.table({name: pa.array([], pa.string()) for name in names}),
        trace=pa.Table.from_pylist(lines),
        original=pa.table({name: [row[name] for row in rows] for name in GOOD}),
    )["conservation"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"who": None}, {"who": "  "}, {"age": None}, {"age": 101}, {"town": "paris"},
        {"town": None}, {"ill": "love"}, {"pay": 10}, {"at": None}, {"at": float("inf")},
    ],
    ids=str,
)  # fmt: skip
def test_a_row_with_something_wrong_is_explained(wrong: dict[str, Any]) -> None:
    assert judge(wrong).verdict == "kept"


@pytest.mark.parametrize("wrong", [{}, {"ill": None}, {"pay": None}, {"at": 3.0}], ids=str)
def test_a_row_with_nothing_wrong_is_found(wrong: dict[str, Any]) -> None:
    verdict = judge(wrong, {"age": 101})
    assert verdict.verdict == "broken"
    assert "1 rows are called quarantined and nothing is wrong with them" in verdict.detail
    assert verdict.figures["n_unexplained"] == 1


def test_an_infinite_sensitive_value_is_wrong_without_a_domain() -> None:
    schema = Schema(
        subject="who",
        quasi=SCHEMA.quasi,
        sensitive=[Sensitive("ill"), Sensitive("pay")],
        time="at",
    )
    wrong = [{"pay": float("inf")}, {"pay": float("-inf")}]
    assert judge(*wrong, schema=schema).verdict == "kept"
    assert judge(*wrong, {"pay": 7}, schema=schema).verdict == "broken"


def test_what_is_wrong_depends_on_the_policy() -> None:
    assert judge({"age": None}, missing="maybe").verdict == "broken"
    assert judge({"at": 3.0}, lateness=5.0).verdict == "kept"
    assert judge({"at": 6.0}, lateness=5.0).verdict == "broken"
    verdict = judge({}, ahead=60.0)
    assert verdict.verdict == "unverifiable"
    assert "why 1 rows are called quarantined can't be told" in verdict.detail
    assert verdict.figures["n_unexplained"] == 1


def test_a_value_that_is_compared_by_place_must_be_there() -> None:
    rows = [{**GOOD}, {**GOOD, "ill": None}]
    lines = [
        {
            "row": i, "subject": "ann", "outcome": ("held", "quarantined")[i],
            "arrived": (0, None)[i], "published": None, "arrived_s": (10.0, None)[i],
            "published_s": None, "group": None, "seq": None,
        }
        for i in range(2)
    ]  # fmt: skip
    report = audit(
        SCHEMA,
        Policy(TCloseness(0.5, attribute="ill"), window="all"),
        pa.table({name: pa.array([], pa.string()) for name in ("age", "town", "ill", "pay")}),
        trace=pa.Table.from_pylist(lines),
        original=pa.Table.from_pylist(rows),
    )
    assert report["conservation"].verdict == "kept"


def test_numbers_that_are_written_oddly_are_doubtful() -> None:
    rows = [{**GOOD, "age": "30"}, {**GOOD, "age": "3e1"}]
    lines = [
        {
            "row": i, "subject": "ann", "outcome": ("held", "quarantined")[i],
            "arrived": (0, None)[i], "published": None, "arrived_s": (10.0, None)[i],
            "published_s": None, "group": None, "seq": None,
        }
        for i in range(2)
    ]  # fmt: skip
    report = audit(
        SCHEMA,
        Policy(KAnonymity(2)),
        pa.table({name: pa.array([], pa.string()) for name in ("age", "town", "ill", "pay")}),
        trace=pa.Table.from_pylist(lines),
        original=pa.Table.from_pylist(rows),
    )
    assert report["conservation"].verdict == "unverifiable"
