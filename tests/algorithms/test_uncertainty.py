"""Boxes formed where categories are numbers, and published as nodes (Zhou et al., Definition 2)."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from shoal import Delay, Hierarchy, KAnonymity, Policy, Quasi, Range, Schema
from shoal.algorithms import Castle, find, names
from shoal.engine import Codes
from shoal.engine.base import Decisions, Outcome
from shoal.errors import CheckpointError
from shoal.spec.policy import Missing
from shoal.testing.checks import check_cover, check_gaps, check_promise
from shoal.testing.strategies import streams
from shoal.testing.streams import joined
from tests.examples import examples

NAMES = [name for name in names() if find(name).publishes != "values"]
EXAMPLES = examples(5 if numba.config.DISABLE_JIT else 40)
TREE = Hierarchy.from_dict(
    {"*": {"Mammal": ["Cat", "Dog"], "Bird": ["Owl", "Jay"], "Fish": ["Eel", "Ray", "Cod"]}}
)
CAT, DOG, OWL, JAY, EEL = range(5)
SCHEMA = Schema("p", [Quasi("age", Range(0, 100)), Quasi("pet", TREE, weight=3.0)])

#: Rows join kept groups, one by one.
REUSE: dict[str, Any] = {"kept": 1000, "joins": "alone"}


def publish(
    schema: Schema,
    values: list[list[float]],
    *,
    rows: int = 50,
    k: int = 2,
    missing: Missing = "quarantine",
    **knobs: Any,
) -> Decisions:
    """What CASTLE makes of rows, each of another person."""
    policy = Policy(KAnonymity(k), delay=Delay(rows=rows), missing=missing)
    engine = Castle(loss="uncertainty", **knobs).start(schema, policy, seed=b"1")
    n = len(values)
    nothing = np.empty((n, 0), np.int64)
    codes = Codes(np.array(values, float), np.arange(n), nothing, np.full(n, np.nan))
    return joined([engine.push(codes), engine.flush()])


def sides(decided: Decisions) -> list[list[tuple[float, float]]]:
    boxes = zip(decided.lo.tolist(), decided.hi.tolist(), strict=True)
    return [list(zip(lo, hi, strict=True)) for lo, hi in boxes]


@pytest.mark.parametrize("name", NAMES)
def test_what_is_published_is_public_and_loses_what_it_says(name: str) -> None:
    @settings(
        max_examples=EXAMPLES, deadline=None, derandomize=True, database=None,
        phases=(Phase.generate, Phase.shrink), suppress_health_check=[HealthCheck.too_slow],
    )  # fmt: skip
    @given(data=st.data())
    def drawn(data: st.DataObject) -> None:
        stream = data.draw(streams(find(name)))
        for check in (check_promise, check_cover, check_gaps):
            check(find(name)(loss="uncertainty"), stream)

    drawn()


def test_neighbours_in_order_meet_though_another_node_is_above_them() -> None:
    # Dog and Owl are neighbours. In trees they have nothing in common, and Cat is as near as can be
    # to Dog; here a Dog of the same age is nearer to an Owl than to an older Cat.
    rows = [[20.0, DOG], [20.0, OWL], [90.0, CAT], [90.0, CAT]]
    decided = publish(SCHEMA, rows)
    found = {tuple(box[0]): box[1] for box in sides(decided)}
    # The interval from Dog to Owl isn't published, but the node above both.
    assert found == {(20.0, 20.0): (0.0, 6.0), (90.0, 90.0): (0.0, 0.0)}
    # What is written down is what is lost to those who see it: of the pet everything.
    assert dict(zip(map(str, decided.lo[:, 0]), decided.loss, strict=True)) == pytest.approx(
        {"20.0": 0.75, "90.0": 0.0}
    )


def test_the_loss_of_a_published_row_by_hand() -> None:
    # Eel and Cod: the node has 3 of 7 leaves, the first of which is 2 of 6 steps from the last.
    decided = publish(SCHEMA, [[20.0, EEL], [45.0, EEL + 2]])
    assert sides(decided) == [[(20.0, 45.0), (4.0, 6.0)]]
    assert decided.losses.tolist() == pytest.approx([(1 * 0.25 + 3 * 2 / 6) / 4] * 2)
    assert decided.loss.tolist() == decided.losses[:1].tolist()


@pytest.mark.parametrize(
    ("missing", "box", "losses"),
    [
        # A gap stands for any pet, for the whole group.
        ("extended", [(20.0, 45.0), (0.0, 6.0)], {0: (0.25 + 3) / 4, 1: 0.25}),
        # It stays a gap, and widens nothing.
        ("maybe", [(20.0, 45.0), (4.0, 4.0)], {0: 0.25 / 4, 1: 0.25}),
    ],
)
def test_gaps(missing: Missing, box: list[tuple[float, float]], losses: dict[int, float]) -> None:
    decided = publish(SCHEMA, [[20.0, EEL], [45.0, np.nan]], missing=missing)
    assert sides(decided) == [box]
    assert dict(zip(decided.rows.tolist(), decided.losses, strict=True)) == pytest.approx(losses)


def test_a_side_that_nobody_has_stays_empty() -> None:
    decided = publish(SCHEMA, [[20.0, np.nan], [45.0, np.nan]], missing="maybe")
    assert sides(decided) == [[(20.0, 45.0), (np.inf, -np.inf)]]
    assert decided.loss.tolist() == [0.25]


def test_flat_values_and_a_tree_of_one_leaf() -> None:
    quasi = [Quasi("sex", Hierarchy.flat([*"fmx"])), Quasi("only", Hierarchy.flat([*"a"]))]
    decided = publish(Schema("p", quasi), [[0, 0], [1, 0]])
    # Two of three values: all of them are shown, and the one that there is loses nothing.
    assert sides(decided) == [[(0.0, 2.0), (0.0, 0.0)]]
    assert decided.losses.tolist() == [0.5, 0.5]
    assert publish(Schema("p", quasi[1:]), [[0], [0]]).losses.tolist() == [0.0, 0.0]


def test_a_reused_group_is_shown_as_it_was() -> None:
    decided = publish(SCHEMA, [[20.0, DOG], [21.0, JAY], [20.5, OWL]], rows=1, **REUSE)
    assert decided.outcomes.tolist() == [Outcome.group, Outcome.group, Outcome.reuse]
    assert decided.groups.tolist() == [0, 0]
    assert sides(decided) == [[(20.0, 21.0), (0.0, 6.0)]] * 2
    assert decided.loss.tolist() == pytest.approx([0.7525] * 2)
    assert decided.losses.tolist() == pytest.approx([0.7525] * 3)


def test_a_row_beside_the_interval_of_a_kept_group_joins_it_if_its_node_covers_it() -> None:
    # The node that was shown covers a Cat as well; the interval doesn't, but nobody sees it.
    decided = publish(SCHEMA, [[20.0, DOG], [21.0, JAY], [20.5, CAT]], rows=1, **REUSE)
    assert decided.outcomes.tolist() == [Outcome.group, Outcome.group, Outcome.reuse]


def test_a_snapshot_of_another_tree_or_loss_is_refused() -> None:
    """Trees of as many leaves are the same numbers, and aren't published alike."""
    policy = Policy(KAnonymity(2), delay=Delay(rows=5))
    other = Schema("p", [SCHEMA.quasi[0], Quasi("pet", Hierarchy.flat([*"abcdefg"]), weight=3.0)])
    snapshot = Castle(loss="uncertainty").start(SCHEMA, policy, seed=b"s").snapshot()
    Castle(loss="uncertainty").start(SCHEMA, policy, seed=b"s").restore(snapshot)
    for anonymizer, schema in ((Castle(loss="uncertainty"), other), (Castle(loss="lm"), SCHEMA)):
        with pytest.raises(CheckpointError, match="another schema, policy or other knobs"):
            anonymizer.start(schema, policy, seed=b"s").restore(snapshot)
