"""Each check catches an engine that publishes values one by one and breaks it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shoal.algorithms.z_anonymity import ZAnonymizer
from shoal.engine.base import Codes, Decisions, Engine
from shoal.engine.space import Space
from shoal.engine.z.climbing import CountingRule, rebuild
from shoal.engine.z.exposures import SHOWN
from shoal.engine.z.ladders import LadderEngine
from shoal.spec.ladder import Grid, Open, Path
from shoal.testing import checks
from shoal.testing.checks import Check, run_check
from shoal.testing.hostile import hostile_streams
from shoal.testing.streams import Stream
from shoal.testing.z.hostile import flood


class Faulty(ZAnonymizer):
    """z-anonymity with an engine that is spoilt on purpose."""

    engine: type[LadderEngine] = LadderEngine

    def _start(self, space: Space, seed: bytes) -> Engine:
        whole: Any = super()._start(space, seed)
        return self.engine(space, whole._knobs, seed)


def faulty(engine: type[LadderEngine], **knobs: Any) -> Faulty:
    kind = type("Faulty", (Faulty,), {"engine": engine})
    return kind(**knobs)  # type: ignore[no-any-return]


class Spoilt(LadderEngine):
    """Changes every decision before anybody sees it."""

    def spoil(self, d: Decisions) -> Decisions:
        return d

    def push(self, codes: Codes) -> Decisions:
        return self.spoil(super().push(codes))


class PublishesAll(Spoilt):
    def spoil(self, d: Decisions) -> Decisions:
        return d._replace(levels=np.where(d.levels == -1, 0, d.levels))


class InventsCells(Spoilt):
    def spoil(self, d: Decisions) -> Decisions:
        return d._replace(levels=np.where(d.levels == -2, 0, d.levels))


class LeavesLadders(Spoilt):
    def spoil(self, d: Decisions) -> Decisions:
        return d._replace(levels=np.where(d.levels >= 0, d.levels + 9, d.levels))


class Miscounts(Spoilt):
    def spoil(self, d: Decisions) -> Decisions:
        return d._replace(n_behind=np.where(d.n_behind, d.n_behind + 1, 0))


class CountsTheHidden(Spoilt):
    def spoil(self, d: Decisions) -> Decisions:
        return d._replace(n_behind=np.maximum(d.n_behind, 1))


class CountsPlainly(LadderEngine):
    """Does what the knob says is safer in the way of the peer."""

    def __init__(self, space: Space, course: Any, seed: bytes) -> None:
        super().__init__(space, course._replace(plain=True), seed)


class ForgetsWhatWasShown(LadderEngine):
    """Lets those hide others of whom everybody knows where they are."""

    def push(self, codes: Codes) -> Decisions:
        d = super().push(codes)
        self.state.table.entries[:, SHOWN] = 0
        rebuild(self.state.table, CountingRule(int(d.z[-1]) if len(d.z) else 3, False))
        return d


class MovesZ(Spoilt):
    def spoil(self, d: Decisions) -> Decisions:
        return d._replace(z=d.z - 1)


class Generalizes(Spoilt):
    """Hides what may be published."""

    def spoil(self, d: Decisions) -> Decisions:
        hidden = np.where(d.levels >= 0, -1, d.levels)
        return d._replace(levels=hidden, n_behind=np.zeros_like(d.n_behind))


class Understates(Spoilt):
    def spoil(self, d: Decisions) -> Decisions:
        return d._replace(losses=d.losses / 2)


class ForgetsGaps(Spoilt):
    def spoil(self, d: Decisions) -> Decisions:
        return d._replace(levels=np.maximum(d.levels, -1))


class Suppresses(Spoilt):
    def spoil(self, d: Decisions) -> Decisions:
        return d._replace(outcomes=np.full_like(d.outcomes, 2))


class Publishes(Spoilt):
    def spoil(self, d: Decisions) -> Decisions:
        return d._replace(outcomes=np.zeros_like(d.outcomes))


class LosesRows(Spoilt):
    def spoil(self, d: Decisions) -> Decisions:
        per_row = (*Decisions._fields[:8], "levels", "n_behind", "z")
        return d._replace(**{name: getattr(d, name)[:-1] for name in per_row})


class Reorders(Spoilt):
    def spoil(self, d: Decisions) -> Decisions:
        return d._replace(rows=d.rows[::-1].copy())


class Dawdles(Spoilt):
    def spoil(self, d: Decisions) -> Decisions:
        return d._replace(published=d.published + 1)


class LiesAboutTime(Spoilt):
    def spoil(self, d: Decisions) -> Decisions:
        return d._replace(published_s=d.published_s - 1)


class Holds(LadderEngine):
    n_held = 1  # type: ignore[assignment]


class HasDeadlines(LadderEngine):
    next_deadline = 5.0  # type: ignore[assignment]


class MindsBatches(Spoilt):
    def push(self, codes: Codes) -> Decisions:
        d = super().push(codes)
        return d._replace(n_behind=d.n_behind + len(codes.subjects))


class ForgetsState(LadderEngine):
    def snapshot(self) -> dict[str, Any]:
        return super().snapshot() | {"place": np.zeros_like(self.state.place)}


class ReadsKeys(Spoilt):
    def push(self, codes: Codes) -> Decisions:
        d = super().push(codes)
        return d._replace(z=d.z + codes.keys[:, 0] % 2)


class SpoilsInputs(LadderEngine):
    def push(self, codes: Codes) -> Decisions:
        d = super().push(codes)
        codes.keys[:] = 1
        return d


class Chatters(LadderEngine):
    def __repr__(self) -> str:
        return f"Chatters({self.state.table.entries.tolist()})"


class ShowsKeys(LadderEngine):
    def __repr__(self) -> str:
        return f"ShowsKeys({self.state.table.nodes.tolist()})"


class DecidesKeys(Spoilt):
    def push(self, codes: Codes) -> Decisions:
        return super().push(codes)._replace(instants=codes.keys.max(axis=1, initial=0))


GAPPY = "gaps that alternate, window in seconds"
STAYS = "one who was shown and stays, window in seconds"
RARE = "rare values beside a popular one, window in rows"
LATE = "times that go back, window in seconds"


@pytest.mark.parametrize(
    ("check", "engine", "name", "says"),
    [
        (checks.check_promise, PublishesAll, RARE, r"published with \d subjects behind it"),
        (checks.check_promise, InventsCells, GAPPY, "is published, and is missing"),
        (checks.check_promise, LeavesLadders, RARE, "a level that its ladder lacks"),
        (checks.check_promise, Miscounts, RARE, "says that 4 subjects stand behind it, and 3 do"),
        (checks.check_promise, CountsTheHidden, RARE, "1 subjects stand behind"),
        (checks.check_promise, CountsPlainly, RARE, r"says that \d subjects stand behind it"),
        (checks.check_promise, MovesZ, RARE, "another z than the one in force"),
        (checks.check_seeded, PublishesAll, RARE, r"published with \d subjects behind it"),
        (checks.check_cover, Generalizes, RARE, "isn't published at the finest level"),
        (checks.check_cover, ForgetsWhatWasShown, STAYS, "isn't published at the finest level"),
        (checks.check_cover, Understates, RARE, "loses something else"),
        (checks.check_gaps, ForgetsGaps, GAPPY, "other missing values than it has"),
        (checks.check_conservation, Suppresses, RARE, "suppressed with a cell"),
        (checks.check_conservation, Publishes, RARE, "published without a cell"),
        (checks.check_conservation, LosesRows, RARE, "are undecided and"),
        (checks.check_delay, Reorders, RARE, "aren't decided at once and in order"),
        (checks.check_delay, LosesRows, RARE, "aren't decided at once and in order"),
        (checks.check_delay, Dawdles, RARE, "isn't published when it comes"),
        (checks.check_delay, LiesAboutTime, LATE, "at the latest time seen"),
        (checks.check_delay, Holds, RARE, "1 rows are held"),
        (checks.check_delay, HasDeadlines, RARE, "has a deadline"),
        (checks.check_batching, MindsBatches, RARE, "'n_behind' depends"),
        (checks.check_resume, ForgetsState, RARE, "differs after resuming"),
        (checks.check_relabelled, ReadsKeys, RARE, "depends on the codes"),
        (checks.check_inputs, SpoilsInputs, RARE, "changed 'keys'"),
        (checks.check_canary, Chatters, RARE, "a subject or a sensitive value shows"),
        (checks.check_canary, ShowsKeys, RARE, "a key shows in a repr"),
        (checks.check_canary, DecidesKeys, RARE, "a key shows in decisions"),
    ],
)
def test_a_check_catches(check: Check, engine: type[LadderEngine], name: str, says: str) -> None:
    stream = hostile_streams(ZAnonymizer)[name]
    check(ZAnonymizer(), stream)
    with pytest.raises(AssertionError, match=says):
        check(faulty(engine), stream)


class LiesInEstimates(Spoilt):
    field, by = "share", 0.5

    def spoil(self, d: Decisions) -> Decisions:
        estimates = d.estimates.copy()
        estimates[self.field] += self.by
        return d._replace(estimates=estimates)


@pytest.mark.parametrize(
    ("field", "by", "says"),
    [
        ("share", -2.0, "another share"),
        ("entropy", 0.1, "another entropy"),
        ("n_subjects", 1, "another n_subjects"),
        ("before", 1, "another z before"),
        ("z", -9, "below the policy's"),
        ("time", 1.0, "another time"),
    ],
)
def test_an_estimate_that_isnt_true_is_caught(field: str, by: float, says: str) -> None:
    stream = hostile_streams(ZAnonymizer)["rare values beside a popular one, window in seconds"]
    checks.check_promise(ZAnonymizer(probability=0.9), stream)
    lies = type("Lies", (LiesInEstimates,), {"field": field, "by": by})
    with pytest.raises(AssertionError, match=says):
        checks.check_promise(faulty(lies, probability=0.9), stream)


def test_two_estimates_before_one_row_are_caught() -> None:
    class Repeats(Spoilt):
        def spoil(self, d: Decisions) -> Decisions:
            return d._replace(estimates=np.repeat(d.estimates, 2))

    stream = hostile_streams(ZAnonymizer)[RARE]
    with pytest.raises(AssertionError, match="two estimates before row"):
        checks.check_promise(faulty(Repeats), stream)


class Grows(LadderEngine):
    def snapshot(self) -> dict[str, Any]:
        return super().snapshot() | {"all": np.zeros(50 * self.state.place["upcoming"][0])}


class NeverShrinks(LadderEngine):
    def _give_room_back(self) -> None:
        """Keep it."""


@pytest.mark.parametrize("engine", [Grows, NeverShrinks])
def test_memory_that_isnt_given_back_is_caught(engine: type[LadderEngine]) -> None:
    with pytest.raises(AssertionError, match="bytes"):
        checks.check_memory(faulty(engine))


def test_one_that_accepts_what_it_doesnt_know_is_caught() -> None:
    class Accepts(ZAnonymizer):
        missing = ("quarantine", "extended", "maybe")

    with pytest.raises(AssertionError, match="starts with"):
        checks.check_refuses(Accepts())


def test_what_counts_as_the_peer_does_is_judged_so() -> None:
    stream = hostile_streams(ZAnonymizer)[RARE]
    checks.check_promise(ZAnonymizer(count="plain"), stream)
    checks.check_cover(ZAnonymizer(count="plain"), stream)


def test_a_flood_is_one_window() -> None:
    stream, quiet = flood(ZAnonymizer, 50, 10)
    times = stream.codes.times
    assert times[quiet - 1] - times[0] < 10.0
    assert (np.diff(times[quiet:]) >= 10.0).all()
    assert len(np.unique(stream.codes.keys[:, 0])) == len(stream)


def test_every_kind_of_ladder_window_and_gap_is_drawn() -> None:
    drawn: list[tuple[ZAnonymizer, Stream]] = []
    run_check(lambda one, stream: drawn.append((one, stream)), ZAnonymizer, examples=80)  # type: ignore[arg-type]
    drawn = [(one, stream) for one, stream in drawn if stream.schema.quasi[0].name == "q0"]
    streams = [stream for _, stream in drawn]
    kinds = {type(quasi.domain).__name__ for stream in streams for quasi in stream.schema.quasi}
    assert kinds == {"Open", "Path", "Grid", "Hierarchy", "Range"}
    windows: list[Any] = [stream.policy.window for stream in streams]
    assert {window.seconds is None for window in windows} == {True, False}
    gaps = {(s.policy.missing, bool((s.codes.keys == 0).any())) for s in streams}
    assert gaps == {("quarantine", False), ("maybe", False), ("maybe", True)}
    assert {anonymizer.count for anonymizer, _ in drawn} == {"residual", "plain"}
    assert {anonymizer.probability for anonymizer, _ in drawn} == {0.0, 0.6, 1.0}
    assert any((np.diff(stream.codes.times) < 0).any() for stream in streams)


def test_hostile_streams_have_ladders_of_each_kind() -> None:
    streams = hostile_streams(ZAnonymizer).values()
    kinds = {type(quasi.domain) for stream in streams for quasi in stream.schema.quasi}
    assert kinds > {Open, Path}
    assert Grid not in kinds
    assert {stream.policy.missing for stream in streams} == {"quarantine", "maybe"}
