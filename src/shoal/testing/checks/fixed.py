"""Checks that bring their own stream: long ones, statistical ones, and refusals."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from dataclasses import dataclass
from itertools import product
from typing import ClassVar

from numba.extending import is_jitted

from shoal.engine.base import Anonymizer, Engine, Outcome, decide
from shoal.errors import UnsupportedError
from shoal.spec.policy import Criterion, Delay, KAnonymity, Policy, Window
from shoal.testing._digest import digest
from shoal.testing.checks.published import by_box
from shoal.testing.checks.require import require
from shoal.testing.hostile import (
    able,
    gappy_streams,
    hostile_streams,
    measured_streams,
    steady_stream,
)
from shoal.testing.streams import play, steps
from shoal.testing.z.hostile import cell_streams, flood

__all__ = ["check_jit_equals_python", "check_memory", "check_order", "check_refuses"]


def check_memory(anonymizer: Anonymizer) -> None:
    """Fed with new people for ever, an engine doesn't grow: neither its state nor its snapshot.

    Where values are published one by one it isn't fed with new values only: after a flood it
    becomes small again. A whole table does grow, and isn't asked.
    """
    if anonymizer.publishes == "values":
        _require_ebb(anonymizer)
    delays, measured = (Delay(rows=60), Delay(seconds=60.0)), {False, able(type(anonymizer))}
    for delay, against_a_window in product(delays, sorted(measured)):
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


def _require_ebb(anonymizer: Anonymizer) -> None:
    """New values for ever don't make an engine grow, and after a flood of them it shrinks."""
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
    """The order inside a group doesn't tell who came first.

    Over all groups, the row that is published first is the one that came first as often as chance
    has it, within four standard deviations; likewise the last.
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
class _UnheardOf(Criterion):
    """A criterion that no anonymizer can know."""

    name: ClassVar[str] = "an unheard-of criterion"


def check_refuses(anonymizer: Anonymizer) -> None:
    """What can't be promised is refused at the start."""
    stream = steady_stream(type(anonymizer), 0)
    for policy in _refused(anonymizer, stream.policy):
        try:
            anonymizer.start(stream.schema, policy)
        except UnsupportedError as error:
            require(anonymizer.name in str(error), "a refusal doesn't name the anonymizer")
        else:
            raise AssertionError(f"the anonymizer starts with {policy!r}")


def _refused(anonymizer: Anonymizer, promised: Policy) -> list[Policy]:
    """Policies beside one that an anonymizer can enforce."""
    criteria, delay, window = promised.criteria, promised.delay, promised.window
    if anonymizer.publishes == "values":
        return [
            Policy(_UnheardOf()),
            Policy(KAnonymity(2), delay=Delay(rows=40)),
            Policy(*criteria, window=window, missing="extended"),
        ]
    refused = [Policy(*criteria, _UnheardOf(), delay=delay, window=window)]
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
    """Compiled and as plain Python, the decisions are the same to the last bit.

    One of the two is this process, the other one a process of its own, so the anonymizer must be
    one that can be imported.
    """
    streams = (
        *measured_streams(type(anonymizer)).values(),
        hostile_streams(type(anonymizer))["one subject in every cluster"],
        steady_stream(type(anonymizer), 200, n_subjects=50),
        *gappy_streams(type(anonymizer)).values(),
        *cell_streams(type(anonymizer)).values(),
    )
    here = [digest(play(anonymizer, each)) for each in streams]
    flag = "1" if is_jitted(decide) else "0"
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
