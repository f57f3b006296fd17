"""What a file says of itself must not say more than its columns do."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from shoal.audit import audit
from shoal.audit.metadata import has_extra_metadata
from shoal.spec.hierarchy import Range
from shoal.spec.policy import KAnonymity, Policy
from shoal.spec.schema import Quasi, Schema

VERSION, COLUMNS = "org.apache.spark.version", "org.apache.spark.sql.parquet.row.metadata"


def described(**changes: Any) -> dict[str, str]:
    """What Spark writes into a file with one column, changed."""
    field = {"name": "age", "type": "string", "nullable": True, "metadata": {}} | changes
    return {VERSION: "4.3.0", COLUMNS: json.dumps({"type": "struct", "fields": [field]})}


def secrecy(metadata: dict[str, str]) -> str:
    table = pa.table({"age": ["[20, 30]", "[20, 30]"]}).replace_schema_metadata(metadata)
    schema = Schema(subject=None, quasi=[Quasi("age", Range(17, 90, step=1))])
    return audit(schema, Policy(KAnonymity(2)), table)["secrecy"].verdict


def test_the_columns_once_more_are_no_secret() -> None:
    assert secrecy(described()) == "kept"
    assert secrecy(described(type="decimal(10,2)", nullable=False)) == "kept"
    assert not has_extra_metadata(None, [])


@pytest.mark.parametrize(
    "metadata",
    [
        {"note": "CANARY"},
        {**described(), "note": "CANARY"},
        {**described(), VERSION: "CANARY"},
        {COLUMNS: "CANARY"},
        {COLUMNS: '{"type": "struct"}'},
        {COLUMNS: '{"type": "struct", "fields": []}'},
        {COLUMNS: '{"type": "struct", "fields": [7]}'},
        {COLUMNS: "[]"},
        described(name="CANARY"),
        described(type="CANARY"),
        described(type={"type": "array"}),
        described(nullable="CANARY"),
        described(metadata={"comment": "CANARY"}),
        described(note="CANARY"),
    ],
)
def test_anything_else_may_be(metadata: dict[str, str]) -> None:
    assert secrecy(metadata) == "broken"
