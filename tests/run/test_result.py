"""The result of a run shows counts and figures, and no value of a person."""

from __future__ import annotations

import pyarrow as pa

import shoal
from shoal import Result
from tests.world import people


def test_a_result_shows_figures_and_no_value() -> None:
    table = people(60).set_column(4, "ward", pa.array(["CANARY"] * 60))
    schema = shoal.Schema("person", [shoal.Quasi("age", shoal.Range(0, 120))], keep=["ward"])
    policy = shoal.Policy(shoal.KAnonymity(3), delay=shoal.Delay(rows=20))
    result = shoal.anonymize(table, schema, policy, "castle", trace=True)
    assert isinstance(result, Result)
    text, page = repr(result), result._repr_html_()
    assert text.splitlines()[0] == f"Result: {len(result)} rows in a pyarrow.Table"
    assert "60 rows in" in text
    assert "60 lines; private" in text
    assert page.startswith(f"<table><caption>{len(result)} rows in a pyarrow.Table: 60 rows in, ")
    assert page.count("<tr>") == len(text.splitlines()) - 2
    assert "CANARY" not in text + page
    assert result["ward"] == result.frame["ward"]
