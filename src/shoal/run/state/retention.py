"""How long files of private rows and of the log are kept."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Retention"]


@dataclass(frozen=True, slots=True)
class Retention:
    """When a file is finished, and when finished files are removed; None: never.

    Parameters
    ----------
    file_bytes, file_seconds
        A file that is larger or older is finished, and another one begun.
    keep_bytes, keep_seconds
        Finished files beyond this size in total, or this old, are removed, the oldest first.
    """

    file_bytes: float | None = None
    file_seconds: float | None = None
    keep_bytes: float | None = None
    keep_seconds: float | None = None
