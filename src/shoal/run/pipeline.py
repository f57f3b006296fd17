"""The wiring: source → codec → engine → hold → release → sink."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa

from shoal.arrow.order import Departures
from shoal.arrow.release import Publish, Release
from shoal.engine.base import Anonymizer
from shoal.engine.kernels.arrays import Ints
from shoal.io.base import BadRow, Sink, Source
from shoal.metrics import Summary
from shoal.run.clock import steady
from shoal.run.protocols import Memory, Quarantine
from shoal.run.recovery import Recovery
from shoal.run.runner import Run
from shoal.run.writer import PlainSinkFactory, SinkFactory, Writer
from shoal.spec.policy import Policy
from shoal.spec.schema import Schema

__all__ = ["Pipeline", "Quarantine", "Run"]


@dataclass(frozen=True)
class Pipeline:
    """A job in Python: the columns, the policy, the anonymizer, and how its releases look.

    Parameters
    ----------
    schema, policy, anonymizer
        The columns, the promise, and the algorithm that keeps it.
    publish
        How the release looks.
    seed
        For repeatable runs, in tests only; by default from the operating system.
    clock
        Returns the time where the stream has none.
    """

    schema: Schema
    policy: Policy
    anonymizer: Anonymizer
    publish: Publish = field(default_factory=Publish)
    seed: bytes | None = None
    clock: Callable[[], float] = steady

    def run(
        self,
        source: Source,
        open_sink: Callable[[pa.Schema], Sink] | SinkFactory,
        *,
        on_bad: Callable[[list[BadRow]], None] | Quarantine,
        open_trace: Callable[[pa.Schema], Sink] | SinkFactory | None = None,
        watch: Callable[[Summary], None] | None = None,
        memory: Memory | None = None,
        on_release: Callable[[Release], None] | None = None,
        inspect: Callable[[Release, Departures, Ints], None] | None = None,
        warn: Callable[[str], None] | None = None,
        recovery: Recovery | None = None,
        drain: bool = False,
        finish: bool = False,
        undo_pseudonyms: bool = False,
        bad_limit: float = 1.0,
    ) -> Run:
        """Prepare a run; `Run.execute` starts it.

        Parameters
        ----------
        source
            The rows; a `ReplayableSource` if there is a recovery.
        open_sink
            Called once with the columns of the output, when they are known; a `SinkFactory` of
            `DurableSink` objects if there is a recovery.
        on_bad
            Called with rows that can't be used; it may raise to stop the run. A `Quarantine` if
            there is a recovery.
        open_trace
            As ``open_sink``, for the trace; None: no trace.
        watch
            Called with the figures: after each batch, while idle, and at the end.
        memory
            What is saved with each checkpoint and given back to a run that resumes, and nothing of
            what is published depends on.
        on_release
            Called in another thread with each release that was written.
        inspect
            Called in another thread with each release before it is written, what it was made of
            (with subjects) and the places of its rows in the output. It may raise: then neither it
            nor anything after it is published, and the run ends.
        warn
            Called with sentences about data that looks dangerous to publish.
        recovery
            Where the run keeps the state from which it can resume; None: it can't.
        drain
            Whether a stopped run publishes the held rows first.
        finish
            Whether it reads nothing new: it resumes, decides the held rows, and ends.
        undo_pseudonyms
            Whether a trace may be written although it links pseudonyms to subjects.
        bad_limit
            The share of bad rows from which on, clearly passed, the run ends with `DataError`; 1:
            none. Rows that were read before stay decided or held, as in any run that fails.
        """
        self.publish.check(self.policy, self.schema)
        if open_trace is not None:
            self.publish.check_trace(undo_pseudonyms=undo_pseudonyms)
        writer = Writer(
            self.schema,
            self.publish,
            _factory(open_sink),
            None if open_trace is None else _factory(open_trace),
            on_release,
            with_gaps=self.policy.missing == "maybe",
            per_value=self.policy.per_value,
            inspect=inspect,
        )
        return Run(
            self, source, writer, on_bad, watch=watch, memory=memory, warn=warn,
            with_subject=open_trace is not None or inspect is not None, recovery=recovery,
            drain=drain, finish=finish, bad_limit=bad_limit,
        )  # fmt: skip


def _factory(opener: Callable[[pa.Schema], Sink] | SinkFactory) -> SinkFactory:
    return opener if isinstance(opener, SinkFactory) else PlainSinkFactory(opener)
