"""The methods that are compared, the promises, and one run of a method over rows."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from benchmarks.figures.streams import Stream
from benchmarks.measure import say
from benchmarks.tide.data import stream, with_gaps
from benchmarks.tide.store import Store
from shoal.algorithms import find
from shoal.engine.base import Anonymizer, Decisions, Outcome
from shoal.engine.space import Codes
from shoal.errors import UnsupportedError
from shoal.spec.policy import Delay, DistinctLDiversity, KAnonymity, Policy, TCloseness, Window

__all__ = [
    "BATCH", "KEPT", "OTHERS", "OWN", "TABLES", "Case", "Ran", "Seen", "anonymizer_of", "decide",
    "measured",
]  # fmt: skip

#: Rows come in batches of this many.
BATCH = 8_192
#: How many groups each of the others keeps for reuse, where it reuses any.
KEPT = {"castle": 1_000, "fads": 50, "idea": 200, "k-varp": 200}
#: Without reuse, which is the default; as the papers do it; and as it loses least, which leaks.
REUSE: dict[str, dict[str, Any]] = {
    "none": {"kept": 0},
    "random": {"reuse": "random", "joins": "alone"},
    "best": {"reuse": "best", "joins": "alone"},
}
#: The methods by name: those of TIDE, the others for streams, and those for tables.
OWN = ("tide", "tide rolling")
OTHERS = tuple(f"{name}, {reuse}" for name in KEPT for reuse in REUSE)
TABLES = ("mondrian", "t-mondrian", "sabre-ak", "t-incognito")

Further: TypeAlias = Literal["", "l", "t", "gaps"]


def anonymizer_of(method: str) -> Anonymizer:
    """The anonymizer that a method of the tables stands for.

    >>> anonymizer_of("tide effort 5").effort, anonymizer_of("fads, best").kept
    (5, 50)
    """
    if ", " in method:
        name, reuse = method.split(", ")
        return find(name)(**{"kept": KEPT[name], **REUSE[reuse]})
    name, *rest = method.split()
    knobs: dict[str, Any] = {}
    match rest:
        case ["rolling"]:
            knobs = {"release": "rolling"}
        case [knob, number]:
            knobs = {knob: int(number)}
    # Speeds are those of one core, unless a number of threads is asked for.
    return find(name)(**knobs).beside_others()


@dataclass(frozen=True)
class Case:
    """Rows of a data set and a promise; a delay of 0 is a whole table."""

    data: str
    rows: int
    k: int
    delay: int
    further: Further = ""
    #: That of the further promise, or the most values that a row lacks.
    bound: float = 0.0

    @property
    def promise(self) -> str:
        """The promise in words."""
        texts = [f"k = {self.k}"]
        match self.further:
            case "gaps":
                texts.append(f"up to {self.bound:g} gaps")
            case "l" | "t":
                texts.append(f"{self.further} = {self.bound:g}")
        if self.delay:
            texts.append(f"delay {self.delay:,}")
        return ", ".join(texts)

    @property
    def policy(self) -> Policy:
        """The promise as a policy."""
        criteria: list[Any] = [KAnonymity(self.k)]
        if self.further == "l":
            criteria.append(DistinctLDiversity(int(self.bound)))
        if self.further == "t":
            criteria.append(TCloseness(self.bound))
        missing = "maybe" if self.further == "gaps" else "quarantine"
        if not self.delay:
            return Policy(*criteria, window="all", missing=missing)
        window = Window(rows=2 * self.delay) if self.further == "t" else None
        return Policy(*criteria, delay=Delay(rows=self.delay), window=window, missing=missing)

    def stream(self, order: int) -> Stream:
        """The rows in one of their orders."""
        most = int(self.bound) if self.further == "gaps" else 0
        return _stream(self.data, self.rows, order, most, self.further in ("l", "t"))


@lru_cache(maxsize=4)
def _stream(data: str, rows: int, order: int, most: int, sensitive: bool) -> Stream:
    whole = stream(data, rows, order, sensitive=sensitive)
    return with_gaps(whole, most, order) if most else whole


class Ran(NamedTuple):
    """The mean loss of a run, the share of suppressed rows, its rows per CPU second, and all."""

    loss: float
    suppressed: float
    rate: float
    decisions: list[Decisions]


def decide(anonymizer: Anonymizer, rows: Stream, policy: Policy, *, pushed: int = BATCH) -> Ran:
    """Run an engine over a stream, or a table. A suppressed row has lost everything."""
    engine = anonymizer.start(rows.schema, policy, seed=b"tide")
    n, begun = len(rows.codes.subjects), time.process_time()
    parts = [
        Codes(*(column[i : i + pushed] for column in rows.codes[:4])) for i in range(0, n, pushed)
    ]
    decisions = [*(engine.push(part) for part in parts), engine.flush()]
    seconds = time.process_time() - begun
    losses = sum(float(decided.losses.sum()) for decided in decisions)
    n_suppressed = sum(
        int(np.count_nonzero(decided.outcomes == Outcome.suppressed)) for decided in decisions
    )
    return Ran(losses / n, n_suppressed / n, n / seconds, decisions)


class Seen(NamedTuple):
    """What runs came to that differ in the order of their rows."""

    loss: tuple[float, ...]
    suppressed: tuple[float, ...]
    rate: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The mean loss."""
        return float(np.mean(self.loss))


def measured(store: Store, case: Case, method: str, orders: int) -> Seen | None:
    """What a method comes to in each order of the rows; None if it can't keep the promise."""
    runs = []
    for order in range(orders):
        key = f"{case.data}, {case.rows:,} rows, order {order}; {case.promise}"
        found = store.get(key, method, lambda order=order: _run(case, method, order))
        if found is None:
            return None
        runs.append(found)
    return Seen(*(tuple(run[name] for run in runs) for name in Seen._fields))


def _run(case: Case, method: str, order: int) -> dict[str, float] | None:
    say(f"tide: {case.data}, {case.promise}, order {order}: {method}")
    try:
        found = decide(anonymizer_of(method), case.stream(order), case.policy)
    except UnsupportedError:
        return None
    return {name: getattr(found, name) for name in Seen._fields}
