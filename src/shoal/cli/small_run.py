"""Run an algorithm on a few made-up people, which compiles its kernels.

`shoal warm` does so, and `python -m benchmarks.start` does it with earlier sources, too: this file
uses only what these have.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from shoal import algorithms
from shoal.datasets import census
from shoal.engine.base import Anonymizer
from shoal.run.frame import anonymize
from shoal.spec.ladder import Open
from shoal.spec.policy import (
    BasicLikeness,
    Criterion,
    Delay,
    DeltaDisclosure,
    DistinctLDiversity,
    KAnonymity,
    Policy,
    TCloseness,
    Window,
    ZAnonymity,
)
from shoal.spec.schema import Quasi, Schema

__all__ = ["run_once"]

#: Enough rows for groups, windows and rows that are suppressed.
N_ROWS = 300
MEASURED = (TCloseness(0.5), BasicLikeness(3), DeltaDisclosure(3))


def run_once(algorithm: str, *, measured: bool = True) -> None:
    """Run an algorithm on made-up people, so that its kernels are compiled and kept.

    Parameters
    ----------
    algorithm
        The name of the algorithm.
    measured
        Whether a stream runs with a criterion that is measured against a window, too. Its kernels
        are compiled for such jobs only.

    >>> run_once("castle")
    """
    anonymizer = algorithms.find(algorithm)()
    made = census(N_ROWS, subjects=N_ROWS // 2, seed=0)
    table = made.table()
    quasi = [attribute for attribute in made.schema.quasi if attribute.name in ("age", "sex")]
    if anonymizer.publishes == "values":
        _warm_values(anonymizer, table, quasi)
        return
    schema = Schema(made.schema.subject, quasi, sensitive=made.schema.sensitive)
    for policy in _policies(anonymizer, measured=measured):
        anonymize(table, schema, policy, anonymizer, seed=0)


def _policies(anonymizer: Anonymizer, *, measured: bool) -> Iterator[Policy]:
    """Yield policies that an anonymizer can enforce and that take all of its ways."""
    basic: list[Criterion] = [KAnonymity(3), DistinctLDiversity(2)]
    more = [one for one in MEASURED if isinstance(one, anonymizer.enforces)][:1]
    if anonymizer.publishes == "table":
        yield Policy(*basic, *more, window="all")
    elif anonymizer.publishes == "windows":
        window = Window(rows=N_ROWS // 3, advance=N_ROWS // 6)
        yield Policy(*basic, *more, window=window)
    else:
        delay = Delay(rows=N_ROWS // 6)
        yield Policy(*basic, delay=delay)
        if more and measured:
            yield Policy(*basic, *more, delay=delay, window=Window(rows=N_ROWS // 3))


def _warm_values(anonymizer: Anonymizer, table: pa.Table, ladders: list[Quasi]) -> None:
    """Run z-anonymity, whose values with and without levels have kernels of their own."""
    policy = Policy(ZAnonymity(3), window=Window(rows=N_ROWS // 3))
    for quasi in ([Quasi("postcode", Open())], ladders):
        anonymize(table, Schema("person_id", quasi), policy, anonymizer, seed=0)
