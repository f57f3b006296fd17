"""Releases of values one by one: labels at their levels, and nothing at all of what is hidden."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from shoal.arrow.ladders import Ladders
from shoal.arrow.order import Departures
from shoal.arrow.pseudonyms import Pseudonym
from shoal.arrow.release import Publish
from shoal.arrow.z.release import ZPublisher, _used
from shoal.errors import JobError, ParameterError
from shoal.spec.hierarchy import Range
from shoal.spec.ladder import Open, Path
from shoal.spec.policy import KAnonymity, Policy, Window, ZAnonymity
from shoal.spec.schema import Quasi, Schema

SCHEMA = Schema(
    "who", [Quasi("area", Path("/", 2)), Quasi("page", Open())], keep=["note"], time="at"
)
POLICY = Policy(ZAnonymity(2), window=Window(seconds=60))
ROWS: dict[str, Any] = {
    "area": ["it/to", "it/mi", "fr/ly", "it/to"],
    "page": ["a", "b", "c", "a"],
    "note": ["n0", "n1", "n2", "n3"],
    "at": [0.0, 1.0, 2.0, 3.0],
}
PAYLOAD = pa.schema([("note", pa.string()), ("at", pa.float64())])
NAMES = ["p0", "p1", "p2", "p3"]


def departures(levels: list[list[int]], rows: dict[str, Any] = ROWS) -> Departures:
    """Rows with the levels at which each of their values is published."""
    n = len(levels)
    batch = pa.record_batch({name: pa.array(column[:n]) for name, column in rows.items()})
    _, labels = Ladders(SCHEMA, bytes(8)).encode(batch, True, lambda rows, reason: None)
    payload = {name: batch.column(name) for name in ("note", "at")}
    payload |= labels | {"pseudonym": pa.array(NAMES[:n], pa.string()), "who": ["CANARY"] * n}
    found = np.array(levels, np.int64).reshape(n, 2)
    outcomes = np.where((found >= 0).any(axis=1), 0, 2)
    none, whole = np.full(n, np.nan), np.arange(n)
    return Departures(
        whole, outcomes, np.full(n, -1), whole, none, np.zeros(n, np.int64), np.zeros(n), whole,
        none, np.empty((0, 0)), np.empty((0, 0)), np.empty(0, np.int64), np.empty(0, np.int64),
        found, np.full(n, 2), pa.record_batch(payload),
    )  # fmt: skip


def publisher(payload: pa.Schema = PAYLOAD, *, first: int = 0, **how: Any) -> ZPublisher:
    return ZPublisher(SCHEMA, Publish(**how), payload, first=first)


def test_each_value_is_published_at_its_level_or_not_at_all():
    release, seq = publisher().release(departures([[0, -1], [1, 0], [-1, 0], [-2, 0]]))
    assert release.batch.to_pydict() == {
        "area": ["it/to", "it", None, None],
        "page": [None, "b", "c", "a"],
        "note": ["n0", "n1", "n2", "n3"],
        "at": [0.0, 1.0, 2.0, 3.0],
    }
    assert seq.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("suppressed", ["drop", "root"])
def test_rows_of_which_nothing_is_published(suppressed):
    makes = publisher(suppressed=suppressed, pseudonym=Pseudonym(60))
    release, seq = makes.release(departures([[0, 0], [-1, -1], [-2, -1], [1, -1]]))
    shown = release.batch.to_pylist()
    first = {"pseudonym": "p0", "area": "it/to", "page": "a", "note": "n0", "at": 0.0}
    last = {"pseudonym": "p3", "area": "it", "page": None, "note": "n3", "at": 3.0}
    if suppressed == "drop":
        assert shown == [first, last]
        assert seq.tolist() == [0, -1, -1, 1]
    else:
        nothing = dict.fromkeys(first)
        assert shown == [first, nothing, nothing, last]
        assert seq.tolist() == [0, 1, 2, 3]
    assert makes.upcoming == release.n_rows


@pytest.mark.parametrize("suppressed", ["drop", "root"])
def test_no_buffer_of_a_release_has_what_is_hidden(suppressed):
    levels = [[1, -1], [-1, -1], [-1, 0], [-1, -1]]
    release, _ = publisher(suppressed=suppressed).release(departures(levels))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, release.batch.schema) as stream:
        stream.write_batch(release.batch)
    found = sink.getvalue().to_pybytes()
    for public in (b"it", b"n0", b"n2", b"c"):
        assert public in found
    for hidden in (b"it/to", b"it/mi", b"fr", b"n1", b"n3", b"CANARY"):
        assert hidden not in found


def test_a_dictionary_has_each_label_once_and_those_alone_that_are_published():
    release, _ = publisher().release(departures([[1, -1], [1, -1], [0, -1], [0, -1]]))
    area, page = release.batch.columns[:2]
    assert sorted(area.dictionary.to_pylist()) == ["fr/ly", "it", "it/to"]
    assert page.dictionary.to_pylist() == []


def test_places_continue_from_release_to_release_and_from_run_to_run():
    makes = publisher(first=7)
    first, seq = makes.release(departures([[0, 0], [-1, -1]]))
    assert (first.first, seq.tolist(), makes.upcoming) == (7, [7, -1], 8)
    second, seq = makes.release(departures([[-1, -1]]))
    assert (second.n_rows, seq.tolist(), makes.upcoming) == (0, [-1], 8)
    third, seq = makes.release(departures([[0, 0]]))
    assert (third.first, seq.tolist()) == (8, [8])


def test_columns_are_the_pseudonym_the_attributes_what_is_kept_and_the_time():
    assert publisher(pseudonym=Pseudonym(60), time=0).schema.names == [
        "pseudonym", "area", "page", "note", "at",
    ]  # fmt: skip
    bare = publisher(pa.schema([]))
    assert bare.schema.names == ["area", "page"]
    release, _ = bare.release(departures([[0, 0], [-1, -1]]))
    assert release.batch.to_pylist() == [{"area": "it/to", "page": "a"}]
    assert release.batch.schema.names == bare.schema.names


def test_values_that_are_missing_everywhere():
    rows = ROWS | {"page": pa.nulls(2, pa.string())}
    release, _ = publisher().release(departures([[0, -2], [1, -2]], rows))
    assert release.batch["page"].to_pylist() == [None, None]


# -- what goes with z-anonymity ------------------------------------------------------------------


@pytest.mark.parametrize("time", [-1, float("nan"), float("inf"), "60", True])
def test_the_time_is_rounded_to_a_number_of_seconds(time):
    with pytest.raises(JobError, match=r"publish\.time: must be a finite number of seconds"):
        Publish(time=time)


@pytest.mark.parametrize(
    ("how", "keys"),
    [
        ({"pseudonym": Pseudonym(60)}, ["publish.pseudonym"]),
        ({"time": 0}, ["publish.time"]),
        ({"pseudonym": Pseudonym(60), "time": 60}, ["publish.pseudonym", "publish.time"]),
    ],
)
def test_groups_have_neither_pseudonyms_nor_times(how, keys):
    schema = Schema("who", [Quasi("age", Range(0, 9))], time="at")
    with pytest.raises(JobError, match="is for z-anonymity only") as raised:
        Publish(**how).check(Policy(KAnonymity(2)), schema)
    assert [problem.key for problem in raised.value.problems] == keys
    Publish().check(Policy(KAnonymity(2)), schema)


@pytest.mark.parametrize(
    ("how", "schema", "says"),
    [
        ({"numeric": "bounds"}, SCHEMA, r"publish\.numeric: isn't used by z-anonymity"),
        ({"order": "shuffled"}, SCHEMA, r"publish\.order: isn't used by z-anonymity"),
        ({"order": "arrival"}, SCHEMA, "in the order of their arrival"),
        ({"time": 0}, Schema("who", SCHEMA.quasi), "needs rows that have a time"),
        (
            {"time": 60},
            Schema("who", [Quasi("at", Range(0, 99, step=9))], time="at"),
            "publishes column at, which is a quasi attribute",
        ),
        (
            {"pseudonym": Pseudonym(60)},
            Schema("who", SCHEMA.quasi, keep=["pseudonym"]),
            r"schema\.pseudonym: is also the name of the published pseudonyms",
        ),
        (
            {"pseudonym": Pseudonym(60)},
            Schema("who", [Quasi("pseudonym", Open())]),
            "also the name of the published pseudonyms",
        ),
    ],
)
def test_what_z_anonymity_cant_publish_is_refused(how, schema, says):
    with pytest.raises(JobError, match=says):
        Publish(**how).check(POLICY, schema)


@pytest.mark.parametrize("how", [{}, {"time": 0}, {"time": 3600, "pseudonym": Pseudonym(60)}])
def test_what_z_anonymity_can_publish(how):
    Publish(suppressed="root", **how).check(POLICY, SCHEMA)


def test_a_trace_that_would_undo_pseudonyms_must_be_asked_for():
    named = Publish(pseudonym=Pseudonym(60))
    with pytest.raises(ParameterError, match="would undo the pseudonyms"):
        named.check_trace()
    named.check_trace(undo_pseudonyms=True)
    Publish().check_trace()


def test_labels_are_numbered_as_they_are_published():
    labels = pa.array(["hidden", "b", "a"])
    column = _used(labels, np.array([0, 2, 1, 2]), np.array([True, False, False, False]))
    assert column.to_pylist() == [None, "a", "b", "a"]
    assert column.dictionary.to_pylist() == ["a", "b"]
