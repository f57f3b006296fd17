"""What an engine sees of a schema and a policy."""

from __future__ import annotations

import numpy as np
import pytest

from shoal import (
    Codes,
    Delay,
    Hierarchy,
    KAnonymity,
    Policy,
    Quasi,
    Range,
    Schema,
    Sensitive,
    Space,
)
from shoal.errors import JobError, ParameterError
from shoal.policy import DistinctLDiversity, EntropyLDiversity, RecursiveLDiversity

TREE = Hierarchy.from_dict({"Any": {"A": ["a", "b"], "B": ["c", "d"]}})
SCHEMA = Schema(
    "p",
    [Quasi("x", Range(0, 10, step=2)), Quasi("y", TREE, weight=3.0)],
    [Sensitive("s"), Sensitive("t")],
)


def space(*criteria: object, delay: Delay | None = None, loss: str = "glm") -> Space:
    return Space(SCHEMA, Policy(KAnonymity(2), *criteria, delay=delay), loss)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("loss", "lo", "hi", "expected"),
    [
        ("glm", [0, 0], [10, 3], 1.0),
        ("glm", [0, 0], [0, 0], 0.0),
        ("glm", [2, 0], [4, 1], 0.25 * 0.2 + 0.75 * 2 / 4),
        ("lm", [2, 0], [4, 1], 0.25 * 0.2 + 0.75 * 1 / 3),
        ("lm", [0, 0], [10, 3], 1.0),
    ],
)
def test_loss_is_weighted(loss: str, lo: list[float], hi: list[float], expected: float) -> None:
    measured = space(loss=loss).loss(np.array(lo, float), np.array(hi, float))
    assert measured == pytest.approx(expected)


def test_a_tree_of_one_leaf_loses_nothing() -> None:
    schema = Schema(None, [Quasi("only", Hierarchy.flat(["one"]))])
    for loss in ("glm", "lm"):
        lonely = Space(schema, Policy(KAnonymity(2)), loss)  # type: ignore[arg-type]
        assert lonely.loss(np.zeros(1), np.zeros(1)) == 0.0


def test_points_are_snapped() -> None:
    lo, hi = space().points(np.array([[3.0, 2.0], [4.0, 0.0]]))
    assert lo.tolist() == [[2.0, 2.0], [4.0, 0.0]]
    assert hi.tolist() == [[4.0, 2.0], [4.0, 0.0]]


def test_limits_are_per_attribute_and_the_strictest() -> None:
    limits = space(
        DistinctLDiversity(2),
        DistinctLDiversity(4, "t"),
        EntropyLDiversity(1.5, "s"),
        EntropyLDiversity(2.5, "s"),
        RecursiveLDiversity(3, "t", c=0.5),
    ).limits
    assert limits.k == 2
    assert limits.diversity.tolist() == [(3, 2.5, 0.0, 0), (4, 0.0, 0.5, 3)]


@pytest.mark.parametrize(
    ("delay", "deadlines"),
    [
        (None, (0, 0.0)),
        (Delay(rows=5), (5, 0.0)),
        (Delay(seconds=2), (0, 2.0)),
        (Delay(5, 2.5), (5, 2.5)),
    ],
)
def test_deadlines(delay: Delay | None, deadlines: tuple[int, float]) -> None:
    assert space(delay=delay).deadlines == deadlines


def test_an_unknown_loss_is_refused() -> None:
    with pytest.raises(
        ParameterError, match=r"must be one of glm, lm; got 'gln'. Did you mean 'glm'"
    ):
        space(loss="gln")


def test_a_policy_that_does_not_fit_is_refused() -> None:
    with pytest.raises(JobError, match="isn't a sensitive attribute"):
        space(DistinctLDiversity(2, "x"))


def test_a_batch_of_no_rows() -> None:
    empty = Codes.empty(2, 1)
    assert [array.shape for array in empty] == [(0, 2), (0,), (0, 1), (0,)]
    assert [array.dtype.kind for array in empty] == ["f", "i", "i", "f"]
