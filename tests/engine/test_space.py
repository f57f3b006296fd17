"""What an engine sees of a schema and a policy."""

from __future__ import annotations

import numpy as np
import pytest

from shoal import Delay, Hierarchy, KAnonymity, Policy, Quasi, Range, Schema, Sensitive
from shoal.engine import Codes, Space
from shoal.engine.kernels.measured import (
    BASIC,
    DISCLOSURE,
    ENHANCED,
    ORDERED,
    RANGES,
    SEMANTIC,
)
from shoal.engine.kernels.measured import TREE as IN_TREE
from shoal.errors import JobError, ParameterError
from shoal.spec.criteria import (
    BasicLikeness,
    Criterion,
    DeltaDisclosure,
    EnhancedLikeness,
    Measured,
    RangeLikeness,
    SemanticLikeness,
    TCloseness,
)
from shoal.spec.hierarchy import Domain
from shoal.spec.policy import DistinctLDiversity, EntropyLDiversity, RecursiveLDiversity, Window

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
        ("uncertainty", [2, 0], [4, 1], 0.25 * 0.2 + 0.75 * 1 / 3),
        # No node has these leaves alone, and they are the middle third of the way.
        ("uncertainty", [2, 1], [4, 2], 0.25 * 0.2 + 0.75 * 1 / 3),
        ("uncertainty", [0, 0], [10, 3], 1.0),
    ],
)
def test_loss_is_weighted(loss: str, lo: list[float], hi: list[float], expected: float) -> None:
    measured = space(loss=loss).loss(np.array(lo, float), np.array(hi, float))
    assert measured == pytest.approx(expected)


def test_a_tree_of_one_leaf_loses_nothing() -> None:
    schema = Schema(None, [Quasi("only", Hierarchy.flat(["one"]))])
    for loss in ("glm", "lm", "uncertainty"):
        lonely = Space(schema, Policy(KAnonymity(2)), loss)  # type: ignore[arg-type]
        assert lonely.loss(np.zeros(1), np.zeros(1)) == 0.0


def test_what_is_shown_is_what_rows_are_put_together_by() -> None:
    for loss in ("glm", "lm"):
        same = space(loss=loss)
        assert same.shown is same.sides
    measured = space(loss="uncertainty")
    assert measured.sides.attributes["first_leaf"].tolist() == [-1, -1]
    assert measured.shown.attributes["first_leaf"].tolist() == [-1, 0]
    # Of a node to the last bit what the interval of its leaves loses.
    for lo, hi, lost, _ in measured.shown.nodes.tolist():
        assert lost == (hi - lo) * measured.sides.attributes["unit"][1]


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
        ParameterError, match=r"must be one of glm, lm, uncertainty; got 'gln'. Did you mean 'glm'"
    ):
        space(loss="gln")


@pytest.mark.parametrize(
    ("time", "domain", "clock"),
    [
        ("y", Range(0, 10), 1),
        ("y", Range(0, 10, step=5), 1),
        (None, Range(0, 10), -1),
        ("z", Range(0, 10), -1),
        # Days of the week, say, aren't counted in seconds.
        ("y", TREE, -1),
    ],
)
def test_the_clock_is_the_attribute_that_is_the_time(
    time: str | None, domain: Domain, clock: int
) -> None:
    schema = Schema("p", [Quasi("x", Range(0, 10)), Quasi("y", domain)], time=time)
    assert Space(schema, Policy(KAnonymity(2))).clock == clock


def test_a_policy_that_does_not_fit_is_refused() -> None:
    with pytest.raises(JobError, match="isn't a sensitive attribute"):
        space(DistinctLDiversity(2, "x"))


def test_a_batch_of_no_rows() -> None:
    empty = Codes.empty(2, 1)
    assert [array.shape for array in empty] == [(0, 2), (0,), (0, 1), (0,), (0, 0)]
    assert [array.dtype.kind for array in empty] == ["f", "i", "i", "f", "i"]


# -- what is measured ------------------------------------------------------------------------------

