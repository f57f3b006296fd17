"""z-anonymity's anonymizer and engines: the paper's story, windows, memory, and refusals."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from shoal import Delay, KAnonymity, Policy, Quasi, Range, Schema, Sensitive, Window
from shoal.algorithms.z_anonymity import ZAnonymizer
from shoal.engine.base import Decisions
from shoal.engine.space import Codes
from shoal.errors import JobError, ParameterError, UnsupportedError
from shoal.spec.criteria import ZAnonymity
from shoal.spec.ladder import AnyDomain, Open, Path
from shoal.testing.streams import Stream, play
from shoal.testing.z.checks import judge_cells
from shoal.testing.z.codes import Value, cell_codes
from shoal.testing.z.definitions import ExposureHistory, alike, path

HIDDEN, MISSING = -1, -2
#: A row: its time, its subject, and its values.
Row = tuple[float, int, *tuple[Value, ...]]
PLACE = Path("*", levels=2)
#: One engine for values that have ladders, one for those that haven't.
LADDERS: list[AnyDomain] = [PLACE, Open()]


def stream_of(
    rows: Sequence[Row], z: int, window: Window, *domains: AnyDomain, missing: Any = "maybe"
) -> Stream:
    quasi = [Quasi(f"q{d}", domain) for d, domain in enumerate(domains)]
    schema = Schema("person", quasi, time="at")
    codes = cell_codes(
        schema,
        [values for _, _, *values in rows],
        np.array([subject for _, subject, *_ in rows], np.int64),
        np.array([time for time, *_ in rows], float),
    )
    return Stream(schema, Policy(ZAnonymity(z), window=window, missing=missing), codes)


def decided(
    rows: Sequence[Row], z: int, window: Window, *domains: AnyDomain, **knobs: Any
) -> Decisions:
    return play(ZAnonymizer(**knobs), stream_of(rows, z, window, *domains))


def levels(rows: Sequence[Row], z: int, window: Window, domain: AnyDomain = PLACE) -> list[int]:
    found: list[int] = decided(rows, z, window, domain).levels[:, 0].tolist()
    return found


def numbered(*events: tuple[int, Value]) -> list[Row]:
    return [(float(time), *event) for time, event in enumerate(events)]


def drawn(seed: int, n: int, n_subjects: int, *, gaps: float = 0.0) -> list[Row]:
    """Rows with a path and a value without a ladder, some popular, some late."""
    draw = random.Random(seed)
    rows: list[Row] = []
    now = 0.0
    for _ in range(n):
        now += draw.choice([0.0, 0.5, 1.0])
        late = draw.choice([0.0, 0.0, 0.0, 4.0])
        place: Value = f"{draw.choice('aab')}*{draw.choice('ppppqrst')}"
        shop: Value = draw.choice("xxyz")
        values = [None if draw.random() < gaps else value for value in (place, shop)]
        rows.append((now - late, draw.randrange(n_subjects), *values))
    return rows


# -- the anonymizer ------------------------------------------------------------------------------


def test_it_says_what_its_knobs_are() -> None:
    anonymizer = ZAnonymizer(probability=0.9, k=3)
    assert repr(anonymizer).startswith("ZAnonymizer(")
    assert "count='residual', probability=0.9, k=3" in repr(anonymizer)
    assert anonymizer == eval(repr(anonymizer))


@pytest.mark.parametrize(
    ("knobs", "says"),
    [
        ({"count": "exposed"}, "count: must be one of residual, plain; got 'exposed'"),
        ({"k": 1}, "k: must be a whole number of at least 2; got 1"),
        ({"k": 2.0}, "k: must be a whole number"),
        ({"estimates": -1}, "estimates: must be a whole number of at least 0; got -1"),
        (
            {"estimates": 0, "probability": 0.5},
            "estimates: must be at least 1, since z follows them",
        ),
        ({"estimates": 1001}, "estimates: must be at most 1,000; got 1001"),
        ({"probability": 1.1}, "probability: must be a number from 0 to 1; got 1.1"),
        ({"probability": -0.1}, "probability: must be a number from 0 to 1"),
        ({"probability": float("nan")}, "probability: must be a number from 0 to 1"),
        ({"probability": True}, "probability: must be a number from 0 to 1; got True"),
        ({"probability": 0.5, "count": "plain"}, 'goes with count = "residual" only'),
    ],
)
def test_knobs_that_are_refused(knobs: dict[str, Any], says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        ZAnonymizer(**knobs)


@pytest.mark.parametrize(
    ("policy", "says"),
    [
        (Policy(KAnonymity(3), delay=Delay(rows=9)), "'z-anonymity' can't enforce k-anonymity"),
        (
            Policy(ZAnonymity(3), window=Window(rows=9), missing="extended"),
            'doesn\'t know missing values that are "extended"',
        ),
    ],
)
def test_policies_that_are_refused(policy: Policy, says: str) -> None:
    with pytest.raises(UnsupportedError, match=says):
        ZAnonymizer().start(Schema("person", [Quasi("x", Open())]), policy)


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        (Schema("person", [Quasi("x", Open())]), "policy.window.seconds: needs rows"),
        (Schema("person", [Quasi("x", Range(0, 9))], time="at"), "schema.quasi.x: needs a step"),
        (Schema("p", [Quasi("x", Open(), 2.0)], time="at"), "weight: isn't used"),
        (Schema(None, [Quasi("x", Open())], time="at"), "schema.subject: is missing"),
        (
            Schema("person", [Quasi("x", Open())], [Sensitive("s")], time="at"),
            "schema.sensitive.s: can't be protected",
        ),
    ],
)
def test_schemas_that_are_refused(schema: Schema, says: str) -> None:
    with pytest.raises(JobError, match=says):
        ZAnonymizer().start(schema, Policy(ZAnonymity(3), window=Window(seconds=9)))


@pytest.mark.parametrize("domain", LADDERS)
def test_inputs_that_are_refused(domain: AnyDomain) -> None:
    rows: list[Row] = [(0.0, 424_242, "a*b")]
    stream = stream_of(rows, 2, Window(seconds=5), domain, missing="quarantine")
    engine, codes = stream.start(ZAnonymizer()), stream.codes
    for bad, says in (
        (codes._replace(keys=codes.keys[:, :0]), "must have a key for each level"),
        (codes._replace(keys=np.zeros_like(codes.keys)), "1 that are missing"),
        (codes._replace(times=np.array([np.nan])), "must be finite.*1 that aren't"),
    ):
        with pytest.raises(ParameterError, match=says) as refusal:
            engine.push(bad)
        assert "424242" not in str(refusal.value)
    with pytest.raises(ParameterError, match="finite number of seconds"):
        engine.advance(np.inf)
    assert engine.push(codes).levels.tolist() == [[HIDDEN]]


# -- the paper's story ---------------------------------------------------------------------------


@pytest.mark.parametrize("domain", LADDERS)
def test_figure_1(domain: AnyDomain) -> None:
    """z = 3 and a window of 10: only the third user's event is released, at t3."""
    rows: list[Row] = [(0.0, 0, "a"), (2.0, 1, "a"), (5.0, 0, "a"), (8.0, 2, "a"), (16.0, 3, "a")]
    done = decided(rows, 3, Window(seconds=10), domain)
    assert done.levels[:, 0].tolist() == [HIDDEN, HIDDEN, HIDDEN, 0, HIDDEN]
    assert done.n_behind[:, 0].tolist() == [0, 0, 0, 3, 0]
    assert done.outcomes.tolist() == [2, 2, 2, 0, 2]
    assert done.published.tolist() == [0, 1, 2, 3, 4]
    assert done.losses.tolist() == [1, 1, 1, 0, 1]


