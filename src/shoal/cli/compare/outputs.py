"""Write a comparison to files; nothing is overwritten unless asked to."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from shoal.compare.comparison import Comparison
from shoal.errors import JobError, ParameterError, Problem, ResourceError
from shoal.io.files.atomic import atomic_write

__all__ = ["check_targets", "encoded", "write_file"]

ENDINGS = (".csv", ".parquet", ".json")


def check_targets(
    targets: Sequence[tuple[str, Path | None]], read: Sequence[Path], *, force: bool
) -> None:
    """Raise, before anything is run, if a file can't be written or would be overwritten.

    Parameters
    ----------
    targets
        The options and the files that they name, if they do.
    read
        The files that are read: they aren't overwritten, whatever ``force`` says.
    force
        Whether files that exist are overwritten.
    """
    problems = []
    named = [(option, path) for option, path in targets if path is not None]
    for option, path in named:
        if path.exists() and any(file.exists() and path.samefile(file) for file in read):
            problems.append(Problem(option, f"{path} is an input file", None, _ANOTHER))
        elif path.is_dir():
            problems.append(Problem(option, f"{path} is a folder", None, "Name a file"))
        elif path.exists() and not force:
            what = f"{path} exists already, and would be overwritten"
            problems.append(Problem(option, what, None, f"{_ANOTHER}, or add --force"))
    places = [os.path.realpath(path) for _, path in named]
    if len(set(places)) < len(places):
        problems.append(Problem(named[-1][0], "names the file of another option", None, _ANOTHER))
    if problems:
        raise JobError(problems)
    for _, path in named:
        folder = path.absolute().parent
        if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
            reason = (
                "can't be written to. Check its permissions" if folder.is_dir() else "doesn't exist"
            )
            raise ResourceError(f"{path}: can't be written: the folder {folder} {reason}.")


_ANOTHER = "Choose another name"


def encoded(comparison: Comparison, path: Path) -> bytes:
    """Return a comparison in the format that the ending of a file means."""
    if path.suffix == ".json":
        return (json.dumps(comparison.as_dict(), indent=2) + "\n").encode()
    buffer = pa.BufferOutputStream()
    if path.suffix == ".csv":
        pa.csv.write_csv(comparison.table(), buffer)
    else:
        pa.parquet.write_table(comparison.table(), buffer)
    return bytes(buffer.getvalue())


def check_ending(path: Path | None) -> None:
    """Raise if the ending of a file means no format."""
    if path is not None and path.suffix not in ENDINGS:
        what, fix = "has an ending of no known format", f"Write one of {', '.join(ENDINGS)}"
        raise ParameterError("--output", what, got=repr(path.suffix), fix=fix)


def write_file(path: Path, content: bytes) -> None:
    """Write a file that appears under its name only when it is complete, for its owner alone.

    It has figures of the original.
    """
    with atomic_write(path, private=True) as output:
        output.write(content)
