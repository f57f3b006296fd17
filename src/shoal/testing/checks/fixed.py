"""Checks with a stream of their own: long ones, statistical ones, and refusals."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from dataclasses import dataclass
from itertools import product
from typing import ClassVar

from shoal.engine.base import Anonymizer, Engine, Outcome
from shoal.engine.jit import IS_PLAIN
from shoal.errors import UnsupportedError
from shoal.spec.policy import Criterion, Delay, KAnonymity, Policy, Window
from shoal.testing._digest import digest
from shoal.testing.checks.published import by_box
from shoal.testing.hostile import (
    can_measure,
    hostile_streams,
    measured_streams,
    steady_stream,
    streams_with_gaps,
)
from shoal.testing.require import require
from shoal.testing.streams import play, steps
from shoal.testing.z.hostile import cell_streams, flood

__all__ = ["check_jit_equals_python", "check_memory", "check_order", "check_refuses"]


def check_memory(anonymizer: Anonymizer) -> None:
    """Check that neither state nor snapshot of an engine grow with the number of people.

    Where cells are published, also that they shrink after a flood of new values. A whole table does
    grow; the check doesn't apply to it.
    """
    if anonymizer.publishes == "values":
        _require_shrinks(anonymizer)
    delays, measured = (Delay(rows=60), Delay(seconds=60.0)), {False, can_measure(type(anonymizer))}
    for delay, against_a_window in product(delays, sorted(measured)):
        if against_a_window and anonymizer.publishes == "rows":
            # No row may outlive the window that it is measured against.
            delay = Delay(rows=60, seconds=delay.seconds)
        stream = steady_stream(type(anonymizer), 600, delay=delay, measured=against_a_window)
        engine = stream.start(anonymizer)
        after: dict[int, int] = {}
        for move, _ in steps(engine, stream, range(0, 601, 30)):
            if move.verb == "push":
                after[move.end] = _n_bytes(engine)
        require(
            after[600] <= after[300],
            f"after 10 delays the state has {after[600]} bytes, after 5 it had {after[300]}",
        )


def _require_shrinks(anonymizer: Anonymizer) -> None:
    """Check that an engine shrinks after a flood of new values."""
    stream, quiet = flood(type(anonymizer), 400, 200)
    engine = stream.start(anonymizer)
    after = {
        move.end: _n_bytes(engine) for move, _ in steps(engine, stream, range(0, len(stream), 20))
    }
    require(
        4 * after[len(stream)] <= after[quiet],
        f"at the end of a flood the state has {after[quiet]} bytes, and long after it still "
        f"{after[len(stream)]}",
    )


def _n_bytes(engine: Engine) -> int:
    return sum(array.nbytes for array in engine.snapshot().values())


def check_order(anonymizer: Anonymizer) -> None:
    """Check that the order inside a group doesn't disclose who came first.

    Over all groups, the row that is published first is the one that came first as often as by
    chance, within four standard deviations; likewise the last.
    """
    stream = steady_stream(type(anonymizer), 1200, delay=Delay(rows=60))
    groups = [
        rows
        for _, rows, outcome in by_box(play(anonymizer, stream))
        if outcome == Outcome.group and len(rows) > 1
    ]
    require(len(groups) >= 30, f"there are {len(groups)} groups, too few to tell")
    chances = [1 / len(rows) for rows in groups]
    expected = sum(chances)
    allowed = 4 * sum(chance * (1 - chance) for chance in chances) ** 0.5
    for which, hits in (
        ("first", sum(rows[0] == min(rows) for rows in groups)),
        ("last", sum(rows[-1] == max(rows) for rows in groups)),
    ):
        require(
            abs(hits - expected) <= allowed,
            f"in {hits} of {len(groups)} groups the {which} row came {which}; "
            f"chance would have it {expected:.0f} times",
        )


@dataclass(frozen=True, slots=True)
class _Unknown(Criterion):
    """A criterion that no anonymizer can know."""

    name: ClassVar[str] = "an unknown criterion"


def check_refuses(anonymizer: Anonymizer) -> None:
    """Check that a policy that can't be enforced is refused at the start."""
    stream = steady_stream(type(anonymizer), 0)
    for policy in _refused(anonymizer, stream.policy):
        try:
            anonymizer.start(stream.schema, policy)
        except UnsupportedError as error:
            require(anonymizer.name in str(error), "a refusal doesn't name the anonymizer")
        else:
            raise AssertionError(f"the anonymizer starts with {policy!r}")


def _refused(anonymizer: Anonymizer, promised: Policy) -> list[Policy]:
    """Return policies that an anonymizer can't enforce, made from one that it can."""
    criteria, delay, window = promised.criteria, promised.delay, promised.window
    if anonymizer.publishes == "values":
        return [
            Policy(_Unknown()),
            Policy(KAnonymity(2), delay=Delay(rows=40)),
            Policy(*criteria, window=window, missing="extended"),
        ]
    refused = [Policy(*criteria, _Unknown(), delay=delay, window=window)]
    if anonymizer.needs_delay and anonymizer.publishes != "table":
        refused.append(Policy(*criteria, window=window))
    if anonymizer.publishes == "table":
        passing = Window(rows=20, advance=10) if promised.measured else None
        refused.append(Policy(*criteria, delay=Delay(rows=40), window=passing))
    else:
        refused.append(Policy(*criteria, window="all"))
    if anonymizer.publishes == "windows":
        refused.append(Policy(*criteria, window=Window(rows=20)))
    return refused


def check_jit_equals_python(anonymizer: Anonymizer) -> None:
    """Check that compiled code and plain Python decide alike, to the last bit.

    One of the two is this process, the other a process of its own, so the anonymizer must be
    importable.
    """
    streams = (
        *measured_streams(type(anonymizer)).values(),
        hostile_streams(type(anonymizer))["one subject in every cluster"],
        steady_stream(type(anonymizer), 200, n_subjects=50),
        *streams_with_gaps(type(anonymizer)).values(),
        *cell_streams(type(anonymizer)).values(),
    )
    here = [digest(play(anonymizer, each)) for each in streams]
    flag = "0" if IS_PLAIN else "1"
    path = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run(
        [sys.executable, "-m", "shoal.testing._digest"],
        input=pickle.dumps((anonymizer, streams)),
        env={**os.environ, "NUMBA_DISABLE_JIT": flag, "PYTHONPATH": path},
        capture_output=True,
        check=True,
    )
    require(
        done.stdout.decode().split() == here, "compiled code and plain Python decide differently"
    )
