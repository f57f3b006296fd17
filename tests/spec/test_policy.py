"""What is promised, as values."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from shoal import (
    Delay,
    DistinctLDiversity,
    EntropyLDiversity,
    Hierarchy,
    KAnonymity,
    Policy,
    Quasi,
    Range,
    RecursiveLDiversity,
    Schema,
    Sensitive,
)
from shoal.errors import JobError, ParameterError
from shoal.spec.criteria import (
    BasicLikeness,
    Criterion,
    DeltaDisclosure,
    EnhancedLikeness,
    RangeLikeness,
    SemanticLikeness,
    TCloseness,
    ZAnonymity,
)
from shoal.spec.ladder import Grid, Open, Path
from shoal.spec.policy import Window

PLAIN = Schema("p", [Quasi("a", Range(0, 1))])
ILL = Schema("p", [Quasi("a", Range(0, 1))], [Sensitive("illness"), Sensitive("job")])


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: KAnonymity(0), "KAnonymity.k: must be a whole number of at least 1"),
        (lambda: KAnonymity(2.0), "whole number"),  # type: ignore[arg-type]
        (lambda: KAnonymity(True), "whole number"),
        (lambda: DistinctLDiversity(2.5), "DistinctLDiversity.l: must be a whole number"),
        (lambda: EntropyLDiversity(0.5), "EntropyLDiversity.l: must be .* at least 1"),
        (lambda: EntropyLDiversity(float("nan")), "finite"),
        (lambda: EntropyLDiversity("2"), "finite"),  # type: ignore[arg-type]
        (lambda: RecursiveLDiversity(0), "RecursiveLDiversity.l"),
        (lambda: RecursiveLDiversity(2, c=0.0), "RecursiveLDiversity.c: .* above 0"),
        (lambda: RecursiveLDiversity(2, c=True), "RecursiveLDiversity.c"),
        (lambda: Delay(), "needs rows, seconds or both"),
        (lambda: Delay(rows=0), "Delay.rows"),
        (lambda: Delay(seconds=0.0), "Delay.seconds"),
        (lambda: Delay(seconds=float("inf")), "Delay.seconds"),
        (lambda: Policy(), "promises nothing"),
        (lambda: Policy("k"), "takes criteria; got str"),  # type: ignore[arg-type]
        (lambda: Policy(KAnonymity(2), KAnonymity(3)), "two values of k"),
    ],
)
def test_what_cannot_be_promised_is_refused(make: Any, says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        make()


def test_a_policy_is_a_value() -> None:
    policy = Policy(KAnonymity(3), EntropyLDiversity(1.5, "job"), delay=Delay(5, 2.0))
    same = Policy(KAnonymity(3), EntropyLDiversity(1.5, "job"), delay=Delay(rows=5, seconds=2.0))
    assert policy == same
    assert hash(policy) == hash(same)
    assert policy != Policy(KAnonymity(3))
    assert policy != "policy"
    assert eval(repr(policy)) == policy
    assert pickle.loads(pickle.dumps(policy)) == policy


def test_k_and_diversity_are_found() -> None:
    assert Policy(DistinctLDiversity(2)).k == 1
    policy = Policy(DistinctLDiversity(2), KAnonymity(7), EntropyLDiversity(2.5))
    assert policy.k == 7
    assert [criterion.needed for criterion in policy.diversity] == [2, 3]


def test_a_policy_fits_a_schema() -> None:
    Policy(KAnonymity(2)).check(PLAIN)
    Policy(DistinctLDiversity(2), RecursiveLDiversity(2, "job")).check(ILL)
    Policy(RecursiveLDiversity(2, "illness"), RecursiveLDiversity(3, "job")).check(ILL)


@pytest.mark.parametrize(
    ("policy", "schema", "says"),
    [
        (Policy(DistinctLDiversity(2)), PLAIN, "needs a sensitive attribute"),
        (Policy(DistinctLDiversity(2, "age")), ILL, "isn't a sensitive attribute.*illness, job"),
        (Policy(RecursiveLDiversity(2), RecursiveLDiversity(3, "job")), ILL, "two recursive"),
    ],
)
def test_a_policy_that_does_not_fit_is_refused(policy: Policy, schema: Schema, says: str) -> None:
    with pytest.raises(JobError, match=says):
        policy.check(schema)


# -- what is measured against a window -------------------------------------------------------------

TREE = Hierarchy.from_dict({"any": {"A": ["a", "b"], "C": ["c"]}})
#: A tree, numbers, and what is open.
PAID = Schema(
    "p",
    [Quasi("a", Range(0, 1))],
    [Sensitive("ill", TREE), Sensitive("pay", Range(0, 9)), Sensitive("note")],
)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Window(rows=0), r"Window\.rows: must be a whole number of at least 1"),
        (lambda: Window(rows=4, advance=0), r"Window\.advance"),
        (
            lambda: Window(rows=5, advance=2),
            r"Window\.rows: must be a multiple of the advance.*got 5 rows and an advance of 2.*= 6",
        ),
        (lambda: Window(rows=2, advance=4), r"multiple of the advance.*rows = 4"),
        (
            lambda: Policy(TCloseness(0.2)),
            r"Policy\.window: is missing: t-closeness is measured against it",
        ),
        (lambda: Policy(KAnonymity(2), DeltaDisclosure(1.0)), "delta-disclosure is measured"),
        (
            lambda: Policy(KAnonymity(2), window=Window(4)),
            r"Policy\.window: isn't used: no promise is measured against it",
        ),
        (
            lambda: Policy(TCloseness(0.2), window="rows"),
            r"got 'rows'\. Write Window\(rows=\.\.\.\)",
        ),
        (lambda: Policy(TCloseness(0.2), window=20_000), r"got 20000\. Write Window\(rows=20000\)"),
        (
            lambda: Policy(TCloseness(0.2), window="all", delay=Delay(rows=5)),
            r"Policy\.delay: can't be kept for a table that is published at once",
        ),
    ],
)
def test_a_window_that_makes_no_sense_is_refused(make: Any, says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        make()


def test_a_policy_with_a_window_is_a_value() -> None:
    policy = Policy(KAnonymity(3), TCloseness(0.2), window=Window(20, 5), delay=Delay(rows=25))
    same = Policy(
        KAnonymity(3), TCloseness(0.2), window=Window(rows=20, advance=5), delay=Delay(rows=25)
    )
    assert policy == same
    assert hash(policy) == hash(same)
    assert policy != Policy(KAnonymity(3), TCloseness(0.2), window=Window(20, 4))
    assert eval(repr(policy)) == policy
    assert pickle.loads(pickle.dumps(policy)) == policy
    assert "window='all'" in repr(Policy(KAnonymity(2), window="all"))


def test_a_table_needs_no_measured_promise() -> None:
    assert Policy(KAnonymity(2), window="all").measured == ()


def test_what_is_measured_is_found() -> None:
    policy = Policy(KAnonymity(2), TCloseness(0.2), EntropyLDiversity(2.0), window="all")
    assert policy.measured == (TCloseness(0.2),)
    assert policy.diversity == (EntropyLDiversity(2.0),)


@pytest.mark.parametrize(
    ("criteria", "names"),
    [
        ([TCloseness(0.2)], {"ill", "pay", "note"}),
        ([TCloseness(0.2, attribute="pay")], {"pay"}),
        ([SemanticLikeness(1.0, attribute="ill"), EnhancedLikeness(1.0)], {"ill"}),
        ([RangeLikeness(1.0, attribute="pay"), DeltaDisclosure(1.0)], {"pay"}),
        # Where values are only compared for equality, a missing one is one more value.
        ([BasicLikeness(1.0), EnhancedLikeness(1.0), DeltaDisclosure(1.0)], set()),
    ],
)
def test_where_no_value_may_be_missing(criteria: list[Criterion], names: set[str]) -> None:
    assert Policy(*criteria, window="all").in_place(PAID) == names


def test_measured_promises_fit_a_schema() -> None:
    criteria = [
        TCloseness(0.2, attribute="ill"), TCloseness(0.2, attribute="pay"), BasicLikeness(1.0),
        SemanticLikeness(1.0, attribute="ill"), RangeLikeness(1.0, attribute="pay"),
        DeltaDisclosure(1.0, attribute="note"),
    ]  # fmt: skip
    Policy(*criteria, window="all").check(PAID)


@pytest.mark.parametrize(
    ("criterion", "schema", "says"),
    [
        (TCloseness(0.2), PLAIN, r"policy\.t: t-closeness needs a sensitive attribute"),
        (
            TCloseness(0.2, attribute="age"),
            PAID,
            r"policy\.t\.age: isn't a sensitive attribute of the schema. Sensitive: ill, pay, note",
        ),
        (TCloseness(0.2), PAID, "needs an order or a hierarchy of note, and its domain is open"),
        (SemanticLikeness(1.0, attribute="pay"), PAID, r"policy\.beta: .*needs a hierarchy of pay"),
        (RangeLikeness(1.0, attribute="ill"), PAID, "needs ill to be a number"),
        (
            RangeLikeness(1.0, attribute="pay", relative=True),
            PAID,
            "relative lengths need numbers above 0",
        ),
        (DeltaDisclosure(1.0, attribute="x"), PAID, r"policy\.disclosure\.x"),
    ],
)
def test_measured_promises_that_do_not_fit_are_refused(
    criterion: Criterion, schema: Schema, says: str
) -> None:
    with pytest.raises(JobError, match=says):
        Policy(criterion, window="all").check(schema)


def test_all_misfits_are_reported_at_once() -> None:
    policy = Policy(
        TCloseness(0.2, attribute="note"), RangeLikeness(1.0, attribute="ill"), window="all"
    )
    with pytest.raises(JobError, match="2 problems"):
        policy.check(PAID)


# -- values that are published one by one ----------------------------------------------------------

EVENTS = Schema("who", [Quasi("page", Open()), Quasi("area", Path("/"))], time="at")
HOUR = Window(seconds=3600)


@pytest.mark.parametrize("window", [HOUR, Window(rows=500_000)])
def test_z_is_promised_against_a_window(window: Window) -> None:
    policy = Policy(ZAnonymity(20), window=window, lateness=60.0, missing="maybe")
    assert (policy.z, policy.k, policy.measured, policy.delay) == (20, 1, (), None)
    assert eval(repr(policy)) == policy
    assert pickle.loads(pickle.dumps(policy)) == policy
    assert policy != Policy(ZAnonymity(20), window=Window(seconds=60))
    policy.check(EVENTS)
    assert Policy(KAnonymity(2)).z == 0


def test_how_far_ahead_a_row_may_be_is_a_part_of_the_policy() -> None:
    policy = Policy(ZAnonymity(20), window=HOUR, ahead=60)
    assert policy.ahead == 60
    assert eval(repr(policy)) == policy
    assert pickle.loads(pickle.dumps(policy)) == policy
    other = Policy(ZAnonymity(20), window=HOUR)
    assert other.ahead is None
    assert "ahead" not in repr(other)
    assert (policy != other, hash(policy) != hash(other)) == (True, True)
    policy.check(EVENTS)
    untimed = Schema("who", [Quasi("page", Open())])
    by_rows = Policy(ZAnonymity(20), window=Window(rows=9), ahead=60)
    with pytest.raises(JobError, match=r"policy\.ahead: needs rows that have a time"):
        by_rows.check(untimed)
    for wrong in (-1, float("nan"), float("inf")):
        with pytest.raises(ParameterError, match=r"Policy\.ahead: must be a finite number"):
            Policy(ZAnonymity(20), window=HOUR, ahead=wrong)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: ZAnonymity(0), r"ZAnonymity\.z: must be a whole number of at least 1; got 0"),
        (lambda: ZAnonymity(2.0), r"ZAnonymity\.z"),
        (lambda: Window(seconds=0), r"Window\.seconds: must be a finite number above 0"),
        (lambda: Window(seconds=float("inf")), r"Window\.seconds"),
        (lambda: Window(rows=5, seconds=5), "doesn't go with rows or an advance. Keep one"),
        (lambda: Window(seconds=5, advance=5), "doesn't go with rows or an advance"),
        (lambda: Policy(ZAnonymity(2)), r"Policy\.window: is missing: z-anonymity counts"),
        (lambda: Policy(ZAnonymity(2), window="all"), r"Policy\.window: never ends"),
        (
            lambda: Policy(ZAnonymity(2), window=Window(rows=4, advance=2)),
            r"Policy\.window\.advance: isn't used",
        ),
        (
            lambda: Policy(ZAnonymity(2), window=HOUR, delay=Delay(rows=5)),
            r"Policy\.delay: can't be given: under z-anonymity no row is held",
        ),
        (
            lambda: Policy(ZAnonymity(2), KAnonymity(2), window=HOUR),
            r"Policy\.z: goes with no other promise",
        ),
        (
            lambda: Policy(ZAnonymity(2), ZAnonymity(3), window=HOUR),
            r"Policy\.z: goes with no other promise",
        ),
        (
            lambda: Policy(TCloseness(0.2), window=HOUR),
            r"Policy\.window\.seconds: is for z-anonymity only",
        ),
    ],
)
def test_a_promise_of_z_that_makes_no_sense_is_refused(make: Any, says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        make()


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        (
            Schema("who", EVENTS.quasi, [Sensitive("ill")], time="at"),
            r"schema\.sensitive\.ill: can't be protected by a group",
        ),
        (
            Schema("who", [Quasi("age", Range(0, 99))], time="at"),
            r"schema\.quasi\.age: needs a step",
        ),
        (
            Schema("who", [Quasi("page", Open(), 2.0)], time="at"),
            r"schema\.quasi\.page\.weight: isn't used by z-anonymity",
        ),
        (Schema(None, EVENTS.quasi, time="at"), r"schema\.subject: is missing"),
        (Schema("who", EVENTS.quasi), r"policy\.window\.seconds: needs rows that have a time"),
    ],
)
def test_columns_that_dont_go_with_z_are_refused(schema: Schema, says: str) -> None:
    with pytest.raises(JobError, match=says):
        Policy(ZAnonymity(2), window=HOUR).check(schema)


@pytest.mark.parametrize("domain", [Open(), Path("/"), Grid("lat", "lon", [500])])
def test_what_has_no_sides_is_for_z_alone(domain: Any) -> None:
    schema = Schema("who", [Quasi("x", domain)])
    with pytest.raises(JobError, match=r"schema\.quasi\.x: has values that can't be grouped"):
        Policy(KAnonymity(2)).check(schema)
    Policy(ZAnonymity(2), window=Window(rows=9)).check(schema)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Policy(KAnonymity(5), delay=2000), "Policy.delay: must be a Delay; got 2000. "
         "Write Delay(rows=2000) or Delay(seconds=2000)."),
        (lambda: Policy(5), "Policy: takes criteria; got int. Write KAnonymity(5)."),
        (lambda: Policy(KAnonymity), "Policy: takes criteria; got a class. "
         "Call it: KAnonymity(...)."),
        (lambda: Policy(), "Policy: promises nothing. Give a criterion, such as KAnonymity(10)."),
    ],
)  # fmt: skip
def test_a_parameter_of_a_wrong_type_says_what_to_write(make: Any, says: str) -> None:
    with pytest.raises(ParameterError) as raised:
        make()
    assert str(raised.value) == says


def test_all_wrong_parameters_of_a_policy_are_told_at_once() -> None:
    with pytest.raises(JobError) as raised:
        Policy(delay=2000)
    assert [problem.key for problem in raised.value.problems] == ["Policy", "Policy.delay"]
