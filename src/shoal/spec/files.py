"""Read a small file as a whole, and nothing that isn't one."""

from __future__ import annotations

import os
import stat
from pathlib import Path

__all__ = ["UnreadableError", "read_whole"]


class UnreadableError(Exception):
    """A file can't be read; the message is the reason, as the end of a sentence."""


def read_whole(path: str | os.PathLike[str], max_bytes: int) -> bytes:
    """Return the content of a regular file of at most ``max_bytes`` bytes.

    A pipe or a device is refused before it is opened: the one may wait for ever, the other may have
    no end.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    UnreadableError
        If it can't be read for another reason.
    """
    try:
        if not stat.S_ISREG(Path(path).stat().st_mode):
            kind = "a folder" if Path(path).is_dir() else "a pipe or a device"
            raise UnreadableError(f"it is {kind}, not a file")
        with Path(path).open("rb") as file:
            data = file.read(max_bytes + 1)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise UnreadableError(error.strerror or "it is damaged") from None
    except ValueError:
        raise UnreadableError("its path has a zero byte") from None
    if len(data) > max_bytes:
        raise UnreadableError(f"it has more than {max_bytes >> 20} MiB")
    return data
