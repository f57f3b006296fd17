"""What is promised, as values."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from shoal import (
    Delay,
    DistinctLDiversity,
    EntropyLDiversity,
    KAnonymity,
    Policy,
    Quasi,
    Range,
    RecursiveLDiversity,
    Schema,
    Sensitive,
)
from shoal.errors import JobError, ParameterError

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
