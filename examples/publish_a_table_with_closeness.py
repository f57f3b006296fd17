"""Publish a table of salaries so that nobody's group tells much about their own.

The same people are published with k alone, with l as well, and with a bound on what a group tells
beyond the whole table: t-closeness and beta-likeness, each by two algorithms. Run it with
`python examples/publish_a_table_with_closeness.py`; it needs pandas.
"""

from __future__ import annotations

import random
from typing import NamedTuple

import pandas as pd
import pyarrow as pa

import shoal
from shoal import (
    DistinctLDiversity,
    EnhancedLikeness,
    Hierarchy,
    KAnonymity,
    Policy,
    Quasi,
    Range,
    Schema,
    Sensitive,
    TCloseness,
    anonymize,
)
from shoal.metrics import exposure

SCHEMA = Schema(
    subject="person",
    quasi=[
        Quasi("age", Range(15, 70, step=5)),
        Quasi("sex", Hierarchy.flat(["Female", "Male"])),
        Quasi("postcode", Hierarchy.digits(2)),
    ],
    sensitive=[Sensitive("salary", Range(10, 100))],
)
K = KAnonymity(5)
DIVERSE = Policy(K, DistinctLDiversity(3), window="all")
CLOSE = Policy(K, TCloseness(0.2), window="all")
ALIKE = Policy(K, EnhancedLikeness(2.0), window="all")
#: What is promised, and by whom.
WAYS = [
    ("k = 5", Policy(K, window="all"), "mondrian"),
    ("l = 3", DIVERSE, "mondrian"),
    ("t = 0.2", CLOSE, "sabre-ak"),
    ("t = 0.2", CLOSE, "t-mondrian"),
    ("beta = 2", ALIKE, "burel"),
    ("beta = 2", ALIKE, "l-mondrian"),
]


class Found(NamedTuple):
    """What a publication lost, how far its worst group is from the table, and what the audit says.

    ``gain`` is by how much a salary is more frequent in a group than in the table, at worst.
    """

    loss: float
    closeness: float
    gain: float
    verdict: str


def people(n: int) -> pd.DataFrame:
    """People who don't exist. Who is older earns more: that is what a group can give away."""
    rng = random.Random(7)
    rows = []
    for number in range(n):
        age = rng.randint(18, 66)
        salary = 10 * min(10, max(1, round(rng.gauss(1.5 + age / 12, 1.2))))
        sex, postcode = rng.choice(["Female", "Male"]), f"{rng.randint(0, 99):02}"
        rows.append((number, age, sex, postcode, salary))
    return pd.DataFrame(rows, columns=["person", "age", "sex", "postcode", "salary"])


def as_arrow(frame: pd.DataFrame) -> pa.Table:
    """A table without the notes that pandas makes: they aren't for those who get it."""
    return pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)


def publish(frame: pd.DataFrame, policy: Policy, algorithm: str) -> Found:
    result = anonymize(frame, SCHEMA, policy, algorithm, trace=True)
    found = exposure(SCHEMA, as_arrow(frame), result.trace)["salary"]
    judged = shoal.audit(SCHEMA, policy, result, original=frame)
    loss = result.summary.loss.published
    assert loss is not None
    assert found.closeness is not None
    return Found(loss, found.closeness, found.likeness, judged.verdict)


def main(rows: int = 1000) -> dict[tuple[str, str], Found]:
    frame = people(rows)
    found: dict[tuple[str, str], Found] = {}
    print("promised  by           loss  closeness   gain  audit")
    for promised, policy, algorithm in WAYS:
        one = found[promised, algorithm] = publish(frame, policy, algorithm)
        print(
            f"{promised:<8}  {algorithm:<10}  {one.loss:.3f}      {one.closeness:.3f}  "
            f"{one.gain:5.2f}  {one.verdict}"
        )
    return found


if __name__ == "__main__":
    main()