@pytest.mark.parametrize("domain", LADDERS)
@pytest.mark.parametrize(("now", "level"), [(10.0, 0), (10.5, HIDDEN)])
def test_what_is_exactly_as_old_as_the_window_is_in(
    domain: AnyDomain, now: float, level: int
) -> None:
    rows: list[Row] = [(0.0, 1, "x"), (now, 2, "x")]
    assert levels(rows, 2, Window(seconds=10), domain) == [HIDDEN, level]


@pytest.mark.parametrize("domain", LADDERS)
def test_a_late_row_is_of_the_latest_time(domain: AnyDomain) -> None:
    """It neither turns the clock back nor leaves the window before the others do."""
    rows: list[Row] = [(0.0, 1, "x"), (20.0, 2, "y"), (1.0, 3, "x"), (29.0, 4, "x")]
    done = decided(rows, 2, Window(seconds=10), domain)
    assert done.levels[:, 0].tolist() == [HIDDEN, HIDDEN, HIDDEN, 0]
    assert done.published_s.tolist() == [0.0, 20.0, 20.0, 29.0]


# -- what a parent stands for --------------------------------------------------------------------


def test_a_parent_doesnt_betray_the_rare_child() -> None:
    rows = numbered((1, "it*turin"), (2, "it*turin"), (3, "it*turin"), (4, "it*aosta"))
    assert levels(rows, 3, Window(rows=10)) == [HIDDEN, HIDDEN, 0, HIDDEN]
    plain = decided(rows, 3, Window(rows=10), PLACE, count="plain")
    assert plain.levels[:, 0].tolist() == [HIDDEN, HIDDEN, 0, 1]


