"""Rows by HTTP as the input of a job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from shoal.errors import JobError, Problem
from shoal.io.connector import InputEndpoint

if TYPE_CHECKING:
    from shoal.io.http.source import HttpSource

__all__ = ["HttpInput"]


@dataclass(frozen=True)
class HttpInput(InputEndpoint):
    """Rows that clients post."""

    noun = "a server of rows by HTTP"
    needs_checkpoints = True
    is_endless = True

    def identity(self, state: Path) -> tuple[object, ...]:
        """Return its kind: rows are in the journal, wherever the server listens."""
        return ("http",)

    def with_options(self, format: str | None, *, follow: bool) -> HttpInput:  # noqa: A002
        """Refuse both options."""
        for flag, is_given in (("--from", format is not None), ("--follow", follow)):
            if is_given:
                raise JobError(
                    Problem(flag, "can't be combined with rows by HTTP", None, "Leave it out")
                )
        return self

    def open(self, columns: Sequence[str], *, replay: bool) -> HttpSource:
        """Return a queue for rows; they are kept in the journal."""
        from shoal.io.http.source import HttpSource

        return HttpSource(columns)
