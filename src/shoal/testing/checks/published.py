"""Checks of what is published: groups, boxes, counts and delays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shoal.engine.base import Anonymizer, Decisions, Outcome
from shoal.engine.kernels.arrays import Floats
from shoal.spec.hierarchy import Hierarchy, Range
from shoal.spec.policy import Delay, Window
from shoal.spec.schema import Quasi
from shoal.testing.definitions import broken
from shoal.testing.require import ROUNDING, require
from shoal.testing.streams import Stream, play, steps
from shoal.testing.z.checks import (
    judge_cells,
    require_at_once,
    require_finest,
    require_missing,
)

__all__ = [
    "by_box",
    "check_conservation",
    "check_cover",
    "check_delay",
    "check_gaps",
    "check_promise",
    "judge",
    "judge_groups",
]


def check_promise(anonymizer: Anonymizer, stream: Stream) -> None:
    """Check that every group keeps the policy when it is released, and after every reuse.

    An anonymizer that has a knob ``kept`` reuses no group if that is 0.

    Measured criteria are judged against the window that a decision names, which must be one that
    the anonymizer may use. Where cells are published, z subjects must have exposed each.
    """
    judge(anonymizer, stream, play(anonymizer, stream, cuts=stream.cuts))


def judge(anonymizer: Anonymizer, stream: Stream, decided: Decisions) -> None:
    """Check that everything that these decisions publish keeps the policy."""
    judge_all = judge_cells if anonymizer.publishes == "values" else judge_groups
    judge_all(anonymizer, stream, decided)


def judge_groups(anonymizer: Anonymizer, stream: Stream, decided: Decisions) -> None:
    """Check that every group in these decisions keeps the policy, and that its counts are right.

    Rows that join kept groups at one instant leave together, in no order: a group is judged after
    all of them.
    """
    members: dict[int, list[int]] = {}
    joined: dict[int, int] = {}
    seen = dict(zip(decided.boxes.tolist(), decided.published.tolist(), strict=True))
    instants = dict(zip(decided.boxes.tolist(), decided.instants.tolist(), strict=True))

    def require_window(box: int, group: int) -> list[int]:
        rows, end = members[group], int(decided.windows[box])
        _require_window(anonymizer, stream, group, end, seen[box], rows)
        return rows

    def judge(box: int, group: int, when: str) -> None:
        rows, end = require_window(box, group), int(decided.windows[box])
        begin = max(0, end - _n_latest(stream))
        what = broken(
            stream.policy,
            stream.schema,
            stream.codes.subjects[rows].tolist(),
            stream.codes.sensitive[rows].tolist(),
            stream.codes.sensitive[begin:end].tolist(),
        )
        require(what is None, f"group {group} breaks {what} {when}")

    def judge_joined() -> None:
        for group, box in joined.items():
            judge(box, group, "after a reuse")
        joined.clear()

    instant = -1
    for box, rows, outcome in by_box(decided):
        if instants[box] != instant:
            judge_joined()
            instant = instants[box]
        group = int(decided.groups[box])
        if outcome == Outcome.group:
            require(group not in members, f"group {group} is released twice")
            members[group] = rows
            judge(box, group, "at its release")
            n_subjects = len(set(stream.codes.subjects[rows].tolist()))
            counts = (int(decided.n_rows[box]), int(decided.n_subjects[box]))
            require(
                counts == (len(rows), n_subjects),
                f"group {group} says it has {counts[0]} rows of {counts[1]} subjects, "
                f"and has {len(rows)} of {n_subjects}",
            )
        else:
            require(group in members, f"a row reuses group {group} before there is one")
            require(getattr(anonymizer, "kept", 1) > 0, "a row reuses a group, and none is kept")
            members[group] += rows
            require_window(box, group)
            joined[group] = box
    judge_joined()


def _n_latest(stream: Stream) -> int:
    """Return how many rows a window has."""
    window = stream.policy.window
    return window.rows if isinstance(window, Window) else len(stream)


def _require_window(
    anonymizer: Anonymizer, stream: Stream, group: int, end: int, published: int, rows: list[int]
) -> None:
    """Check that a window is named if anything is measured, and that it can be right."""
    if not stream.policy.measured:
        require(end == -1, f"group {group} names a window, and nothing is measured")
        return
    require(
        max(rows) < end <= min(published + 1, len(stream)),
        f"the window of group {group} ends before its rows, or with rows that hadn't come",
    )
    if anonymizer.publishes == "rows":
        require(end >= published, f"group {group} isn't measured against the latest rows")
    elif anonymizer.publishes == "table":
        require(end == len(stream), f"group {group} isn't measured against the whole table")
    else:
        begin = end - _n_latest(stream)
        require(min(rows) >= begin, f"group {group} has rows from before its window")


def by_box(decided: Decisions) -> list[tuple[int, list[int], int]]:
    """Return for each box, in order: its number, its rows in their order, and their outcome."""
    boxes: list[tuple[int, list[int], int]] = []
    for row, outcome, box in zip(decided.rows, decided.outcomes, decided.boxes, strict=True):
        if box >= 0 and boxes and boxes[-1][0] == box:
            boxes[-1][1].append(int(row))
        elif box >= 0:
            boxes.append((int(box), [int(row)], int(outcome)))
    return boxes


def check_conservation(anonymizer: Anonymizer, stream: Stream) -> None:
    """Check that each row is decided once, all in the end, and that the others are held."""
    engine = stream.start(anonymizer)
    fate: dict[int, int] = {}
    instant = -1
    what = "a cell" if anonymizer.publishes == "values" else "a box"
    for move, decided in steps(engine, stream, stream.cuts):
        for i, row in enumerate(decided.rows.tolist()):
            require(0 <= row < move.end, f"row {row} is decided before it has arrived")
            require(row not in fate, f"row {row} is decided twice")
            fate[row] = int(decided.outcomes[i])
            suppressed = fate[row] == Outcome.suppressed
            require(fate[row] in tuple(Outcome), f"row {row} has no known outcome")
            require(
                suppressed != _is_shown(anonymizer, decided, i),
                f"row {row} is {'suppressed with' if suppressed else 'published without'} {what}",
            )
            require(int(decided.instants[i]) >= instant, f"row {row} is decided in the past")
            instant = int(decided.instants[i])
        n_held = move.end - len(fate)
        require(
            engine.n_held == n_held, f"{n_held} rows are undecided and {engine.n_held} are held"
        )
        # Rows that join kept groups come last in their instant, and so do their boxes.
        used = sorted(box for box, _, _ in by_box(decided))
        require(used == list(range(len(decided.lo))), "a box has no rows, or its rows lie apart")
    require(len(fate) == len(stream), f"{len(stream) - len(fate)} rows are lost at the end")
    require(len(engine.flush().rows) == 0, "a second flush decides something")


def _is_shown(anonymizer: Anonymizer, decided: Decisions, i: int) -> bool:
    """Return whether a decided row is published, at least in part."""
    if anonymizer.publishes == "values":
        return bool((decided.levels[i] >= 0).any())
    return bool(decided.boxes[i] >= 0)


def check_cover(anonymizer: Anonymizer, stream: Stream) -> None:
    """Check that a box covers its rows, shows nodes and steps only, and that its loss is right.

    Where a value is missing the whole domain must be covered, or, under "maybe", nothing: a side is
    empty exactly if no row of the group has a value for it. Where cells are published, each must be
    at the finest level that is allowed.
    """
    if anonymizer.publishes == "values":
        require_finest(anonymizer, stream)
        return
    decided = play(anonymizer, stream, cuts=stream.cuts)
    quasi = stream.schema.quasi
    maybe = stream.policy.missing == "maybe"
    shown: dict[int, bytes] = {}
    for box, rows, outcome in by_box(decided):
        group = int(decided.groups[box])
        lo, hi = decided.lo[box], decided.hi[box]
        valid: set[int] = set()
        for d, attribute in enumerate(quasi):
            name = f"the side '{attribute.name}' of group {group}"
            values = stream.codes.values[rows, d]
            if maybe and lo[d] == np.inf and hi[d] == -np.inf:
                require(bool(np.isnan(values).all()), f"{name} is empty, and has values")
                continue
            valid.add(d)
            require(lo[d] <= hi[d], f"{name} ends before it begins")
            require(
                _is_public(attribute.sided, lo[d], hi[d]),
                f"{name} is no node, or has an edge off the step or out of the range",
            )
            if maybe and outcome == Outcome.group:
                require(not np.isnan(values).all(), f"{name} shows what no row has")
            for row, value in zip(rows, values.tolist(), strict=True):
                if np.isnan(value) and maybe:
                    continue
                own = (value, value)
                if np.isnan(value):
                    own = _whole(attribute.sided)
                elif isinstance(attribute.sided, Range):
                    own = attribute.sided.snap(value, value)
                require(lo[d] <= own[0] and own[1] <= hi[d], f"{name} doesn't cover row {row}")
        loss = float(decided.loss[box])
        require(-ROUNDING <= loss <= 1 + ROUNDING, f"group {group} has a loss outside of 0 to 1")
        require(
            abs(loss - _loss(quasi, lo, hi, anonymizer.loss, valid)) <= ROUNDING,
            f"group {group} has another loss than it says",
        )
        bits = lo.tobytes() + hi.tobytes()
        require(shown.setdefault(group, bits) == bits, f"group {group} is shown with two boxes")


def check_gaps(anonymizer: Anonymizer, stream: Stream) -> None:
    """Check the missing values of each decision, and its loss where it has values.

    Also after rows were shuffled; and a box has the missing values of all rows of its group.
    """
    if anonymizer.publishes == "values":
        require_missing(anonymizer, stream)
        return
    decided = play(anonymizer, stream, cuts=stream.cuts)
    quasi = stream.schema.quasi
    group_gaps: dict[int, int] = {}
    for i, row in enumerate(decided.rows.tolist()):
        lacks = {d for d in range(len(quasi)) if np.isnan(stream.codes.values[row, d])}
        gaps = sum(1 << d for d in lacks)
        require(decided.gaps[i] == gaps, f"row {row} reports other missing values than it has")
        box, loss = int(decided.boxes[i]), 1.0
        if box >= 0:
            valid = {*range(len(quasi))} - lacks
            loss = _loss(quasi, decided.lo[box], decided.hi[box], anonymizer.loss, valid)
            if decided.outcomes[i] == Outcome.group:
                group = int(decided.groups[box])
                group_gaps[group] = group_gaps.get(group, 0) | gaps
        require(
            abs(float(decided.losses[i]) - loss) <= ROUNDING,
            f"row {row} loses something else than it says",
        )
    for group, lacks in zip(decided.groups.tolist(), decided.box_gaps.tolist(), strict=True):
        require(
            group_gaps.get(group) == lacks, f"group {group} doesn't know which values its rows lack"
        )


def _whole(domain: Hierarchy | Range) -> tuple[float, float]:
    if isinstance(domain, Range):
        return domain.lo, domain.hi
    return 0.0, len(domain) - 1.0


def _is_public(domain: Hierarchy | Range, lo: float, hi: float) -> bool:
    if isinstance(domain, Hierarchy):
        node = domain.cover(int(lo), int(hi))
        return (domain.lows[node], domain.highs[node]) == (lo, hi)
    if not domain.lo <= lo <= hi <= domain.hi:
        return False
    return domain.step is None or all(
        edge in (domain.lo, domain.hi)
        or abs(edge / domain.step - round(edge / domain.step)) <= ROUNDING * max(1, abs(edge))
        for edge in (lo, hi)
    )


def _loss(quasi: Sequence[Quasi], lo: Floats, hi: Floats, measure: str, valid: set[int]) -> float:
    """Return the loss of a box by the definitions, over some of its sides; 0 if there are none."""
    total = 0.0
    for d in valid:
        attribute, low, high = quasi[d], float(lo[d]), float(hi[d])
        domain = attribute.sided
        if isinstance(domain, Range):
            side = (high - low) / (domain.hi - domain.lo)
        elif high == low:
            side = 0.0
        elif measure == "glm":
            side = (high - low + 1) / len(domain)
        else:
            side = (high - low) / (len(domain) - 1)
        total += attribute.weight * side
    return total / sum(quasi[d].weight for d in valid) if valid else 0.0


def check_delay(anonymizer: Anonymizer, stream: Stream) -> None:
    """Check that no row is held longer than the policy allows, in rows and in seconds.

    The stream is played row by row, so the moments that an engine reports can be compared with the
    real ones. Where cells are published, no row is held at all.
    """
    if anonymizer.publishes == "values":
        require_at_once(anonymizer, stream)
        return
    delay = stream.policy.delay or Delay(rows=len(stream) + 1)
    seconds = np.inf if delay.seconds is None else delay.seconds
    rows = np.inf if delay.rows is None else delay.rows
    arrived = stream.arrivals()
    held: dict[int, float] = {}
    now = -np.inf
    engine = stream.start(anonymizer)
    for move, decided in steps(engine, stream, stream.row_by_row()):
        if move.verb == "push" and move.end > move.begin:
            held[move.begin] = float(arrived[move.begin])
            now = np.fmax(now, arrived[move.begin])
        elif move.verb == "advance":
            now = max(now, move.now)
        for i, row in enumerate(decided.rows.tolist()):
            time = held.pop(row)
            published, published_s = int(decided.published[i]), float(decided.published_s[i])
            require(published == move.begin, f"row {row} wasn't decided at {published}")
            require(published - row <= rows, f"row {row} was held for {published - row} rows")
            if np.isnan(time):
                require(np.isnan(published_s), f"row {row} has no time, and a time of decision")
                continue
            require(time <= published_s <= now, f"row {row} wasn't decided when it says")
            require(published_s <= time + seconds, f"row {row} was held for too many seconds")
        for row, time in held.items():
            late = move.end - 1 - row
            require(late < rows, f"row {row} is still held after {late} rows")
            require(not time + seconds <= now, f"row {row} is still held when its time is up")
        due = min((time + seconds for time in held.values()), default=np.inf)
        if due < np.inf:
            require(
                engine.next_deadline is not None and engine.next_deadline <= due,
                "next_deadline is later than the deadline of a row that is held",
            )
