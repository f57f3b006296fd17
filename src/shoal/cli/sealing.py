"""``shoal checkpoint rekey`` gives files another key, ``shoal unseal`` opens private ones."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path

from shoal.cli.terminal import print_message
from shoal.errors import JobError, Problem
from shoal.io.files.atomic import atomic_write
from shoal.io.files.private import open_private
from shoal.io.streams import STDIO
from shoal.run.state.private_files import read_private
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


def unseal(path: Path, *, seal: str | None, output: Path | None, force: bool = False) -> int:
    """Write private rows decrypted; return the exit code."""
    key = None if seal is None else Seal.from_spec(seal)
    rows = read_private(path, key)
    if output is None or str(output) == STDIO:
        sys.stdout.buffer.writelines(rows)
        sys.stdout.buffer.flush()
        return 0
    # To standard output rows are written without importing what makes a report.
    from shoal.cli.report import check_page

    check_page(output, [("PRIVATE", path)], force=force)
    if output.exists() and not output.is_file():
        # A pipe isn't replaced, but written to.
        with contextlib.closing(open_private(output)) as pipe:
            for lines in rows:
                pipe.write(lines)
        return 0
    # Mode 0600: it is as private as what it is made of.
    with atomic_write(output, private=True) as file:
        for lines in rows:
            file.write(lines)
    return 0
