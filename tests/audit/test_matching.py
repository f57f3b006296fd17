from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from shoal.audit.matching import matching


def by_trying_all(pairs: set[tuple[int, int]]) -> int:
    for n in range(len(pairs), 0, -1):
        for chosen in itertools.combinations(pairs, n):
            if len({s for s, _ in chosen}) == n == len({v for _, v in chosen}):
                return n
    return 0


pairs = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=10)


@given(pairs)
def test_as_large_as_by_trying_all(pairs: list[tuple[int, int]]) -> None:
    assert matching(pairs) == by_trying_all(set(pairs))


@given(pairs, st.integers(0, 6))
def test_stops_when_it_is_enough(pairs: list[tuple[int, int]], enough: int) -> None:
    assert matching(pairs, enough) == min(enough, matching(pairs))


def test_a_long_chain_of_moves() -> None:
    """Each value finds its first subject taken, and the last one makes all of them move on."""
    n = 3000
    chain = [(i, i) for i in range(n)] + [(i + 1, i) for i in range(n)]
    assert matching([*reversed(chain), (0, n)]) == n + 1


def test_many_values_of_few_people() -> None:
    class_of = [(subject, value) for subject in range(5) for value in range(20_000)]
    assert matching(class_of) == 5
