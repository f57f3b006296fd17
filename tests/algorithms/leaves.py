"""Engines of the R-tree family over one number, and what their leaves are like inside."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal import Delay, KAnonymity, Policy, Quasi, Range, Schema, Sensitive
from shoal.algorithms.tree import TreeBasic, TreeDensity, TreeFull
from shoal.engine import Codes, Decisions
from shoal.engine.base import Out
from shoal.engine.kernels import counter
from shoal.engine.kernels.boxes import box_loss, join
from shoal.engine.kernels.held import people
from shoal.engine.kernels.predicate import meets
from shoal.engine.rtree import chain_sampling as chains
from shoal.engine.rtree.engine import TreeEngine
from shoal.engine.rtree.queue import RECOUNT
from shoal.engine.rtree.release import publish_leaf
from shoal.engine.rtree.weights import refresh
from shoal.spec.policy import Criterion, Missing
from tests.engine.rtree.rtrees import check_tree

ANONYMIZERS: dict[str, type[TreeBasic | TreeDensity | TreeFull]] = {
    "tree-basic": TreeBasic, "tree-density": TreeDensity, "tree-full": TreeFull,
}  # fmt: skip
#: So few samples of so few rows that plain Python has no trouble with them.
FEW: dict[str, Any] = {"samples": 8, "sampled": 20}


def engine(
    name: str,
    k: int,
    *more: Criterion,
    delay: Delay | None = None,
    missing: Missing = "quarantine",
    n_quasi: int = 1,
    seed: bytes = b"leaves",
    **knobs: Any,
) -> TreeEngine:
    """A run over numbers from 0 to 100; without a bound, one that is never reached.

    Unless an instant has some seconds, all rows may come at once, and no coin is flipped.
    """
    if delay is None and not knobs.get("capacity"):
        delay = Delay(rows=100_000)
    if name != "tree-basic":
        knobs = FEW | knobs
    quasi = [Quasi(f"x{d}", Range(0, 100)) for d in range(n_quasi)]
    schema = Schema("person", quasi, [Sensitive("s")], time="at")
    policy = Policy(KAnonymity(k), *more, delay=delay, missing=missing)
    run = ANONYMIZERS[name](**knobs).start(schema, policy, seed=seed)
    assert isinstance(run, TreeEngine)
    return run


def codes(rows: Sequence[tuple[Any, ...]], times: Iterable[float] | None = None) -> Codes:
    """Rows of (a number or several, the number of a subject, a sensitive value if it matters)."""
    n = len(rows)
    return Codes(
        np.array([np.atleast_1d(row[0]) for row in rows], float),
        np.array([row[1] for row in rows], np.int64),
        np.array([[row[2] if len(row) > 2 else 0] for row in rows], np.int64),
        np.zeros(n) if times is None else np.array([*times], float),
    )


def still(name: str, k: int, rows: Sequence[tuple[Any, ...]], *more: Any, **knobs: Any) -> Any:
    """An engine to which all rows have come at the same second: no leaf has become due."""
    run = engine(name, k, *more, **{"instant": 1.0, **knobs})
    assert len(run.push(codes(rows)).rows) == 0
    return run


# -- what is in it ---------------------------------------------------------------------------------


def alive(run: TreeEngine) -> list[int]:
    """The numbers of the leaves there are."""
    return np.flatnonzero(run.state.tree.leaves["birth"] >= 0).tolist()


def members(run: TreeEngine, leaf: int) -> list[int]:
    """The rows of a leaf, in the order in which they joined it."""
    rows, found = run.state.held.rows, run.state.tree.leaves[leaf]
    positions = [int(found["first"])]
    while (following := int(rows["following"][positions[-1] & (len(rows) - 1)])) >= 0:
        positions.append(following)
    assert len(positions) == found["n_rows"]
    assert positions[-1] == found["last"]
    return positions


def leaves(run: TreeEngine) -> list[set[int]]:
    """The rows of each leaf, by the number of the leaf."""
    return [set(members(run, leaf)) for leaf in alive(run)]


def mature(run: TreeEngine) -> list[int]:
    """The numbers of the leaves that may be published."""
    return [leaf for leaf in alive(run) if run.state.tree.leaves["mature"][leaf]]


def chances(run: TreeEngine) -> dict[int, float]:
    """How likely each leaf is to be published at this instant, as the queue has it."""
    refresh(run._rules, run.state)
    due = run.state.queue
    return {leaf: due.weights[due.width[0] + leaf] / due.rows[1] for leaf in mature(run)}


def weight(run: TreeEngine, leaf: int) -> float:
    """A leaf's weight, reckoned from its rows and samples and the knobs alone."""
    tree, odds = run.state.tree, run._rules.odds
    n_rows = int(tree.leaves["n_rows"][leaf])
    found = 1 / (n_rows * max(float(tree.loss[leaf]), 1e-9))
    if odds.samples:
        share = max(len(samples_in(run, leaf)), 0.5) / odds.samples
        wait = odds.decay * max(0, 2 * odds.needed - n_rows) / share
        if odds.instant:
            wait *= run.state.marks["gap"][0] / odds.instant
        found *= math.exp(min(wait, 100.0))
    return found


