"""``shoal checkpoint rekey`` gives files another key, ``shoal unseal`` opens private ones."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence
from pathlib import Path

from shoal.cli.terminal import print_message
from shoal.errors import JobError, Problem
from shoal.io.files.private import open_private
from shoal.run.state.private_files import numbered, read_private
from shoal.run.state.rekey import rekey as seal_anew
from shoal.run.state.seal import Seal

__all__ = ["rekey", "unseal"]


def rekey(folders: Sequence[Path], *, seal: str | None, new_seal: str | None) -> int:
    """Seal the files of a job with another key; return the exit code."""
    if new_seal is None:
        what, fix = "is missing: it names the new key of the files", "env:NAME or file:PATH"
        raise JobError(Problem("--new-seal", what, None, fix))
    old = None if seal is None else Seal.from_spec(seal)
    new = Seal.from_spec(new_seal)
    n_changed, n_there, n_removed = seal_anew(folders, old, new)
    rest = f"; {n_there:,} had it already" if n_there else ""
    rest += f"; damaged histories of the page that were removed: {n_removed:,}" if n_removed else ""
    print_message(f"{n_changed:,} files are sealed with key {new.fingerprint} now{rest}")
    return 0


def unseal(path: Path, *, seal: str | None, output: Path | None) -> int:
    """Write private rows decrypted; return the exit code."""
    key = None if seal is None else Seal.from_spec(seal)
    rows = read_private(path, key)
    if output is None:
        sys.stdout.buffer.writelines(rows)
        sys.stdout.buffer.flush()
        return 0
    _refuse_overwriting(path, output)
    first = next(rows, b"")  # a wrong key is found here, before anything is overwritten
    # Mode 0600: it is as private as what it is made of.
    file = open_private(output)
    try:
        for lines in itertools.chain([first], rows):
            file.write(lines)
    finally:
        file.close()
    return 0


def _refuse_overwriting(path: Path, output: Path) -> None:
    """Raise if the output is one of the files that are read: it would be emptied first."""
    files = list(numbered(path).values()) if path.is_dir() else [path]
    if output.exists() and any(file.exists() and file.samefile(output) for file in files):
        what = "is an input file, which would be emptied"
        raise JobError(Problem("--output", what, str(output), "Name another file"))
