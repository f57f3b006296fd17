"""A release as a report sees it: the published rows, and what only its publisher knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.audit import Part, Report, Verdict, audit_parts
from shoal.audit.evidence import Evidence
from shoal.audit.trace import read_trace
from shoal.spec.policy import Policy
from shoal.spec.schema import Schema

__all__ = ["Audience", "Release"]

Audience = Literal["internal", "public"]
Figures = dict[str, Any]


@dataclass(frozen=True)
class Release:
    """What a report is made of.

    Parameters
    ----------
    schema, policy, published
        The columns, the promise, and the published rows.
    algorithm, publish
        How it was made, by name: the algorithm with its knobs, and how rows were published. No
        seed is among them.
    options
        What the audit must know of how rows were published.
    digest
        Identifies the job: its schema with hierarchies, policy, algorithm and publish.
    warnings, internal_warnings
        Sentences about choices of the job that weaken something, and those that would help an
        attacker.
    files
        The files that ``published`` was read from.
    made
        The day on which the report is made; None: it isn't told.
    original, original_rows, trace
        The input of the run, the positions of its rows, and the private trace; None: unknown.
    incomplete_trace
        Instead of the trace, one without lines of some published rows: only the audit can use it.
    trace_files
        The numbers of the files of the trace, if it has numbered files.
    population
        People of whom those in the release are some, with the quasi columns; None: unknown.
    parts
        The parts of a stream whose promise has changed; none: it hasn't.
    unknown
        Verdicts about changes that can't be looked up here.
    """

    schema: Schema
    policy: Policy
    published: pa.Table
    algorithm: Mapping[str, object] = field(default_factory=dict)
    publish: Mapping[str, object] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    digest: str | None = None
    warnings: Sequence[str] = ()
    internal_warnings: Sequence[str] = ()
    files: Sequence[Path] = ()
    made: date | None = None
    original: pa.Table | None = None
    original_rows: NDArray[np.int64] | None = None
    trace: pa.Table | None = None
    incomplete_trace: pa.Table | None = None
    trace_files: Sequence[int] = ()
    population: pa.Table | None = None
    parts: Sequence[Part] = ()
    unknown: tuple[Verdict, ...] = ()
    is_public: bool = False
    """Whether it is what the public may know."""

    def __repr__(self) -> str:
        return f"Release({self.published.num_rows:,} rows)"

    def as_seen_by(self, audience: Audience) -> Release:
        """Return what an audience may know: the public sees the output and the job, nothing else.

        So no figure of a public report can depend on the original, the trace or the population.
        """
        if audience == "internal":
            return self
        return replace(
            self, internal_warnings=(), original=None, original_rows=None, trace=None,
            incomplete_trace=None, population=None, is_public=True,
        )  # fmt: skip

    @cached_property
    def audit(self) -> Report:
        """The verdicts about the release."""
        found = audit_parts(
            self.schema, self.parts or [Part(self.policy, self.options)], self.published,
            trace=self.incomplete_trace if self.trace is None else self.trace,
            original=self.original, original_rows=self.original_rows,
            files=self.files, numbers=self.trace_files,
        )  # fmt: skip
        return replace(found, verdicts=(*found.verdicts, *self.unknown))

    @cached_property
    def evidence(self) -> Evidence:
        """The rows joined as the audit joins them; not under z-anonymity."""
        options = {
            name: value
            for name, value in self.options.items()
            if name in ("numeric", "suppressed", "order", "loss", "reuse")
        }
        return Evidence(
            self.schema, self.policy, self.published, n_quarantined=None,
            trace=None if self.trace is None else read_trace(self.trace),
            original=self.original, original_rows=self.original_rows, files=self.files,
            **({"numeric": "range", "suppressed": "drop"} | options),
        )  # fmt: skip

    @property
    def knows_people(self) -> bool:
        """Whether it is known whose the published rows are."""
        return self.schema.each_row or (self.trace is not None and self.evidence.doubt is None)

    @property
    def least(self) -> int:
        """How many people, or rows, a count must be about to be shown by itself."""
        return max(5, self.policy.z if self.policy.per_value else self.policy.k)
