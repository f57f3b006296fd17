"""The contract of an algorithm: the anonymizer, its run, and the decisions of the run.

An `Anonymizer` is one algorithm and its knobs, immutable. `Anonymizer.start` returns an
`Engine`: one run, whose whole state is a named tuple of arrays. Its three verbs return
`Decisions`.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Literal, Self, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from shoal.engine.decisions import (
    Decisions,
    Out,
    Outcome,
    decide,
    shuffle_groups,
    shuffle_with_joins,
    widen_boxes,
    write_box,
    write_losses,
)
from shoal.engine.kernels.arrays import Any1, Records
from shoal.engine.kernels.rng import seeded
from shoal.engine.space import Codes, Loss, Space
from shoal.errors import CheckpointError, ParameterError, UnsupportedError
from shoal.spec.policy import Criterion, Missing, Policy
from shoal.spec.schema import Schema

__all__ = [
    "Anonymizer",
    "BoxEngine",
    "Decisions",
    "Engine",
    "Out",
    "Outcome",
    "Publishes",
    "decide",
    "write_box",
]


#: What is published at a time; see `Anonymizer`.
Publishes: TypeAlias = Literal["rows", "windows", "table", "values"]
#: No knob may count more than this: it bounds the memory that is allocated at the start.
MOST = 10_000_000


class Engine(ABC):
    """One run of an anonymizer: a ``state`` and three verbs that return decisions.

    Everything that a decision depends on is in the state, so that a run restored from a snapshot
    makes the same decisions.
    """

    def __init__(self, space: Space, state: Any, seed: bytes) -> None:
        self.space = space
        self.state = state
        #: A digest of schema, policy and knobs; a snapshot taken under others is refused.
        self.identity = np.zeros(0, np.uint8)
        self._shuffling = seeded(seed, "shuffle")

    # -- the three verbs ---------------------------------------------------------------------

    @abstractmethod
    def push(self, codes: Codes) -> Decisions:
        """Take in a batch and return what it decides, deadlines between its rows included."""

    @abstractmethod
    def advance(self, now: float) -> Decisions:
        """Advance the clock to ``now`` without a row, and return the decisions that are due."""

    @abstractmethod
    def flush(self) -> Decisions:
        """End the stream: decide all held rows, under the promise."""

    @property
    @abstractmethod
    def n_held(self) -> int:
        """The number of rows that have arrived and aren't decided."""

    @property
    def next_deadline(self) -> float | None:
        """The time in seconds at which `advance` will decide something, or None."""
        return None

    # -- snapshots ------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any1]:
        """Return a copy of the whole state, by name."""
        arrays = {name: array.copy() for name, array in _named_arrays(self.state)}
        return arrays | {"shuffling": self._shuffling.copy(), "identity": self.identity.copy()}

    def restore(self, snapshot: Mapping[str, Any1]) -> None:
        """Restore a snapshot of the same anonymizer, schema and policy."""
        own = {name: array.dtype for name, array in _named_arrays(self.state)}
        own |= {"shuffling": self._shuffling.dtype, "identity": self.identity.dtype}
        given = {name: array.dtype for name, array in snapshot.items()}
        # By name and type: a field that another version lacks must not be filled in silently.
        if foreign := {name for name, _ in own.items() ^ given.items()}:
            raise CheckpointError(
                "the snapshot is of another algorithm or version: "
                f"{len(foreign)} of its arrays aren't those of this engine"
            )
        if not np.array_equal(snapshot["identity"], self.identity):
            raise CheckpointError(
                "the snapshot was taken under another schema, policy or other knobs: what it holds "
                "doesn't keep this promise. Go back to the former job, or start again: "
                "docs/checkpoints.md says from where"
            )
        self._shuffling = snapshot["shuffling"].copy()
        self.state = _rebuilt(self.state, snapshot, "")

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n_held={self.n_held})"


