"""Each check of the contract catches an engine that breaks it, and lets an honest one pass."""

from __future__ import annotations

import dataclasses
import re
import subprocess
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from shoal import Delay, Hierarchy, Quasi, Range, Schema, Sensitive
from shoal.algorithms import Castle, find
from shoal.algorithms.castle import CastleEngine
from shoal.algorithms.sabre import SabreAk, SabreW
from shoal.engine import Codes, Decisions
from shoal.engine.base import Anonymizer, Engine, Out
from shoal.engine.kernels.predicate import Limits
from shoal.engine.space import Space
from shoal.errors import CheckpointError, ParameterError, UnsupportedError
from shoal.spec.criteria import Measured, criteria
from shoal.spec.policy import Policy, Window
from shoal.testing import checks, strategies
from shoal.testing.checks import CHECKS, Check, FixedCheck, check_anonymizer, run_check
from shoal.testing.checks.published import judge_groups
from shoal.testing.hostile import hostile_streams, missing_modes, steady_stream, streams_with_gaps
from shoal.testing.streams import Stream, play


class Faulty(Castle):
    """CASTLE with an engine that is spoilt on purpose."""

    engine: type[CastleEngine] = CastleEngine

    def _start(self, space: Space, seed: bytes) -> Engine:
        return self.engine(self, space, seed)


def faulty(engine: type[CastleEngine]) -> Faulty:
    anonymizer = type("Faulty", (Faulty,), {"engine": engine})
    return anonymizer()  # type: ignore[no-any-return]


class Spoilt(CastleEngine):
    """Changes every decision before anybody sees it."""

    def spoil(self, decisions: Decisions) -> Decisions:
        return decisions

    def _shuffled(self, most: int, verb: Callable[[Out], None]) -> Decisions:
        return self.spoil(super()._shuffled(most, verb))


class SplitsGroups(Spoilt):
    """Publishes the first row of a group by itself."""

    def spoil(self, d: Decisions) -> Decisions:
        if len(d.lo) == 0 or d.n_rows[0] < 2 or d.boxes[0] != 0:
            return d
        return d._replace(
            boxes=np.concatenate(([0], d.boxes[1:] + 1)),
            lo=np.concatenate((d.lo[:1], d.lo)),
            hi=np.concatenate((d.hi[:1], d.hi)),
            loss=np.concatenate((d.loss[:1], d.loss)),
            groups=np.concatenate(([10**6], d.groups)),
            n_rows=np.concatenate(([1], [d.n_rows[0] - 1], d.n_rows[1:])),
            n_subjects=np.concatenate(([1], d.n_subjects)),
            box_gaps=np.concatenate((d.box_gaps[:1], d.box_gaps)),
        )


class IgnoresMeasures(CastleEngine):
    """Forgets what is measured when groups are formed."""

    def _of_now(self, limits: Limits) -> Limits:
        measures = limits.measures
        return limits._replace(measures=measures._replace(asked=measures.asked[:0]))


class MiscountsSubjects(Spoilt):
    def spoil(self, d: Decisions) -> Decisions:
        return d._replace(n_subjects=d.n_subjects + 1)


class LosesRows(Spoilt):
    def spoil(self, d: Decisions) -> Decisions:
        return d._replace(**{name: getattr(d, name)[:-1] for name in Decisions._fields[:8]})


class RepeatsRows(Spoilt):
    def spoil(self, d: Decisions) -> Decisions:
        return d._replace(
            **{name: np.repeat(getattr(d, name), 2) for name in Decisions._fields[:6]}
        )


class ShrinksBoxes(Spoilt):
    def spoil(self, d: Decisions) -> Decisions:
        return d._replace(hi=d.lo.copy())


class LeavesSteps(Spoilt):
    def spoil(self, d: Decisions) -> Decisions:
        return d._replace(lo=d.lo - [1, 0, 0])


class Understates(Spoilt):
    def spoil(self, d: Decisions) -> Decisions:
        return d._replace(loss=d.loss / 2)


class ForgetsGaps(Spoilt):
    def spoil(self, d: Decisions) -> Decisions:
        return d._replace(gaps=np.zeros_like(d.gaps))


class MixesGaps(Spoilt):
    """Gaps as they were before the rows were shuffled."""

    def spoil(self, d: Decisions) -> Decisions:
        return d._replace(gaps=d.gaps[np.lexsort((d.rows, d.boxes))])


