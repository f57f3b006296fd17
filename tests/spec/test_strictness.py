"""Which of two policies promises more: only what is certain counts as stricter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest

from shoal.spec.policy import (
    BasicLikeness,
    Criterion,
    Delay,
    DeltaDisclosure,
    DistinctLDiversity,
    EnhancedLikeness,
    EntropyLDiversity,
    KAnonymity,
    Policy,
    RangeLikeness,
    RecursiveLDiversity,
    SemanticLikeness,
    TCloseness,
    VariationalCloseness,
    Window,
    ZAnonymity,
)
from shoal.spec.strictness import direction, implies

ALL = Window(rows=100)


@dataclass(frozen=True, slots=True)
class Own(Criterion):
    """A criterion of somebody else."""

    name: ClassVar[str] = "own"
    key: ClassVar[str] = "own"
    k: int = 1


@pytest.mark.parametrize(
    ("stricter", "weaker"),
    [
        (KAnonymity(4), KAnonymity(3)),
        (ZAnonymity(4), ZAnonymity(3)),
        (DistinctLDiversity(4), DistinctLDiversity(3)),
        (DistinctLDiversity(3), DistinctLDiversity(3, attribute="a")),
        (EntropyLDiversity(3.5), EntropyLDiversity(3.0)),
        (RecursiveLDiversity(3, c=1.0), RecursiveLDiversity(3, c=2.0)),
        (RecursiveLDiversity(4, c=2.0), RecursiveLDiversity(3, c=2.0)),
        (TCloseness(0.1), TCloseness(0.2)),
        (VariationalCloseness(0.1), VariationalCloseness(0.2, attribute="a")),
        (EnhancedLikeness(1.0), EnhancedLikeness(2.0)),
        (DeltaDisclosure(0.5), DeltaDisclosure(0.7)),
    ],
)
def test_one_implies_the_other_and_not_the_other_way_round(
    stricter: Criterion, weaker: Criterion
) -> None:
    assert implies(stricter, weaker)
    assert not implies(weaker, stricter)
    assert implies(weaker, weaker)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (KAnonymity(4), ZAnonymity(3)),
        (EntropyLDiversity(4), DistinctLDiversity(3)),
        (TCloseness(0.1), VariationalCloseness(0.2)),
        (EnhancedLikeness(1.0), BasicLikeness(2.0)),
        (RecursiveLDiversity(4, c=2.0), RecursiveLDiversity(3, c=1.0)),
        (SemanticLikeness(1.0, level=1), SemanticLikeness(2.0, level=2)),
        (RangeLikeness(1.0, epsilon=1), RangeLikeness(2.0, epsilon=2)),
        (DistinctLDiversity(3, attribute="a"), DistinctLDiversity(3, attribute="b")),
        (Own(2), Own(1)),
    ],
)
def test_what_cant_be_compared_implies_nothing(one: Criterion, other: Criterion) -> None:
    assert not implies(one, other)


@pytest.mark.parametrize(
    ("former", "now", "found"),
    [
        (Delay(rows=10), Delay(rows=9), "stricter"),
        (Delay(rows=10), Delay(rows=11), "weaker"),
        (Delay(rows=10), Delay(rows=10, seconds=5), "stricter"),
        (Delay(rows=10, seconds=5), Delay(rows=10), "weaker"),
        (Delay(rows=10, seconds=5), Delay(seconds=5), "weaker"),
        (Delay(seconds=5), Delay(seconds=5, clock="wall"), "weaker"),
        (Delay(seconds=5), Delay(rows=2), "weaker"),
        (None, Delay(rows=10), "stricter"),
        (Delay(rows=10), None, "weaker"),
        (Delay(rows=10), Delay(rows=10), None),
    ],
)
def test_delays(former: Delay | None, now: Delay | None, found: str | None) -> None:
    promises = [Policy(KAnonymity(2), delay=delay) for delay in (former, now)]
    assert direction("delay", *promises) == found


@pytest.mark.parametrize(
    ("former", "now", "found"),
    [
        (Window(rows=100), Window(rows=50), "stricter"),
        (Window(rows=100), Window(rows=200), "weaker"),
        (Window(seconds=100), Window(seconds=50), "stricter"),
        (Window(seconds=100), Window(rows=50), "weaker"),
        (Window(rows=100), Window(seconds=50), "weaker"),
    ],
)
def test_windows_of_z(former: Window, now: Window, found: str) -> None:
    assert direction("window", *(Policy(ZAnonymity(3), window=w) for w in (former, now))) == found


def test_windows_of_what_is_measured() -> None:
    t = TCloseness(0.2)
    former = Policy(t, window=Window(rows=100), delay=Delay(rows=10))
    shorter = Policy(t, window=Window(rows=50), delay=Delay(rows=10))
    without = Policy(KAnonymity(2), delay=Delay(rows=10))
    assert direction("window", former, shorter) == "weaker"
    assert direction("window", former, without) == "weaker"
    assert direction("window", without, former) == "neutral"
    assert direction("t", without, former) == "stricter"
    assert direction("t", former, without) == "weaker"
    assert direction("window", former, Policy(t, window="all")) == "never"


def test_other_keys() -> None:
    former = Policy(KAnonymity(2), lateness=3.0)
    assert direction("lateness", former, Policy(KAnonymity(2))) == "neutral"
    assert direction("ahead", former, Policy(KAnonymity(2), ahead=1.0)) == "neutral"
    assert direction("missing", former, Policy(KAnonymity(2), missing="maybe")) == "never"
    by_value = Policy(ZAnonymity(2), window=ALL)
    assert direction("z", former, by_value) == "never"
    assert direction("z", by_value, former) == "never"
    both = Policy(DistinctLDiversity(2, attribute="a"), DistinctLDiversity(3, attribute="b"))
    one = Policy(DistinctLDiversity(3))
    assert direction("l", both, one) == "stricter"
    assert direction("l", one, both) == "weaker"
