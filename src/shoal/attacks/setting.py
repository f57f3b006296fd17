"""What an attack gets: the release as the attacker sees it, and what is needed to score it."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.attacks.boxes import Boxes
from shoal.audit.columns import column, distinct_codes, numbers, shared_codes
from shoal.audit.coordinates import coordinates
from shoal.audit.evidence import Evidence, Order, Suppressed
from shoal.audit.labels import Numeric
from shoal.audit.trace import GROUP, QUARANTINED, REUSE, SUPPRESSED, Trace, read_trace
from shoal.errors import ParameterError, did_you_mean
from shoal.spec.hierarchy import Range
from shoal.spec.policy import Policy
from shoal.spec.schema import Schema

__all__ = ["Rerun", "Run", "Secrets", "Setting"]


class Run(NamedTuple):
    """The output of another run of the job, and its trace."""

    published: pa.Table
    trace: pa.Table


#: Runs the job over other rows, under a seed.
Rerun: TypeAlias = Callable[[pa.Table, int], Run]


class Secrets(NamedTuple):
    """The values of a sensitive attribute, or of kept columns, as numbers, the same in both tables.

    ``published`` is by published row, ``original`` by row of the original.
    """

    name: str
    published: NDArray[np.int64]
    original: NDArray[np.int64]


@dataclass(frozen=True, repr=False)
class Setting:
    """A release, the original that it was made of, and the rules of the attack.

    An attacker sees ``published`` and knows schema, policy, algorithm and knobs. What they know of
    a person is a row of ``original``, or a part of it. The trace only tells whether they succeeded.

    Parameters
    ----------
    schema, policy
        What the columns are, and what was promised.
    published, original
        The output in its order, and the input.
    trace
        The private trace of the run; None: attacks that need it can't be judged.
    original_rows
        The position in the input of each row of ``original``; None if it has all rows.
    numeric, suppressed, order
        How the output looks; see `shoal.audit.audit`.
    algorithm, knobs
        The algorithm that made it; None if it isn't known.
    pseudonym, rotate
        Under z-anonymity, whether pseudonyms are published, and the length of their period.
    known
        The quasi attributes that the attacker knows; None: all of them.
    n_targets
        The most people that an attack is made on.
    seed
        For the choice of the people and for guesses.
    among
        Which rows of the original may be targets; None: all.
    rerun
        Runs the job again over other rows; None: that isn't possible.
    """

    schema: Schema
    policy: Policy
    published: pa.Table
    original: pa.Table
    trace: pa.Table | None = None
    original_rows: NDArray[np.int64] | None = None
    numeric: Numeric = "range"
    suppressed: Suppressed = "drop"
    order: Order | None = None
    algorithm: str | None = None
    knobs: Mapping[str, object] = field(default_factory=dict)
    pseudonym: bool = False
    rotate: float | None = None
    known: tuple[str, ...] | None = None
    n_targets: int = 1000
    seed: int = 0
    among: NDArray[np.bool_] | None = None
    rerun: Rerun | None = None

    def __post_init__(self) -> None:
        self.policy.check(self.schema)
        missing = [name for name in self.schema.columns if name not in self.original.schema.names]
        if missing:
            raise ParameterError(
                "original",
                f"lacks the columns {', '.join(missing)}",
                fix="Give the input that the run has read",
            )
        names = [attribute.name for attribute in self.schema.quasi]
        for name in self.known or ():
            if name not in names:
                raise ParameterError(
                    "known",
                    "isn't a quasi attribute of the schema",
                    got=repr(name),
                    fix=did_you_mean(name, names),
                )
        if self.n_targets < 1:
            raise ParameterError("targets", "must be at least 1", got=self.n_targets)

    def random(self, name: str) -> np.random.Generator:
        """Return the random numbers of one attack: they don't depend on what else is asked for."""
        return np.random.default_rng([self.seed % 2**63, zlib.crc32(name.encode())])

    # -- what the attacker sees --------------------------------------------------------------------

    @cached_property
    def evidence(self) -> Evidence:
        """The tables, read and joined as the audit does; not for z-anonymity: it has no boxes."""
        return Evidence(
            self.schema,
            self.policy,
            self.published,
            numeric=self.numeric,
            suppressed=self.suppressed,
            trace=None if self.trace is None else read_trace(self.trace),
            original=self.original,
            original_rows=self.original_rows,
            n_quarantined=None,
            order=self.order,
        )

    @cached_property
    def boxes(self) -> Boxes:
        """The different boxes of the release; suppressed rows are in none."""
        evidence = self.evidence
        if len(evidence.sides) < len(self.schema.quasi):
            raise ParameterError(
                "published",
                "lacks columns of quasi attributes",
                fix="Give the output of a run with this job",
            )
        return Boxes.of(self.schema.quasi, evidence.sides, evidence.box, evidence.in_group)

    @cached_property
    def secrets(self) -> tuple[Secrets, ...]:
        """The sensitive attributes that are published."""
        found = []
        for attribute in self.schema.sensitive:
            arrays = [column(self.published, attribute.name), column(self.original, attribute.name)]
            if any(array is None for array in arrays):
                continue
            if isinstance(attribute.domain, Range):
                # "1" and "1.0" are one value of a number.
                arrays = [pa.array(numbers(array)) for array in arrays]
            found.append(Secrets(attribute.name, *shared_codes(*arrays)))
        return tuple(found)

    @cached_property
    def kept(self) -> Secrets | None:
        """The values of all kept columns together; None: no kept column is published."""
        found: Secrets | None = None
        for name in self.schema.keep:
            arrays = [column(self.published, name), column(self.original, name)]
            if any(array is None for array in arrays):
                continue
            codes = shared_codes(*arrays)
            if found is None:
                found = Secrets(name, *codes)
                continue
            # Numbered anew each time, so that many columns don't make the numbers overflow.
            width = 1 + int(max(each.max(initial=0) for each in codes))
            pairs = [one * width + other for one, other in zip(found[1:], codes, strict=True)]
            _, inverse = np.unique(np.concatenate(pairs), return_inverse=True)
            parts = np.split(inverse.reshape(-1), [len(pairs[0])])
            found = Secrets(f"{found.name}, {name}", *parts)
        return found

    # -- what the publisher knows ------------------------------------------------------------------

    @cached_property
    def points(self) -> NDArray[np.float64]:
        """The quasi values of each row of the original; NaN where there is none."""
        schema = self.schema
        points = np.empty((self.original.num_rows, len(schema.quasi)))
        for d, attribute in enumerate(schema.quasi):
            array = column(self.original, attribute.name)
            points[:, d] = coordinates(
                array, attribute.sided, is_time=attribute.name == schema.time
            )
        return points

    @cached_property
    def subjects(self) -> NDArray[np.int64]:
        """A number for the subject of each row of the original."""
        if self.schema.subject is None:
            return np.arange(self.original.num_rows, dtype=np.int64)
        return distinct_codes(column(self.original, self.schema.subject))

    @cached_property
    def lines(self) -> Trace | None:
        """The trace as arrays."""
        return self.evidence.trace

    @cached_property
    def owner(self) -> NDArray[np.int64]:
        """For each published row its position in the original; -1 where the trace has no answer."""
        owner = np.full(self.published.num_rows, -1, dtype=np.int64)
        trace, line = self.lines, self.evidence.line
        if trace is not None:
            found = line >= 0
            owner[found] = self.evidence.located(trace.row[line[found]])
        return owner

    @cached_property
    def outcome(self) -> NDArray[np.int64]:
        """The outcome of each row of the original, a code of the trace; -1: not in the run."""
        outcome = np.full(self.original.num_rows, -1, dtype=np.int64)
        if self.lines is not None:
            at = self.evidence.located(self.lines.row)
            outcome[at[at >= 0]] = self.lines.outcome[at >= 0]
        return outcome

    @property
    def is_published(self) -> NDArray[np.bool_]:
        """Which rows of the original were published in a group."""
        return np.isin(self.outcome, (GROUP, REUSE))

    @property
    def is_lost(self) -> NDArray[np.bool_]:
        """Which rows of the original came, and were suppressed or quarantined."""
        return np.isin(self.outcome, (SUPPRESSED, QUARANTINED))

    # -- whom it is made on ------------------------------------------------------------------------

    def targets(
        self, random: np.random.Generator, among: NDArray[np.bool_] | None = None
    ) -> NDArray[np.int64]:
        """Draw people, and for each of them one of their rows; return the rows.

        At most ``n_targets`` people, all equally likely, however many rows they have.
        ``among`` narrows the rows further.
        """
        rows = random.permutation(np.flatnonzero(self._allowed(among)))
        _, first = np.unique(self.subjects[rows], return_index=True)
        chosen = rows[first]
        if len(chosen) > self.n_targets:
            chosen = random.choice(chosen, self.n_targets, replace=False)
        return np.sort(chosen)

    def is_sample(self, rows: NDArray[np.int64], among: NDArray[np.bool_] | None = None) -> bool:
        """Return whether `targets` left out people when it drew these rows."""
        return len(rows) < len(np.unique(self.subjects[self._allowed(among)]))

    def _allowed(self, among: NDArray[np.bool_] | None) -> NDArray[np.bool_]:
        allowed = np.ones(self.original.num_rows, dtype=np.bool_)
        for each in (self.among, among):
            if each is not None:
                allowed &= each
        return allowed

    def knows(self, n_targets: int, names: tuple[str, ...] | None = None) -> NDArray[np.bool_]:
        """Return what is known of each target, by quasi attribute; ``names`` None: everything."""
        known = [names is None or each.name in names for each in self.schema.quasi]
        return np.tile(np.array(known, dtype=np.bool_), (n_targets, 1))

    def rows_of(self, subject: NDArray[np.int64], box: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how many published rows each subject has in each box, pair by pair."""
        of_row, owner = self.boxes.of_row, self.owner
        found = (of_row >= 0) & (owner >= 0)
        width = len(self.boxes) + 1
        keys = np.sort(self.subjects[owner[found]] * width + of_row[found])
        asked = subject * width + box
        counts = np.searchsorted(keys, asked, "right") - np.searchsorted(keys, asked, "left")
        return counts.astype(np.int64)
