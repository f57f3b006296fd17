import pyarrow as pa
import pytest

from shoal.arrow.release import Release
from shoal.arrow.trace import trace_schema
from shoal.cli.demo.scene import FOLLOWED_PER_SECOND, POINTS_PER_SECOND, Watcher
from shoal.cli.demo.stream import make_stream
from shoal.metrics import Summary

EVERY = 4
BOX = {"age": "[20, 30]", "sex": "*", "marital_status": "Alone", "occupation": "Working"}


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def watcher(clock):
    """It follows rows 0, 4, 8 … of twelve, which came in two batches."""
    schema, table = make_stream(1.0, rate=12, seed=3)
    watcher = Watcher(schema, EVERY * FOLLOWED_PER_SECOND, clock)
    batch = table.to_batches()[0]
    watcher.came(batch.slice(0, 5), 0)
    watcher.came(batch.slice(5), 5)
    return watcher


def leave(watcher, rows, subjects, outcomes, groups, first=0):
    """Let rows leave, as the writing thread reports it."""
    n = len(rows)
    out = [outcome != "suppressed" for outcome in outcomes]
    seq = [first + sum(out[:i]) if out[i] else None for i in range(n)]
    watcher.traced(
        pa.record_batch(
            {
                "row": rows, "subject": subjects, "outcome": outcomes, "arrived": rows,
                "published": rows, "arrived_s": [None] * n, "published_s": [None] * n,
                "group": groups, "window": [None] * n, "loss": [0.5] * n, "seq": seq,
            },
            schema=trace_schema(pa.string()),
        )
    )  # fmt: skip
    public = {name: [label] * sum(out) for name, label in BOX.items()}
    public["diagnosis"] = [f"D{row}" for row, is_out in zip(rows, out, strict=True) if is_out]
    watcher.released(Release(pa.record_batch(public), first))


def test_one_row_in_each_interval_is_followed(watcher):
    came = watcher.scene().came
    assert [followed.number for followed in came] == [1, 2, 3]
    _, table = make_stream(1.0, rate=12, seed=3)
    fourth = table.select([*BOX, "diagnosis"]).slice(4, 1).to_pylist()[0]
    assert came[1].values == tuple(str(value) for value in fourth.values())
    assert all(followed.decided_at is None for followed in came)


def test_a_followed_row_gets_the_card_of_its_group(watcher, clock):
    clock.now += 2.0
    leave(watcher, [3, 4, 5, 6], list("abbc"), ["group"] * 4, [7, 7, 7, 9])
    scene = watcher.scene()
    (card,) = scene.cards
    assert (card.hue, card.n_subjects, card.numbers) == (0, 2, (2,))
    assert card.box == tuple(BOX.values())
    assert card.sensitive == ("D3", "D4", "D5")
    assert [followed.hue for followed in scene.came] == [None, 0, None]
    assert scene.came[1].decided_at == card.shown_at == 2.0
    assert watcher.example is not None
    assert watcher.example[0].number == 2
    assert watcher.example[1].box == card.box


def test_a_row_that_joins_in_the_same_release_isnt_counted_with_the_group(watcher):
    leave(watcher, [4, 5, 6], list("abc"), ["group", "group", "reuse"], [7, 7, 7])
    (card,) = watcher.scene().cards
    assert card.n_subjects == 2
    assert card.sensitive == ("D4", "D5")


def test_a_reuse_shows_no_company(watcher):
    leave(watcher, [8], ["a"], ["reuse"], [2], first=30)
    (card,) = watcher.scene().cards
    assert (card.n_subjects, card.sensitive) == (None, ())
    assert watcher.example is None


def test_two_followed_rows_of_a_group_share_a_card(watcher):
    leave(watcher, [0, 4], list("ab"), ["group"] * 2, [7, 7])
    (card,) = watcher.scene().cards
    assert card.numbers == (1, 2)
    assert card.n_subjects == 2


def test_a_suppressed_row_is_decided_without_a_group(watcher):
    leave(watcher, [0, 1], list("ab"), ["suppressed", "group"], [None, 5])
    scene = watcher.scene()
    assert scene.cards == ()
    assert scene.came[0].hue is None
    assert scene.came[0].decided_at == 0.0


def test_figures_and_curves(watcher, clock):
    summary = Summary()
    for _ in range(8):
        clock.now += 1 / POINTS_PER_SECOND
        summary.n_in += 50
        summary.groups.add([3], [2])
        watcher.counted(summary)
        leave(watcher, [90], ["a"], ["group"], [5])
    clock.now += 1 / POINTS_PER_SECOND
    scene = watcher.scene()
    assert scene.elapsed == 9 / POINTS_PER_SECOND
    assert scene.figures.n_in == 400
    assert scene.figures.smallest == 2
    assert scene.rows_per_second == 50 * POINTS_PER_SECOND
    assert scene.losses == (0.5,) * 8
    assert scene.groups == (1,) * 8
