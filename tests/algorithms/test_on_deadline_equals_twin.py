"""The kernels of FADS, FAST, IDEA, K-VARP and IoT and their twins decide alike, row by row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numba
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.algorithms import find, names
from shoal.engine import Codes, Decisions, Engine
from shoal.spec.policy import TCloseness
from tests.algorithms import cases
from tests.algorithms.world import TWINS
from tests.examples import examples
from tests.naive.examples import EXAMPLES
from tests.naive.on_deadline import Decision, NaiveOnDeadline

#: Those of the family that are there.
NAMES = [name for name in TWINS if name in names()]


@dataclass(kw_only=True)
class Case(cases.Case):
    """A case with the knobs of one algorithm."""

    knobs: dict[str, Any]

    def naive(self, name: str) -> NaiveOnDeadline:
        return TWINS[name](
            self.domains, self.weights, missing=self.missing, **self.naively(), **self.knobs
        )

    def engine(self, name: str) -> Engine:
        anonymizer = find(name)(
            kept=self.kept,  # type: ignore[call-arg]
            reuse=self.reuse,
            joins=self.joins,
            loss=self.loss,  # type: ignore[arg-type]
            **self.knobs,
        )
        return anonymizer.start(self.schema(), self.policy(), seed=cases.SEED)


@dataclass(frozen=True, order=True)
class DecidedRow:
    """What became of a row, in words that both sides use; NaN would not equal itself."""

    row: int
    outcome: str
    group: int | None
    sides: tuple[tuple[float, float] | None, ...] | None
    loss: float
    box_loss: float
    n_subjects: int | None
    published: int
    published_s: float | None
    window: int | None


def as_tuples(decisions: Decisions) -> list[DecidedRow]:
    """What a kernel decided."""
    outcomes = ["group", "reuse", "suppressed"]
    rows = []
    for i, row in enumerate(decisions.rows):
        box, outcome = int(decisions.boxes[i]), outcomes[decisions.outcomes[i]]
        seconds = float(decisions.published_s[i])
        rows.append(
            DecidedRow(
                int(row),
                outcome,
                None if box < 0 else int(decisions.groups[box]),
                None if box < 0 else sides(decisions.lo[box], decisions.hi[box]),
                float(decisions.losses[i]),
                1.0 if box < 0 else float(decisions.loss[box]),
                int(decisions.n_subjects[box]) if outcome == "group" else None,
                int(decisions.published[i]),
                None if math.isnan(seconds) else seconds,
                None if box < 0 or decisions.windows[box] < 0 else int(decisions.windows[box]),
            )
        )
    return in_order(rows, decisions.instants.tolist())


def sides(lo: Sequence[Any], hi: Sequence[Any]) -> tuple[tuple[float, float] | None, ...]:
    return tuple(
        (float(low), float(high)) if low is not None and low <= high else None
        for low, high in zip(lo, hi, strict=True)
    )


def naively(decisions: Sequence[Decision]) -> list[DecidedRow]:
    """What a twin decided."""
    return in_order(
        [
            DecidedRow(
                d.row,
                d.outcome,
                d.group,
                None if d.lo is None or d.hi is None else sides(d.lo, d.hi),
                d.loss,
                d.box_loss,
                d.n_subjects if d.outcome == "group" else None,
                d.published,
                d.published_s,
                d.window,
            )
            for d in decisions
        ],
        [d.instant for d in decisions],
    )


def in_order(rows: Sequence[DecidedRow], instants: Sequence[int]) -> list[DecidedRow]:
    """In the order in which they were decided, but for rows that are shuffled.

    Those are the rows of a group, and the rows that join kept groups at one instant.
    """
    found: list[DecidedRow] = []
    for _, instant in groupby(zip(instants, rows, strict=True), lambda pair: pair[0]):
        decided = [row for _, row in instant]
        others = [row for row in decided if row.outcome != "reuse"]
        for (outcome, _), group in groupby(others, lambda row: (row.outcome, row.group)):
            part = list(group)
            found += sorted(part, key=lambda t: t.row) if outcome == "group" else part
        found += sorted((row for row in decided if row.outcome == "reuse"), key=lambda t: t.row)
    return found


def compare(name: str, case: Case, batch: int, ticks: bool) -> None:
    codes = case.codes()
    engine, naive = case.engine(name), case.naive(name)
    instants: set[tuple[int, int]] = set()

    def agree(got: Decisions, want: Sequence[Decision]) -> None:
        assert as_tuples(got) == naively(want)
        instants.update(
            (int(number), d.instant) for number, d in zip(got.instants, want, strict=True)
        )

    for begin in range(0, case.n_rows, batch):
        part = Codes(*(array[begin : begin + batch] for array in codes))
        want = []
        for i in range(begin, min(begin + batch, case.n_rows)):
            want += naive.push(
                list(codes.values[i]), int(codes.subjects[i]), list(codes.sensitive[i]),
                float(codes.times[i]),
            )  # fmt: skip
        agree(engine.push(part), want)
        if ticks:
            now = float(part.times.max()) + 1.0 if case.timed else float(begin)
            agree(engine.advance(now), naive.advance(now))
    agree(engine.flush(), naive.flush())
    assert engine.n_held == 0
    # The numbers may differ, but what is one instant here is one instant there.
    assert len({a for a, _ in instants}) == len({b for _, b in instants}) == len(instants)


NOTHING = st.just(("open", ()))
BLOCKS = st.sampled_from([None, 1, 2, 5])
UNITS = st.sampled_from(["rows", "rows", "rounds"])
#: How many rows are held at most; none of them is too few for the groups of a case.
CAPACITIES = st.sampled_from([6, 7, 15, 40])
#: Plain Python is slow: there a look at fewer, beside what compiled code goes through.
MANY = examples(6 if numba.config.DISABLE_JIT else 250)
THRESHOLDS = st.sampled_from([0.05, 0.5, 1.0])
AGES = st.sampled_from([3, 30, None])
KNOBS = {
    "fads": st.fixed_dictionaries({"age": st.sampled_from([1, 3, 30, 1000]), "age_unit": UNITS}),
    "fast": st.fixed_dictionaries(
        {
            "age": st.sampled_from([1, 3, 30, 1000]),
            "age_unit": UNITS,
            "workers": st.integers(1, 3),
            "block": BLOCKS,
        }
    ),
    "idea": st.fixed_dictionaries({"threshold": THRESHOLDS, "age": AGES}),
    "k-varp": st.fixed_dictionaries(
        {"threshold": THRESHOLDS, "age": AGES, "radius": st.sampled_from([0.0, 0.2, 1.0])}
    ),
    "iot": st.fixed_dictionaries({"threshold": THRESHOLDS, "age": AGES}),
}


def drawn(name: str, measured: st.SearchStrategy[Any]) -> st.SearchStrategy[Case]:
    shapes = name != "fast"
    return st.builds(
        Case,
        seed=st.integers(0, 10**6),
        k=st.integers(1, 7),
        l=st.sampled_from([1, 1, 1, 2, 3, 4]),
        entropy=st.sampled_from([0.0, 0.0, 0.0, 1.5, 2.0] if shapes else [0.0]),
        recursive=st.sampled_from([(0.0, 0)] * 3 + ([(2.0, 2), (1.5, 3)] if shapes else [])),
        delay=st.tuples(st.integers(1, 60), st.sampled_from([None, None, 2.5, 20.0]))
        | st.tuples(st.none(), st.sampled_from([0.3, 2.5, 20.0])),
        timed=st.booleans(),
        n_subjects=st.sampled_from([40, 9, 40, 20, 3, 1]),
        n_rows=st.integers(1, 100),
        kept=st.sampled_from([0, 1, 4, 100]),
        reuse=st.sampled_from(["random", "random", "best"]),
        joins=st.sampled_from(["together", "together", "alone"]),
        loss=st.sampled_from(["glm", "lm", "uncertainty"]),
        step=st.sampled_from([None, 1.0, 5.0, 0.3]),
        spread=st.sampled_from([0, 3, 40]),
        # As shares, the last ones don't add up to 1 exactly.
        weights=st.sampled_from([(1.0, 1.0, 1.0), (1.0, 0.5, 2.0), (0.3, 0.1, 0.7)]),
        missing=st.sampled_from(["quarantine", "extended", "maybe", "maybe"]),
        gaps=st.sampled_from([0.1, 0.3, 0.7]),
        knobs=KNOBS[name],
        two_sensitive=st.booleans(),
        measured=measured,
        window=st.sampled_from([1, 10, 30, 80]),
    )


@pytest.mark.parametrize("name", NAMES)
def test_kernel_and_twin_decide_alike(name: str) -> None:
    @settings(max_examples=MANY, deadline=None, derandomize=True, database=None)
    @given(case=drawn(name, NOTHING), batch=st.sampled_from([1, 7, 1000]), ticks=st.booleans())
    def alike(case: Case, batch: int, ticks: bool) -> None:
        compare(name, case, batch, ticks)

    alike()


@pytest.mark.parametrize("name", NAMES)
def test_kernel_and_twin_decide_alike_by_count(name: str) -> None:
    @settings(max_examples=MANY // 2, deadline=None, derandomize=True, database=None)
    @given(
        case=drawn(name, NOTHING),
        capacity=CAPACITIES,
        alone=st.booleans(),
        batch=st.sampled_from([1, 7, 1000]),
        ticks=st.booleans(),
    )
    def alike(case: Case, capacity: int, alone: bool, batch: int, ticks: bool) -> None:
        case.knobs = {key: value for key, value in case.knobs.items() if key != "block"}
        case.knobs["capacity"] = capacity
        if alone:
            case.delay = (None, None)
        compare(name, case, batch, ticks)

    alike()


@pytest.mark.parametrize("name", [n for n in NAMES if issubclass(TCloseness, find(n).enforces)])
def test_kernel_and_twin_decide_alike_against_a_window(name: str) -> None:
    @settings(max_examples=MANY, deadline=None, derandomize=True, database=None)
    @given(
        case=drawn(name, cases.MEASURED), batch=st.sampled_from([1, 7, 1000]), ticks=st.booleans()
    )
    def alike(case: Case, batch: int, ticks: bool) -> None:
        compare(name, case, batch, ticks)

    alike()


LONG: dict[str, dict[str, Any]] = {
    "fads": {"age": 200},
    "fast": {"age": 200, "workers": 2, "block": None},
    "idea": {"threshold": 0.5, "age": 200},
    "k-varp": {"threshold": 0.5, "age": 200, "radius": 0.2},
    "iot": {"threshold": 0.5, "age": 200},
}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", NAMES)
def test_on_a_longer_stream(name: str, seed: int) -> None:
    case = Case(
        seed=seed, k=5, l=[1, 3][seed % 2], entropy=0.0, recursive=(0.0, 0), delay=(150, None),
        timed=False, n_subjects=200, n_rows=600, kept=30, reuse="random",
        joins=["together", "alone", "together", "together"][seed], loss="glm", step=5.0,
        spread=20, weights=(1.0, 0.5, 2.0), missing=["maybe", "quarantine"][seed // 2], gaps=0.2,
        knobs=LONG[name],
    )  # fmt: skip
    compare(name, case, 256, ticks=False)


@pytest.mark.parametrize(
    ("title", "name"),
    [(title, name) for title, e in EXAMPLES.items() for name in e.algorithms if name in NAMES],
)
def test_worked_examples_on_engines(title: str, name: str) -> None:
    example = EXAMPLES[title]
    engine = find(name)(**example.knobs).start(example.schema(), example.policy(), seed=b"1")
    got = {}
    for d in as_tuples(engine.push(example.codes())):
        box = d.sides and [side or (None, None) for side in d.sides]
        lo, hi = zip(*box, strict=True) if box else (None, None)
        got[example.rows[d.row][0]] = example.published(d.outcome, lo, hi)
    assert got == dict(example.expected)
