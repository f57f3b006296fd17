"""Anonymizers whose rows wait as long as it pays: what they refuse, and the longest wait."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from shoal import (
    Delay,
    DistinctLDiversity,
    KAnonymity,
    Policy,
    Quasi,
    Range,
    Schema,
    Sensitive,
    TCloseness,
)
from shoal.algorithms import find
from shoal.algorithms.registry import check_support
from shoal.engine import Anonymizer, Codes, Engine
from shoal.engine.deadlines import SPAN
from shoal.engine.groups import may_be_group
from shoal.engine.kernels import held
from shoal.engine.space import Space
from shoal.engine.waiting import WaitingAnonymizer, nobody_can
from shoal.errors import JobError, ParameterError, UnsupportedError
from shoal.job import Job
from shoal.spec.policy import EntropyLDiversity, RecursiveLDiversity, Window

NAMES = ["min-delay", "tree-basic", "tree-density", "tree-full"]
EVERY = pytest.mark.parametrize("name", NAMES)
SCHEMA = Schema("person", [Quasi("x", Range(0, 100))], [Sensitive("s", Range(0, 9))])


def anonymizer(name: str, **knobs: Any) -> Anonymizer:
    """An anonymizer that takes as few samples as may be."""
    if name in {"tree-density", "tree-full"}:
        knobs = {"samples": 4, "sampled": 10} | knobs
    return find(name)(**knobs)


def codes(values: list[float], people: list[int]) -> Codes:
    n = len(values)
    return Codes(
        np.array(values, float)[:, None],
        np.array(people),
        np.zeros((n, 1), np.int64),
        np.full(n, np.nan),
    )


# -- refusals --------------------------------------------------------------------------------------


@EVERY
def test_without_any_bound_it_refuses_to_run(name: str) -> None:
    with pytest.raises(UnsupportedError) as refused:
        anonymizer(name).start(SCHEMA, Policy(KAnonymity(2)))
    assert str(refused.value) == (
        f"algorithm: '{name}' lets rows wait as long as it pays, and nothing bounds it: neither a "
        "delay of the policy nor a capacity is set. Set policy.delay, for example "
        "{ rows = 10000 }, or algorithm.capacity."
    )
    # Each of the two is enough.
    anonymizer(name).check(Policy(KAnonymity(2), delay=Delay(seconds=5.0)))
    anonymizer(name, capacity=1).check(Policy(KAnonymity(2)))


@EVERY
def test_what_is_measured_is_refused_and_others_are_named(name: str) -> None:
    policy = Policy(KAnonymity(2), TCloseness(0.2), delay=Delay(rows=9), window=Window(20))
    with pytest.raises(
        UnsupportedError, match=r"can't enforce t-closeness.*These can: castle"
    ) as no:
        check_support(anonymizer(name), policy)
    assert not any(other in str(no.value).split("These can")[1] for other in NAMES)


@EVERY
@pytest.mark.parametrize(
    "criterion", [DistinctLDiversity(3), EntropyLDiversity(2.5), RecursiveLDiversity(2, c=3.0)]
)
def test_every_form_of_diversity_is_known(name: str, criterion: Any) -> None:
    anonymizer(name).check(Policy(KAnonymity(2), criterion, delay=Delay(rows=9)))


@EVERY
@pytest.mark.parametrize(
    ("value", "said"),
    [
        (-1, "must be a whole number of at least 0; got -1"),
        (2.0, "must be a whole number of at least 0; got 2.0"),
        (True, "must be a whole number of at least 0; got True"),
        (10**8, "must be at most 10,000,000; got 100000000"),
    ],
)
def test_a_capacity_that_makes_no_sense_is_refused(name: str, value: Any, said: str) -> None:
    with pytest.raises(ParameterError, match=re.escape(f".capacity: {said}.")):
        anonymizer(name, capacity=value)


JOB = """\
[schema]
subject = "person"
[schema.quasi]
age = {{ range = [0, 120] }}
[policy]
k = 3
{policy}
[algorithm]
name = "{name}"
{knobs}
"""


@EVERY
@pytest.mark.parametrize(
    ("policy", "knobs", "key", "said"),
    [
        ("", "", "algorithm", "nothing bounds it"),
        ("", "capacity = 0", "algorithm", "Set policy.delay"),
        ("", "capacity = -1", "algorithm.capacity", "at least 0; got -1"),
        ("delay = { rows = 9 }", "capacty = 9", "algorithm.capacty", "Did you mean 'capacity'?"),
        ("delay = { rows = 9 }", "clusters = 9", "algorithm.clusters", "clusters"),
    ],
)
def test_a_job_that_makes_no_sense_is_refused(
    name: str, policy: str, knobs: str, key: str, said: str
) -> None:
    with pytest.raises(JobError) as refused:
        Job.parse(JOB.format(name=name, policy=policy, knobs=knobs))
    (problem,) = refused.value.problems
    assert problem.key == key
    assert said in str(problem)


@EVERY
def test_a_job_with_a_capacity_needs_no_delay(name: str) -> None:
    job = Job.parse(JOB.format(name=name, policy="", knobs="capacity = 50"))
    assert isinstance(job.anonymizer, WaitingAnonymizer)
    assert job.anonymizer.capacity == 50


# -- how long a row waits --------------------------------------------------------------------------


def waits(engine: Engine, stream: Codes) -> dict[int, int]:
    """How many rows each row has waited for, while one row after another comes."""
    found: dict[int, int] = {}
    for at in range(len(stream.subjects)):
        decided = engine.push(Codes(*(array[at : at + 1] for array in stream[:4])))
        assert (decided.published == at).all()
        found |= {int(row): at - int(row) for row in decided.rows}
    return found


@EVERY
def test_a_capacity_in_which_no_group_has_room_is_refused(name: str) -> None:
    with pytest.raises(UnsupportedError, match="never has the 4 people that a group needs"):
        anonymizer(name, capacity=2).check(Policy(KAnonymity(4)))
    with pytest.raises(UnsupportedError, match=r"algorithm\.capacity to at least 5"):
        anonymizer(name, capacity=4).check(Policy(KAnonymity(2), DistinctLDiversity(6)))


@EVERY
@pytest.mark.parametrize("capacity", [3, 4, 10])
def test_no_more_rows_are_held_than_there_are_places(name: str, capacity: int) -> None:
    engine = anonymizer(name, capacity=capacity).start(SCHEMA, Policy(KAnonymity(4)), seed=b"1")
    for n in range(60):
        engine.push(codes([n * 37 % 101], [n % 9]))
        assert engine.n_held <= capacity
    assert len(engine.flush().rows) <= capacity


@EVERY
def test_one_person_alone_fills_all_places_and_is_suppressed(name: str) -> None:
    engine = anonymizer(name, capacity=5).start(SCHEMA, Policy(KAnonymity(2)), seed=b"1")
    found = waits(engine, codes([float(n) for n in range(40)], [7] * 40))
    assert found == dict.fromkeys(range(35), 5)
    assert engine.n_held == 5


@EVERY
def test_with_a_capacity_alone_no_row_waits_for_many_times_as_many(name: str) -> None:
    """Rows 0 and 1 need somebody with another value, and no later row may join them.

    All others go in pairs, so that there are always places left.
    """
    capacity = 30
    longest = SPAN * capacity
    policy = Policy(KAnonymity(2), DistinctLDiversity(2))
    engine = anonymizer(name, capacity=capacity).start(SCHEMA, policy, seed=b"5")
    n = longest + 20
    stream = codes([0.0, 5.0, *[100.0] * n], [n % 2 for n in range(n + 2)])
    stream.sensitive[3::2] = 1
    found = waits(engine, stream)
    assert found[0] == longest
    assert found[1] >= longest - 1  # together with the first one, or on its own
    assert len(found) > n - capacity
    assert len(engine.state.held.rows) <= 2 * longest


@EVERY
def test_the_delay_of_the_policy_comes_before_that_of_the_capacity(name: str) -> None:
    policy = Policy(KAnonymity(2), delay=Delay(rows=200))
    engine = anonymizer(name, capacity=10).start(SCHEMA, policy, seed=b"1")
    assert engine._rules.deadlines.rows == 200  # type: ignore[attr-defined]
    alone = anonymizer(name, capacity=10).start(SCHEMA, Policy(KAnonymity(2)), seed=b"1")
    assert alone._rules.deadlines.rows == 160  # type: ignore[attr-defined]


@EVERY
def test_both_bounds_hold_at_once(name: str) -> None:
    policy = Policy(KAnonymity(4), delay=Delay(rows=12))
    engine = anonymizer(name, capacity=9).start(SCHEMA, policy, seed=b"1")
    stream = codes([float(n * 37 % 101) for n in range(150)], [n * n % 7 for n in range(150)])
    found: dict[int, int] = {}
    for at in range(150):
        decided = engine.push(Codes(*(array[at : at + 1] for array in stream[:4])))
        found |= {int(row): at - int(row) for row in decided.rows}
        assert engine.n_held <= 9
    assert max(found.values()) <= 12


# -- whether a group is possible -------------------------------------------------------------------


def waiting(rows: list[tuple[int, int]]) -> held.Held:
    """A ring of rows of (a subject, a sensitive value), the second of which has gone."""
    ring = held.empty(1, 1, 16)
    for subject, value in rows:
        lo = np.zeros(1)
        held.put(ring, held.Arrival(lo, lo, subject, np.array([value]), np.nan, 0), 0)
    held.forget(ring, 1)
    people = {subject for i, (subject, _) in enumerate(rows) if i != 1}
    ring.marks["n_subjects"][0] = len(people)
    return ring


@pytest.mark.parametrize(
    ("criteria", "rows", "expected"),
    [
        ([KAnonymity(2)], [(1, 0), (2, 0), (1, 0)], True),  # 2 has gone
        ([KAnonymity(2)], [(1, 0), (9, 0), (2, 0)], False),
        ([KAnonymity(2), DistinctLDiversity(2)], [(1, 0), (9, 1), (2, 0)], True),
        ([KAnonymity(2), DistinctLDiversity(2)], [(1, 0), (9, 0), (2, 1)], False),
        # Two values, but of one person: nobody else has the second.
        ([KAnonymity(2), DistinctLDiversity(2)], [(1, 0), (9, 0), (1, 1), (2, 1)], False),
        ([KAnonymity(1), DistinctLDiversity(3)], [(1, 0), (9, 0), (2, 1)], True),
        # A part may be even where the whole isn't: it has to be looked for.
        ([KAnonymity(2), EntropyLDiversity(2.0)], [(1, 0), (9, 0), (2, 0), (3, 1)], False),
        ([KAnonymity(2), EntropyLDiversity(2.0)], [(1, 0), (9, 0), (1, 1)], True),
    ],
)
def test_nobody_can(criteria: list[Any], rows: list[tuple[int, int]], expected: bool) -> None:
    limits = Space(SCHEMA, Policy(*criteria)).limits
    assert nobody_can(limits, waiting(rows)) == expected


def test_may_be_group_asks_about_these_rows_alone() -> None:
    limits = Space(SCHEMA, Policy(KAnonymity(2), DistinctLDiversity(2))).limits
    ring = waiting([(1, 0), (9, 0), (2, 0), (3, 1), (1, 1)])
    assert not may_be_group(limits, ring, np.array([0, 2]))
    assert may_be_group(limits, ring, np.array([0, 3]))
    assert not may_be_group(limits, ring, np.array([0, 4]))
