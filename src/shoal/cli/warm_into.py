"""``shoal warm --into``: make a cache of kernels that other users, or other machines, only read."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from shoal import algorithms
from shoal.cli.terminal import print_message
from shoal.engine.cpu_levels import HOST, LEVELS, environment, lacking
from shoal.errors import ParameterError, ResourceError

__all__ = ["warm_into"]

#: Numba settles what it compiles for when it is imported, so another process has to do it.
COMMAND = (sys.executable, "-c", "from shoal.cli import main; main()", "warm")


def warm_into(
    folder: Path | None,
    names: Sequence[str],
    *,
    cpu: str | None = None,
    for_demo: bool = False,
    quiet: bool = False,
) -> int:
    """Compile the kernels of algorithms into a folder for all users; return the exit code.

    Parameters
    ----------
    folder
        Where to put them, for `SHOAL_SHARED_CACHE_DIR`.
    names
        The algorithms; all if there are none.
    cpu
        The level of processors to compile for, or ``host``, which is the default.
    for_demo, quiet
        As in `shoal.cli.warm.warm`.
    """
    if folder is None:
        raise ParameterError(
            "--cpu",
            "was given without --into; your own cache is for this processor",
            fix="Give --into a folder, too",
        )
    level = _level_of(cpu or HOST)
    for name in names:
        algorithms.find(name)
    folder = folder.absolute()
    try:
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        done = subprocess.run(
            [*COMMAND, *names, *(["--demo"] if for_demo else ()), *(["--quiet"] if quiet else ())],
            env=_environment(folder, level),
            check=False,
        )
        if done.returncode:
            return done.returncode
        size = _share(folder)
    except OSError as error:
        raise ResourceError(
            f"{folder}: can't be made a shared cache ({error.strerror}). Give --into a folder of "
            "your own, or a new one."
        ) from None
    if not quiet:
        print_message(f"{folder} has {size / 1e6:.1f} MB; name it in SHOAL_SHARED_CACHE_DIR")
    return 0


def _level_of(cpu: str) -> str | None:
    """Return the level to compile for; None for the processor at hand."""
    if cpu == HOST:
        return None
    if cpu not in LEVELS:
        raise ParameterError(
            "--cpu", "isn't known", got=cpu, fix=f"Choose one of {', '.join(LEVELS)} or {HOST}"
        )
    missing = lacking(cpu)
    if missing:
        raise ParameterError(
            "--cpu",
            f"can't be {cpu} here: kernels are run once, and this processor lacks "
            f"{', '.join(missing)}",
            fix=f"Choose generic or {HOST}, or another machine",
        )
    return cpu


def _environment(folder: Path, level: str | None) -> dict[str, str]:
    """Return the variables of a process that compiles everything into a folder."""
    found = {name: text for name, text in os.environ.items() if name != "SHOAL_SHARED_CACHE_DIR"}
    if level is not None:
        found |= environment(level)
    return found | {"SHOAL_CACHE_DIR": str(folder), "SHOAL_SHIPPED_KERNELS": "off"}


def _share(folder: Path) -> int:
    """Let everybody read a cache, and nobody else write it; return its size in bytes."""
    size = 0
    for parent, _, files in os.walk(folder / "shoal"):
        Path(parent).chmod(0o755)
        for file in (Path(parent, name) for name in files):
            if file.name == "lock":
                # It is for those who compile.
                file.unlink()
                continue
            file.chmod(0o644)
            size += file.stat().st_size
    folder.chmod(0o755)
    return size