def samples_in(run: TreeEngine, leaf: int) -> list[int]:
    """The samples that a leaf covers."""
    known, tree = run.state.chains, run.state.tree
    inside = (known.lo >= tree.lo[:, leaf]) & (known.hi <= tree.hi[:, leaf])
    return np.flatnonzero(inside.all(axis=1)).tolist()


def put_samples(run: TreeEngine, *places: float, positions: Sequence[int] = ()) -> None:
    """Let samples be at these numbers, and leaves count them."""
    known = run.state.chains
    assert len(places) == len(known.positions)
    for c, place in enumerate(places):
        # As the next link of its chain, before those that it has.
        known.links[c, 1:] = known.links[c, :-1].copy()
        for links in (known.link_lo, known.link_hi):
            links[1:, c] = links[:-1, c].copy()
        known.links[c, 0] = positions[c] if positions else -1
        known.link_lo[0, c] = known.link_hi[0, c] = place
        known.chains["n_links"][c] += 1
        chains.renew(known, c)
    for leaf in alive(run):
        run.state.queue.flags[leaf] |= RECOUNT


def publish(run: TreeEngine, leaf: int, now: float) -> Decisions:
    """A leaf is due."""
    out = Out.room(run.n_held, run.space.n_quasi)
    publish_leaf(run._rules, run.state, leaf, now, out)
    return out.decisions()


# -- whether it is whole ---------------------------------------------------------------------------


def check_whole(run: TreeEngine) -> None:
    """All that is remembered twice is the same twice."""
    state, rules = run.state, run._rules
    check_tree(state.tree)
    mask = len(state.held.rows) - 1
    counts: Counter[tuple[int, int]] = Counter()
    found: list[int] = []
    for leaf in alive(run):
        positions = np.array(members(run, leaf))
        found += positions.tolist()
        at = positions & mask
        assert (state.held.rows["cluster"][at] == leaf).all()
        subjects, sensitive = people(state.held, positions)
        assert len(set(subjects.tolist())) == len(positions)
        assert 1 <= len(positions) <= 4 * rules.odds.needed
        counts.update((leaf, int(subject)) for subject in subjects)
        counts.update((counter.EVERYWHERE, int(subject)) for subject in subjects)
        lo, hi = state.held.lo[at[0]].copy(), state.held.hi[at[0]].copy()
        for i in at:
            join(rules.sides, lo, hi, state.held.lo[i], state.held.hi[i])
        assert (state.tree.lo[:, leaf] == lo).all()
        assert (state.tree.hi[:, leaf] == hi).all()
        assert state.tree.loss[leaf] == box_loss(rules.sides, lo, hi)
        assert state.tree.leaves["mature"][leaf] == meets(rules.limits, subjects, sensitive)
        if rules.odds.samples:
            inside = len(samples_in(run, leaf))
            if not state.queue.flags[leaf] & RECOUNT:
                assert state.coverage.n_samples[leaf] == inside
            check_rough(run, leaf)
    assert sorted(found) == _held(run)
    entries = state.counter[state.counter["count"] > 0]
    assert counts == {(int(e["place"]), int(e["subject"])): int(e["count"]) for e in entries}
    check_queue(run)


def check_rough(run: TreeEngine, leaf: int) -> None:
    """The bytes of a leaf are those of its box."""
    state = run.state
    scale = state.chains.scale
    for d in range(run.space.n_quasi):
        for bytes_of, sides in (
            (state.coverage.rough_lo, state.tree.lo), (state.coverage.rough_hi, state.tree.hi),
        ):  # fmt: skip
            assert bytes_of[d, leaf] == chains.rough(sides[d, leaf], scale[0, d], scale[1, d])


def _held(run: TreeEngine) -> list[int]:
    rows, marks = run.state.held.rows, run.state.held.marks
    positions = np.arange(marks["oldest"][0], marks["upcoming"][0])
    return positions[rows["cluster"][positions & (len(rows) - 1)] >= 0].tolist()


def check_queue(run: TreeEngine) -> None:
    """The queue has the leaves that may be published, by what each is worth, and no others."""
    # Weights are computed when they are used.
    refresh(run._rules, run.state)
    due = run.state.queue
    n = int(due.width[0])
    weights, rows = due.weights[: 2 * n], due.rows[: 2 * n]
    assert run.state.tree.marks["n_mature"][0] == len(mature(run))
    expected: NDArray[np.float64] = np.zeros(n)
    if not (run._rules.odds.instant and run._rules.odds.samples):
        for leaf in mature(run):
            expected[leaf] = weight(run, leaf)
        np.testing.assert_allclose(weights[n:], expected, rtol=1e-9)
    assert set(np.flatnonzero(weights[n:])) == set(mature(run))
    np.testing.assert_array_equal(rows[n:], weights[n:] * _rows_of(run, n))
    if mature(run):
        shares = chances(run)
        expected_rows = sum(p * run.state.tree.leaves["n_rows"][leaf] for leaf, p in shares.items())
        assert math.isclose(expected_rows, 1.0, rel_tol=1e-9)
        assert 0.0 < sum(shares.values()) <= 1 / run._rules.limits.k + 1e-9
        assert all(0.0 <= p <= 1.0 for p in shares.values())


def _rows_of(run: TreeEngine, n: int) -> NDArray[np.int64]:
    found = np.where(run.state.tree.leaves["birth"] >= 0, run.state.tree.leaves["n_rows"], 0)
    return np.pad(found, (0, max(0, n - len(found))))[:n]
