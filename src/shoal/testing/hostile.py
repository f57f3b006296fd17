"""Streams that are made to hurt, and a steady one to compare with."""

from __future__ import annotations

from typing import get_args

import numpy as np

from shoal.engine import Anonymizer
from shoal.errors import UnsupportedError
from shoal.hierarchy import Hierarchy, Range
from shoal.kernels.arrays import Any1, Floats, Ints
from shoal.policy import Criterion, Delay, DistinctLDiversity, KAnonymity, Missing, Policy
from shoal.schema import Quasi, Schema, Sensitive
from shoal.space import Codes
from shoal.testing.streams import Stream

__all__ = ["gappy_streams", "hostile_streams", "meanings", "steady_stream"]

K = 3
DELAY = Delay(rows=12, seconds=30.0)
PLACES = Hierarchy.from_dict(
    {"Any": {"North": ["N1", "N2"], "South": {"East": ["E1", "E2", "E3"], "West": ["W1"]}}}
)


def schema() -> Schema:
    """A number with a step, a number without, a ragged tree, and a sensitive attribute."""
    quasi = [
        Quasi("age", Range(0, 100, step=5)),
        Quasi("height", Range(0.0, 2.5), weight=0.5),
        Quasi("place", PLACES, weight=2.0),
    ]
    return Schema("person", quasi, [Sensitive("illness")])


def policy(
    anonymizer: type[Anonymizer],
    *,
    k: int = K,
    delay: Delay = DELAY,
    missing: Missing = "quarantine",
) -> Policy:
    """k-anonymity and 2-diversity, as far as the anonymizer can enforce them."""
    criteria: list[Criterion] = [KAnonymity(k), DistinctLDiversity(2)]
    able = (c for c in criteria if isinstance(c, anonymizer.enforces))
    return Policy(*able, delay=delay, missing=missing)


def meanings(anonymizer: type[Anonymizer]) -> list[Missing]:
    """What a missing value may mean to an anonymizer; what it refuses at its start isn't there."""
    found: list[Missing] = []
    for missing in get_args(Missing):
        try:
            anonymizer().check(policy(anonymizer, missing=missing))
        except UnsupportedError:
            continue
        found.append(missing)
    return found


def _codes(values: Floats, subjects: Ints, times: Any1 | None = None) -> Codes:
    n = len(subjects)
    return Codes(
        np.ascontiguousarray(values, np.float64),
        np.ascontiguousarray(subjects, np.int64),
        (np.arange(n) * 7 % 4).reshape(n, 1),
        np.ascontiguousarray(np.arange(n) if times is None else times, np.float64),
    )


def _spread(n: int) -> Floats:
    """Values all over the place, the same ones every time."""
    i = np.arange(n)
    return np.column_stack((i * 37 % 101, i * 13 % 26 / 10.0, i * 11 % len(PLACES))).astype(float)


def hostile_streams(anonymizer: type[Anonymizer], n: int = 40) -> dict[str, Stream]:
    """Streams by what is bad about them, under a policy that the anonymizer can enforce."""
    i = np.arange(n)
    extremes = np.where(i[:, None] % 2 == 0, [0.0, 0.0, 0.0], [100.0, 2.5, len(PLACES) - 1.0])
    codes = {
        "one subject only": _codes(_spread(n), np.full(n, 7)),
        "k - 1 subjects": _codes(_spread(n), i % (K - 1)),
        # Everybody else is met once, far away; only one person is everywhere.
        "one subject in every cluster": _codes(_spread(n), np.where(i % 2 == 0, 7, 100 + i)),
        "all rows equal": _codes(np.tile([50.0, 1.7, 2.0], (n, 1)), i // 2),
        "alternating extremes": _codes(extremes, i),
        "empty batches": _codes(_spread(n), i),
        "no rows": _codes(_spread(0), i[:0]),
        "decreasing times": _codes(_spread(n), i, 1000.0 - 3.0 * i),
        "equal times": _codes(_spread(n), i, np.full(n, 5.0)),
        "one huge gap": _codes(_spread(n), i, 1e12 * (i >= n // 2)),
    }
    promised = policy(anonymizer)
    middle = n // 2
    streams = {
        name: Stream(
            schema(),
            promised,
            rows,
            cuts=(0, 0, middle, middle, n, n) if name == "empty batches" else (),
        )
        for name, rows in codes.items()
    }
    return streams | gappy_streams(anonymizer, n)


def gappy_streams(anonymizer: type[Anonymizer], n: int = 40) -> dict[str, Stream]:
    """Streams with missing values, under each meaning of them that the anonymizer knows."""
    i = np.arange(n)[:, None]
    d = np.arange(len(schema().quasi))
    gaps = {
        "everything missing": (i >= 0) & (d >= 0),
        "one attribute always missing": (i >= 0) & (d == 1),
        "one complete row among gaps": (i != n // 2) & (d >= 0),
        # Nobody of one half shares an attribute with anybody of the other.
        "two halves with disjoint gaps": (d == 0) == (i < n // 2),
        "gaps all over": i * 7 % 5 == d,
    }
    return {
        f"{name}, {missing}": Stream(
            schema(),
            policy(anonymizer, missing=missing),
            _codes(np.where(where, np.nan, _spread(n)), np.arange(n) * 17 % (n // 2)),
        )
        for name, where in gaps.items()
        for missing in meanings(anonymizer)
        if missing != "quarantine"
    }


def steady_stream(
    anonymizer: type[Anonymizer],
    n: int,
    *,
    k: int = K,
    delay: Delay = DELAY,
    n_subjects: int | None = None,
) -> Stream:
    """Rows without end: one each second, all over the space, each of a new person by default."""
    subjects = np.arange(n) if n_subjects is None else np.arange(n) * 17 % n_subjects
    return Stream(schema(), policy(anonymizer, k=k, delay=delay), _codes(_spread(n), subjects))
