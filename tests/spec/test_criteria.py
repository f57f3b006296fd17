"""The criteria as values: what they take, what they refuse, and what they need of a domain."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from shoal.errors import ParameterError
from shoal.spec.criteria import (
    BasicLikeness,
    BetaLikeness,
    Closeness,
    Criterion,
    DeltaDisclosure,
    DistinctLDiversity,
    EnhancedLikeness,
    EntropyLDiversity,
    EuclideanCloseness,
    JensenShannonCloseness,
    KAnonymity,
    LDiversity,
    Measured,
    RangeLikeness,
    RecursiveLDiversity,
    SemanticLikeness,
    TCloseness,
    VariationalCloseness,
    ZAnonymity,
    criteria,
    described,
    misfits,
)
from shoal.spec.hierarchy import Domain, Hierarchy, Range
from shoal.spec.schema import Sensitive

TREE = Hierarchy.from_dict({"any": {"A": ["a", "b"], "C": ["c"]}})
MEASURED: list[Measured] = [
    TCloseness(0.2),
    EuclideanCloseness(0.1),
    VariationalCloseness(0.3, attribute="pay"),
    JensenShannonCloseness(0.4),
    BasicLikeness(0.5, attribute="pay"),
    EnhancedLikeness(1),
    SemanticLikeness(2.0, level=3),
    RangeLikeness(0.5, epsilon=10.0, relative=True),
    DeltaDisclosure(0.7, attribute="ill"),
]


@pytest.mark.parametrize("criterion", MEASURED, ids=lambda criterion: criterion.name)
def test_a_measured_criterion_is_a_value(criterion: Measured) -> None:
    assert eval(repr(criterion)) == criterion
    assert pickle.loads(pickle.dumps(criterion)) == criterion
    assert hash(criterion) == hash(pickle.loads(pickle.dumps(criterion)))
    with pytest.raises(AttributeError):
        criterion.attribute = "other"  # type: ignore[misc]


def test_names_and_keys() -> None:
    assert [criterion.name for criterion in MEASURED] == [
        "t-closeness", "Euclidean t-closeness", "variational t-closeness",
        "Jensen-Shannon t-closeness", "basic beta-likeness", "enhanced beta-likeness",
        "semantic beta-likeness", "range-based beta-likeness", "delta-disclosure",
    ]  # fmt: skip
    assert [criterion.key for criterion in MEASURED] == [*["t"] * 4, *["beta"] * 4, "disclosure"]
    assert [isinstance(criterion, BetaLikeness) for criterion in MEASURED] == [
        False, False, False, False, True, True, True, True, False,
    ]  # fmt: skip
    assert not any(isinstance(criterion, LDiversity | KAnonymity) for criterion in MEASURED)
    assert all(isinstance(criterion, Criterion) for criterion in MEASURED)


def test_what_is_left_out() -> None:
    assert TCloseness(0.2).attribute is None
    assert RecursiveLDiversity(3) == RecursiveLDiversity(3, None, 1.0)
    assert SemanticLikeness(1.0).level == 1
    assert (RangeLikeness(1.0).epsilon, RangeLikeness(1.0).relative) == (0.0, False)


def test_the_attribute_is_named() -> None:
    with pytest.raises(TypeError):
        TCloseness(0.2, "pay")  # type: ignore[misc]


@pytest.mark.parametrize("t", [0, 0.0, 1, 1.5, 7.0])
def test_t_may_be_nothing_and_more_than_all(t: float) -> None:
    assert TCloseness(t).t == t


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: KAnonymity(10**9 + 1), "k: must be at most 1,000,000,000"),
        (lambda: TCloseness(-0.1), r"TCloseness\.t: must be a finite number of at least 0"),
        (lambda: TCloseness(float("nan")), r"TCloseness\.t"),
        (lambda: TCloseness(float("inf")), r"TCloseness\.t"),
        (lambda: TCloseness(True), r"TCloseness\.t"),
        (lambda: TCloseness("0.2"), r"TCloseness\.t"),
        (lambda: EuclideanCloseness(-0.1), r"EuclideanCloseness\.t: .* of at least 0"),
        (lambda: VariationalCloseness(float("nan")), r"VariationalCloseness\.t"),
        (lambda: JensenShannonCloseness("0.2"), r"JensenShannonCloseness\.t"),
        (lambda: BasicLikeness(0.0), r"BasicLikeness\.beta: must be a finite number above 0"),
        (lambda: EnhancedLikeness(-1.0), r"EnhancedLikeness\.beta"),
        (lambda: EnhancedLikeness(2e9), r"EnhancedLikeness\.beta: must be at most 1,000,000,000"),
        (lambda: SemanticLikeness(0.0), r"SemanticLikeness\.beta"),
        (lambda: SemanticLikeness(1.0, level=0), r"SemanticLikeness\.level: .* at least 1"),
        (lambda: SemanticLikeness(1.0, level=1.5), r"SemanticLikeness\.level"),
        (lambda: RangeLikeness(-2.0, epsilon=1.0), r"RangeLikeness\.beta"),
        (lambda: RangeLikeness(1.0, epsilon=-1.0), r"RangeLikeness\.epsilon: .* at least 0"),
        (
            lambda: RangeLikeness(1.0, epsilon=1.0, relative="no"),
            r"RangeLikeness\.relative: must be true or false",
        ),
        (lambda: DeltaDisclosure(0.0), r"DeltaDisclosure\.delta: must be a finite number above 0"),
    ],
)
def test_what_cannot_be_promised_is_refused(make: Any, says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        make()


def test_the_least_parameter_is_taken() -> None:
    assert (KAnonymity(1).k, ZAnonymity(1).z) == (1, 1)
    for form in (DistinctLDiversity, EntropyLDiversity, RecursiveLDiversity):
        assert (form(1).l, form(1).needed) == (1, 1)
    assert RecursiveLDiversity(1, c=1e-9).c == 1e-9
    assert (BasicLikeness(1e-9).beta, DeltaDisclosure(1e-9).delta) == (1e-9, 1e-9)
    assert SemanticLikeness(1e-9, level=1).level == 1
    assert RangeLikeness(1.0, epsilon=0).epsilon == 0


def test_the_largest_parameter_is_taken() -> None:
    assert KAnonymity(10**9).k == 10**9
    assert EnhancedLikeness(1e9).beta == 1e9


@pytest.mark.parametrize(
    ("criterion", "domain", "says"),
    [
        (TCloseness(0.2), None, "needs an order or a hierarchy of pay, and its domain is open"),
        (SemanticLikeness(1.0), None, "needs a hierarchy of pay"),
        (SemanticLikeness(1.0), Range(0, 9), "needs a hierarchy of pay"),
        (RangeLikeness(1.0), TREE, "needs pay to be a number"),
        (RangeLikeness(1.0), None, "needs pay to be a number"),
        (
            RangeLikeness(1.0, relative=True),
            Range(0, 9),
            "relative lengths need numbers above 0, and those of pay begin lower",
        ),
        (RangeLikeness(1.0, relative=True), Range(-3, 9), "begin lower"),
    ],
)
def test_a_domain_that_does_not_do_is_named(
    criterion: Measured, domain: Domain | None, says: str
) -> None:
    (problem,) = misfits(criterion, Sensitive("pay", domain))
    assert says in str(problem)
    assert problem.key == f"policy.{criterion.key}"
    assert problem.fix is not None


@pytest.mark.parametrize(
    ("criterion", "domain"),
    [
        (TCloseness(0.2), TREE),
        (TCloseness(0.2), Range(0, 9)),
        (EuclideanCloseness(0.2), None),
        (VariationalCloseness(0.2), Range(0, 9)),
        (JensenShannonCloseness(0.2), TREE),
        (BasicLikeness(1.0), None),
        (EnhancedLikeness(1.0), Range(-1, 1)),
        (SemanticLikeness(1.0), TREE),
        (RangeLikeness(1.0), Range(-1, 1)),
        (RangeLikeness(1.0, relative=True), Range(1, 2)),
        (DeltaDisclosure(1.0), None),
    ],
)
def test_a_domain_that_does(criterion: Measured, domain: Domain | None) -> None:
    assert misfits(criterion, Sensitive("pay", domain)) == []


def test_one_form_of_each_family_is_what_a_bare_number_means() -> None:
    chosen = {kind.family: kind for kind in criteria() if kind.default}
    assert chosen == {
        "l-diversity": DistinctLDiversity,
        "t-closeness": TCloseness,
        "beta-likeness": EnhancedLikeness,
    }
    assert sum(kind.default for kind in criteria()) == len(chosen)


def test_criteria_are_listed_by_their_families() -> None:
    assert described(Criterion) == (
        "k-anonymity, z-anonymity, l-diversity (distinct, entropy, recursive), "
        "t-closeness (emd, euclid, variation, jensen-shannon), "
        "beta-likeness (basic, enhanced, semantic, range), delta-disclosure"
    )
    assert criteria(LDiversity) == [DistinctLDiversity, EntropyLDiversity, RecursiveLDiversity]


def test_the_forms_of_closeness_are_one_family() -> None:
    forms = "t-closeness (emd, euclid, variation, jensen-shannon)"
    assert described(Closeness) == forms
    assert forms in described(Measured)
    assert described(TCloseness) == "t-closeness"