@pytest.mark.parametrize(
    ("seconds", "rows", "expected"),
    [
        # Turin has been shown, and lacks one.
        (10, [(0, 1, 0), (5, 2, 0), (6, 3, 0), (7, 2, 0), (11, 4, 1), (12, 5, 0)], [0, 0, -1, 0]),
        # A third in Turin would be published there.
        (20, [(5, 2, 0), (6, 3, 0), (11, 4, 1), (12, 5, 0)], [-1, -1, -1, 0]),
        # One in Turin, who was published so; one in Asti; one in Aosta, who isn't one of three.
        (10, [(0, 1, 0), (0, 2, 0), (5, 3, 0), (6, 4, 2), (11, 5, 1)], [-1, 0, -1, -1]),
        (10, [(5, 3, 0), (6, 4, 2), (11, 5, 1)], [-1, -1, 1]),
    ],
)
def test_who_could_be_distinguished_stands_behind_no_parent(
    seconds: float, rows: list[tuple[float, int, int]], expected: list[int]
) -> None:
    towns = ["it*turin", "it*aosta", "it*asti"]
    story: list[Row] = [(float(time), who, towns[town]) for time, who, town in rows]
    assert levels(story, 3, Window(seconds=seconds))[-len(expected) :] == expected


@pytest.mark.parametrize("seed", range(4))
def test_a_published_parent_stands_for_two_children_that_cant_be(seed: int) -> None:
    stream = stream_of(drawn(seed, 200, 12), 3, Window(rows=25), PLACE, Open())
    done, windows = play(ZAnonymizer(), stream), ExposureHistory(stream)
    published = dict(enumerate(done.levels.tolist()))
    n_parents = 0
    for row, level in enumerate(done.levels[:, 0].tolist()):
        if level != 1:
            continue
        n_parents += 1
        leaves = windows.leaves(row, included=False)
        keys = windows.cells[row][0]
        assert keys is not None
        parent = path((0, keys))[1]
        shown = windows.shown(row, published)
        rare = [leaf for leaf in leaves if path(leaf)[1:] == [parent] and len(leaves[leaf]) < 2]
        hiding = [leaves[leaf] - shown.get(leaf, set()) for leaf in rare]
        assert sum(map(bool, hiding)) >= 2
        assert len({windows.subjects[row]}.union(*hiding)) == done.n_behind[row, 0] >= 3
    assert n_parents > 5


# -- subjects, keys, attributes -------------------------------------------------------------------