class BoxEngine(Engine):
    """An engine that publishes rows in boxes; a subclass implements the verbs.

    This class shuffles the rows of each group and computes the loss of each row. Boxes that were
    formed in another space than the one they are published in are widened here. If rows join kept
    groups in company, a subclass sets ``_joins_last``, and they are shuffled as well.
    """

    _joins_last = False
    _used: tuple[Records, Records] | None = None

    def push(self, codes: Codes) -> Decisions:
        """Take in a batch and return what it decides, deadlines between its rows included."""
        n = len(codes.subjects)
        if self.space.missing == "quarantine" and np.isnan(codes.values).any():
            raise ParameterError(
                "Codes.values",
                "must be there, since the policy doesn't say what a missing one means",
                got=f"{np.count_nonzero(np.isnan(codes.values))} that are missing",
                fix='Set policy.missing to "extended" or "maybe"',
            )
        if self.space.deadlines.seconds and not np.isfinite(codes.times).all():
            raise ParameterError(
                "Codes.times",
                "must be finite, since the delay is in seconds",
                got=f"{np.count_nonzero(~np.isfinite(codes.times))} that aren't",
            )
        self._reserve(n)
        return self._shuffled(self.n_held + n, lambda out: self._push(codes, out))

    def advance(self, now: float) -> Decisions:
        """Advance the clock to ``now`` without a row, and return the decisions that are due."""
        if not np.isfinite(now):
            raise ParameterError("now", "must be a finite number of seconds", got=now)
        return self._shuffled(self.n_held, lambda out: self._advance(now, out))

    def flush(self) -> Decisions:
        """End the stream: decide all held rows, under the promise."""
        return self._shuffled(self.n_held, self._flush)

    def _shuffled(self, most: int, verb: Callable[[Out], None]) -> Decisions:
        out = Out.room(most, self.space.n_quasi, self._used)
        self._used = out.decided, out.boxes
        verb(out)
        shown = self.space.shown
        if shown is not self.space.sides:
            widen_boxes(shown, out)
        write_losses(shown, out)
        decided = out.decided[: out.progress["n_decided"][0]]
        order = np.arange(len(decided))
        boxes = np.ascontiguousarray(decided["box"])
        if self._joins_last:
            outcomes, instants = (np.ascontiguousarray(decided[n]) for n in ("outcome", "instant"))
            shuffle_with_joins(self._shuffling, order, boxes, outcomes, instants)
        else:
            shuffle_groups(self._shuffling, order, boxes)
        return out.decisions(order)

    # -- for subclasses ------------------------------------------------------------------------

    def _reserve(self, n: int) -> None:
        """Allocate room in the state for n more rows."""

    @abstractmethod
    def _push(self, codes: Codes, out: Out) -> None: ...

    @abstractmethod
    def _advance(self, now: float, out: Out) -> None: ...

    @abstractmethod
    def _flush(self, out: Out) -> None: ...


