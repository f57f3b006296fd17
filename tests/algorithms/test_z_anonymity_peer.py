"""z-anonymity beside the authors' package: alike on ordered input, and what the peer gets wrong."""

from __future__ import annotations

import itertools
import json
import os
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.algorithms.events import event
from tests.examples import examples
from tests.naive.z_anonymity import Deviations, NaiveZAnonymity, Row, run
from tests.naive.zanon_peer import path_levels, peer

pytestmark = pytest.mark.plain

Event = tuple[float, str, str]
DEPTH = 3


def rows_of(events: Sequence[Event]) -> list[Row]:
    return [(time, subject, [path_levels(value, DEPTH)]) for time, subject, value in events]


def published_by_the_twin(events: Sequence[Event], z: int, seconds: float) -> list[str | None]:
    """What is published of each event by the rule of the peer."""
    rows = rows_of(events)
    decisions, _ = run(rows, z=z, window_seconds=seconds, count="plain")
    published: list[str | None] = []
    for (_, _, cells), decision in zip(rows, decisions, strict=True):
        (level,), (labels,) = decision.levels, cells
        assert labels is not None
        published.append(None if level is None else labels[level])
    return published


# -- where it is right ---------------------------------------------------------------------------

PATHS = st.lists(st.sampled_from("aab"), min_size=1, max_size=DEPTH).map("*".join)
STEPS = st.tuples(st.sampled_from([0, 0, 1, 2, 9]), st.integers(0, 7).map(str), PATHS)


@settings(max_examples=examples(60), deadline=None, derandomize=True, database=None)
@given(
    steps=st.lists(STEPS, min_size=1, max_size=40),
    z=st.integers(1, 5),
    seconds=st.sampled_from([1, 5, 20]),
)
def test_on_ordered_input_the_plain_count_is_the_peers(
    steps: list[tuple[int, str, str]], z: int, seconds: int
) -> None:
    times = itertools.accumulate((step for step, _, _ in steps), initial=1)
    events = [(float(t), u, a) for t, (_, u, a) in zip(times, steps, strict=False)]
    with peer(seconds, z=z) as theirs:
        assert theirs.push_all(events) == published_by_the_twin(events, z, seconds)


@pytest.mark.parametrize("seed", range(3))
def test_on_a_longer_stream_with_the_peers_own_z(seed: int) -> None:
    draw = random.Random(seed)
    events, now = [], 1000
    for _ in range(250):
        now += draw.choice([0, 1, 5])
        parts = [draw.choice(letters) for letters in ("aab", "aabc", "abc")]
        value = "*".join(parts[: draw.choice([1, 2, 3, 3, 3])])
        events.append((float(now), f"u{draw.randrange(40)}", value))
    with peer(150) as theirs:
        assert theirs.inner.z == 10
        published = theirs.push_all(events)
    assert published == published_by_the_twin(events, 10, 150)
    assert {None} < set(published)
    assert {value.count("*") for value in published if value is not None} >= {0, 1}


# -- what it tells -------------------------------------------------------------------------------


def test_the_peer_publishes_who_it_was() -> None:
    with peer(10, z=2) as theirs:
        theirs.push_all([(1.0, "alice", "x"), (2.0, "bob", "x")])
        assert [line.split("\t")[1] for line in theirs.published] == ["bob"]


def test_the_peer_writes_down_in_clear_what_it_hides() -> None:
    with peer(10, z=2) as theirs:
        assert theirs.push(1.0, "alice", "clinic*oncology") is None
        assert theirs.published == []
        assert theirs.counters == ["1.0\talice\tclinic*oncology\t1\t1"]


def test_the_peers_parents_betray_the_one_rare_child() -> None:
    events = [(float(t), who, "it*turin") for t, who in enumerate("abc", start=1)]
    events.append((4.0, "d", "it*aosta"))
    with peer(10, z=3) as theirs:
        assert theirs.push_all(events)[-1] == "it"
    decisions, _ = run(rows_of(events), z=3, window_seconds=10)
    assert decisions[-1].levels == (None,)


# -- what it counts ------------------------------------------------------------------------------


def test_in_the_peer_a_late_event_keeps_stale_users_alive() -> None:
    """At 200 nobody has exposed x for 99 seconds, and c alone does now."""
    events = [(100.0, "a", "x"), (101.0, "b", "x"), (200.0, "d", "y"), (105.0, "c", "x")]
    with peer(10, z=3) as theirs:
        assert theirs.push_all(events)[-1] == "x"
    rows = rows_of(events)
    ours, _ = run(rows, z=3, window_seconds=10)
    assert ours[-1].levels == (None,)
    paper = Deviations(late_rows_are_of_the_latest_time=False, values_are_forgotten=False)
    as_published, _ = run(rows, z=3, window_seconds=10, deviations=paper)
    assert as_published[-1].levels == (0,)