class LosesWhatWasMissing(Spoilt):
    """Says that each row loses what its box does."""

    def spoil(self, d: Decisions) -> Decisions:
        return d._replace(losses=np.where(d.boxes < 0, 1.0, np.append(d.loss, 1.0)[d.boxes]))


class ForgetsGapsOfBoxes(Spoilt):
    def spoil(self, d: Decisions) -> Decisions:
        return d._replace(box_gaps=np.zeros_like(d.box_gaps))


class FillsGaps(Spoilt):
    """Makes values up where nobody has one."""

    def spoil(self, d: Decisions) -> Decisions:
        empty = d.lo > d.hi
        return d._replace(lo=np.where(empty, 0.0, d.lo), hi=np.where(empty, 0.0, d.hi))


class EmptiesSides(Spoilt):
    def spoil(self, d: Decisions) -> Decisions:
        return d._replace(lo=np.full_like(d.lo, np.inf), hi=np.full_like(d.hi, -np.inf))


class TakesGapsForNothing(CastleEngine):
    """Doesn't widen a box to the whole domain where a value is missing."""

    def __init__(self, anonymizer: Castle, space: Space, seed: bytes) -> None:
        super().__init__(anonymizer, space, seed)
        self.space.missing = "maybe"


class Dawdles(CastleEngine):
    """Counts the delay from the batch before."""

    def __init__(self, anonymizer: Castle, space: Space, seed: bytes) -> None:
        super().__init__(anonymizer, space, seed)
        rows, seconds = space.deadlines
        later = space.deadlines._replace(rows=rows and rows + 1, seconds=seconds and seconds + 1)
        self._rules = self._rules._replace(deadlines=later)


class LiesAboutTime(Spoilt):
    def spoil(self, d: Decisions) -> Decisions:
        return d._replace(published=d.published - 1)


class ForgetsDeadlines(CastleEngine):
    next_deadline = None  # type: ignore[assignment]


class MindsBatches(CastleEngine):
    def push(self, codes: Codes) -> Decisions:
        decisions = super().push(codes)
        return decisions._replace(instants=decisions.instants + len(codes.subjects))


class ForgetsState(CastleEngine):
    def snapshot(self) -> dict[str, Any]:
        snapshot = super().snapshot()
        return snapshot | {"shuffling": np.zeros_like(snapshot["shuffling"])}


class SharesState(CastleEngine):
    def snapshot(self) -> dict[str, Any]:
        return super().snapshot() | {"marks": self.state.marks}


class HoldsObjects(CastleEngine):
    def snapshot(self) -> dict[str, Any]:
        return super().snapshot() | {"marks": np.array([None])}


class IgnoresSeed(CastleEngine):
    runs = 0

    def __init__(self, anonymizer: Castle, space: Space, seed: bytes) -> None:
        type(self).runs += 1
        super().__init__(anonymizer, space, seed + bytes([self.runs % 256]))


class ReadsSubjects(Spoilt):
    def push(self, codes: Codes) -> Decisions:
        order = int(codes.subjects.sum() % 7) if len(codes.subjects) else 0
        return super().push(codes)._replace(groups=np.full(1, order))


class SpoilsInputs(CastleEngine):
    def push(self, codes: Codes) -> Decisions:
        decisions = super().push(codes)
        codes.values[:] = -1.0
        return decisions


class RemembersInputs(CastleEngine):
    before: Codes | None = None

    def push(self, codes: Codes) -> Decisions:
        late = super().push(codes if self.before is None else codes._replace(
            values=np.where(self.before.values.sum() == 0, 0.0, codes.values)
        ))  # fmt: skip
        self.before = codes
        return late


class UsesBoxesAgain(Spoilt):
    room = np.zeros((0, 0))

    def spoil(self, d: Decisions) -> Decisions:
        if self.room.shape[1:] != d.lo.shape[1:]:
            self.room = np.zeros((1000, d.lo.shape[1]))
        lo = self.room[: len(d.lo)]
        lo[:] = d.lo
        return d._replace(lo=lo)


class Chatters(CastleEngine):
    def __repr__(self) -> str:
        return f"Chatters({self.state.held.rows['subject'].tolist()})"


class ShowsValues(CastleEngine):
    def __repr__(self) -> str:
        return f"ShowsValues({self.state.held.lo.ravel().tolist()})"


class TakesAnything(CastleEngine):
    def restore(self, snapshot: Any) -> None:
        """Whatever."""


class Grows(CastleEngine):
    def snapshot(self) -> dict[str, Any]:
        return super().snapshot() | {"all": np.zeros(self.state.held.marks["upcoming"][0])}


