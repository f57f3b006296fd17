"""What was short is told as it was, by a slow definition, however rows are cut into batches."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.engine.space import Codes
from shoal.metrics.shortfall import Shortfall, promise_of, span_of
from shoal.spec.criteria import Criterion
from shoal.spec.hierarchy import Range
from shoal.spec.policy import (
    Delay,
    DistinctLDiversity,
    EntropyLDiversity,
    KAnonymity,
    Policy,
    TCloseness,
    Window,
    ZAnonymity,
)
from shoal.spec.schema import Quasi, Schema, Sensitive

SCHEMA = Schema("who", [Quasi("age", Range(0, 9))], [Sensitive("ill", Range(0, 9))])


def told(
    policy: Policy,
    subjects: list[int],
    *,
    ills: list[int] | None = None,
    times: list[float] | None = None,
    cuts: tuple[int, ...] = (),
) -> str:
    shortfall = Shortfall(SCHEMA, policy)
    n = len(subjects)
    who = np.array(subjects, np.int64)
    ill = np.array(ills or [*range(n)], np.int64).reshape(n, 1)
    when = np.full(n, np.nan) if times is None else np.array(times)
    for begin, end in itertools.pairwise(sorted({0, n, *(cut % (n + 1) for cut in cuts)})):
        part = slice(begin, end)
        shortfall.add(Codes(np.zeros((end - begin, 1)), who[part], ill[part], when[part]))
    return " ".join(shortfall.sentences())


def most_within(subjects: list[int], delay: int) -> int:
    return max(len(set(subjects[i : i + delay + 1])) for i in range(len(subjects)))


@given(
    subjects=st.lists(st.integers(0, 6), min_size=1, max_size=30),
    k=st.integers(1, 8),
    delay=st.integers(1, 8),
    cuts=st.tuples(st.integers(0, 30), st.integers(0, 30)),
)
def test_people_within_the_delay_are_counted_exactly(
    subjects: list[int], k: int, delay: int, cuts: tuple[int, ...]
) -> None:
    text = told(Policy(KAnonymity(k), delay=Delay(rows=delay)), subjects, cuts=cuts)
    most, n_all = most_within(subjects, delay), len(set(subjects))
    if most >= k:
        assert text.startswith(f"Enough different people came for k = {k}")
        return
    assert f"k can be at most {most}" in text
    needed = re.search(r"needs a delay of at least (\d+) row", text)
    assert (needed is None) == (n_all < k)
    if needed is not None:
        least = min(d for d in range(1, len(subjects)) if most_within(subjects, d) >= k)
        assert int(needed[1]) == least


def test_too_few_people_in_all() -> None:
    policy = Policy(KAnonymity(5), delay=Delay(rows=2))
    assert told(policy, [1, 1, 1, 1]) == "Only 1 person came: k can be at most 1."
    assert told(policy, [1, 2, 3, 4]) == (
        "Only 4 different people came, at most 3 of them within 2 rows: k can be at most 3."
    )


def test_seconds_are_those_of_the_rows() -> None:
    policy = Policy(KAnonymity(3), delay=Delay(seconds=10))
    assert told(policy, [1, 2, 3], times=[0.0, 7.0, 21.5]) == (
        "At most 2 different people came within 10 seconds: with this delay k can be at most 2, "
        "and k = 3 needs a delay of at least 21.5 seconds."
    )
    assert told(policy, [1, 2, 3], times=[0.0, 7.0, 9.0]).startswith("Enough")


def test_values_that_are_too_few_for_l() -> None:
    policy = Policy(KAnonymity(2), EntropyLDiversity(2.5), delay=Delay(rows=9))
    text = told(policy, [1, 2, 3, 4], ills=[7, 8, 7, 8])
    assert text == "ill had only 2 different values: l can be at most 2 there."


def test_a_table_and_windows_have_no_delay() -> None:
    policy = Policy(KAnonymity(9), TCloseness(0.2), window="all")
    assert told(policy, [1, 2, 1]) == "Only 2 different people came: k can be at most 2."


def test_z_counts_people_in_its_window() -> None:
    policy = Policy(ZAnonymity(3), window=Window(rows=2))
    text = told(policy, [1, 2, 1, 3, 2])
    assert "At most 2 different people came within 2 rows: with this window z" in text
    assert text.endswith("z = 3 needs a window of at least 3 rows.")
    policy = Policy(ZAnonymity(3), window=Window(rows=3))
    assert "no value was exposed" in told(policy, [1, 2, 3] * 4)


def test_what_is_not_known_is_not_claimed() -> None:
    policy = Policy(KAnonymity(2), DistinctLDiversity(2), TCloseness(0.1), window="all")
    text = told(policy, [1, 2, 3])
    assert text == (
        "Enough different people came for k = 2, but no group that formed kept l = 2, t = 0.1 as "
        "well."
    )
    shortfall = Shortfall(SCHEMA, policy)
    shortfall.miss()
    assert shortfall.sentences() == []


@pytest.mark.parametrize(
    ("policy", "promise", "span"),
    [
        (Policy(KAnonymity(2), delay=Delay(rows=1)), "k = 2", "1 row"),
        (
            Policy(KAnonymity(2), EntropyLDiversity(2, "ill"), delay=Delay(seconds=1.5)),
            "k = 2, entropy l = 2 of ill",
            "1.5 seconds",
        ),
        (Policy(ZAnonymity(20), window=Window(seconds=3600)), "z = 20", "3,600 seconds"),
        (Policy(KAnonymity(2), window="all"), "k = 2", "the input"),
    ],
)
def test_words_of_a_promise(policy: Policy, promise: str, span: str) -> None:
    assert (promise_of(policy), span_of(policy)) == (promise, span)


@dataclass(frozen=True)
class Own(Criterion):
    """A criterion from elsewhere, without a key."""

    name: ClassVar[str] = "own promise"


def test_a_criterion_from_elsewhere_has_words_too() -> None:
    assert promise_of(Policy(KAnonymity(2), Own(), delay=Delay(rows=1))) == "k = 2, own promise"