@pytest.mark.parametrize("domain", LADDERS)
def test_the_largest_and_smallest_subjects_and_keys(domain: AnyDomain) -> None:
    extremes = [-(2**63), 2**63 - 1, 0, -1, 1]
    rows = numbered(*[(subject, value) for value in "xy" for subject in extremes])
    stream = stream_of(rows, 5, Window(rows=10), domain)
    width = stream.codes.keys.shape[1]
    keys = np.array([[2**63 - 1, -(2**63)], [-1, 1]])[:, :width]
    codes = stream.codes._replace(keys=np.repeat(keys, 5, axis=0))
    done = stream.start(ZAnonymizer()).push(codes)
    assert done.n_behind[:, 0].tolist()[4::5] == [5, 5]
    assert (done.levels[:, 0] >= 0).tolist()[4::5] == [True, True]
    assert done.levels[:4, 0].tolist() == [HIDDEN] * 4


@pytest.mark.parametrize("domain", LADDERS)
def test_z_above_the_number_of_subjects_hides_everything(domain: AnyDomain) -> None:
    rows = numbered(*[(subject % 50, f"a*{subject % 3}") for subject in range(200)])
    done = decided(rows, 51, Window(rows=200), domain)
    assert set(done.levels[:, 0].tolist()) == {HIDDEN}
    assert set(done.outcomes.tolist()) == {2}
    huge = decided(rows[:5], 10**9, Window(rows=200), domain)
    assert set(huge.levels[:, 0].tolist()) == {HIDDEN}


def test_attributes_are_decided_by_themselves_and_gaps_expose_nothing() -> None:
    rows: list[Row] = [
        (0.0, 1, "p*q", "x"), (1.0, 2, "p*r", "x"), (2.0, 3, "p*s", None), (3.0, 4, None, "x"),
        (4.0, 5, None, None), (5.0, 6, "p*t", "y"),
    ]  # fmt: skip
    done = decided(rows, 3, Window(rows=10), PLACE, Open())
    assert done.levels.tolist() == [
        [HIDDEN, HIDDEN], [HIDDEN, HIDDEN], [1, MISSING], [MISSING, 0], [MISSING, MISSING],
        [1, HIDDEN],
    ]  # fmt: skip
    assert done.n_behind.tolist() == [[0, 0], [0, 0], [3, 0], [0, 3], [0, 0], [4, 0]]
    assert done.losses.tolist() == [1.0, 1.0, 0.5, 0.0, 1.0, 0.75]
    assert done.outcomes.tolist() == [2, 2, 0, 0, 2, 0]


@pytest.mark.parametrize("domains", [(PLACE, Open()), (Open(), Open())])
@pytest.mark.parametrize("window", [Window(rows=30), Window(seconds=15)])
def test_a_longer_stream_with_gaps_is_judged(
    domains: tuple[AnyDomain, ...], window: Window
) -> None:
    stream = stream_of(drawn(5, 250, 15, gaps=0.2), 4, window, *domains)
    for knobs in ({}, {"probability": 0.8, "estimates": 3}, {"count": "plain"}):
        anonymizer = ZAnonymizer(**knobs)
        judge_cells(anonymizer, stream, play(anonymizer, stream))


# -- a z that follows the stream -------------------------------------------------------------------


@pytest.mark.parametrize("domains", [(PLACE, Open()), (Open(), Open())])
@pytest.mark.parametrize("probability", [0.3, 0.7, 1.0])
def test_z_is_moved_as_far_as_is_needed_and_never_below_the_policys(
    domains: tuple[AnyDomain, ...], probability: float
) -> None:
    stream = stream_of(drawn(8, 300, 15), 3, Window(rows=40), *domains)
    done, windows = (
        play(ZAnonymizer(probability=probability, estimates=4), stream),
        ExposureHistory(stream),
    )
    assert len(done.estimates) == 26  # of 300 rows the first 40 fill the window, then every tenth
    assert done.z.min() >= 3
    assert done.z[:40].tolist() == [3] * 40
    published = dict(enumerate(done.levels.tolist()))
    for estimate in done.estimates:
        leaves = windows.leaves(int(estimate["row"]), included=False)
        shown = windows.shown(int(estimate["row"]), published)
        z, n = int(estimate["z"]), int(estimate["n_subjects"])
        assert done.z[estimate["row"]] == z
        assert estimate["share"] >= probability or z == n + 1
        if z > 3:
            assert alike(leaves, 3, 2, shown).share < probability
            assert alike(leaves, z - 1, 2, shown).share < probability
    assert done.z.max() > 3