class KeepsOrder(Spoilt):
    def spoil(self, d: Decisions) -> Decisions:
        return d._replace(rows=d.rows[np.lexsort((d.rows, d.boxes))])


class Accepts(Castle):
    def check(self, policy: Policy) -> None:
        """Whatever."""


class WithoutDelay(Castle):
    def check(self, policy: Policy) -> None:
        super().check(Policy(*policy.criteria, delay=policy.delay or Delay(rows=1)))


@pytest.mark.parametrize(
    ("check", "engine", "says"),
    [
        (checks.check_promise, SplitsGroups, "breaks k-anonymity at its release"),
        (checks.check_promise, MiscountsSubjects, "says it has"),
        (checks.check_conservation, LosesRows, "are undecided and"),
        (checks.check_conservation, RepeatsRows, "decided twice"),
        (checks.check_cover, ShrinksBoxes, "doesn't cover|is no node"),
        (checks.check_cover, LeavesSteps, "off the step"),
        (checks.check_cover, Understates, "another loss"),
        (checks.check_delay, Dawdles, "held"),
        (checks.check_delay, LiesAboutTime, "wasn't decided at"),
        (checks.check_delay, ForgetsDeadlines, "next_deadline"),
        (checks.check_batching, MindsBatches, "'instants' depends"),
        (checks.check_resume, ForgetsState, "differs after resuming"),
        (checks.check_resume, SharesState, "changed when the engine continued"),
        (checks.check_resume, HoldsObjects, "holds objects"),
        (checks.check_seeded, IgnoresSeed, "two runs with one seed"),
        (checks.check_relabelled, ReadsSubjects, "depends on the codes"),
        (checks.check_inputs, SpoilsInputs, "changed 'values'"),
        (checks.check_inputs, RemembersInputs, "overwritten"),
        (checks.check_inputs, UsesBoxesAgain, "'lo' of former decisions changes"),
        (checks.check_canary, Chatters, "a subject or a sensitive value"),
        (checks.check_canary, ShowsValues, "a quasi value"),
        (checks.check_canary, TakesAnything, "snapshot of another"),
    ],
)
def test_a_check_catches(check: Check, engine: type[CastleEngine], says: str) -> None:
    stream = dataclasses.replace(steady_stream(Castle, 60, n_subjects=40), cuts=(7, 20, 33))
    check(Castle(), stream)
    with pytest.raises(AssertionError, match=says):
        check(faulty(engine), stream)


def test_a_group_that_isnt_like_its_window_is_caught() -> None:
    stream = hostile_streams(Castle)["sensitive values by place"]
    checks.check_promise(Castle(), stream)
    with pytest.raises(AssertionError, match="breaks t-closeness of illness at its release"):
        checks.check_promise(faulty(IgnoresMeasures), stream)


@pytest.mark.parametrize(
    ("name", "measured", "by", "says"),
    [
        ("castle", False, 5, "nothing is measured"),
        ("castle", True, 2, "hadn't come"),
        ("castle", True, -50, "ends before its rows"),
        ("castle", True, -4, "isn't measured against the latest|ends before its rows"),
        ("sabre-ak", True, -1, "against the whole table|ends before its rows"),
        ("sabre-w", True, -30, "ends before its rows"),
    ],
)
def test_a_window_that_cant_be_the_one_is_caught(
    name: str, measured: bool, by: int, says: str
) -> None:
    stream = steady_stream(find(name), 60, measured=measured)
    decided = play(find(name)(), stream)
    judge_groups(find(name)(), stream, decided)
    with pytest.raises(AssertionError, match=says):
        judge_groups(find(name)(), stream, decided._replace(windows=decided.windows + by))


def test_rows_from_before_their_window_are_caught() -> None:
    stream = steady_stream(find("sabre-w"), 60)
    decided = play(find("sabre-w")(), stream)
    late = np.where(decided.windows < 50, decided.windows + 8, decided.windows)
    unlikely = decided._replace(windows=late, published=np.full_like(decided.published, 60))
    with pytest.raises(AssertionError, match="from before its window"):
        judge_groups(find("sabre-w")(), stream, unlikely)


