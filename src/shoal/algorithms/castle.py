"""CASTLE: continuously anonymizing streaming data via adaptive clustering.

Arriving rows join the open cluster that they enlarge least, unless that would lose more than the
groups published lately did; then they open a cluster of their own. When a row's time is up, its
cluster is published, cut into smaller groups where it is large enough; a cluster that isn't large
enough lets the row slip into a group published before, or is merged with its neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from shoal._jit import kernel
from shoal.engine import Anonymizer, Decisions, Engine
from shoal.kernels import counter, held, kept, rng
from shoal.kernels.arrays import Floats, Ints
from shoal.kernels.boxes import Sides, box_loss, hull, join, joined_losses
from shoal.kernels.counter import Counter
from shoal.kernels.criteria import Limits, any_diversity, count_subjects, meets, needed
from shoal.kernels.held import Held, forget, overdue, put
from shoal.kernels.kept import Kept, keep, reusable, reuse
from shoal.kernels.split import by_subjects, by_values, mend_parts
from shoal.policy import Criterion, KAnonymity, LDiversity
from shoal.space import Codes, Deadlines, Space

__all__ = ["Castle"]

#: The place under which the counter counts the subjects of all held rows.
EVERYWHERE = -1


@dataclass(frozen=True, kw_only=True)
class Castle(Anonymizer):
    """CASTLE, with l-diversity, safe reuse and a bounded memory.

    Parameters
    ----------
    clusters
        How many clusters may be open at once (the paper's eta).
    recent
        Over how many of the latest groups the threshold for new clusters averages (mu).
    kept
        How many of the latest good groups are kept for reuse (N_ks); 0 for no reuse.
    reuse
        ``"random"``: any group that covers the row, each equally likely. ``"best"``: the one that
        loses least, which tells an observer that the row lies outside of all better ones
        (Example 5.5); for comparison only.
    loss
        How loss is measured, ``"glm"`` or ``"lm"``; see `shoal.space.Space`.

    >>> import numpy as np
    >>> from shoal import Codes, Delay, KAnonymity, Policy, Quasi, Range, Schema
    >>> schema = Schema(subject="person", quasi=[Quasi("age", Range(0, 100))])
    >>> policy = Policy(KAnonymity(2), delay=Delay(rows=2))
    >>> engine = Castle().start(schema, policy, seed=b"1")
    >>> ages, people = np.array([[20.0], [70.0], [22.0], [71.0]]), np.array([1, 2, 3, 4])
    >>> nothing = np.empty((4, 0), np.int64)
    >>> decided = engine.push(Codes(ages, people, nothing, np.full(4, np.nan)))
    >>> for box, lo, hi in zip(decided.n_subjects, decided.lo, decided.hi):
    ...     print(f"{box} people in {lo} to {hi}")
    2 people in [20.] to [22.]
    2 people in [70.] to [71.]

    References
    ----------
    J. Cao, B. Carminati, E. Ferrari, K.-L. Tan, "CASTLE: Continuously Anonymizing Data Streams",
    IEEE TDSC 8(3), 2011; chapter 5 of J. Cao's thesis, NUS, 2010.
    """

    name: ClassVar[str] = "castle"
    enforces: ClassVar[tuple[type[Criterion], ...]] = (KAnonymity, LDiversity)
    reference: ClassVar[str] = "Cao, Carminati, Ferrari, Tan: CASTLE (IEEE TDSC 2011)"

    clusters: int = 50
    recent: int = 100
    kept: int = 1000
    reuse: Literal["random", "best"] = "random"

    def __post_init__(self) -> None:
        self._at_least(1, "clusters", "recent")
        self._at_least(0, "kept")
        self._one_of("reuse", ("random", "best"))

    def _start(self, space: Space, seed: bytes) -> Engine:
        return CastleEngine(self, space, seed)


class Open(NamedTuple):
    """The open clusters, each in a slot; a slot without a birth (-1) is free.

    Boxes have attributes along the first axis. The rows of a cluster are a chain of positions in
    order of arrival, from ``first`` to ``last``.
    """

    lo: Floats
    hi: Floats
    loss: Floats
    birth: Ints
    n_subjects: Ints
    first: Ints
    last: Ints
    n_open: Ints


class State(NamedTuple):
    """All that a run of CASTLE remembers. ``n_subjects`` counts those of all held rows."""

    held: Held
    following: Ints
    open: Open
    counter: Counter
    kept: Kept
    recent: Floats
    n_recent: Ints
    threshold: Floats
    n_subjects: Ints
    births: Ints
    groups: Ints
    instants: Ints
    rng: Ints


class Rules(NamedTuple):
    """What a run of CASTLE obeys: space, promise and knobs."""

    sides: Sides
    limits: Limits
    deadlines: Deadlines
    best: bool


class Out(NamedTuple):
    """Where decisions go, and how many rows and boxes there are so far."""

    decisions: Decisions
    n: Ints
    published: Ints
    published_s: Floats


class Ask(NamedTuple):
    """What is asked beside the rows: the time of a tick (NaN: none), and whether this is the end."""

    now: float
    at_end: bool
    out: Out


class CastleEngine(Engine):
    """One run of `Castle`."""

    state: State

    def __init__(self, recipe: Castle, space: Space, seed: bytes) -> None:
        limits, d = space.limits, space.n_quasi
        self._rules = Rules(space.sides, limits, space.deadlines, recipe.reuse == "best")
        self._nothing = Codes.empty(d, space.n_sensitive)
        eta = recipe.clusters
        state = State(
            held=held.empty(d, space.n_sensitive),
            following=np.full(held.SMALLEST, -1, np.int64),
            open=Open(
                np.full((d, eta), np.inf), np.full((d, eta), -np.inf), np.zeros(eta),
                np.full(eta, -1, np.int64), np.zeros(eta, np.int64),
                np.full(eta, -1, np.int64), np.full(eta, -1, np.int64), np.zeros(1, np.int64),
            ),
            counter=counter.empty(2 * held.SMALLEST),
            kept=kept.empty(recipe.kept, d, space.n_sensitive, limits),
            recent=np.zeros(recipe.recent),
            n_recent=np.zeros(1, np.int64),
            threshold=np.zeros(1),
            n_subjects=np.zeros(1, np.int64),
            births=np.zeros(1, np.int64),
            groups=np.zeros(1, np.int64),
            instants=np.zeros(1, np.int64),
            rng=rng.seeded(seed, "decide"),
        )  # fmt: skip
        super().__init__(space, state, seed)

    @property
    def n_held(self) -> int:
        """How many rows have arrived and aren't decided."""
        return int(self.state.held.n_held[0])

    @property
    def next_deadline(self) -> float | None:
        """When the oldest held row is due, if the delay is in seconds."""
        rows, seconds = self.state.held, self._rules.deadlines.seconds
        if not seconds or not self.n_held:
            return None
        return float(rows.time[rows.oldest[0] & (len(rows.time) - 1)]) + seconds

    def _reserve(self, n: int) -> None:
        rows = self.state.held
        span = int(rows.upcoming[0] - rows.oldest[0]) + n + 1
        if self._rules.deadlines.rows:
            span = min(span, self._rules.deadlines.rows + 2)
        if span <= len(rows.cluster):
            return
        larger = held.grown(rows, span)
        following = np.full(len(larger.cluster), -1, np.int64)
        positions = np.arange(rows.oldest[0], rows.upcoming[0])
        source, target = positions & (len(rows.cluster) - 1), positions & (len(following) - 1)
        following[target] = self.state.following[source]
        self.state = self.state._replace(
            held=larger,
            following=following,
            # Two entries for a row: its subject in its cluster, and its subject at all.
            counter=counter.grown(self.state.counter, 2 * len(following)),
        )

    def _push(self, codes: Codes, out: Decisions) -> tuple[int, int]:
        return self._run(codes, Ask(np.nan, False, _out(out)))

    def _advance(self, now: float, out: Decisions) -> tuple[int, int]:
        return self._run(self._nothing, Ask(now, False, _out(out)))

    def _flush(self, out: Decisions) -> tuple[int, int]:
        return self._run(self._nothing, Ask(np.nan, True, _out(out)))

    def _run(self, codes: Codes, ask: Ask) -> tuple[int, int]:
        lo, hi = self.space.points(codes.values)
        _run(self._rules, self.state, codes, lo, hi, ask)
        return int(ask.out.n[0]), int(ask.out.n[1])


def _out(decisions: Decisions) -> Out:
    return Out(decisions, np.zeros(2, np.int64), np.zeros(1, np.int64), np.full(1, np.nan))


# -- arrivals -------------------------------------------------------------------------------------


@kernel
def _run(rules: Rules, state: State, codes: Codes, lo: Floats, hi: Floats, ask: Ask) -> None:
    """Take in rows and fire deadlines, between the rows and after them.

    All three verbs are this one kernel: Numba optimizes a callee again in each of its callers,
    so every further entry would compile the whole algorithm once more.
    """
    rows, deadlines, out = state.held, rules.deadlines, ask.out
    mask = len(rows.cluster) - 1
    joined = np.empty(len(state.open.birth))
    now = ask.now
    due = -1
    i = 0
    while True:
        if due < 0:
            if i < len(codes.subjects):
                now = codes.times[i]
            if now > rows.now[0]:
                rows.now[0] = now
            if deadlines.seconds > 0.0 and overdue(rows, deadlines.seconds, rows.now[0]):
                due = rows.oldest[0]
                out.published[0] = rows.upcoming[0]
                out.published_s[0] = rows.time[due & mask] + deadlines.seconds
            elif ask.at_end and rows.n_held[0] > 0:
                due = rows.oldest[0]
                out.published[0] = rows.upcoming[0]
                out.published_s[0] = rows.now[0] if rows.now[0] > -np.inf else np.nan
        if due >= 0:
            _expire(rules, state, due, ask.at_end, out)
            # The whole end of a stream is one instant.
            if not ask.at_end:
                state.instants[0] += 1
            due = -1
        elif i == len(codes.subjects):
            break
        else:
            time = np.nan if np.isnan(codes.times[i]) else rows.now[0]
            slot = _best_selection(rules, state, lo[i], hi[i], joined)
            if slot < 0:
                slot = _open_cluster(state)
            position = put(rows, lo[i], hi[i], codes.subjects[i], codes.sensitive[i], time, slot)
            _join_cluster(rules, state, slot, position)
            i += 1
            if 0 < deadlines.rows <= position and rows.cluster[
                (position - deadlines.rows) & mask
            ] >= 0 and position - deadlines.rows >= rows.oldest[0]:
                due = position - deadlines.rows
                out.published[0] = position
                out.published_s[0] = time


@kernel
def _best_selection(rules: Rules, state: State, lo: Floats, hi: Floats, joined: Floats) -> int:
    """The open cluster for a row, or -1 for a new one (thesis, bestSelection)."""
    clusters = state.open
    n = len(clusters.birth)
    if clusters.n_open[0] == 0:
        return -1
    joined_losses(rules.sides, clusters.lo, clusters.hi, n, lo, hi, joined)
    least = np.inf
    for c in range(n):
        if clusters.birth[c] >= 0 and joined[c] - clusters.loss[c] < least:
            least = joined[c] - clusters.loss[c]
    best, within = -1, False
    for c in range(n):
        if clusters.birth[c] < 0 or joined[c] - clusters.loss[c] != least:
            continue
        fits = joined[c] <= state.threshold[0]
        if best < 0 or (fits and not within):
            best, within = c, fits
        elif fits == within and (
            clusters.n_subjects[c] < clusters.n_subjects[best]
            or (
                clusters.n_subjects[c] == clusters.n_subjects[best]
                and clusters.birth[c] < clusters.birth[best]
            )
        ):
            best = c
    if not within and clusters.n_open[0] < n:
        return -1
    return best


# -- clusters -------------------------------------------------------------------------------------


@kernel
def _open_cluster(state: State) -> int:
    clusters = state.open
    slot = 0
    while clusters.birth[slot] >= 0:
        slot += 1
    clusters.birth[slot] = state.births[0]
    clusters.n_open[0] += 1
    state.births[0] += 1
    return slot


@kernel
def _free_slot(state: State, slot: int) -> None:
    clusters = state.open
    clusters.lo[:, slot] = np.inf
    clusters.hi[:, slot] = -np.inf
    clusters.birth[slot] = -1
    clusters.n_subjects[slot] = 0
    clusters.first[slot] = -1
    clusters.last[slot] = -1
    clusters.n_open[0] -= 1


@kernel
def _join_cluster(rules: Rules, state: State, slot: int, position: int) -> None:
    clusters, rows = state.open, state.held
    mask = len(rows.cluster) - 1
    at = position & mask
    state.following[at] = -1
    if clusters.last[slot] < 0:
        clusters.first[slot] = position
    else:
        state.following[clusters.last[slot] & mask] = position
    clusters.last[slot] = position
    if counter.add(state.counter, slot, rows.subject[at]):
        clusters.n_subjects[slot] += 1
    if counter.add(state.counter, EVERYWHERE, rows.subject[at]):
        state.n_subjects[0] += 1
    lo, hi = clusters.lo[:, slot].copy(), clusters.hi[:, slot].copy()
    join(rules.sides, lo, hi, rows.lo[at], rows.hi[at])
    clusters.lo[:, slot] = lo
    clusters.hi[:, slot] = hi
    clusters.loss[slot] = box_loss(rules.sides, lo, hi)


@kernel
def _leave_cluster(rules: Rules, state: State, position: int) -> None:
    """The oldest row of a cluster leaves it alone; the cluster's box shrinks to the others."""
    clusters, rows = state.open, state.held
    mask = len(rows.cluster) - 1
    at = position & mask
    slot = rows.cluster[at]
    clusters.first[slot] = state.following[at]
    if counter.remove(state.counter, slot, rows.subject[at]):
        clusters.n_subjects[slot] -= 1
    if counter.remove(state.counter, EVERYWHERE, rows.subject[at]):
        state.n_subjects[0] -= 1
    forget(rows, position)
    member = clusters.first[slot]
    if member < 0:
        _free_slot(state, slot)
        return
    lo, hi = rows.lo[member & mask].copy(), rows.hi[member & mask].copy()
    while member >= 0:
        at = member & mask
        for d in range(len(lo)):
            lo[d] = min(lo[d], rows.lo[at, d])
            hi[d] = max(hi[d], rows.hi[at, d])
        member = state.following[at]
    join(rules.sides, lo, hi, lo, hi)
    clusters.lo[:, slot] = lo
    clusters.hi[:, slot] = hi
    clusters.loss[slot] = box_loss(rules.sides, lo, hi)


@kernel
def _members(state: State, slots: Ints) -> Ints:
    """The positions of the rows of some clusters, in order of arrival."""
    mask = len(state.held.cluster) - 1
    n = 0
    for slot in slots:
        member = state.open.first[slot]
        while member >= 0:
            n += 1
            member = state.following[member & mask]
    positions = np.empty(n, np.int64)
    n = 0
    for slot in slots:
        member = state.open.first[slot]
        while member >= 0:
            positions[n] = member
            n += 1
            member = state.following[member & mask]
    if len(slots) > 1:
        positions.sort()
    return positions


@kernel
def _may_be_group(rules: Rules, state: State, positions: Ints) -> bool:
    at = positions & (len(state.held.cluster) - 1)
    return meets(rules.limits, state.held.subject[at], state.held.sensitive[at])


# -- deadlines ------------------------------------------------------------------------------------


@kernel
def _expire(rules: Rules, state: State, position: int, at_end: bool, out: Out) -> None:
    """Decide a row whose time is up (thesis, delayConstraint)."""
    rows = state.held
    slot = rows.cluster[position & (len(rows.cluster) - 1)]
    slots = np.array([slot])
    enough = state.open.n_subjects[slot] >= rules.limits.k
    if not (enough and _may_be_group(rules, state, _members(state, slots))):
        if _reuse(rules, state, position, out):
            return
        slots = _merge(rules, state, slot)
        if len(slots) == 0:
            _decide(state, position, 2, -1, out)
            _leave_cluster(rules, state, position)
            return
    _output(rules, state, _take_out(rules, state, slots, at_end), out)


@kernel
def _reuse(rules: Rules, state: State, position: int, out: Out) -> bool:
    rows = state.held
    at = position & (len(rows.cluster) - 1)
    covering = reusable(
        state.kept, rules.limits, rows.lo[at], rows.hi[at], rows.subject[at], rows.sensitive[at]
    )
    if len(covering) == 0:
        return False
    if rules.best:
        chosen = covering[0]
        for group in covering[1:]:
            if state.kept.loss[group] < state.kept.loss[chosen]:
                chosen = group
    else:
        chosen = covering[rng.below(state.rng, len(covering))]
    reuse(state.kept, chosen, rows.subject[at], rows.sensitive[at])
    box = out.n[1]
    out.n[1] += 1
    boxes = out.decisions
    boxes.lo[box] = state.kept.lo[chosen]
    boxes.hi[box] = state.kept.hi[chosen]
    boxes.loss[box] = state.kept.loss[chosen]
    boxes.groups[box] = state.kept.group[chosen]
    boxes.n_rows[box] = 0
    boxes.n_subjects[box] = 0
    _decide(state, position, 1, box, out)
    _leave_cluster(rules, state, position)
    return True


@kernel
def _merge(rules: Rules, state: State, slot: int) -> Ints:
    """The clusters that together may be a group: one, and its nearest ones. Empty if none may."""
    clusters = state.open
    n = len(clusters.birth)
    chosen = np.empty(clusters.n_open[0], np.int64)
    chosen[0] = slot
    n_chosen = 1
    taken = np.zeros(n, np.bool_)
    taken[slot] = True
    lo, hi = clusters.lo[:, slot].copy(), clusters.hi[:, slot].copy()
    loss = clusters.loss[slot]
    joined = np.empty(n)
    if state.n_subjects[0] < rules.limits.k:
        return chosen[:0]
    at_most = clusters.n_subjects[slot]
    while n_chosen < clusters.n_open[0]:
        joined_losses(rules.sides, clusters.lo, clusters.hi, n, lo, hi, joined)
        nearest = -1
        for c in range(n):
            if clusters.birth[c] < 0 or taken[c]:
                continue
            if nearest < 0 or joined[c] - loss < joined[nearest] - loss or (
                joined[c] - loss == joined[nearest] - loss
                and clusters.birth[c] < clusters.birth[nearest]
            ):
                nearest = c
        taken[nearest] = True
        chosen[n_chosen] = nearest
        n_chosen += 1
        join(rules.sides, lo, hi, clusters.lo[:, nearest].copy(), clusters.hi[:, nearest].copy())
        loss = box_loss(rules.sides, lo, hi)
        # A subject may lie in several clusters: the sum is only a reason to look closely.
        at_most += clusters.n_subjects[nearest]
        if at_most >= rules.limits.k and _may_be_group(
            rules, state, _members(state, chosen[:n_chosen])
        ):
            return chosen[:n_chosen]
    return chosen[:0]


@kernel
def _take_out(rules: Rules, state: State, slots: Ints, at_end: bool) -> Ints:
    """Close clusters and give their rows.

    At the end of a stream a remainder that can't be a group by itself comes along.
    """
    positions = _members(state, slots)
    _close_clusters(state, slots, positions)
    if at_end and state.open.n_open[0] > 0 and state.n_subjects[0] < 2 * needed(rules.limits):
        rest = np.flatnonzero(state.open.birth >= 0)
        others = _members(state, rest)
        everything = np.sort(np.concatenate((positions, others)))
        if not _may_be_group(rules, state, others) and _may_be_group(rules, state, everything):
            _close_clusters(state, rest, others)
            return everything
    return positions


@kernel
def _close_clusters(state: State, slots: Ints, positions: Ints) -> None:
    mask = len(state.held.cluster) - 1
    for position in positions:
        at = position & mask
        counter.remove(state.counter, state.held.cluster[at], state.held.subject[at])
        if counter.remove(state.counter, EVERYWHERE, state.held.subject[at]):
            state.n_subjects[0] -= 1
    for slot in slots:
        _free_slot(state, slot)


# -- groups ---------------------------------------------------------------------------------------


@kernel
def _output(rules: Rules, state: State, positions: Ints, out: Out) -> None:
    """Publish rows as one group, or as several where there are enough (thesis, outputCluster)."""
    rows, limits = state.held, rules.limits
    at = positions & (len(rows.cluster) - 1)
    los, his = rows.lo[at].T.copy(), rows.hi[at].T.copy()
    subjects, sensitive = rows.subject[at], rows.sensitive[at]
    part = np.zeros(len(at), np.int64)
    n_parts = 1
    if count_subjects(subjects) >= 2 * needed(limits):
        if any_diversity(limits):
            n_parts = by_values(
                rules.sides, limits, state.rng, los, his, subjects, sensitive, part
            )
        else:
            n_parts = by_subjects(rules.sides, limits.k, state.rng, los, his, subjects, part)
        n_parts = mend_parts(rules.sides, limits, los, his, subjects, sensitive, part, n_parts)
    order = np.argsort(part, kind="mergesort")
    begin = 0
    for p in range(n_parts):
        end = begin
        while end < len(order) and part[order[end]] == p:
            end += 1
        members = order[begin:end]
        lo, hi = hull(rules.sides, los, his, members)
        loss = box_loss(rules.sides, lo, hi)
        box = out.n[1]
        out.n[1] += 1
        boxes = out.decisions
        boxes.lo[box] = lo
        boxes.hi[box] = hi
        boxes.loss[box] = loss
        boxes.groups[box] = state.groups[0]
        boxes.n_rows[box] = len(members)
        boxes.n_subjects[box] = count_subjects(subjects[members])
        for member in members:
            _decide(state, positions[member], 0, box, out)
            forget(rows, positions[member])
        _move_threshold(state, loss)
        if loss <= state.threshold[0]:
            keep(state.kept, lo, hi, loss, state.groups[0], subjects[members], sensitive[members])
        state.groups[0] += 1
        begin = end


@kernel
def _move_threshold(state: State, loss: float) -> None:
    """The threshold is the mean loss of the latest groups, summed from the oldest on."""
    recent, n = state.recent, state.n_recent[0]
    recent[n % len(recent)] = loss
    n += 1
    state.n_recent[0] = n
    total = 0.0
    for i in range(max(0, n - len(recent)), n):
        total += recent[i % len(recent)]
    state.threshold[0] = total / min(n, len(recent))


@kernel
def _decide(state: State, position: int, outcome: int, box: int, out: Out) -> None:
    i = out.n[0]
    out.n[0] += 1
    out.decisions.rows[i] = position
    out.decisions.outcomes[i] = outcome
    out.decisions.boxes[i] = box
    out.decisions.published[i] = out.published[0]
    out.decisions.published_s[i] = out.published_s[0]
    out.decisions.instants[i] = state.instants[0]
