"""The history of the page about a job on Spark, in a file from one driver to the next.

The file lies beside the commit log and isn't a part of it: nothing that is published depends on it.
So a history that can't be read is ignored, and one that can't be written is tried again later.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shoal.errors import CheckpointError, ResourceError
from shoal.events import event
from shoal.run.protocols import Memory
from shoal.run.state.folder import HISTORY
from shoal.run.state.seal import Seal
from shoal.run.state.versions import Versions

__all__ = ["HistoryFile"]

log = logging.getLogger("shoal.spark")


class HistoryFile:
    """Save what an observer remembers, and give it back to the observer of the next run.

    Each file is written whole and has the next number; those before it are removed then. Only the
    driver that has the lock of the folder may use it.

    Parameters
    ----------
    memory
        The observer.
    folder, job, seal
        As for the commit log.
    """

    def __init__(
        self, memory: Memory, folder: Path, *, job: Mapping[str, str], seal: Seal | None
    ) -> None:
        self._memory = memory
        self._files = Versions(folder, HISTORY, job=job, seal=seal)
        self._saved: dict[str, Any] | None = None

    def load(self) -> None:
        """Restore the newest one; if it can't be read, a line of the log says so."""
        try:
            if not (numbers := self._files.numbers()):
                return
            facts = self._files.load(numbers[-1]).facts
        except (CheckpointError, ResourceError) as error:
            event(log, logging.WARNING, "history ignored", error=error)
            return
        self._memory.restore(facts.get("memory"))
        self._saved = self._memory.state()

    def save(self) -> None:
        """Write it if it has changed, which it does once an interval and not with each batch."""
        state = self._memory.state()
        if state is None or state == self._saved:
            return
        try:
            number = max(self._files.numbers(), default=-1) + 1
            self._files.save(number, {"memory": state})
            self._files.drop_before(number)
        except (ResourceError, OSError) as error:
            event(log, logging.WARNING, "history not saved", error=error)
            return
        self._saved = state
