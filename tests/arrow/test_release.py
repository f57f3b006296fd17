"""What leaves the system: public rows and nothing else."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from shoal.arrow.order import ByArrival, ByInstant, Departures, Ordering
from shoal.arrow.release import Publish, Publisher, Release
from shoal.engine.space import NO_TABLE
from shoal.errors import JobError
from shoal.spec.hierarchy import Hierarchy, Range
from shoal.spec.schema import Quasi, Schema, Sensitive

SCHEMA = Schema(
    subject="person",
    quasi=[Quasi("age", Range(0, 120, step=1)), Quasi("sex", Hierarchy.flat(["f", "m"]))],
    sensitive=[Sensitive("illness", None)],
    keep=["ward"],
)
PAYLOAD = pa.schema([("illness", pa.string()), ("ward", pa.int64())])
SUPPRESSED = 2


def departures(outcomes: list[int], gaps: list[int] | None = None) -> Departures:
    """Rows of which the suppressed have no box; the others share one."""
    n = len(outcomes)
    payload = {
        "illness": [f"ill-{i}" for i in range(n)],
        "ward": pa.array(range(n), pa.int64()),
        "person": ["CANARY"] * n,
    }
    boxes = np.array([-1 if outcome == SUPPRESSED else 0 for outcome in outcomes])
    return Departures(
        np.arange(n), np.array(outcomes), boxes, np.arange(n), np.full(n, np.nan),
        np.array(gaps or [0] * n), np.full(n, 0.1),
        np.arange(n), np.full(n, np.nan), np.array([[20.0, 0.0]]), np.array([[29.0, 0.0]]),
        np.array([7]), np.array([-1]), NO_TABLE, np.empty(0, np.int64), pa.record_batch(payload),
    )  # fmt: skip


def test_rows_have_public_columns_only():
    release, seq = Publisher(SCHEMA, Publish(), PAYLOAD).release(departures([0, 1]))
    assert release.batch.to_pydict() == {
        "age": ["[20, 29]"] * 2, "sex": ["f"] * 2, "illness": ["ill-0", "ill-1"], "ward": [0, 1],
    }  # fmt: skip
    assert seq.tolist() == [0, 1]
    assert (release.first, release.n_rows) == (0, 2)


def test_suppressed_rows_are_left_out():
    publisher = Publisher(SCHEMA, Publish(suppressed="drop"), PAYLOAD)
    release, seq = publisher.release(departures([2, 0, 2, 0]))
    assert release.batch["illness"].to_pylist() == ["ill-1", "ill-3"]
    assert seq.tolist() == [-1, 0, -1, 1]
    release, seq = publisher.release(departures([2]))
    assert (release.n_rows, seq.tolist()) == (0, [-1])
    release, seq = publisher.release(departures([0, 2]))
    assert (release.first, seq.tolist()) == (2, [2, -1])


def test_suppressed_rows_at_the_root_have_nothing_of_their_own():
    publisher = Publisher(SCHEMA, Publish(suppressed="root"), PAYLOAD)
    release, seq = publisher.release(departures([0, 2, 0]))
    assert release.batch.to_pylist()[1] == {
        "age": "[0, 120]", "sex": "*", "illness": None, "ward": None,
    }  # fmt: skip
    assert release.batch["illness"].to_pylist() == ["ill-0", None, "ill-2"]
    assert release.batch["age"].to_pylist()[::2] == ["[20, 29]"] * 2
    assert seq.tolist() == [0, 1, 2]


def test_suppressed_rows_where_there_is_no_payload():
    bare = Schema(subject="person", quasi=SCHEMA.quasi)
    for suppressed, n_rows in (("drop", 1), ("root", 2)):
        publisher = Publisher(bare, Publish(suppressed=suppressed), pa.schema([]))
        release, _ = publisher.release(departures([0, 2]))
        assert release.n_rows == n_rows
        assert release.batch.schema.names == ["age", "sex"]


@pytest.mark.parametrize(
    ("suppressed", "ages"),
    [("drop", [None, "[20, 29]"]), ("root", ["[0, 120]", None, "[0, 120]", "[20, 29]"])],
)
def test_gaps_are_those_of_their_rows_and_never_of_a_suppressed_one(suppressed, ages):
    publisher = Publisher(SCHEMA, Publish(suppressed=suppressed), PAYLOAD, with_gaps=True)
    release, _ = publisher.release(departures([2, 0, 2, 0], gaps=[3, 1, 1, 2]))
    assert release.batch["age"].to_pylist() == ages
    shown = ["*", "f", "*", None] if suppressed == "root" else ["f", None]
    assert release.batch["sex"].to_pylist() == shown


def test_without_gaps_everybody_has_the_label_of_the_box():
    release, _ = Publisher(SCHEMA, Publish(), PAYLOAD).release(departures([0, 0], gaps=[1, 3]))
    assert release.batch["age"].to_pylist() == ["[20, 29]"] * 2
    assert release.batch["sex"].to_pylist() == ["f"] * 2


def test_the_announced_columns_are_those_that_come():
    for numeric in ("range", "bounds", "midpoint"):
        publisher = Publisher(SCHEMA, Publish(numeric=numeric), PAYLOAD)
        release, _ = publisher.release(departures([0, 2]))
        assert release.batch.schema.names == publisher.schema.names


def test_values_of_people_are_not_shown():
    assert repr(Release(pa.record_batch({"illness": ["CANARY"]}), 3)) == "Release(first=3)"


def test_all_unknown_words_are_reported():
    with pytest.raises(JobError) as raised:
        Publish(numeric="rnge", order="released", suppressed="roots")  # type: ignore[arg-type]
    assert [problem.key for problem in raised.value.problems] == [
        "publish.numeric", "publish.suppressed",
    ]  # fmt: skip
    assert "Did you mean 'root'?" in str(raised.value)


def test_orders():
    assert type(Publish().ordering(b"x")) is Ordering
    assert type(Publish(order="shuffled").ordering(b"x")) is ByInstant
    assert type(Publish(order="arrival").ordering(b"x")) is ByArrival
