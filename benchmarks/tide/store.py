"""What was measured before, so that a part can be measured again without the rest."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

__all__ = ["NotMeasuredError", "Store"]


class NotMeasuredError(Exception):
    """A result isn't kept, and isn't to be measured now."""


class Store:
    """Results in a file: what is there isn't measured again.

    Parameters
    ----------
    path
        A JSON file of results by their key; it is made if it isn't there. None: nothing is kept.
    again
        Results of methods whose name begins with one of these are measured again, once.
    measures
        Whether what isn't there is measured; else `NotMeasuredError` is raised.
    """

    def __init__(
        self, path: Path | None, again: Collection[str] = (), *, measures: bool = True
    ) -> None:
        self._measures = measures
        self._path, self._again = path, tuple(again)
        self._found: dict[str, Any] = {}
        if path is not None and path.exists():
            self._found = json.loads(path.read_text(encoding="utf-8"))
        self._fresh: set[str] = set()

    def get(self, key: str, method: str, measure: Callable[[], Any]) -> Any:
        """The result of a method under a key, measured now if it isn't there."""
        key = f"{key}; {method}"
        wanted = key not in self._fresh and method.startswith(self._again or "\0")
        if wanted or key not in self._found:
            if not self._measures:
                raise NotMeasuredError(key)
            self._found[key] = measure()
            self._fresh.add(key)
            self._save()
        return self._found[key]

    def _save(self) -> None:
        if self._path is None:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = self._path.with_suffix(".unfinished")
        unfinished.write_text(json.dumps(self._found, indent=1) + "\n", encoding="utf-8")
        unfinished.replace(self._path)
