"""Find the rotated versions of a log file, and their order.

The names are those of logrotate: ``people.csv.1`` is younger than ``people.csv.2``, and
``people.csv-20260102`` is younger than ``people.csv-20260101``. Any other name counts as a copy.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from shoal.io.streams import read_errors

__all__ = ["generations", "successors"]


def generations(path: Path) -> dict[str, int]:
    """Return the inodes of a file and of its rotated versions, by name; oldest first, itself last.

    While files are being renamed, a scan of the folder may see one twice or not at all, so it is
    repeated until two scans agree.
    """
    found = _scan(path)
    while (again := _scan(path)) != found:
        found = again
    return found


def successors(path: Path, found: dict[str, int], inode: int) -> list[str]:
    """Return the names of the files after one, oldest first; none if it still has its name.

    A file that is gone is followed by the one that has the name now: what came between them is
    unknown.

    >>> now = {"a.csv.3": 3, "a.csv.2": 5, "a.csv.1": 8, "a.csv": 9}
    >>> successors(Path("a.csv"), now, 5)
    ['a.csv.1', 'a.csv']
    >>> successors(Path("a.csv"), now, 9), successors(Path("a.csv"), now, 4)
    ([], ['a.csv'])
    """
    mine = [name for name, number in found.items() if number == inode]
    if not mine:
        return [path.name] if path.name in found else []
    names = list(found)
    younger = names[names.index(mine[-1]) + 1 :]
    # Between two naming schemes the order is unknown: only the file's own scheme counts.
    scheme = mine[-1][len(path.name) :][:1]
    return [name for name in younger if name[len(path.name) :][:1] in ("", scheme)]


def _scan(path: Path) -> dict[str, int]:
    pattern = re.compile(re.escape(path.name) + r"(?:\.(\d+)|-(\d[-\dT_.]*))?")
    entries: list[tuple[int, int, str, str, int]] = []
    with read_errors(str(path), "the folder is damaged"):
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
