"""Which files a log was before it was rotated, and which one comes after which.

Known are the names that logrotate gives: ``people.csv.1`` is younger than ``people.csv.2``, and
``people.csv-20260102`` is younger than ``people.csv-20260101``. Any other name is somebody's copy.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from shoal.io.streams import reading

__all__ = ["generations", "heirs"]


def generations(path: Path) -> dict[str, int]:
    """Give the inode of a file and of its former selves, by name; oldest first, itself last.

    While files are being renamed a look at the folder may see one twice or not at all; so it is
    looked at until two looks agree.
    """
    found = _look(path)
    while (again := _look(path)) != found:
        found = again
    return found


def heirs(path: Path, found: dict[str, int], inode: int) -> list[str]:
    """Give the names of what came after a file, oldest first; none if it still has its name.

    A file that isn't there any more is followed by the one that has the name now: what was
    between them can't be told.

    >>> now = {"a.csv.3": 3, "a.csv.2": 5, "a.csv.1": 8, "a.csv": 9}
    >>> heirs(Path("a.csv"), now, 5)
    ['a.csv.1', 'a.csv']
    >>> heirs(Path("a.csv"), now, 9), heirs(Path("a.csv"), now, 4)
    ([], ['a.csv'])
    """
    mine = [name for name, number in found.items() if number == inode]
    if not mine:
        return [path.name] if path.name in found else []
    names = list(found)
    younger = names[names.index(mine[-1]) + 1 :]
    # Of two ways to name, it can't be told which is the older: only its own is believed.
    way = mine[-1][len(path.name) :][:1]
    return [name for name in younger if name[len(path.name) :][:1] in ("", way)]


def _look(path: Path) -> dict[str, int]:
    pattern = re.compile(re.escape(path.name) + r"(?:\.(\d+)|-(\d[-\dT_.]*))?")
    entries: list[tuple[int, int, str, str, int]] = []
    with reading(str(path), "the folder is damaged"):
        if not path.parent.is_dir():
            return {}
        with os.scandir(path.parent) as folder:
            for entry in folder:
                shape = pattern.fullmatch(entry.name)
                if shape is None:
                    continue
                number, date = shape.groups()
                rank = 0 if date else 1 if number else 2
                entries.append((rank, -int(number or 0), date or "", entry.name, entry.inode()))
    return {name: inode for *_, name, inode in sorted(entries)}
