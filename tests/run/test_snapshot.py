"""A stream continues from a snapshot with the same releases, or says why it can't."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal import (
    Delay,
    Hierarchy,
    KAnonymity,
    Open,
    Policy,
    Pseudonym,
    Quasi,
    Range,
    Schema,
    Sensitive,
    Stream,
    Window,
    ZAnonymity,
)
from shoal.algorithms import Castle, Fads, Tide
from shoal.errors import CheckpointError, ParameterError
from shoal.run import snapshot as snapshot_module
from shoal.run import stream as stream_module
from shoal.run.pipeline import Pipeline
from shoal.run.snapshot import section_digests
from shoal.testing.clocks import ManualClock
from tests.examples import examples
from tests.run.test_stream import AGES, POLICY, SCHEMA
from tests.world import people


@settings(max_examples=examples(12))
@given(
    at=st.integers(0, 40),
    again=st.integers(0, 20),
    order=st.sampled_from(["released", "shuffled", "arrival"]),
)
def test_a_replay_after_a_restore_gives_the_same_releases(at: int, again: int, order: Any) -> None:
    rows = people(40).to_pylist()
    first = Stream(SCHEMA, POLICY, "castle", order=order)
    first.push(rows[:at])
    saved = first.snapshot()
    expected = [*first.push(rows[at : at + again]), *first.push(rows[at + again :])]
    expected += first.flush()
    second = Stream(SCHEMA, POLICY, "castle", order=order)
    second.restore(saved)
    released = [release for row in rows[at:] for release in second.push(row)]
    assert released + second.flush() == expected
    assert second.summary.as_dict()["rows"] == first.summary.as_dict()["rows"]


def test_pseudonyms_are_the_same_in_a_replay_and_others_in_another_stream() -> None:
    schema = Schema("person", [Quasi("town", Open())], time="at")
    policy = Policy(ZAnonymity(1), window=Window(seconds=100))

    def new() -> Stream:
        return Stream(schema, policy, "z-anonymity", seed=1, pseudonym=Pseudonym(20))

    rows = people(80).to_pylist()
    first, second, third = new(), new(), new()
    first.push(rows[:30])
    second.restore(first.snapshot())
    after = first.push(rows[30:])
    assert len({row["pseudonym"] for row in after}) > 10
    assert second.push(rows[30:]) == after
    third.push(rows[:30])
    others = {row["pseudonym"] for row in third.push(rows[30:])}
    assert others.isdisjoint(row["pseudonym"] for row in after)


def test_the_clock_of_a_restored_stream_does_not_go_back() -> None:
    clock = ManualClock(100.0)
    policy = Policy(KAnonymity(2), delay=Delay(seconds=30))
    first = Stream(AGES, policy, "castle", clock=clock)
    first.push([{"name": "a", "age": 31}, {"name": "b", "age": 33}])
    saved = first.snapshot()
    clock.set(50.0)
    second = Stream(AGES, policy, "castle", clock=clock)
    second.restore(saved)
    assert second.seconds_left == 30.0
    clock.set(80.0)
    assert second.advance() == [{"age": "[31, 33]"}] * 2


def saved() -> bytes:
    stream = Stream(SCHEMA, POLICY, Castle(clusters=20))
    stream.push(people(10))
    return stream.snapshot()


@pytest.mark.parametrize(
    ("other", "what"),
    [
        (Stream(replace(SCHEMA, keep=[]), POLICY, Castle(clusters=20)), "schema"),
        (
            Stream(
                replace(SCHEMA, quasi=[SCHEMA.quasi[0], Quasi("town", Hierarchy.flat(["bonn"]))]),
                POLICY,
                Castle(clusters=20),
            ),
            "schema",
        ),
        (Stream(SCHEMA, Policy(KAnonymity(3), delay=Delay(rows=9)), Castle(clusters=20)), "policy"),
        (Stream(SCHEMA, POLICY, Castle(clusters=21)), "algorithm"),
        (Stream(SCHEMA, POLICY, Castle(clusters=20), numeric="bounds"), "publish"),
    ],
)  # fmt: skip
def test_a_snapshot_of_another_stream_is_refused(other: Stream, what: str) -> None:
    with pytest.raises(CheckpointError, match=f"^snapshot: was taken under another {what}: "):
        other.restore(saved())


def test_a_stream_goes_on_with_another_number_of_threads() -> None:
    one, two = (Stream(SCHEMA, POLICY, Tide(workers=n), seed=1) for n in (1, 2))
    one.push(people(10))
    two.restore(one.snapshot())
    assert two.n_held == one.n_held > 0


def test_all_that_differs_is_named() -> None:
    other = Stream(AGES, Policy(KAnonymity(3), delay=Delay(rows=20)), Fads())
    with pytest.raises(CheckpointError, match="another schema, policy and algorithm:"):
        other.restore(saved())


def test_a_snapshot_of_other_code_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    data = saved()
    monkeypatch.setattr(stream_module, "decision_digest", lambda *modules: "edited")
    with pytest.raises(CheckpointError, match=r"taken by other code \(Shoal .* flush that stream"):
        Stream(SCHEMA, POLICY, Castle(clusters=20)).restore(data)


def test_a_damaged_snapshot_is_refused() -> None:
    data = saved()
    for broken in (b"", b"CANARY", data[:-1], data[:100] + b"\0" + data[101:]):
        with pytest.raises(CheckpointError, match=r"^snapshot: is damaged"):
            Stream(SCHEMA, POLICY, Castle(clusters=20)).restore(broken)
    with pytest.raises(ParameterError, match=r"must be the bytes .*; got str\. Read the file in"):
        Stream(SCHEMA, POLICY, Castle(clusters=20)).restore("snapshot.bin")  # type: ignore[arg-type]


def test_a_snapshot_is_not_restored_over_rows() -> None:
    stream = Stream(SCHEMA, POLICY, Castle(clusters=20))
    stream.push(people(2))
    with pytest.raises(ParameterError, match=r"they would be lost; got 2 rows\. Restore into a"):
        stream.restore(saved())


def test_a_sealed_snapshot_shows_nothing_and_needs_its_key(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KEY", "ab" * 32)
    stream = Stream(SCHEMA, POLICY, "castle")
    rows = [row | {"ward": "CANARY"} for row in people(5).to_pylist()]
    stream.push(rows)
    assert b"CANARY" in stream.snapshot()
    sealed = stream.snapshot(seal="env:KEY")
    assert b"CANARY" not in sealed
    with pytest.raises(CheckpointError, match="is sealed with key"):
        Stream(SCHEMA, POLICY, "castle").restore(sealed)
    again = Stream(SCHEMA, POLICY, "castle")
    again.restore(sealed, seal="env:KEY")
    assert again.n_held == 5


def test_digests_cover_all_that_a_schema_says() -> None:
    base = Pipeline(SCHEMA, POLICY, Castle())
    schemas = [
        SCHEMA,
        replace(SCHEMA, subject="other"),
        replace(SCHEMA, time="at"),
        replace(SCHEMA, quasi=SCHEMA.quasi[:1]),
        replace(SCHEMA, quasi=[Quasi("age", Range(0, 120, step=2)), SCHEMA.quasi[1]]),
        replace(SCHEMA, quasi=[replace(SCHEMA.quasi[0], weight=2.0), SCHEMA.quasi[1]]),
        replace(SCHEMA, sensitive=[Sensitive("illness", Hierarchy.flat(["flu"]))]),
        replace(SCHEMA, sensitive=[Sensitive("illness", Hierarchy.flat(["gout"]))]),
    ]
    digests = [section_digests(replace(base, schema=schema))["schema"] for schema in schemas]
    assert len(set(digests)) == len(schemas)
    assert section_digests(Pipeline(SCHEMA, POLICY, Castle())) == section_digests(base)
    assert snapshot_module._plain({"a": (1, None)}) == [["a", [1, None]]]


def test_rows_of_a_snapshot_keep_their_types() -> None:
    schema = Schema("name", AGES.quasi, keep=["n"])
    policy = Policy(KAnonymity(2), delay=Delay(rows=9))
    first = Stream(schema, policy, "castle")
    first.push(pa.table({"name": ["a"], "age": [31], "n": pa.array([1], pa.int16())}))
    second = Stream(schema, policy, "castle")
    second.restore(first.snapshot())
    second.push(pa.table({"name": ["b"], "age": [33], "n": [2]}))
    (frame,) = second.flush()
    assert frame.schema.field("n").type == pa.int16()