#: A leaf beside an inner node, and one that is two levels deep.
RAGGED = Hierarchy.from_dict({"*": {"a": None, "B": {"b1": None, "C": ["c1", "c2"]}}})
MEASURED = Schema(
    "p",
    [Quasi("x", Range(0, 10))],
    [Sensitive("pay", Range(1, 9)), Sensitive("ill", RAGGED), Sensitive("note"),
     Sensitive("last", TREE)],
)  # fmt: skip


def measured(*criteria: Criterion, window: Window | None = None) -> Space:
    return Space(MEASURED, Policy(*criteria, window=window or "all"))


@pytest.mark.parametrize(
    ("criterion", "asked"),
    [
        (TCloseness(0.2, attribute="pay"), (ORDERED, 0, 0.2, 0, 0.0, False)),
        (TCloseness(0.2, attribute="ill"), (IN_TREE, 1, 0.2, 0, 0.0, False)),
        (BasicLikeness(2, attribute="note"), (BASIC, 2, 2.0, 0, 0.0, False)),
        (EnhancedLikeness(2, attribute="note"), (ENHANCED, 2, 2.0, 0, 0.0, False)),
        (SemanticLikeness(2, attribute="ill", level=3), (SEMANTIC, 1, 2.0, 3, 0.0, False)),
        (
            RangeLikeness(2, attribute="pay", epsilon=1.5, relative=True),
            (RANGES, 0, 2.0, 0, 1.5, True),
        ),
        (DeltaDisclosure(0.7, attribute="last"), (DISCLOSURE, 3, 0.7, 0, 0.0, False)),
    ],
)
def test_measures_are_numbers(criterion: Measured, asked: tuple[object, ...]) -> None:
    assert measured(criterion).limits.measures.asked.tolist() == [asked]


def test_measures_are_in_the_order_of_the_attributes() -> None:
    # What is counted for an attribute is counted once.
    found = measured(
        EnhancedLikeness(1.0), TCloseness(0.2, attribute="pay"), BasicLikeness(3.0, attribute="ill")
    ).limits.measures.asked
    assert found["attribute"].tolist() == [0, 0, 1, 1, 2, 3]
    assert found["kind"].tolist() == [ENHANCED, ORDERED, ENHANCED, BASIC, ENHANCED, ENHANCED]


def test_trees_are_laid_end_to_end() -> None:
    trees = measured(DeltaDisclosure(1.0)).limits.measures.trees
    assert trees.trees.tolist() == [(0, 0, 0), (0, 7, 0), (0, 0, 0), (7, 7, 4)]
    assert trees.leaf_node.tolist() == [1, 3, 5, 6, 9, 10, 12, 13]
    assert trees.nodes["parent"].tolist() == [0, 0, 0, 2, 2, 4, 4, 7, 7, 8, 8, 7, 11, 11]
    # Heights are counted from below, depths from above.
    assert trees.nodes["height"].tolist() == [3, 0, 2, 0, 1, 0, 0, 2, 1, 0, 0, 1, 0, 0]
    assert trees.nodes["depth"].tolist() == [0, 1, 1, 2, 2, 3, 3, 0, 1, 2, 2, 1, 2, 2]


def test_a_window_has_rows_and_may_advance() -> None:
    assert measured(DeltaDisclosure(1.0), window=Window(20, 5)).window == (20, 5, 0.0)
    assert measured(DeltaDisclosure(1.0), window=Window(20)).window == (20, 0, 0.0)
    assert measured(DeltaDisclosure(1.0)).window == (0, 0, 0.0)
    assert space().window == (0, 0, 0.0)


def test_limits_begin_with_a_window_of_no_rows() -> None:
    window = measured(DeltaDisclosure(1.0)).limits.window
    assert (window.n_rows.tolist(), window.n.tolist()) == ([0], [0, 0, 0, 0])


def test_a_criterion_without_a_kernel_is_a_bug() -> None:
    class Strange(Measured):
        name = "strangeness"
        key = "strange"

    with pytest.raises(TypeError, match="strangeness has no kernel"):
        measured(Strange())