def alike(first: str, second: str, n_turned: int) -> list[Event]:
    """Twelve users, twice: seven expose both values and five the second alone.

    Of the seven, some expose the second value before the first. The rounds are 1000 seconds apart,
    and the last event comes when the first has left a window of 1020 seconds, so that each event in
    it had all users of its value behind it.
    """
    events: list[Event] = []
    for begin in (10_000.0, 11_000.0):
        pairs = []
        for user in range(12):
            values = [first, second] if user < 7 else [second]
            pairs += [(user, value) for value in (values[::-1] if user < n_turned else values)]
        events += [(begin + i, f"u{user}", value) for i, (user, value) in enumerate(pairs)]
    return [*events, (11_050.0, "u0", second)]


#: Looks for two values of which a set is written in the order in which they came.
CHOOSES_Z = """
import itertools, json
from tests.algorithms.test_z_anonymity_peer import alike
from tests.naive.zanon_peer import peer

def written(*values):
    made = set()
    for value in values:
        made.add(value)
    return str(made)

first, second = next(
    pair for pair in itertools.combinations([f"v{n}" for n in range(200)], 2)
    if written(*pair) != written(*pair[::-1])
)
published = []
for n_turned in (0, 3):
    with peer(1020, z=6, adaptive=True, probability=1.0, k=5) as theirs:
        theirs.push_all(alike(first, second, n_turned))
        published.append(theirs.inner.z)
print(json.dumps(published))
"""


def test_the_peer_takes_equal_sets_for_different_ones_and_chooses_z_too_high() -> None:
    """It compares sets as text, in which their members have no fixed order.

    Under z = 6 seven users have both values and five have one: all twelve have four others alike.
    With three of the seven in the other order, the peer sees crowds of three, four and five, and
    hides the rarer value from everybody by z = 9.
    """
    root = Path(__file__).parents[2]
    paths = [str(root), *filter(None, sys.path)]
    environment = os.environ | {"PYTHONHASHSEED": "0", "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, "-c", CHOOSES_Z]
    done = subprocess.run(command, env=environment, cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [6, 9]


@pytest.mark.parametrize("n_turned", [0, 3])
def test_equal_sets_are_equal_here_and_z_stays(n_turned: int) -> None:
    rows = rows_of(alike("v1", "v2", n_turned))
    options = {"z": 6, "window_seconds": 1020, "probability": 1.0, "k": 5}
    _, estimates = run(rows, **options)
    assert [(e.n_subjects, e.share, e.z_after) for e in estimates] == [(12, 1.0, 6)]


def test_the_share_that_the_peer_reports_is_for_two_whatever_k_is() -> None:
    """Two users are alike, and nobody has two others alike, as k = 3 would have it."""
    events = [(5000.0, "a", "x"), (5001.0, "b", "x"), (5010.0, "a", "x")]
    with peer(10, z=1, adaptive=True, k=3) as theirs:
        theirs.push_all(events)
        assert theirs.shares == [1.0]
    _, (estimate,) = run(rows_of(events), z=1, window_seconds=10, k=3)
    assert estimate.share == 0.0


def test_the_peers_z_falls_to_nothing_and_it_publishes_what_is_one_persons_alone() -> None:
    """Half of ten users share a value, half have one of their own: a share of 0.5, as wanted."""
    events = [(5000.0 + n, f"u{n}", "x" if n < 5 else f"own {n}") for n in range(10)]
    # Again, so that each event in the window had all users of its value behind it.
    events += [(time + 100, user, value) for time, user, value in events]
    events.append((5150.0, "u0", "never seen before"))
    with peer(120, z=5, adaptive=True, probability=0.5) as theirs:
        assert theirs.push_all(events)[-1] == "never seen before"
        assert theirs.inner.z == 0
    decisions, estimates = run(rows_of(events), z=5, window_seconds=120, probability=0.5)
    assert estimates
    assert decisions[-1].levels == (None,)
    assert min(decision.z for decision in decisions) == 5


# -- what it holds -------------------------------------------------------------------------------


def test_the_peers_memory_grows_with_the_stream() -> None:
    """A value a second, each exposed once, through a window of ten seconds."""
    events = [(float(t), f"u{t % 7}", f"value {t}") for t in range(1, 301)]
    twin = NaiveZAnonymity(2, window_seconds=10)
    with peer(10, z=2) as theirs:
        theirs.push_all(events)
        inner = theirs.inner
        assert [len(held) for held in (inner.out_tuple, inner.c, inner.H)] == [300, 300, 300]
    for time, user, value in events:
        twin.push(event(time, user, value))
    assert (twin.n_exposures, twin.n_values) == (11, 11)


def test_the_peers_counters_outlive_their_values() -> None:
    """Exposed again or not, a value leaves its counter behind."""
    with peer(10, z=2) as theirs:
        for t in range(1, 51):
            theirs.push(100.0 * t, "a", f"value {t % 25}")
        assert len(theirs.inner.c) == 25
        assert len(theirs.inner.out_tuple) == 50


def test_the_driver_refuses_a_time_that_the_peer_takes_for_none() -> None:
    with peer(10) as theirs, pytest.raises(ValueError, match="for none"):
        theirs.push(0.0, "a", "x")
