"""Compile the kernels of an algorithm where only NumPy and Numba are installed yet.

``python -m shoal.run.ahead [ALGORITHM]`` runs an engine on made-up codes. `make setup` does
that while it installs the rest; `shoal warm` needs the rest, and finds what is left to compile.
"""

from __future__ import annotations

import sys

import numpy as np

from shoal.algorithms.registry import DEFAULT, find
from shoal.engine.space import Codes
from shoal.spec.hierarchy import Hierarchy, Range
from shoal.spec.policy import Delay, DistinctLDiversity, KAnonymity, Policy
from shoal.spec.schema import Quasi, Schema, Sensitive

__all__ = ["run_engine"]

#: Enough rows for some groups, and for some that leave before the end.
N_ROWS, DELAY = 200, 150


def run_engine(algorithm: str) -> int:
    """Run an algorithm for streams on made-up codes; return the number of rows that it decided.

    >>> run_engine("tide")
    200
    """
    schema = Schema(
        "person",
        [Quasi("age", Range(0, 100, step=1)), Quasi("sex", Hierarchy.flat(["Female", "Male"]))],
        sensitive=[Sensitive("diagnosis", Hierarchy.flat(list("abcde")))],
    )
    policy = Policy(KAnonymity(2), DistinctLDiversity(2), delay=Delay(rows=DELAY))
    engine = find(algorithm)().start(schema, policy)
    numbers = np.arange(N_ROWS)
    codes = Codes(
        values=np.column_stack([numbers * 37 % 100, numbers % 2]).astype(np.float64),
        subjects=numbers // 2,
        sensitive=(numbers * 3 % 5).reshape(-1, 1),
        times=np.full(N_ROWS, np.nan),
    )
    return sum(len(decided.rows) for decided in (engine.push(codes), engine.flush()))


if __name__ == "__main__":
    run_engine(*(sys.argv[1:] or [DEFAULT]))
