"""Inference, homogeneity, skewness and similarity: what groups reveal of sensitive values."""

from __future__ import annotations

import dataclasses

import pytest

from shoal.attacks.shares import Share
from shoal.spec.hierarchy import Range
from shoal.spec.policy import (
    BasicLikeness,
    DeltaDisclosure,
    DistinctLDiversity,
    EnhancedLikeness,
    EntropyLDiversity,
    EuclideanCloseness,
    JensenShannonCloseness,
    KAnonymity,
    Policy,
    RangeLikeness,
    RecursiveLDiversity,
    SemanticLikeness,
    TCloseness,
    VariationalCloseness,
)
from shoal.spec.schema import Schema, Sensitive
from tests.attacks.world import SCHEMA, crowd, made, rate, setting

SAME = [
    *crowd(10, 4, ["flu"]),
    *[(f"q{i}", 40 + i, "Rome", "rash", ("[40, 79]", "Rome")) for i in range(40)],
]
#: Each group has all values equally often.
EVEN = crowd(12, 3)


def test_groups_that_agree_are_inferred():
    result = made("inference", setting(SAME))[0]
    assert rate(result) == 1.0
    assert result.baseline == pytest.approx(0.5)
    assert result.verdict == "unbounded"


def test_even_groups_tell_no_more_than_the_marginal():
    result = made("inference", setting(EVEN, KAnonymity(3), DistinctLDiversity(3)))[0]
    assert rate(result) == pytest.approx(1 / 3)
    assert result.baseline == pytest.approx(1 / 3)
    assert result.bound == pytest.approx(1 / 3)
    assert result.verdict == "within"


def test_a_forged_diversity_is_exceeded():
    result = made("inference", setting(SAME, DistinctLDiversity(3)))[0]
    assert result.verdict == "exceeded"


def test_certainty():
    forged = made("homogeneity", setting(SAME, DistinctLDiversity(2)))[0]
    assert rate(forged) == 1.0
    assert forged.bound == 0.0
    assert forged.verdict == "exceeded"
    kept = made("homogeneity", setting(EVEN, DistinctLDiversity(2)))[0]
    assert rate(kept) == 0.0
    assert kept.verdict == "within"
    assert made("homogeneity", setting(SAME))[0].verdict == "unbounded"


def test_agreement_of_the_smallest_box_is_not_certain():
    wide = [(f"w{i}", 10 * i, "Oslo", "rash", ("[0, 99]", "Any")) for i in range(5)]
    result = made("homogeneity", setting([*crowd(1, 4, ["flu"]), *wide]))[0]
    # Only those of the wide box whom the narrow one doesn't cover are certain.
    assert result.success is not None
    assert result.success.successes == 4


#: Two groups of three, in which nobody agrees; what is kept of each row.
TWO_GROUPS = crowd(2, 3)
WARDS = ["A", "B", "B", "A", "A", "A"]


def keeping(rows, kept, **options):
    """The setting of a release with columns that are published as they are."""
    plain = setting(rows, DistinctLDiversity(2), **options)
    shown = [i for i, row in enumerate(rows) if row[4] is not None]
    published, original = plain.published, plain.original
    for name, values in kept.items():
        published = published.append_column(name, [[str(values[i]) for i in shown]])
        original = original.append_column(name, [values])
    schema = Schema("person", SCHEMA.quasi, SCHEMA.sensitive, list(kept))
    return dataclasses.replace(plain, schema=schema, published=published, original=original)


@pytest.mark.parametrize(
    ("kept", "certain"),
    [
        ({"ward": WARDS}, 1),
        ({"floor": [1, 2, 2, 3, 4, 4]}, 2),
        # Who shares the ward is on another floor.
        ({"ward": WARDS, "floor": [1, 2, 3, 3, 4, 4]}, 4),
        ({"hospital": ["H"] * 6}, 0),
        ({"receipt": [10, 11, 12, 13, 14, 15]}, 6),
    ],
)
def test_kept_columns_make_values_certain_that_the_group_hides(kept, certain):
    by_box, by_both = made("homogeneity", keeping(TWO_GROUPS, kept))
    assert (rate(by_box), by_box.verdict) == (0.0, "within")
    assert by_both.knowledge == f"the box, and {', '.join(kept)} (kept); learns disease"
    assert by_both.success == Share(certain, 6)
    # The promise is kept, and isn't about these columns.
    assert by_both.verdict == "unbounded"


def test_rows_that_share_kept_columns_may_agree():
    # Wide boxes that cover everybody don't help: the box of the victim is known.
    rows = [(f"q{i}", i, "Oslo", "rash", ("[0, 99]", "Any")) for i in range(3)]
    given = keeping([*crowd(1, 3, ["flu", "flu", "cold"]), *rows], {"ward": list("AABABB")})
    found = made("homogeneity", given)[1]
    assert found.success == Share(6, 6)
    assert found.notes == ("with ward, disease is certain in at least one row of 6 of 6 people",)
    # Who isn't published isn't found.
    lost = keeping([*crowd(1, 3), ("q", 7, "Oslo", "flu", None)], {"ward": list("ABCA")})
    assert made("homogeneity", lost)[1].success == Share(3, 4)


