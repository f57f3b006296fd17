"""Refuse an output that is an input or another output, under whatever name."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from shoal.errors import JobError, Problem, ResourceError
from shoal.io.connector import InputEndpoint, OutputEndpoint
from shoal.io.streams import STDIO, os_reason
from shoal.job.file import Job

__all__ = ["refuse_overwriting", "refuse_page"]

#: What tells one file from another: its device and inode; of a file that doesn't exist yet those of
#: the folder where it would be, and the rest of the path.
Identity: TypeAlias = tuple[int, int, tuple[str, ...]]


class _File(NamedTuple):
    """A file of a run: what messages call it, its path, and whether it is written."""

    name: str
    path: str
    is_written: bool


def refuse_overwriting(
    job: Job,
    job_path: Path | None,
    source: InputEndpoint,
    sink: OutputEndpoint,
    trace: str | None,
    *,
    report: Path | None = None,
    log: Path | None = None,
) -> None:
    """Raise `JobError` if an output would overwrite an input or another output.

    Files are compared by device and inode, so that a hard link, a symbolic link, a bind mount or
    another spelling of a path is found. Nothing is opened.
    """
    files = _files(job, job_path, source, sink, trace)
    if report is not None:
        files.append(_File("report", str(report), True))
    if log is not None:
        files.append(_File("--log-file", str(log), True))
    _refuse_same(files, folders=("input", "output"))


def refuse_page(
    way: str,
    page: Path,
    read: Sequence[tuple[str, Path | str | None]],
    *,
    job: Job | None = None,
) -> None:
    """Raise `JobError` if a page would overwrite a file that is read, or lie in its folder.

    ``way`` is the option that names the page; ``read`` are the files, and what messages call them.
    All files that a run of the ``job`` reads or writes count as well.
    """
    given = [(name, str(path)) for name, path in read if path is not None]
    files = [_File(name, path, False) for name, path in given if "://" not in path]
    if job is not None:
        of_job = _files(job, None, job.input, job.output, None)
        files += [_File(file.name, file.path, False) for file in of_job if file.path != STDIO]
    files.append(_File(way, str(page), True))
    _refuse_same(files, folders=[file.name for file in files])


def _refuse_same(files: list[_File], folders: Sequence[str]) -> None:
    """Raise if a file is another one, or lies in one of some folders."""
    identities = [_identity(file) for file in files]
    for place, (file, identity) in enumerate(zip(files, identities, strict=True)):
        if not file.is_written or identity is None:
            continue
        above = set() if file.path == STDIO else _above(file)
        for other, known in zip(files[:place], identities[:place], strict=True):
            if known == identity:
                _refuse(file, f"is the same file as the {other.name}")
            if known in above and other.name in folders:
                _refuse(file, f"lies in the folder of the {other.name}")
        for other in files[:place] + files[place + 1 :]:
            # Files in an output folder get new names; those of other folders are in use.
            if other.name != "output" and identity in _files_in(other):
                _refuse(file, f"is a file in the folder of the {other.name}")


def _refuse(file: _File, what: str) -> None:
    raise JobError(Problem(file.name, what, None, f"Choose another path for {file.name}"))


def _files(
    job: Job, job_path: Path | None, source: InputEndpoint, sink: OutputEndpoint, trace: str | None
) -> list[_File]:
    """Return the files of a run, those that are read first."""
    files = [] if job_path is None else [_File("job", str(job_path), False)]
    files += [_File("hierarchy", str(path), False) for path in job.files]
    seal = None if job.checkpoints is None else job.checkpoints.seal
    if seal is not None and seal.startswith("file:"):
        files.append(_File("key of the seal", seal.removeprefix("file:"), False))
    if source.path is not None:
        files.append(_File("input", source.path, False))
    if sink.path is not None:
        files.append(_File("output", sink.path, True))
    private = [] if trace is None else [("trace", trace)]
    private.append(("bad_rows.file", str(job.bad_rows.file)))
    if job.checkpoints is not None:
        private.append(("run.checkpoint.folder", str(job.checkpoints.folder)))
    for name, path in private:
        if Path(path).name == STDIO:
            what = "would go to standard output, and holds personal data"
            raise JobError(Problem(name, what, None, "Name a file"))
        files.append(_File(name, path, True))
    # Spark knows other file systems.
    return [file for file in files if "://" not in file.path]


def _identity(file: _File) -> Identity | None:
    """Return what tells a file from others; None for what can't be overwritten, as a terminal."""
    if file.path == STDIO:
        return _standard_identity(sys.stdout if file.is_written else sys.stdin)
    rest: tuple[str, ...] = ()
    here = Path(file.path)
    while True:
        try:
            found = here.stat()
        except FileNotFoundError:
            if not rest:
                # A link that leads nowhere is where the file would be.
                here = Path(os.path.realpath(here))
            rest, here = (here.name, *rest), here.parent
            continue
        except (OSError, ValueError) as error:
            if not file.is_written:
                # Whoever opens it says so, with the right words.
                return None
            reason = os_reason(error) if isinstance(error, OSError) else "it isn't a path"
            raise ResourceError(f"{file.path}: can't be written: {reason}.") from None
        if stat.S_ISCHR(found.st_mode) or stat.S_ISBLK(found.st_mode):
            return None
        return found.st_dev, found.st_ino, rest


def _standard_identity(stream: Any) -> Identity | None:
    try:
        found = os.fstat(stream.fileno())
    except (OSError, ValueError, AttributeError):
        return None
    return (found.st_dev, found.st_ino, ()) if stat.S_ISREG(found.st_mode) else None


def _files_in(file: _File) -> set[Identity]:
    """Return the files in a folder; none if it is a file."""
    try:
        with os.scandir(file.path) as entries:
            stats = [entry.stat() for entry in entries if entry.is_file()]
    except (OSError, ValueError):
        return set()
    return {(found.st_dev, found.st_ino, ()) for found in stats}


def _above(file: _File) -> set[Identity | None]:
    """Return the folders above a file."""
    # Resolved first: the folder above a link isn't the one above its target.
    real = Path(os.path.realpath(file.path))
    return {_identity(_File(file.name, str(folder), True)) for folder in real.parents} - {None}
