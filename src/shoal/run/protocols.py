"""What a run is given beside its source and its sinks, and must be able to call."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from shoal.io.base import BadRow, CommitMark

__all__ = ["Memory", "Quarantine"]


@runtime_checkable
class Quarantine(Protocol):
    """Takes the bad rows of a run that can be resumed; no row is written twice."""

    def __call__(self, bad: list[BadRow]) -> None:
        """Write bad rows, or raise to stop the run."""
        ...

    def check(self) -> None:
        """Raise if there are rows already: a new job must not add to them."""
        ...

    def resume(self, mark: CommitMark) -> None:
        """Resume from a mark, before any row is written."""
        ...

    def commit(self) -> CommitMark:
        """Make all rows so far durable; return the mark to resume from."""
        ...

    @property
    def n_ahead(self) -> int:
        """How much it holds beyond what was written again since it resumed."""
        ...


class Memory(Protocol):
    """What an observer keeps from one run of a job to the next, in its checkpoints."""

    def state(self) -> dict[str, Any] | None:
        """Return it as values that JSON can carry; None if there is nothing."""
        ...

    def restore(self, state: object) -> None:
        """Continue from a state, of any version; it must not raise."""
        ...
