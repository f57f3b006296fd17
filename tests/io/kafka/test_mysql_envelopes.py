"""Envelopes that Debezium made from a real MySQL and a real MariaDB, recorded by record_mysql."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import pytest

from tests.io.kafka.test_envelopes import account, envelopes, recorded

SERVERS = ("mysql", "mariadb")
FORMS = [f"{server}_{form}" for server in SERVERS for form in ("json", "json_schema", "avro")]
SKIPPED = {"delete": 2, "tombstone": 2, "truncate": 1}


@pytest.mark.parametrize("name", FORMS)
def test_inserts_and_the_snapshot_are_rows_and_the_rest_is_counted(name):
    messages = recorded(name)
    rows = envelopes(name, ["person", "age"], "inserts").read_messages(messages, 100)
    account(rows, messages)
    assert rows.bad == []
    assert rows.batch.to_pydict() == {
        "person": ["p1", "p2", "p3", "p4", "p5", "p6", "p7"],
        "age": [21, 22, 23, 24, 25, None, 27],
    }
    assert rows.rows.tolist() == list(range(100, 107))
    assert rows.skipped == SKIPPED | {"update": 1, "change of a primary key": 1}


@pytest.mark.parametrize("name", FORMS)
def test_every_has_updates_and_latest_the_last_version(name):
    messages = recorded(name)
    found = {}
    for changes in ("every", "latest"):
        rows = envelopes(name, ["person", "age"], changes).read_messages(messages, 0)
        account(rows, messages)
        found[changes] = list(zip(*rows.batch.to_pydict().values(), strict=True)), rows.skipped
    rest = [("p2", 22), ("p5", 25), ("p6", None), ("p7", 27)]
    every = [("p1", 21), ("p2", 22), ("p3", 23), ("p4", 24), ("p4", 44), *rest]
    assert found["every"] == (every, SKIPPED)
    superseded = {"superseded by a later change": 3}
    assert found["latest"] == ([("p3", 23), ("p4", 44), *rest], SKIPPED | superseded)


@pytest.mark.parametrize("name", [name for name in FORMS if not name.endswith("json")])
def test_types(name):
    columns = ["born", "fee", "arrived", "left_at", "active", "sex", "weight"]
    rows = envelopes(name, columns, "inserts").read_messages(recorded(name)[:2], 0)
    assert rows.bad == []
    first = rows.batch.slice(0, 1).to_pylist()[0]
    assert first.pop("left_at").startswith("2024-02-29T11:30:00")
    # By its own type, tinyint(1), a boolean is a small number.
    assert (first.pop("active"), first.pop("sex"), first.pop("weight")) == (1, "f", 1.125)
    values = [date(1990, 1, 2), Decimal("1.50"), datetime(2024, 2, 29, 12, 31, 0, 123456)]
    if not name.endswith("avro"):
        values = [v.isoformat() if hasattr(v, "isoformat") else str(v) for v in values]
    assert list(first.values()) == values


@pytest.mark.parametrize("name", FORMS)
def test_a_column_that_is_added_while_it_runs(name):
    messages = recorded(name)
    rows = envelopes(name, ["person", "ward"], "inserts").read_messages(messages, 0)
    account(rows, messages)
    if name.endswith("avro"):
        # The rules of the registry: a schema without a named column is a bad row.
        assert rows.batch["ward"].to_pylist() == [7, None, None]
        assert "has no field after.ward" in rows.bad[0].reason
    else:
        assert rows.batch["ward"].to_pylist() == [None, None, None, None, 7, None, None]


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize(
    ("other", "what"), [("transactions", "transaction marker"), ("schema", "schema change")]
)
def test_what_debezium_writes_beside_changes_is_skipped(name, other, what):
    name = f"{name}_{other}_messages"
    messages = recorded(name)
    rows = envelopes(name, ["person"], "inserts").read_messages(messages, 0)
    account(rows, messages)
    assert rows.skipped == {what: 4}
