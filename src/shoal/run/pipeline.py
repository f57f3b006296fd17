"""The wiring: source → codec → engine → hold → release → sink."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa

from shoal.arrow.release import Publish, Release
from shoal.engine.base import Anonymizer
from shoal.errors import ParameterError
from shoal.io.base import BadRow, Sink, Source
from shoal.metrics import Summary
from shoal.run.clock import steady
from shoal.run.recovery import Recovery
from shoal.run.runner import Quarantine, Run
from shoal.run.writer import Outlet, Plain, Writer
from shoal.spec.policy import Policy
from shoal.spec.schema import Schema

__all__ = ["Pipeline", "Quarantine", "Run"]


@dataclass(frozen=True)
class Pipeline:
    """A recipe for runs: what is read, promised, decided and published.

    Parameters
    ----------
    schema, policy, anonymizer
        The columns, the promise, and what keeps it.
    publish
        How the release looks.
    seed
        For repeatable runs, in tests only; without it randomness is the operating system's.
    clock
        What tells the time where the stream doesn't.
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
        open_sink: Callable[[pa.Schema], Sink] | Outlet,
        *,
        on_bad: Callable[[list[BadRow]], None] | Quarantine,
        open_trace: Callable[[pa.Schema], Sink] | Outlet | None = None,
        watch: Callable[[Summary], None] | None = None,
        on_release: Callable[[Release], None] | None = None,
        warn: Callable[[str], None] | None = None,
        recovery: Recovery | None = None,
        drain: bool = False,
        undo_pseudonyms: bool = False,
    ) -> Run:
        """Prepare a run; it begins with `Run.go`.

        Parameters
        ----------
        source
            Where rows come from; one that is `Replayable` if there is a recovery.
        open_sink
            Called once with the columns of the output, when they are known; an `Outlet` of
            `Durable` sinks if there is a recovery.
        on_bad
            Takes rows that can't be used; it may raise to stop the run. A `Quarantine` if there
            is a recovery.
        open_trace
            As ``open_sink``, for the trace, if one is wanted.
        watch
            Called with the figures so far: after each batch, while nothing comes, and at the end.
        on_release
            Called with each release when it has been written, from another thread.
        warn
            Takes sentences about data that looks dangerous to publish.
        recovery
            Where the run keeps what it needs to go on after its process has ended.
        drain
            Whether a stop publishes what is held first.
        undo_pseudonyms
            Whether a trace may be written though it tells whom each pseudonym stands for.
        """
        self.publish.check(self.policy, self.schema)
        if self.publish.pseudonym is not None and open_trace is not None and not undo_pseudonyms:
            raise ParameterError(
                "open_trace",
                "would undo the pseudonyms: it tells the subject of every published row",
                fix="Leave the trace or the pseudonyms out, or say undo_pseudonyms = True",
            )
        writer = Writer(
            self.schema,
            self.publish,
            _outlet(open_sink),
            None if open_trace is None else _outlet(open_trace),
            on_release,
            with_gaps=self.policy.missing == "maybe",
            per_value=self.policy.per_value,
        )
        return Run(
            self, source, writer, on_bad, watch=watch, warn=warn,
            with_subject=open_trace is not None, recovery=recovery, drain=drain,
        )  # fmt: skip


def _outlet(opener: Callable[[pa.Schema], Sink] | Outlet) -> Outlet:
    return opener if isinstance(opener, Outlet) else Plain(opener)