@pytest.mark.parametrize(
    ("check", "engine", "missing", "says"),
    [
        (checks.check_gaps, ForgetsGaps, "maybe", "other missing values than it has"),
        (checks.check_gaps, ForgetsGaps, "extended", "other missing values than it has"),
        (checks.check_gaps, MixesGaps, "maybe", "other missing values than it has"),
        (checks.check_gaps, LosesWhatWasMissing, "maybe", "loses something else"),
        (checks.check_gaps, LosesWhatWasMissing, "extended", "loses something else"),
        (checks.check_gaps, ForgetsGapsOfBoxes, "maybe", "doesn't know which values its rows lack"),
        (checks.check_cover, FillsGaps, "maybe", "shows what no row has"),
        (checks.check_cover, EmptiesSides, "maybe", "is empty, and has values"),
        (checks.check_cover, EmptiesSides, "extended", "ends before it begins"),
        (checks.check_cover, TakesGapsForNothing, "extended", "doesn't cover|ends before"),
        (checks.check_cover, Understates, "maybe", "another loss"),
    ],
)
def test_a_check_of_gaps_catches(
    check: Check, engine: type[CastleEngine], missing: str, says: str
) -> None:
    streams = [
        stream
        for name, stream in streams_with_gaps(Castle, 60).items()
        if name.endswith(missing) and not name.startswith("everything")
    ]
    assert len(streams) == 4
    caught = 0
    for stream in streams:
        check(Castle(), stream)
        try:
            check(faulty(engine), stream)
        except AssertionError as error:
            assert re.search(says, str(error)), str(error)
            caught += 1
    assert caught


def test_streams_have_the_gaps_that_their_names_say() -> None:
    streams = streams_with_gaps(Castle)
    assert {stream.policy.missing for stream in streams.values()} == {"maybe", "extended"}
    gaps = {name: np.isnan(stream.codes.values) for name, stream in streams.items()}
    assert gaps["everything missing, maybe"].all()
    assert gaps["one attribute always missing, maybe"].sum(axis=0).tolist() == [0, 40, 0]
    assert (~gaps["one complete row among gaps, maybe"].any(axis=1)).sum() == 1
    halves = ~gaps["two halves with disjoint gaps, maybe"]
    assert not (halves[:20].any(axis=0) & halves[20:].any(axis=0)).any()


class RefusesGaps(Castle):
    """Works where every value is there."""

    def check(self, policy: Policy) -> None:
        super().check(policy)
        if policy.missing != "quarantine":
            raise UnsupportedError(f"'{self.name}' needs every value")


def test_an_anonymizer_that_refuses_gaps_isnt_given_any() -> None:
    assert missing_modes(RefusesGaps) == ["quarantine"]
    assert streams_with_gaps(RefusesGaps) == {}
    run_check(checks.check_gaps, RefusesGaps, examples=10)


@pytest.mark.nightly
def test_all_meanings_of_missing_are_drawn() -> None:
    drawn: list[Stream] = []
    run_check(lambda _, stream: drawn.append(stream), Castle, examples=100)
    own = [stream for stream in drawn if stream.schema.quasi[0].name == "q0"]
    has_gaps = {(s.policy.missing, bool(np.isnan(s.codes.values).any())) for s in own}
    assert has_gaps == {
        ("quarantine", False), ("maybe", False), ("maybe", True), ("extended", False),
        ("extended", True),
    }  # fmt: skip


def _drawn(name: str, examples: int) -> list[Stream]:
    found: list[Stream] = []
    run_check(lambda _, stream: found.append(stream), find(name), examples=examples)
    return [stream for stream in found if stream.schema.quasi[0].name == "q0"]


@pytest.mark.nightly
def test_all_that_is_measured_is_drawn() -> None:
    domains = [None, Range(1, 9), Hierarchy.flat(["a", "b"])]
    sensitive = [Sensitive(f"s{j}", domain) for j, domain in enumerate(domains)]
    schema = Schema("p", [Quasi("x", Range(0, 1))], sensitive)
    drawn: list[Policy] = []

    @settings(max_examples=200, derandomize=True, database=None)
    @given(strategies.policies(Castle, schema, n_subjects=6, n_rows=20, timed=True))
    def draw(policy: Policy) -> None:
        Castle().start(schema, policy)
        drawn.append(policy)

    draw()
    kinds = {type(criterion) for policy in drawn for criterion in policy.measured}
    assert kinds == {*criteria(Measured)}
    assert {(bool(policy.measured), policy.k > 1) for policy in drawn} >= {
        (True, True), (True, False), (False, True),
    }  # fmt: skip
    for policy in drawn:
        assert (policy.window is None) == (not policy.measured)


@pytest.mark.parametrize("name", ["sabre-knn", "burel"])
def test_a_table_is_drawn_as_one(name: str) -> None:
    drawn = _drawn(name, 30)
    assert {(stream.policy.window, stream.policy.delay) for stream in drawn} == {("all", None)}
    assert any(stream.policy.measured for stream in drawn)