def test_kept_columns_of_very_many_values_are_counted_right():
    given = keeping(TWO_GROUPS, {"receipt": [10, 11, 12, 13, 14, 15]})
    codes = given.kept
    # As numerous as no release has them: numbers of all three together would overflow.
    given.__dict__["kept"] = codes._replace(published=codes.published << 59)
    assert made("homogeneity", given)[1].success == Share(6, 6)


def test_without_a_trace_nobody_can_tell_whose_box_it_is():
    by_box, by_both = made("homogeneity", keeping(TWO_GROUPS, {"ward": WARDS}, traced=False))
    assert (by_box.verdict, by_both.verdict) == ("within", "unverifiable")
    assert by_both.success is None


def test_kept_columns_that_are_not_in_the_output_tell_nothing():
    schema = Schema("person", SCHEMA.quasi, SCHEMA.sensitive, ["ward"])
    plain = setting(TWO_GROUPS)
    original = plain.original.append_column("ward", [WARDS])
    assert (
        len(made("homogeneity", dataclasses.replace(plain, schema=schema, original=original))) == 1
    )


def test_skewness_finds_a_rare_value_that_is_never_the_best_guess():
    # In the first group 2 of 5 have warts, and nobody elsewhere.
    rows = [*crowd(1, 5, ["flu", "flu", "wart", "wart", "flu"])]
    rows += [(f"q{i}", 50 + i % 40, "Rome", "flu", ("[50, 89]", "Rome")) for i in range(40)]
    skewed = made("skewness", setting(rows))[0]
    assert skewed.success is not None
    assert skewed.success.successes == 42
    assert skewed.baseline is not None
    assert skewed.baseline < 1
    best = made("inference", setting(rows))[0]
    assert best.success is not None
    assert best.success.successes == 43


def test_skewness_of_even_groups_is_the_marginal():
    assert rate(made("skewness", setting(EVEN))[0]) == pytest.approx(1 / 3)


def test_similar_values_give_away_their_parent():
    alike = crowd(5, 3, ["flu", "cold", "asthma"]) + [
        (f"q{i}", 50 + i, "Rome", ["rash", "acne", "wart"][i % 3], ("[50, 64]", "Rome"))
        for i in range(15)
    ]
    result = made("similarity", setting(alike, DistinctLDiversity(3)))[0]
    assert rate(result) == 1.0
    assert result.baseline == pytest.approx(0.5)
    assert result.verdict == "unbounded"


def test_values_of_both_parents_do_not():
    rows = crowd(10, 2, ["flu", "rash"])
    assert rate(made("similarity", setting(rows))[0]) == pytest.approx(0.5)


def test_semantic_likeness_bounds_parents():
    policy = Policy(SemanticLikeness(0.5, level=1), window="all")
    alike = crowd(5, 3, ["flu", "cold", "asthma"]) + crowd(5, 3, ["rash"])
    result = made("similarity", setting(alike, policy=policy))[0]
    assert result.bound == pytest.approx(0.75)


def test_numbers_are_guessed_as_ranges():
    salary = Schema("person", SCHEMA.quasi, [Sensitive("disease", Range(0, 1000))])
    rows = crowd(5, 3, ["100", "110", "120"]) + [
        (f"q{i}", 50 + i, "Rome", str(900 + i), ("[50, 64]", "Rome")) for i in range(15)
    ]
    result = made("similarity", setting(rows, schema=salary))[0]
    assert rate(result) == 1.0
    policy = Policy(RangeLikeness(0.5, epsilon=100), window="all")
    assert made("similarity", setting(rows, schema=salary, policy=policy))[0].bound is not None


@pytest.mark.parametrize(
    ("criterion", "bound"),
    [
        (EntropyLDiversity(3), 1 / 3),
        (RecursiveLDiversity(2, c=1.0), 1 / 2),
        (BasicLikeness(0.5), 1 / 2),
        (EnhancedLikeness(0.5), 1 / 2),
        (DeltaDisclosure(0.1), 0.3684),
        (TCloseness(0.1), 1 / 3 + 0.2),
        (VariationalCloseness(0.1), 1 / 3 + 0.1),
        (EuclideanCloseness(0.1), 1 / 3 + 0.1),
        (JensenShannonCloseness(0.1), 1 / 3 + 0.1177),
    ],
)
def test_each_criterion_bounds_the_best_guess(criterion, bound):
    is_diversity = isinstance(criterion, EntropyLDiversity | RecursiveLDiversity)
    policy = None if is_diversity else Policy(criterion, window="all")
    given = setting(EVEN, criterion, policy=policy)
    result = made("inference", given)[0]
    assert result.bound == pytest.approx(bound, abs=1e-4)
    assert result.verdict == "within"
