"""Find the folders of compiled kernels that may be used.

A cache is code that will be run, so it is trusted only if nobody else can have written it.
"""

from __future__ import annotations

import logging
import os
import stat
from pathlib import Path

__all__ = ["own_folder", "shared_folder"]

log = logging.getLogger("shoal.engine.cache_folders")


def own_folder() -> Path | None:
    """Return the folder that this user's kernels are kept in, or None if there can't be one."""
    base = os.environ.get("SHOAL_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    folder = Path(base).expanduser() / "shoal" / "kernels"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
    except OSError:
        return None
    is_ours = status.st_uid == os.getuid() and not status.st_mode & 0o022
    return folder if is_ours and os.access(folder, os.W_OK) else None


def shared_folder() -> Path | None:
    """Return the folder that an administrator named for all users; it is read only."""
    named = os.environ.get("SHOAL_SHARED_CACHE_DIR")
    if not named:
        return None
    folder = Path(named, "shoal", "kernels")
    try:
        reason = _why_unsafe(Path(named), folder)
    except OSError as error:
        reason = f"{folder} can't be read ({error.strerror})"
    if reason is None:
        return folder
    log.warning(
        "SHOAL_SHARED_CACHE_DIR isn't used: %s. Kernels are compiled instead. Name a folder in "
        "which root alone can write and everybody can read, or unset it.",
        reason,
    )
    return None


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
