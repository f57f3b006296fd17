"""One spelling for each value whose share is promised."""

from __future__ import annotations

import datetime as dt
import decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from shoal import Hierarchy, KAnonymity, Policy, Quasi, Range, Schema, Sensitive, TCloseness
from shoal.arrow.codec import Codec
from shoal.arrow.columns import label_text, one_text
from shoal.audit import audit
from shoal.run.frame import anonymize
from shoal.spec.policy import BasicLikeness, EnhancedLikeness

ILL = Hierarchy.flat(["c", "d"])
FINE = decimal.Decimal("0.10000000000000000001")


def encoded(values: Any, domain: Any, **options: Any) -> Any:
    schema = Schema(None, [Quasi("age", Range(0, 99))], [Sensitive("s", domain)])
    column = values if isinstance(values, pa.Array) else pa.array(values)
    batch = pa.record_batch([pa.array([1] * len(column)), column], names=["age", "s"])
    return Codec(schema, key=b"12345678", **options).encode(batch)


@pytest.mark.parametrize(
    ("values", "domain", "published"),
    [
        (["1.5", "1.50", " 1.5"], None, ["1.5", "1.5", "1.5"]),
        (["v", "v\u200b", ""], None, ["v", "v", None]),
        (["c", " c", None], ILL, ["c", "c", None]),
        (["1000", "1e3", "1000.0"], Range(0, 9999), ["1000", "1000", "1000"]),
        ([0.0, -0.0, float("nan")], None, [0.0, 0.0, None]),
        ([0.0, -0.0, 1.5], Range(-1, 9), [0.0, 0.0, 1.5]),
        ([7, 8, None], Range(0, 9), [7, 8, None]),
    ],
)
def test_what_counts_as_one_value_is_published_as_one(
    values: Any, domain: Any, published: list[Any]
) -> None:
    found = encoded(values, domain, compared=frozenset({"s"}))
    shown = found.payload["s"].to_pylist()
    assert shown == published
    assert [np.copysign(1, v) for v in shown if v == 0.0] == [1] * shown.count(0.0)
    codes = found.codes.sensitive[:, 0].tolist()
    assert [codes.index(c) for c in codes] == [published.index(v) for v in published]
    # Where nothing is compared, values are published as they came.
    assert len(encoded(values, domain).payload["s"].to_pylist()) == len(published)


@pytest.mark.parametrize(
    "values",
    [
        pa.array([2**53, 2**53 + 2]),
        pa.array([decimal.Decimal("0.5"), FINE], pa.decimal128(25, 20)),
        pa.array([1_000, 1_001], pa.timestamp("ns")),
    ],
)
def test_what_numbers_cannot_tell_apart_is_bad(values: pa.Array) -> None:
    found = encoded(values, Range(-1, 1e18), compared=frozenset({"s"}))
    assert found.reasons == {1: "s is told more finely than numbers can be"}
    assert encoded(values, Range(-1, 1e18)).reasons == {}


def test_times_have_the_precision_of_a_clock() -> None:
    times = pa.array([dt.datetime(2026, 1, 1, 12, 0, 0, 1)], pa.timestamp("us"))
    assert encoded(times, Range(0, 1e10), compared=frozenset({"s"})).reasons == {}


@pytest.mark.parametrize("criterion", [BasicLikeness(0.1), EnhancedLikeness(0.1)])
def test_spellings_of_a_value_tell_nothing(criterion: BasicLikeness) -> None:
    # The young write it in one way, the old in another: by groups of age nothing may be told.
    table = pa.table(
        {"age": [20 + i % 5 for i in range(20)] + [70 + i % 5 for i in range(20)],
         "s": ["1.5"] * 20 + ["1.50"] * 20}
    )  # fmt: skip
    schema = Schema(None, [Quasi("age", Range(0, 99))], [Sensitive("s")])
    policy = Policy(KAnonymity(2), criterion, window="all")
    result = anonymize(table, schema, policy, "burel", seed=1, trace=True)
    assert set(result.frame["s"].to_pylist()) == {"1.5"}
    report = audit(schema, policy, result.frame, trace=result.trace, original=table)
    assert {v.verdict for v in report.verdicts} == {"kept"}


def test_another_value_is_not_another_spelling() -> None:
    table = pa.table({"age": [20, 21, 22, 23], "s": ["1", "2", "1", "2"]})
    schema = Schema(None, [Quasi("age", Range(0, 99))], [Sensitive("s", Range(0, 9))])
    policy = Policy(KAnonymity(2), TCloseness(0.5), window="all")
    result = anonymize(table, schema, policy, "sabre-ak", seed=1, trace=True)
    forged = result.frame.set_column(1, "s", pa.array(["1"] * 4))
    report = audit(schema, policy, forged, trace=result.trace, original=table)
    assert report["cover"].verdict == "broken"


def test_what_cannot_be_seen_goes_before_letters_and_accents_come_together():
    seen = pa.array(["\u00e9", "e\u200d\u0301", "e\u0301", "\u200b\u00e9 "])
    assert set(one_text(seen).to_pylist()) == set(label_text(seen).to_pylist()) == {"\u00e9"}