@pytest.mark.parametrize("name", ["sabre-w", "burel-w"])
def test_windows_that_advance_are_drawn_for_who_publishes_by_them(name: str) -> None:
    drawn = _drawn(name, 30)
    assert len(drawn) == 30
    for stream in drawn:
        assert isinstance(stream.policy.window, Window)
        assert stream.policy.window.advance
        assert stream.policy.measured
    assert {stream.policy.delay is None for stream in drawn} == {True, False}


class AcceptsAnyWindow(SabreAk):
    def _check_window(self, policy: Policy) -> None:
        """Whatever."""


class AcceptsAnyAdvance(SabreW):
    def _check_window(self, policy: Policy) -> None:
        if policy.window == "all":
            super()._check_window(policy)


@pytest.mark.parametrize(
    ("check", "anonymizer", "says"),
    [
        (checks.check_memory, faulty(Grows), "bytes"),
        (checks.check_order, faulty(KeepsOrder), "chance would have it"),
        (checks.check_refuses, Accepts(), "starts with"),
        (checks.check_refuses, WithoutDelay(), "starts with"),
        (checks.check_refuses, AcceptsAnyWindow(), "starts with"),
        (checks.check_refuses, AcceptsAnyAdvance(), "starts with"),
    ],
)
def test_a_fixed_check_catches(check: FixedCheck, anonymizer: Anonymizer, says: str) -> None:
    with pytest.raises(AssertionError, match=says):
        check(anonymizer)


def test_the_jit_check_compares_two_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    def other(*args: Any, **kwargs: Any) -> subprocess.CompletedProcess[bytes]:
        assert kwargs["env"]["NUMBA_DISABLE_JIT"] in "01"
        return subprocess.CompletedProcess(args, 0, stdout=b"another\ndigest\n")

    monkeypatch.setattr(subprocess, "run", other)
    with pytest.raises(AssertionError, match="decide differently"):
        checks.check_jit_equals_python(Castle())


@pytest.mark.nightly
def test_run_check_draws_streams_beside_the_hostile_ones() -> None:
    def refuses_drawn_ones(_: Anonymizer, stream: Stream) -> None:
        if stream.schema.quasi[0].name == "q0" and len(stream):
            raise AssertionError("caught")

    with pytest.raises(AssertionError, match="caught"):
        run_check(refuses_drawn_ones, Castle)


def test_check_anonymizer_runs_every_check(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    monkeypatch.setattr(checks, "run_check", lambda check, *_, **__: ran.append(check.__name__))
    monkeypatch.setattr(checks, "FIXED_CHECKS", (lambda _: ran.append("fixed"),))
    check_anonymizer(Castle)
    assert ran == [check.__name__ for check in CHECKS] + ["fixed"]


def test_restoring_a_foreign_snapshot_is_refused() -> None:
    engine = steady_stream(Castle, 0).start(Castle())
    with pytest.raises(CheckpointError, match="1 of its arrays"):
        engine.restore(engine.snapshot() | {"foreign": np.zeros(1)})
    with pytest.raises(CheckpointError, match="1 of its arrays"):
        engine.restore(engine.snapshot() | {"held.rows": np.zeros(256, [("subject", "i8")])})


def test_knobs_that_a_class_refuses_are_not_drawn() -> None:
    drawn: list[Castle] = []
    run_check(lambda anonymizer, _: drawn.append(anonymizer), Castle, examples=60)  # type: ignore[arg-type]
    assert {anonymizer.clusters for anonymizer in drawn} >= {1, 2, 5, 50}
    assert {anonymizer.reuse for anonymizer in drawn} == {"random", "best"}
    assert 0 in {anonymizer.kept for anonymizer in drawn}
    with pytest.raises(ParameterError):
        Castle(clusters=0)


def test_a_drawn_knob_that_a_drawn_stream_cannot_have_is_drawn_again() -> None:
    """Instants in seconds need rows with a time: that they are refused without is no failure."""
    asked: list[tuple[float, bool]] = []

    def check_noted(anonymizer: Anonymizer, stream: Stream) -> None:
        delay = stream.policy.delay
        assert delay is not None
        asked.append((anonymizer.instant, delay.seconds is not None))  # type: ignore[attr-defined]

    run_check(check_noted, find("tree-basic"), examples=60)
    assert any(instant > 0.0 for instant, _ in asked)
    assert all(in_seconds for instant, in_seconds in asked if instant > 0.0)