@dataclasses.dataclass(frozen=True, kw_only=True)
class Anonymizer(ABC):
    """One algorithm and its knobs. Subclasses are frozen dataclasses.

    ``name`` is its name in a job file and on the command line, ``enforces`` lists the criteria it
    can enforce, ``reference`` cites its paper. ``publishes`` says whether it publishes rows of a
    stream in groups, a stream window by window, a whole table at its end, or each value of a row
    on its own and at once. ``missing`` lists the meanings of a missing value that it supports.
    ``minds_gaps`` says that it prefers to group rows that lack the same values, where a missing
    value may match anything. ``decides_nothing`` names the knobs that change no decision: a job
    can be resumed with others.
    """

    name: ClassVar[str]
    enforces: ClassVar[tuple[type[Criterion], ...]]
    reference: ClassVar[str]
    needs_delay: ClassVar[bool] = True
    publishes: ClassVar[Publishes] = "rows"
    missing: ClassVar[tuple[Missing, ...]] = get_args(Missing)
    minds_gaps: ClassVar[bool] = True
    decides_nothing: ClassVar[tuple[str, ...]] = ()

    loss: Loss = "glm"

    def start(self, schema: Schema, policy: Policy, *, seed: bytes | None = None) -> Engine:
        """Start a run.

        Without a seed, randomness comes from the operating system.

        Raises
        ------
        UnsupportedError
            This algorithm can't keep the policy.
        """
        self.check(policy)
        space = Space(schema, policy, self.loss)
        engine = self._start(space, secrets.token_bytes(32) if seed is None else seed)
        engine.identity = self._identity(space)
        return engine

    def _identity(self, space: Space) -> NDArray[np.uint8]:
        """Return a digest of the anonymizer, the schema and the policy."""
        # No name of a class is a part of it: one that is renamed means the same.
        names = [field.name for field in dataclasses.fields(self)]
        knobs = [(name, getattr(self, name)) for name in names if name not in self.decides_nothing]
        digest = hashlib.blake2b(repr((self.name, knobs)).encode(), digest_size=16)
        limits, measures = space.limits, space.limits.measures
        obeyed = (
            limits.k, space.z, space.n_levels, tuple(space.deadlines), space.missing,
            tuple(space.window), space.clock,
        )  # fmt: skip
        digest.update(repr(obeyed + space.others).encode())
        # ``sides`` isn't needed: it follows from ``shown`` and from the anonymizer's loss.
        for array in (*space.shown, limits.diversity, measures.asked, *measures.trees):
            digest.update(array.tobytes())
        return np.frombuffer(digest.digest(), np.uint8)

    def promised_by_knobs(self) -> Mapping[str, float]:
        """Return how much knobs promise beyond the policy: more is stricter."""
        return {}

    def beside_others(self) -> Self:
        """Return what decides alike where other engines use the cores of the machine as well."""
        return self

    def check(self, policy: Policy) -> None:
        """Raise `UnsupportedError` for a policy that this anonymizer can't keep."""
        for criterion in policy.criteria:
            if not isinstance(criterion, self.enforces):
                raise UnsupportedError(f"'{self.name}' can't enforce {criterion.name}")
        self._check_window(policy)
        if self.needs_delay and policy.delay is None:
            raise UnsupportedError(
                f"'{self.name}' holds rows and the policy sets no bound on it",
                fix="Set policy.delay, for example { rows = 10000 }",
            )
        if policy.missing not in self.missing:
            raise UnsupportedError(
                f"'{self.name}' doesn't know missing values that are \"{policy.missing}\"",
                fix=f"Set policy.missing to one of {', '.join(self.missing)}",
            )

    def notes(self, policy: Policy) -> tuple[str, ...]:
        """Return what a user should know about how this policy will be kept, as sentences."""
        return ()

    def _check_window(self, policy: Policy) -> None:
        """Refuse a window or a delay that doesn't fit ``publishes``."""
        window, delay = policy.window, policy.delay
        if self.publishes == "table":
            if window != "all":
                raise UnsupportedError(
                    f"'{self.name}' publishes a whole table at once",
                    fix='Set policy.window = "all" and no delay, or choose one for streams',
                )
            return
        if window == "all":
            raise UnsupportedError(
                f"'{self.name}' publishes a stream and never knows all of its rows",
                fix="Set policy.window to { rows = ..., advance = ... } and a delay, or choose an "
                "algorithm for whole tables",
            )
        if self.publishes != "windows":
            return
        if not policy.measured:
            raise UnsupportedError(
                f"'{self.name}' publishes what is measured against windows, and nothing is",
                fix="Promise t, beta or disclosure, or choose one that publishes row by row",
            )
        if window is None or window.advance is None:
            raise UnsupportedError(
                f"'{self.name}' publishes window by window, and the policy doesn't say by how much "
                "a window advances",
                fix="Set policy.window, for example { rows = 20000, advance = 5000 }",
            )
        if window.rows > MOST:
            raise UnsupportedError(
                f"'{self.name}' keeps a window in memory, and {window.rows:,} rows are too many",
                fix=f"Set policy.window.rows to at most {MOST}",
            )
        longest = window.rows + window.advance
        if delay is not None and delay.rows is not None and delay.rows < longest:
            raise UnsupportedError(
                f"'{self.name}' holds rows for up to window + advance = {longest:,} rows and the "
                f"delay is {delay.rows:,} (thesis, Lemma 6.1)",
                fix=f"Set policy.delay.rows to at least {longest}, or make the window smaller",
            )

    @abstractmethod
    def _start(self, space: Space, seed: bytes) -> Engine: ...

    def _at_least(self, least: int, *knobs: str) -> None:
        """Refuse knobs that aren't whole numbers of at least ``least``."""
        for knob in knobs:
            value = getattr(self, knob)
            key = f"{type(self).__name__}.{knob}"
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                what = f"must be a whole number of at least {least}"
                raise ParameterError(key, what, got=repr(value))
        self._at_most(MOST, *knobs)

    def _at_most(self, most: int, *knobs: str) -> None:
        """Refuse knobs above ``most``."""
        for knob in knobs:
            if getattr(self, knob) > most:
                key, got = f"{type(self).__name__}.{knob}", repr(getattr(self, knob))
                raise ParameterError(key, f"must be at most {most:,}", got=got)

    def _between(self, least: float, most: float, *knobs: str) -> None:
        """Refuse knobs that aren't numbers from ``least`` to ``most``."""
        for knob in knobs:
            value = getattr(self, knob)
            if isinstance(value, bool) or not isinstance(value, int | float):
                value = math.nan
            if not least <= value <= most:
                raise ParameterError(
                    f"{type(self).__name__}.{knob}",
                    f"must be a number from {least:g} to {most:g}",
                    got=repr(getattr(self, knob)),
                )

    def _one_of(self, knob: str, known: tuple[str, ...]) -> None:
        """Refuse a knob that isn't one of the known words."""
        if getattr(self, knob) not in known:
            raise ParameterError(
                f"{type(self).__name__}.{knob}",
                f"must be one of {', '.join(known)}",
                got=repr(getattr(self, knob)),
            )

    def _is_flag(self, knob: str) -> None:
        """Refuse a knob that is neither true nor false."""
        if not isinstance(getattr(self, knob), bool):
            key = f"{type(self).__name__}.{knob}"
            raise ParameterError(key, "must be true or false", got=repr(getattr(self, knob)))


def _named_arrays(state: Any, prefix: str = "") -> Iterator[tuple[str, Any1]]:
    for name, part in zip(state._fields, state, strict=True):
        if isinstance(part, np.ndarray):
            yield prefix + name, part
        else:
            yield from _named_arrays(part, f"{prefix}{name}.")


def _rebuilt(state: Any, snapshot: Mapping[str, Any1], prefix: str) -> Any:
    return type(state)(
        *(
            snapshot[prefix + name].copy()
            if isinstance(part, np.ndarray)
            else _rebuilt(part, snapshot, f"{prefix}{name}.")
            for name, part in zip(state._fields, state, strict=True)
        )
    )