def test_z_comes_down_again() -> None:
    """People who show different things, then people who show the same."""
    rows: list[Row] = [
        (float(i), i % 8, "ab"[i % 8 // 4 % 2] + "*" + "xy"[i % 2]) for i in range(80)
    ]
    rows += [(80.0 + i, i % 8, "a*x") for i in range(80)]
    done = decided(rows, 2, Window(rows=16), PLACE, probability=1.0, k=3)
    assert done.z.max() > 2
    assert done.z[-1] == 2
    moved = [(int(e["before"]), int(e["z"])) for e in done.estimates if e["before"] != e["z"]]
    assert moved[0][1] > moved[0][0]
    assert moved[-1][1] == 2


# -- memory, and going on --------------------------------------------------------------------------


def n_bytes(engine: Any) -> int:
    return sum(array.nbytes for array in engine.snapshot().values())


def of_new_values(begin: int, n: int, apart: float, *domains: AnyDomain) -> Codes:
    rows: list[Row] = [
        (begin + apart * i, begin + i, *[f"{(begin + i) // 4}*{begin + i}"] * len(domains))
        for i in range(n)
    ]
    return stream_of(rows, 3, Window(seconds=10), *domains).codes


@pytest.mark.parametrize("domain", LADDERS)
@pytest.mark.parametrize("probability", [0.0, 0.9])
def test_memory_follows_the_window_and_not_the_stream(
    domain: AnyDomain, probability: float
) -> None:
    schema = Schema("person", [Quasi("q0", domain)], time="at")
    policy = Policy(ZAnonymity(3), window=Window(seconds=10))
    engine: Any = ZAnonymizer(probability=probability).start(schema, policy, seed=b"")
    fresh = n_bytes(engine)
    steady = []
    for begin in range(0, 600, 20):
        engine.push(of_new_values(begin, 20, 1.0, domain))
        assert engine.n_exposures <= 11
        steady.append(n_bytes(engine))
    assert max(steady[-10:]) <= max(steady[:10])
    engine.push(of_new_values(10_000, 1000, 0.001, domain))
    assert engine.n_exposures == 1000
    flooded = n_bytes(engine)
    assert flooded > 8 * max(steady)
    for begin in range(20_000, 20_100, 20):
        engine.push(of_new_values(begin, 20, 1.0, domain))
    assert n_bytes(engine) <= max(steady)
    assert fresh <= n_bytes(engine) <= flooded / 8


@pytest.mark.parametrize("domain", LADDERS)
def test_one_exposure_again_and_again_is_one(domain: AnyDomain) -> None:
    stream = stream_of([(0.0, 1, "a*b")] * 50, 2, Window(rows=5), domain)
    engine: Any = stream.start(ZAnonymizer())
    before = n_bytes(engine)
    for _ in range(20):
        engine.push(stream.codes)
        assert engine.n_exposures == 1
    assert n_bytes(engine) <= before


@pytest.mark.parametrize("domains", [(PLACE, Open()), (Open(), Open())])
@pytest.mark.parametrize("cut", [0, 1, 77, 120, 200])
def test_resumed_in_the_midst_it_decides_on(domains: tuple[AnyDomain, ...], cut: int) -> None:
    stream = stream_of(drawn(3, 200, 10, gaps=0.1), 3, Window(seconds=30), *domains)
    anonymizer = ZAnonymizer(probability=0.7, estimates=3)
    whole = play(anonymizer, stream)
    first, codes = stream.start(anonymizer), stream.codes
    first.push(Codes(*(array[:cut] for array in codes)))
    second: Any = stream.start(anonymizer, b"another")
    second.restore(first.snapshot())
    rest = second.push(Codes(*(array[cut:] for array in codes)))
    assert rest.rows.tolist() == list(range(cut, 200))
    for name in ("levels", "n_behind", "z"):
        assert np.array_equal(getattr(rest, name), getattr(whole, name)[cut:])
    later = whole.estimates[whole.estimates["row"] >= cut]
    assert rest.estimates.tolist() == later.tolist()
    assert len(later) or cut == 200
