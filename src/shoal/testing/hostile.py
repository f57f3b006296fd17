"""Adversarial streams, and a steady one to compare with."""

from __future__ import annotations

from typing import get_args

import numpy as np

from shoal.engine.base import Anonymizer
from shoal.engine.kernels.arrays import Any1, Floats, Ints
from shoal.engine.space import Codes
from shoal.errors import UnsupportedError
from shoal.spec.hierarchy import Hierarchy, Range
from shoal.spec.policy import (
    Criterion,
    Delay,
    DeltaDisclosure,
    DistinctLDiversity,
    EnhancedLikeness,
    KAnonymity,
    LDiversity,
    Measured,
    Missing,
    Policy,
    TCloseness,
    Window,
    ZAnonymity,
)
from shoal.spec.schema import Quasi, Schema, Sensitive
from shoal.testing.definitions import examples
from shoal.testing.streams import Stream
from shoal.testing.z.hostile import PLACES, as_cells, cell_streams

__all__ = [
    "can_measure",
    "further_criteria",
    "hostile_streams",
    "measured_streams",
    "missing_modes",
    "steady_stream",
    "streams_with_gaps",
]

K = 3
DELAY = Delay(rows=12, seconds=30.0)
ILLNESSES = Hierarchy.from_dict({"Any": {"Mild": ["Cold", "Flu"], "Severe": ["HIV", "Cancer"]}})
#: The first of these that an anonymizer can enforce is measured.
MEASURES: tuple[Measured, ...] = (TCloseness(0.4), EnhancedLikeness(2.0), DeltaDisclosure(3.0))


def can_measure(anonymizer: type[Anonymizer]) -> bool:
    """Return whether an anonymizer can enforce a criterion that is measured against a window."""
    return any(isinstance(each, anonymizer.enforces) for each in MEASURES)


def further_criteria(anonymizer: type[Anonymizer]) -> list[Criterion]:
    """Return the examples of criteria that aren't Shoal's own and that an anonymizer can enforce.

    They are those of `shoal.testing.definitions.defines`.
    """
    return [
        each
        for each in examples()
        if isinstance(each, anonymizer.enforces)
        and not isinstance(each, KAnonymity | LDiversity | Measured)
    ]


def schema(*, measured: bool = False) -> Schema:
    """Return a number with a step, a number without, a ragged tree, and a sensitive attribute.

    If ``measured``, the sensitive attribute has a hierarchy; else its domain is open.
    """
    quasi = [
        Quasi("age", Range(0, 100, step=5)),
        Quasi("height", Range(0.0, 2.5), weight=0.5),
        Quasi("place", PLACES, weight=2.0),
    ]
    return Schema("person", quasi, [Sensitive("illness", ILLNESSES if measured else None)])


