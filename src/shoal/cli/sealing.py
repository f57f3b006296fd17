"""``shoal checkpoint rekey`` gives files another key, ``shoal unseal`` opens private ones."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from shoal.cli.signals import removed_at_the_end
from shoal.cli.terminal import print_message
from shoal.errors import JobError, Problem
from shoal.io.files.atomic import PARTIAL, atomic_write, rename_synced
from shoal.io.files.durable import is_folder
from shoal.io.files.private import open_private
from shoal.io.streams import STDIO
from shoal.run.state.folder import writing
from shoal.run.state.private_files import name_of, numbered, read_private
from shoal.run.state.rekey import is_of_job
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
    files = "1 file is" if n_changed == 1 else f"{n_changed:,} files are"
    print_message(
        f"{files} sealed with key {new.fingerprint} now{rest}. The job needs this key from now on: "
        "run.checkpoint.seal must name it"
    )
    return 0


def unseal(path: Path, *, seal: str | None, output: str | Path | None, force: bool = False) -> int:
    """Write private rows decrypted; return the exit code."""
    key = None if seal is None else Seal.from_spec(seal)
    if output is None or str(output) == STDIO:
        sys.stdout.buffer.writelines(read_private(path, key))
        sys.stdout.buffer.flush()
    elif is_folder(output):
        _refuse_job_files(path, seal, Path(output))
        _unseal_into(path, key, Path(output).absolute())
        _warn_of_missing(path, "")
        return 0
    else:
        _refuse_job_files(path, seal, Path(output))
        _unseal_onto(path, key, Path(output), force=force)
    _warn_of_missing(path, ". A folder (-o NAME/) keeps the numbers of the files for shoal audit")
    return 0


def _refuse_job_files(path: Path, seal: str | None, output: Path) -> None:
    """Raise if the output is the key, or would be among private files or those of a state."""
    # To standard output rows are written without importing what makes a report.
    from shoal.job.same_files import refuse_page

    read: list[tuple[str, Path | str]] = [("PRIVATE", path)]
    if seal is not None and seal.startswith("file:"):
        read.append(("key of the seal", seal.removeprefix("file:")))
    refuse_page("-o", output, read)
    for folder in Path(os.path.realpath(output)).parents:
        if is_of_job(folder):
            what = f"{output} lies in {folder}, which has files of a job"
            raise JobError(Problem("-o", what, None, "Choose a path outside of it"))


def _is_unsealed(path: Path) -> bool:
    """Return whether a file may be one of unsealed rows; nothing else tells it from others."""
    with path.open("rb") as file:
        return not path.stat().st_mode & 0o077 and file.read(1) in (b"", b"{")


def _unseal_onto(path: Path, key: Seal | None, output: Path, *, force: bool) -> None:
    """Write all rows to one file, which appears when it is complete."""
    # To standard output rows are written without importing what makes a report.
    from shoal.cli.report import check_file

    kind = "a file of unsealed rows, which has mode 0600 and begins with {"
    check_file(output, kind, _is_unsealed, force=force)
    rows = read_private(path, key)
    if output.exists() and not output.is_file():
        # A pipe isn't replaced, but written to.
        with contextlib.closing(open_private(output)) as pipe:
            for lines in rows:
                pipe.write(lines)
        return

    def remove() -> None:
        with contextlib.suppress(OSError):
            output.with_name(output.name + PARTIAL).unlink()

    # Mode 0600: it is as private as what it is made of.
    with removed_at_the_end(remove), atomic_write(output, private=True) as file:
        for lines in rows:
            file.write(lines)


def _unseal_into(path: Path, key: Seal | None, folder: Path) -> None:
    """Write each file to one of the same number in a folder, which appears when it is complete."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        what = f"{folder} has rows already, or other files"
        raise JobError(Problem("-o", what, None, "Name a new folder, or remove it"))
    files = numbered(path) if path.is_dir() else numbered(path.parent)
    chosen = files if path.is_dir() else {n: each for n, each in files.items() if each == path}
    if not chosen:
        next(read_private(path, key), b"")  # says what is looked for there
    partial = folder.with_name(folder.name + PARTIAL)
    made: list[Path] = []

    def remove() -> None:
        for each in made:
            shutil.rmtree(each, ignore_errors=True)

    with removed_at_the_end(remove):
        with writing(partial):
            try:
                partial.mkdir(0o700)
            except FileExistsError:
                what = (
                    f"{partial} was left by a `shoal unseal` that was interrupted, and may have "
                    "rows in clear"
                )
                fix = "Remove it, unless another one is running, and call this one again"
                raise JobError(Problem("-o", what, None, fix)) from None
        made.append(partial)
        for number, file in chosen.items():
            with atomic_write(partial / name_of(number), private=True) as output:
                for lines in read_private(file, key):
                    output.write(lines)
        rename_synced(partial, folder)


def _warn_of_missing(path: Path, more: str) -> None:
    """Print a warning if the files of a folder don't have all numbers from 1 on."""
    numbers = list(numbered(path)) if path.is_dir() else []
    gaps = [(one + 1, other - 1) for one, other in pairwise([0, *numbers]) if other > one + 1]
    first = [each for each in gaps if each[0] == 1]
    reasons = {
        "are missing: the job may have removed them (private.keep_days, keep_megabytes)": first,
        "are missing between others: they are lost": [each for each in gaps if each[0] > 1],
    }
    for what, spans in reasons.items():
        if spans:
            named = [str(one) if one == last else f"{one}–{last}" for one, last in spans]
            print_message(f"warning: {path}: files {', '.join(named)} {what}{more}")
