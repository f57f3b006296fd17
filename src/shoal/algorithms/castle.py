"""CASTLE: continuously anonymizing streaming data via adaptive clustering.

An arriving row joins the open cluster that it enlarges least. If that would lose more than the
groups published lately did, it opens a new cluster. When a row's time is up, its cluster is
published, cut into smaller groups where it is large enough. If the cluster is too small, the row
joins a group published before that covers it, or the cluster is merged with its neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from shoal.engine.base import Engine
from shoal.engine.deadlines import (
    COMES,
    DONE,
    HoldingAnonymizer,
    HoldingEngine,
    InputBatch,
    arrival,
    next_event,
)
from shoal.engine.decisions import GROUP, REUSE, SUPPRESSED, Out, decide, write_box
from shoal.engine.groups import may_be_group
from shoal.engine.jit import kernel, on_demand
from shoal.engine.kernels import counter, held, kept_groups, rng
from shoal.engine.kernels.array_tools import in_order, order_of, picked, picked_rows
from shoal.engine.kernels.arrays import Floats, Ints, Records
from shoal.engine.kernels.boxes import (
    Box,
    Sides,
    box_loss,
    box_of,
    covers,
    hull,
    join,
    joined_losses,
    mean_loss,
    set_box,
)
from shoal.engine.kernels.diverse_split import diverse_parts
from shoal.engine.kernels.held import Held, forget, gather, put, window_of
from shoal.engine.kernels.joins import ALONE, ANY, ENOUGH, find_joins
from shoal.engine.kernels.kept_groups import KeptGroups, keep, used_again
from shoal.engine.kernels.predicate import (
    Limits,
    any_diversity,
    breakable,
    count_subjects,
    needed,
)
from shoal.engine.kernels.ring import wrap
from shoal.engine.kernels.split import by_subjects, repair_parts
from shoal.engine.space import Deadlines, Space

__all__ = ["Castle"]

#: At the end, fewer held subjects than this multiple of what a group needs are checked for being
#: too few for a group of their own.
REMAINDER = 16


@dataclass(frozen=True, kw_only=True)
class Castle(HoldingAnonymizer):
    """CASTLE, with l-diversity, closeness, likeness, safe reuse and a bounded memory.

    Parameters
    ----------
    clusters
        The most clusters that are open at once (the paper's eta).
    recent
        The number of latest groups that the threshold for new clusters averages over (mu).
    kept
        The number of latest good groups that are kept for reuse (N_ks); 0 for no reuse. A row that
        leaves alone into a kept group shows who it is to anyone who knows when it came.
    reuse
        ``"random"``: any group that covers the row, each equally likely. ``"best"``: the one that
        loses least, which tells an observer that the row lies outside of all better ones
        (Example 5.5); for comparison only.
    joins
        How rows join kept groups: ``"together"``, at least as many people at one instant as a group
        needs, and fewer only if no new group can be formed either; or ``"alone"``, each at its
        deadline, as in the paper, for comparison only.
    loss
        How loss is measured, ``"glm"``, ``"lm"`` or ``"uncertainty"``; see `Space`.

    >>> import pyarrow as pa
    >>> from shoal import Delay, KAnonymity, Policy, Quasi, Range, Schema, anonymize
    >>> people = pa.table({"name": ["Ann", "Bob", "Cem", "Dan"], "age": [20, 70, 22, 71]})
    >>> schema = Schema("name", [Quasi("age", Range(0, 100))])
    >>> policy = Policy(KAnonymity(2), delay=Delay(rows=2))
    >>> anonymize(people, schema, policy, Castle(clusters=20))["age"].to_pylist()
    ['[20, 22]', '[20, 22]', '[70, 71]', '[70, 71]']

    References
    ----------
    J. Cao, B. Carminati, E. Ferrari, K.-L. Tan, "CASTLE: Continuously Anonymizing Data Streams",
    IEEE TDSC 8(3), 2011; chapter 5 of J. Cao's thesis, NUS, 2010.
    """

    name: ClassVar[str] = "castle"
    reference: ClassVar[str] = "Cao, Carminati, Ferrari, Tan: CASTLE (IEEE TDSC 2011)"
    # A gap widens no cluster, so that a row which lacks everything fits everywhere.
    minds_gaps: ClassVar[bool] = False

    clusters: int = 50
    recent: int = 100
    kept: int = 0
    reuse: Literal["random", "best"] = "random"
    joins: Literal["together", "alone"] = "together"

    def __post_init__(self) -> None:
        self._at_least(1, "clusters", "recent")
        self._at_least(0, "kept")
        self._one_of("reuse", ("random", "best"))
        self._one_of("joins", ("together", "alone"))

    def _start(self, space: Space, seed: bytes) -> Engine:
        return CastleEngine(self, space, seed)


#: An open cluster: its number by birth (-1: the slot is free), how many subjects it has, and the
#: positions of its first and last row.
SLOT = np.dtype([("birth", "i8"), ("n_subjects", "i8"), ("first", "i8"), ("last", "i8")])
#: How many clusters are open; how many clusters, groups, instants and losses there have been; and
#: the mean of the latest losses.
MARKS = np.dtype(
    [
        ("n_open", "i8"),
        ("births", "i8"),
        ("groups", "i8"),
        ("instants", "i8"),
        ("losses", "i8"),
        ("threshold", "f8"),
    ]
)


class OpenClusters(NamedTuple):
    """The open clusters, each in a slot. Boxes have attributes along the first axis.

    The box of a free slot is empty and its loss is -infinity, so that every row enlarges it
    infinitely, and the search for the least enlargement needn't skip free slots.

    The rows of a cluster are a chain in order of arrival, by the ``following`` of held rows.
    """

    lo: Floats
    hi: Floats
    loss: Floats
    slots: Records


class CastleState(NamedTuple):
    """The whole state of a run of CASTLE."""

    held: Held
    open: OpenClusters
    counter: Records
    kept: KeptGroups
    recent: Floats
    marks: Records
    rng: Ints


class CastleRules(NamedTuple):
    """What doesn't change in a run of CASTLE: space, policy and knobs.

    ``best`` and ``together`` say how kept groups are reused: the one of least loss, and in company.
    ``hopeless`` says that diversity is required, and that rows which aren't diverse all together
    have no diverse part (not so with entropy, recursive diversity and measured criteria).
    """

    sides: Sides
    shown: Sides
    limits: Limits
    deadlines: Deadlines
    best: bool
    together: bool
    hopeless: bool


class CastleEngine(HoldingEngine):
    """One run of `Castle`."""

    state: CastleState

    def __init__(self, anonymizer: Castle, space: Space, seed: bytes) -> None:
        d = space.n_quasi
        best, together = anonymizer.reuse == "best", anonymizer.joins == "together"
        hopeless = bool(any_diversity(space.limits) and not breakable(space.limits))
        self._rules = CastleRules(
            space.sides, space.shown, space.limits, space.deadlines, best, together, hopeless
        )
        self._joins_last = anonymizer.kept > 0 and together
        slots = np.zeros(anonymizer.clusters, SLOT)
        slots["birth"] = slots["first"] = slots["last"] = -1
        state = CastleState(
            held=held.empty(d, space.n_sensitive, window=space.window.rows),
            open=OpenClusters(
                np.full((d, anonymizer.clusters), np.inf),
                np.full((d, anonymizer.clusters), -np.inf),
                np.full(anonymizer.clusters, -np.inf),
                slots,
            ),
            counter=counter.empty(2 * held.SMALLEST),
            kept=kept_groups.empty(anonymizer.kept, d, space.n_sensitive, space.limits),
            recent=np.zeros(anonymizer.recent),
            marks=np.zeros(1, MARKS),
            rng=rng.seeded(seed, "decide"),
        )
        super().__init__(space, state, seed)

    def _run(self, batch: InputBatch, out: Out) -> None:
        rules = self._rules._replace(limits=self._of_now(self._rules.limits))
        _run(rules, self.state, batch, out)


# -- arrivals -------------------------------------------------------------------------------------


@kernel
def _run(rules: CastleRules, state: CastleState, batch: InputBatch, out: Out) -> None:
    """Take in rows and fire deadlines, between the rows and after them."""
    joined = np.empty(len(state.open.slots))
    while True:
        due = next_event(state.held, rules.deadlines, batch, out)
        if due >= 0:
            _expire(rules, state, due, batch.at_end, out)
        elif due == COMES:
            row = arrival(state.held, batch)
            slot = _best_selection(rules, state, row.lo, row.hi, joined)
            if slot < 0:
                slot = _open_cluster(state)
            put(state.held, row, slot)
            _join_cluster(rules, state, slot)
        # The whole end of a stream is one instant.
        if (due == DONE) if batch.at_end else (due >= 0):
            state.marks["instants"][0] += 1
        if due == DONE:
            break


@kernel
def _best_selection(
    rules: CastleRules, state: CastleState, lo: Floats, hi: Floats, joined: Floats
) -> int:
    """Return the open cluster for a row, or -1 for a new one (thesis, bestSelection)."""
    clusters = state.open
    n = len(clusters.slots)
    if state.marks["n_open"][0] == 0:
        return -1
    joined_losses(rules.sides, clusters.lo, clusters.hi, n, lo, hi, joined)
    least = np.inf
    for c in range(n):
        if joined[c] - clusters.loss[c] < least:
            least = joined[c] - clusters.loss[c]
    best, within = -1, False
    for c in range(n):
        if joined[c] - clusters.loss[c] != least:
            continue
        fits = joined[c] <= state.marks["threshold"][0]
        if best < 0 or (fits and not within):
            best, within = c, fits
        elif fits == within and (
            clusters.slots["n_subjects"][c] < clusters.slots["n_subjects"][best]
            or (
                clusters.slots["n_subjects"][c] == clusters.slots["n_subjects"][best]
                and clusters.slots["birth"][c] < clusters.slots["birth"][best]
            )
        ):
            best = c
    if not within and state.marks["n_open"][0] < n:
        return -1
    return best


# -- clusters -------------------------------------------------------------------------------------


@kernel
def _open_cluster(state: CastleState) -> int:
    clusters = state.open
    slot = 0
    while clusters.slots["birth"][slot] >= 0:
        slot += 1
    clusters.slots["birth"][slot] = state.marks["births"][0]
    state.marks["n_open"][0] += 1
    state.marks["births"][0] += 1
    return slot


@kernel
def _free_slot(state: CastleState, slot: int) -> None:
    clusters = state.open
    for d in range(len(clusters.lo)):
        clusters.lo[d, slot] = np.inf
        clusters.hi[d, slot] = -np.inf
    clusters.loss[slot] = -np.inf
    clusters.slots["birth"][slot] = -1
    clusters.slots["n_subjects"][slot] = 0
    clusters.slots["first"][slot] = -1
    clusters.slots["last"][slot] = -1
    state.marks["n_open"][0] -= 1


@kernel
def _join_cluster(rules: CastleRules, state: CastleState, slot: int) -> None:
    """Add the latest row to a cluster."""
    clusters, rows = state.open, state.held
    position = rows.marks["upcoming"][0] - 1
    at = wrap(position, len(rows.rows))
    # The first row sets the box of the slot, even if all of its values are missing.
    widens = clusters.slots["last"][slot] < 0
    if widens:
        clusters.slots["first"][slot] = position
    else:
        state.held.rows["following"][wrap(clusters.slots["last"][slot], len(rows.rows))] = position
    clusters.slots["last"][slot] = position
    if counter.add(state.counter, slot, rows.rows["subject"][at]):
        clusters.slots["n_subjects"][slot] += 1
    if counter.add(state.counter, counter.EVERYWHERE, rows.rows["subject"][at]):
        state.held.marks["n_subjects"][0] += 1
    for d in range(len(clusters.lo)):
        if rows.lo[at, d] < clusters.lo[d, slot] or rows.hi[at, d] > clusters.hi[d, slot]:
            widens = True
    if widens:
        lo, hi = box_of(clusters.lo, slot), box_of(clusters.hi, slot)
        join(rules.sides, lo, hi, rows.lo[at], rows.hi[at])
        _set_box(rules, state, slot, lo, hi)


@kernel
def _set_box(rules: CastleRules, state: CastleState, slot: int, lo: Floats, hi: Floats) -> None:
    set_box(state.open.lo, slot, lo)
    set_box(state.open.hi, slot, hi)
    state.open.loss[slot] = box_loss(rules.sides, lo, hi)


@kernel
def _leave_cluster(rules: CastleRules, state: CastleState, position: int) -> None:
    """Remove a row from its cluster, and shrink the cluster's box to the others."""
    clusters, rows = state.open, state.held
    at = wrap(position, len(rows.rows))
    slot = rows.rows["cluster"][at]
    before, member = -1, clusters.slots["first"][slot]
    while member != position:
        before, member = member, rows.rows["following"][wrap(member, len(rows.rows))]
    if before < 0:
        clusters.slots["first"][slot] = rows.rows["following"][at]
    else:
        state.held.rows["following"][wrap(before, len(rows.rows))] = rows.rows["following"][at]
    if clusters.slots["last"][slot] == position:
        clusters.slots["last"][slot] = before
    if counter.remove(state.counter, slot, rows.rows["subject"][at]):
        clusters.slots["n_subjects"][slot] -= 1
    if counter.remove(state.counter, counter.EVERYWHERE, rows.rows["subject"][at]):
        state.held.marks["n_subjects"][0] -= 1
    forget(rows, position)
    member = clusters.slots["first"][slot]
    if member < 0:
        _free_slot(state, slot)
        return
    first = wrap(member, len(rows.rows))
    lo, hi = rows.lo[first].copy(), rows.hi[first].copy()
    old_lo, old_hi = box_of(clusters.lo, slot), box_of(clusters.hi, slot)
    # Where the row didn't reach an end of a range, another row does; and in a large cluster a few
    # rows reach as far as all do. So the loop below rarely visits all of them.
    for d in range(len(lo)):
        if rules.sides.attributes["first_leaf"][d] < 0:
            if rows.lo[at, d] > old_lo[d]:
                lo[d] = old_lo[d]
            if rows.hi[at, d] < old_hi[d]:
                hi[d] = old_hi[d]
    while member >= 0 and not covers(lo, hi, old_lo, old_hi):
        at = wrap(member, len(rows.rows))
        if not covers(lo, hi, rows.lo[at], rows.hi[at]):
            join(rules.sides, lo, hi, rows.lo[at], rows.hi[at])
        member = state.held.rows["following"][at]
    _set_box(rules, state, slot, lo, hi)


@kernel
def _members(state: CastleState, slots: Ints) -> Ints:
    """Return the positions of the rows of some clusters, in order of arrival."""
    n = 0
    for slot in slots:
        member = state.open.slots["first"][slot]
        while member >= 0:
            n += 1
            member = state.held.rows["following"][wrap(member, len(state.held.rows))]
    positions = np.empty(n, np.int64)
    n = 0
    for slot in slots:
        member = state.open.slots["first"][slot]
        while member >= 0:
            positions[n] = member
            n += 1
            member = state.held.rows["following"][wrap(member, len(state.held.rows))]
    return in_order(positions) if len(slots) > 1 else positions


@kernel
def _open_slots(state: CastleState) -> Ints:
    slots = np.empty(state.marks["n_open"][0], np.int64)
    n = 0
    for slot in range(len(state.open.slots)):
        if state.open.slots["birth"][slot] >= 0:
            slots[n] = slot
            n += 1
    return slots


# -- deadlines ------------------------------------------------------------------------------------


@kernel
def _expire(rules: CastleRules, state: CastleState, position: int, at_end: bool, out: Out) -> None:
    """Decide a row whose time is up (thesis, delayConstraint)."""
    rows = state.held
    slot = rows.rows["cluster"][wrap(position, len(rows.rows))]
    slots = np.array([slot])
    enough = state.open.slots["n_subjects"][slot] >= rules.limits.k
    if not (enough and may_be_group(rules.limits, state.held, _members(state, slots))):
        any_kept = state.kept.marks["n_kept"][0] > 0
        least = ENOUGH if rules.together else ALONE
        if any_kept and _reuse(rules, state, position, least, out):
            return
        slots = _merge(rules, state, slot)
        if len(slots) == 0:
            # The last resort is a kept group, with whatever company there is.
            last = rules.together and any_kept
            if not (last and _reuse(rules, state, position, ANY, out)):
                gaps = rows.rows["gaps"][wrap(position, len(rows.rows))]
                decide(out, position, SUPPRESSED, -1, state.marks["instants"][0], gaps)
                _leave_cluster(rules, state, position)
            return
    _output(rules, state, _take_out(rules, state, slots, at_end), out)


@on_demand
def _reuse(rules: CastleRules, state: CastleState, due: int, least: int, out: Out) -> bool:
    """Let a row join a kept group, with others as its company; return whether it could."""
    rows, candidates = state.held, np.full(1, due)
    if least != ALONE:
        candidates = _members(state, _small_slots(rules, state))
    positions, groups = find_joins(
        state.kept, rules.limits, rows, candidates, 0, rules.best, np.inf, least, state.rng
    )
    for i in range(len(positions)):
        shown, lo, hi = used_again(state.kept, groups[i], window_of(rows))
        box = write_box(out, lo, hi, shown)
        gaps = rows.rows["gaps"][wrap(positions[i], len(rows.rows))]
        decide(out, positions[i], REUSE, box, state.marks["instants"][0], gaps)
        _leave_cluster(rules, state, positions[i])
    return len(positions) > 0


@kernel
def _small_slots(rules: CastleRules, state: CastleState) -> Ints:
    """Return the clusters that can't be a group: their rows would join kept groups if due."""
    slots, n = _open_slots(state), 0
    for slot in slots:
        enough = state.open.slots["n_subjects"][slot] >= rules.limits.k
        if not (
            enough and may_be_group(rules.limits, state.held, _members(state, np.full(1, slot)))
        ):
            slots[n] = slot
            n += 1
    return slots[:n]


@kernel
def _merge(rules: CastleRules, state: CastleState, slot: int) -> Ints:
    """Return a cluster and the nearest others that may be a group with it, or none if none may."""
    clusters = state.open
    n = len(clusters.slots)
    chosen = np.empty(state.marks["n_open"][0], np.int64)
    chosen[0] = slot
    n_chosen = 1
    taken = np.zeros(n, np.bool_)
    taken[slot] = True
    lo, hi = box_of(clusters.lo, slot), box_of(clusters.hi, slot)
    loss = clusters.loss[slot]
    joined = np.empty(n)
    if state.held.marks["n_subjects"][0] < rules.limits.k:
        return chosen[:0]
    if rules.hopeless and not may_be_group(
        rules.limits, state.held, _members(state, _open_slots(state))
    ):
        return chosen[:0]
    at_most = clusters.slots["n_subjects"][slot]
    while n_chosen < state.marks["n_open"][0]:
        joined_losses(rules.sides, clusters.lo, clusters.hi, n, lo, hi, joined)
        nearest = -1
        for c in range(n):
            if clusters.slots["birth"][c] < 0 or taken[c]:
                continue
            if (
                nearest < 0
                or joined[c] - loss < joined[nearest] - loss
                or (
                    joined[c] - loss == joined[nearest] - loss
                    and clusters.slots["birth"][c] < clusters.slots["birth"][nearest]
                )
            ):
                nearest = c
        taken[nearest] = True
        chosen[n_chosen] = nearest
        n_chosen += 1
        join(rules.sides, lo, hi, box_of(clusters.lo, nearest), box_of(clusters.hi, nearest))
        loss = box_loss(rules.sides, lo, hi)
        # A subject may lie in several clusters, so the sum is only an upper bound.
        at_most += clusters.slots["n_subjects"][nearest]
        if at_most >= rules.limits.k and may_be_group(
            rules.limits, state.held, _members(state, chosen[:n_chosen])
        ):
            return chosen[:n_chosen]
    return chosen[:0]


@kernel
def _take_out(rules: CastleRules, state: CastleState, slots: Ints, at_end: bool) -> Ints:
    """Close clusters and return their rows.

    At the end of a stream, the rest of the rows is added if it can't be a group alone.
    """
    positions = _members(state, slots)
    _close_clusters(state, slots, positions)
    few = REMAINDER * needed(rules.limits)
    if at_end and state.marks["n_open"][0] > 0 and state.held.marks["n_subjects"][0] < few:
        rest = _open_slots(state)
        others = _members(state, rest)
        everything = np.empty(len(positions) + len(others), np.int64)
        for i in range(len(positions)):
            everything[i] = positions[i]
        for i in range(len(others)):
            everything[len(positions) + i] = others[i]
        everything = in_order(everything)
        if not may_be_group(rules.limits, state.held, others) and may_be_group(
            rules.limits, state.held, everything
        ):
            _close_clusters(state, rest, others)
            return everything
    return positions


@kernel
def _close_clusters(state: CastleState, slots: Ints, positions: Ints) -> None:
    for position in positions:
        at = wrap(position, len(state.held.rows))
        counter.remove(
            state.counter, state.held.rows["cluster"][at], state.held.rows["subject"][at]
        )
        if counter.remove(state.counter, counter.EVERYWHERE, state.held.rows["subject"][at]):
            state.held.marks["n_subjects"][0] -= 1
    for slot in slots:
        _free_slot(state, slot)


# -- groups ---------------------------------------------------------------------------------------


@kernel
def _output(rules: CastleRules, state: CastleState, positions: Ints, out: Out) -> None:
    """Publish rows as one group, or as several where there are enough (thesis, outputCluster)."""
    rows, limits = gather(state.held, positions), rules.limits
    part = np.zeros(len(positions), np.int64)
    n_parts = 1
    if count_subjects(rows.subjects) >= 2 * needed(limits):
        if any_diversity(limits):
            n_parts = diverse_parts(rules.sides, limits, state.rng, rows, part)
        else:
            n_parts = by_subjects(rules.sides, limits.k, state.rng, rows, part)
            n_parts = repair_parts(rules.sides, limits, rows, part, n_parts)
    order = order_of(part.astype(np.float64))
    begin = 0
    for p in range(n_parts):
        end = begin
        while end < len(order) and part[order[end]] == p:
            end += 1
        members = order[begin:end]
        lo, hi = hull(rules.sides, rows.lo, rows.hi, members)
        # Which rows may join the group later must depend on the published box only.
        join(rules.shown, lo, hi, lo, hi)
        loss = box_loss(rules.sides, lo, hi)
        subjects, sensitive = picked(rows.subjects, members), picked_rows(rows.sensitive, members)
        n_subjects = count_subjects(subjects)
        group = state.marks["groups"][0]
        gaps = rows.gaps[members[0]]
        for member in members:
            gaps |= rows.gaps[member]
        mean = mean_loss(rules.sides, lo, hi)
        shown = Box(mean, group, len(members), n_subjects, gaps, window_of(state.held))
        box = write_box(out, lo, hi, shown)
        for member in members:
            decide(
                out, positions[member], GROUP, box, state.marks["instants"][0], rows.gaps[member]
            )
            forget(state.held, positions[member])
        _move_threshold(state, loss)
        if loss <= state.marks["threshold"][0] and len(state.kept.groups) > 0:
            since = out.progress["published"][0]
            keep(state.kept, lo, hi, shown, since, subjects, sensitive)
        state.marks["groups"][0] += 1
        begin = end


@kernel
def _move_threshold(state: CastleState, loss: float) -> None:
    """Set the threshold to the mean loss of the latest groups, summed from the oldest on."""
    recent, n = state.recent, state.marks["losses"][0]
    recent[n % len(recent)] = loss
    n += 1
    state.marks["losses"][0] = n
    total = 0.0
    for i in range(max(0, n - len(recent)), n):
        total += recent[i % len(recent)]
    state.marks["threshold"][0] = total / min(n, len(recent))
