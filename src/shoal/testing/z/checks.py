"""The checks of what is published, for anonymizers that publish cells.

Subjects are counted as the anonymizer's knob ``count`` says, and alike with ``k`` others; one
without such knobs counts the residual, and k = 2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from shoal.engine.base import Anonymizer, Decisions
from shoal.engine.decisions import HIDDEN, MISSING
from shoal.testing.require import ROUNDING, require
from shoal.testing.streams import Stream, play, steps
from shoal.testing.z.definitions import (
    Count,
    ExposureHistory,
    NodeSubjects,
    alike,
    behind,
    finest,
    path,
)

__all__ = ["judge_cells", "require_at_once", "require_finest", "require_missing"]


def _count(anonymizer: Anonymizer) -> Count:
    return "plain" if getattr(anonymizer, "count", "residual") == "plain" else "residual"


def _levels(decided: Decisions) -> Mapping[int, Sequence[int]]:
    return dict(zip(decided.rows.tolist(), decided.levels.tolist(), strict=True))


def _crowds(
    count: Count, windows: ExposureHistory, levels: Mapping[int, Sequence[int]], row: int, z: int
) -> NodeSubjects:
    """Return the subjects of each node when a row is decided, after what was published before."""
    shown = windows.shown(row, levels) if count == "residual" else {}
    return behind(windows.leaves(row, included=False), z, count, shown)


def judge_cells(anonymizer: Anonymizer, stream: Stream, decided: Decisions) -> None:
    """Check that every published cell has z subjects in its window, and as many as it says.

    The z in force is the policy's or larger, and changes with an estimate only, which must be right
    about the window.
    """
    windows, published = ExposureHistory(stream), _levels(decided)
    _judge_estimates(anonymizer, stream, windows, decided)
    for i, row in enumerate(decided.rows.tolist()):
        z = int(decided.z[i])
        crowds = _crowds(_count(anonymizer), windows, published, row, z)
        for d, level in enumerate(decided.levels[i].tolist()):
            name = f"'{stream.schema.quasi[d].name}' of row {row}"
            keys, said = windows.cells[row][d], int(decided.n_behind[i, d])
            if level < 0:
                require(said == 0, f"{said} subjects stand behind {name}, which isn't published")
                continue
            require(keys is not None, f"{name} is published, and is missing")
            nodes = path((d, keys or ()))
            require(level < len(nodes), f"{name} is published at a level that its ladder lacks")
            n = len(crowds.get(nodes[level], set()) | {windows.subjects[row]})
            require(n >= z, f"{name} is published with {n} subjects behind it, and z is {z}")
            require(said == n, f"{name} says that {said} subjects stand behind it, and {n} do")


def _judge_estimates(
    anonymizer: Anonymizer, stream: Stream, windows: ExposureHistory, decided: Decisions
) -> None:
    z, moves = stream.policy.z, {}
    published = _levels(decided)
    arrived = stream.arrivals()
    for estimate in decided.estimates:
        row = int(estimate["row"])
        require(row not in moves, f"there are two estimates before row {row}")
        require(estimate["before"] == z, f"the estimate before row {row} has another z before it")
        z = moves[row] = int(estimate["z"])
        require(z >= stream.policy.z, f"z sinks below the policy's before row {row}")
        require(
            np.array_equal(estimate["time"], arrived[row], equal_nan=True),
            f"the estimate before row {row} has another time",
        )
        seen = alike(
            windows.leaves(row, included=False),
            z,
            getattr(anonymizer, "k", 2),
            windows.shown(row, published),
        )
        said = (
            int(estimate["n_subjects"]),
            float(estimate["share"]),
            float(estimate["entropy"]),
        )
        for what, true, claimed in zip(seen._fields, seen, said, strict=True):
            require(
                abs(true - claimed) <= ROUNDING,
                f"the estimate before row {row} has another {what} than the window",
            )
    z = stream.policy.z
    for row, in_force in zip(decided.rows.tolist(), decided.z.tolist(), strict=True):
        z = moves.get(row, z)
        require(in_force == z, f"row {row} is decided with another z than the one in force")


def require_finest(anonymizer: Anonymizer, stream: Stream) -> None:
    """Check that a cell is published at the finest level allowed, and that the loss is right."""
    decided = play(anonymizer, stream, cuts=stream.cuts)
    windows, published = ExposureHistory(stream), _levels(decided)
    for i, row in enumerate(decided.rows.tolist()):
        z = int(decided.z[i])
        crowds = _crowds(_count(anonymizer), windows, published, row, z)
        lost = []
        for d, keys in enumerate(windows.cells[row]):
            if keys is None:
                continue
            may_be = finest((d, keys), windows.subjects[row], crowds, z)
            level = int(decided.levels[i, d])
            require(
                level == (HIDDEN if may_be is None else may_be),
                f"'{stream.schema.quasi[d].name}' of row {row} isn't published at the finest level "
                "that may be",
            )
            lost.append(1.0 if level < 0 else level / len(keys))
        loss = sum(lost) / len(lost) if lost else 1.0
        require(
            abs(float(decided.losses[i]) - loss) <= ROUNDING,
            f"row {row} loses something else than it says",
        )


def require_missing(anonymizer: Anonymizer, stream: Stream) -> None:
    """Check that a cell is called missing if and only if it is."""
    decided = play(anonymizer, stream, cuts=stream.cuts)
    cells = ExposureHistory(stream).cells
    for row, levels in zip(decided.rows.tolist(), decided.levels.tolist(), strict=True):
        lacks = [keys is None for keys in cells[row]]
        said = [level == MISSING for level in levels]
        require(lacks == said, f"row {row} reports other missing values than it has")


def require_at_once(anonymizer: Anonymizer, stream: Stream) -> None:
    """Check that rows are decided by the push that brings them, in their order."""
    engine = stream.start(anonymizer)
    arrived = stream.arrivals()
    for move, decided in steps(engine, stream, stream.cuts):
        rows = np.arange(move.begin, move.end)
        require(
            np.array_equal(decided.rows, rows),
            f"rows {move.begin} to {move.end} aren't decided at once and in order",
        )
        require(np.array_equal(decided.published, rows), "a row isn't published when it comes")
        require(
            np.array_equal(decided.published_s, arrived[rows], equal_nan=True),
            "a row isn't published at the latest time seen when it comes",
        )
        require(engine.n_held == 0, f"{engine.n_held} rows are held")
        require(engine.next_deadline is None, "an engine that holds nothing has a deadline")
