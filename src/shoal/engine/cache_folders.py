"""Find the folders of compiled kernels that may be used.

A cache is code that will be run, so it is trusted only if nobody else can have written it.
"""

from __future__ import annotations

import logging
import os
import stat
from pathlib import Path
from typing import NamedTuple

from shoal.engine.cpu_levels import LEVELS, compiled_for, lacking, usable

__all__ = ["ReadOnly", "own_folder", "read_only_folders"]

log = logging.getLogger("shoal.engine.cache_folders")

#: Where a wheel for one platform has compiled kernels, beside the sources.
SHIPPED = Path(__file__).parents[1] / "compiled"


class ReadOnly(NamedTuple):
    """A folder of kernels that is never written, and the level that they were compiled for."""

    folder: Path
    level: str | None


def own_folder() -> Path | None:
    """Return the folder that this user's kernels are kept in, or None if there can't be one."""
    base = os.environ.get("SHOAL_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    folder = Path(base).expanduser() / "shoal" / _name_for(compiled_for())
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
    except OSError:
        return None
    is_ours = status.st_uid == os.getuid() and not status.st_mode & 0o022
    return folder if is_ours and os.access(folder, os.W_OK) else None


def read_only_folders() -> tuple[ReadOnly, ...]:
    """Return the folders to look into for what isn't in this user's own: shared, then shipped."""
    return (*_shared_folders(), *_shipped_folders())


def _name_for(level: str | None) -> str:
    return "kernels" if level is None else f"kernels-{level}"


def _shared_folders() -> list[ReadOnly]:
    """Return the folders that an administrator named for all users."""
    named = os.environ.get("SHOAL_SHARED_CACHE_DIR")
    if not named:
        return []
    inside = Path(named, "shoal")
    try:
        found = _among(inside, None, *usable())
        reasons = [_why_unsafe(Path(named), folder) for folder, _ in found]
        reason = next(filter(None, reasons), None) if found else _why_useless(inside)
    except OSError as error:
        reason = f"{inside} can't be read ({error.strerror})"
    if reason is None:
        return found
    log.warning(
        "SHOAL_SHARED_CACHE_DIR isn't used: %s. Kernels are compiled instead. Name a folder in "
        "which root alone can write and everybody can read, or unset it.",
        reason,
    )
    return []


def _shipped_folders() -> list[ReadOnly]:
    """Return the folders that came with the package: they are as trusted as the sources there."""
    if os.environ.get("SHOAL_SHIPPED_KERNELS") == "off" or not SHIPPED.is_dir():
        return []
    return _among(SHIPPED, *usable())


def _among(inside: Path, *levels: str | None) -> list[ReadOnly]:
    """Return the folders for some levels that are there."""
    found = [ReadOnly(inside / _name_for(level), level) for level in levels]
    return [one for one in found if one.folder.is_dir()]


def _why_useless(inside: Path) -> str:
    """Return why no kernels in a folder can be run by this process."""
    inside.stat()
    for level in LEVELS:
        if (inside / _name_for(level)).is_dir():
            lack = ", ".join(lacking(level)) or "what NUMBA_CPU_NAME or NUMBA_CPU_FEATURES excludes"
            return f"its kernels are for {level}, and this processor lacks {lack}"
    return f"{inside} has no kernels"


def _why_unsafe(named: Path, folder: Path) -> str | None:
    """Return why code in a folder must not be run, or None if it may be."""
    if not named.is_absolute():
        return "it isn't an absolute path"
    for above in named.resolve().parents:
        # Who can write there can put another folder in its place, unless it is like /tmp.
        status = above.stat()
        is_open = status.st_mode & 0o022 and not status.st_mode & stat.S_ISVTX
        if is_open or status.st_uid not in (0, os.getuid()):
            return f"{above}, which it is in, can be written by others"
    paths = [named, named / "shoal", folder]
    for parent, folders, files in os.walk(folder, onerror=_raise):
        paths += [Path(parent, name) for name in (*folders, *files)]
    for path in paths:
        status = path.lstat()
        if path.is_symlink() and path != named:
            return f"{path} is a symbolic link"
        if path == named:
            status = path.stat()
        if status.st_uid not in (0, os.getuid()):
            return f"{path} belongs to neither root nor this user"
        if status.st_mode & 0o022:
            return f"{path} can be written by others"
        if not os.access(path, os.R_OK):
            return f"{path} can't be read"
    return None


def _raise(error: OSError) -> None:
    raise error