def policy(
    anonymizer: type[Anonymizer],
    *,
    k: int = K,
    delay: Delay = DELAY,
    missing: Missing = "quarantine",
    measured: bool = False,
) -> Policy:
    """Return k-anonymity and 2-diversity, as far as the anonymizer can enforce them.

    If ``measured``, the first measure that it can enforce comes with them; an anonymizer that
    doesn't publish row by row is always measured, and gets the window or the table that it needs.
    One that publishes cells gets z = k, and a window as long as the delay. Of criteria that aren't
    Shoal's own, the last example comes with them.
    """
    if anonymizer.publishes == "values":
        span = Window(seconds=delay.seconds) if delay.rows is None else Window(rows=delay.rows)
        return Policy(ZAnonymity(k), missing=missing, window=span)
    wanted: list[Criterion] = [KAnonymity(k), DistinctLDiversity(2)]
    criteria = [c for c in wanted if isinstance(c, anonymizer.enforces)]
    if measured or anonymizer.publishes != "rows":
        criteria += [c for c in MEASURES if isinstance(c, anonymizer.enforces)][:1]
    criteria += further_criteria(anonymizer)[-1:]
    if anonymizer.publishes == "table":
        return Policy(*criteria, missing=missing, window="all")
    if not any(isinstance(c, Measured) for c in criteria):
        return Policy(*criteria, delay=delay, missing=missing)
    rows = delay.rows or 60
    # A row that is held is still in its window; or leaves before, window by window.
    window = Window(rows=rows // 3 * 2, advance=rows // 3)
    if anonymizer.publishes == "rows":
        window = Window(rows=rows + 5)
    return Policy(*criteria, delay=delay, missing=missing, window=window)


def _stream(codes: Codes, promised: Policy, cuts: tuple[int, ...] = ()) -> Stream:
    if promised.z:
        return as_cells(codes, promised, cuts)
    return Stream(schema(measured=bool(promised.measured)), promised, codes, cuts=cuts)


def missing_modes(anonymizer: type[Anonymizer]) -> list[Missing]:
    """Return the treatments of missing values that an anonymizer supports."""
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
    """Return values all over the space, the same ones every time."""
    i = np.arange(n)
    return np.column_stack((i * 37 % 101, i * 13 % 26 / 10.0, i * 11 % len(PLACES))).astype(float)


def hostile_streams(anonymizer: type[Anonymizer], n: int = 40) -> dict[str, Stream]:
    """Return adversarial streams by description, under a policy that the anonymizer can enforce."""
    i = np.arange(n)
    extremes = np.where(i[:, None] % 2 == 0, [0.0, 0.0, 0.0], [100.0, 2.5, len(PLACES) - 1.0])
    codes = {
        "one subject only": _codes(_spread(n), np.full(n, 7)),
        "k - 1 subjects": _codes(_spread(n), i % (K - 1)),
        # Every other subject occurs once, far away; only one is everywhere.
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
        name: _stream(
            rows, promised, (0, 0, middle, middle, n, n) if name == "empty batches" else ()
        )
        for name, rows in codes.items()
    }
    streams |= streams_with_gaps(anonymizer, n) | measured_streams(anonymizer, n)
    return streams | cell_streams(anonymizer, n)


def streams_with_gaps(anonymizer: type[Anonymizer], n: int = 40) -> dict[str, Stream]:
    """Return streams with missing values, for each treatment that the anonymizer supports."""
    i = np.arange(n)[:, None]
    d = np.arange(len(schema().quasi))
    gaps = {
        "everything missing": (i >= 0) & (d >= 0),
        "one attribute always missing": (i >= 0) & (d == 1),
        "one complete row among gaps": (i != n // 2) & (d >= 0),
        # No row of one half shares an attribute with a row of the other.
        "two halves with disjoint gaps": (d == 0) == (i < n // 2),
        "gaps all over": i * 7 % 5 == d,
    }
    return {
        f"{name}, {missing}": _stream(
            _codes(np.where(where, np.nan, _spread(n)), np.arange(n) * 17 % (n // 2)),
            policy(anonymizer, missing=missing),
        )
        for name, where in gaps.items()
        for missing in missing_modes(anonymizer)
        if missing != "quarantine"
    }


def measured_streams(anonymizer: type[Anonymizer], n: int = 40) -> dict[str, Stream]:
    """Return streams with adversarial sensitive values, if the anonymizer can measure them."""
    if not can_measure(anonymizer):
        return {}
    i = np.arange(n)
    values = {
        "one sensitive value": 0 * i,
        "a sensitive value seen once": np.where(i == n // 2, 3, i % 2),
        "sensitive values that are replaced": i % 2 + 2 * (i >= n // 2),
        "sensitive values by place": _spread(n)[:, 2].astype(np.int64) % 4,
    }
    promised = policy(anonymizer, measured=True)
    rows = _codes(_spread(n), i * 17 % (n // 2))
    return {
        name: _stream(rows._replace(sensitive=codes.reshape(n, 1)), promised)
        for name, codes in values.items()
    }


def steady_stream(
    anonymizer: type[Anonymizer],
    n: int,
    *,
    k: int = K,
    delay: Delay = DELAY,
    n_subjects: int | None = None,
    measured: bool = False,
) -> Stream:
    """Return one row per second, all over the space, each of a new person by default."""
    subjects = np.arange(n) if n_subjects is None else np.arange(n) * 17 % n_subjects
    promised = policy(anonymizer, k=k, delay=delay, measured=measured)
    return _stream(_codes(_spread(n), subjects), promised)
