"""``shoal warm``: compile kernels ahead of the first run."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import nullcontext, redirect_stderr
from io import StringIO
from typing import Any

from shoal import algorithms
from shoal.cli.demo.command import warm_up
from shoal.cli.small_run import run_once
from shoal.cli.terminal import COMPILING, compiling_bar, print_message
from shoal.engine.cache import cache_folder
from shoal.engine.compile_watch import CompileWatch
from shoal.engine.on_demand import compile_demands
from shoal.errors import ParameterError, ResourceError

__all__ = ["warm"]


def warm(names: Sequence[str], *, quiet: bool, for_demo: bool = False) -> int:
    """Compile the kernels of algorithms, or of all, and keep them; return the exit code.

    With ``for_demo`` those of the demo are compiled, and no others.
    """
    if for_demo and names:
        raise ParameterError(
            "--demo",
            f"was given with {', '.join(names)}; the demo has its own algorithm",
            fix="Give --demo or the names of algorithms",
        )
    found = [algorithms.find(name) for name in names or algorithms.names()]
    folder = cache_folder()
    if folder is None:
        raise ResourceError(
            "there is no folder for compiled kernels. Name one of your own with "
            "SHOAL_CACHE_DIR, and unset NUMBA_DISABLE_JIT, which leaves nothing to compile."
        )
    n_compiled = 0
    if for_demo:
        with redirect_stderr(StringIO()) if quiet else nullcontext():
            n_compiled = warm_up(is_plain=quiet or not sys.stderr.isatty())
        found = []
    for number, anonymizer in enumerate(found, 1):
        with _Line(f"{anonymizer.name} ({number} of {len(found)})", quiet=quiet) as line:
            watch = CompileWatch(anonymizer, line.show)
            with watch.watching():
                run_once(anonymizer.name)
                compile_demands()
            n_compiled += watch.n_done
    if not quiet:
        print_message(f"compiled {n_compiled} kernels; the cache is {folder}")
    return 0


class _Line:
    """What is compiled: a progress bar on a terminal, elsewhere a line for each algorithm."""

    def __init__(self, name: str, *, quiet: bool) -> None:
        self._name, self._quiet = name, quiet
        self._status: Any = None
        self._said = False

    def __enter__(self) -> _Line:
        if not self._quiet and sys.stderr.isatty():
            from rich.console import Console

            self._status = Console(stderr=True).status(f"{self._name}: checking the cache …")
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()

    def show(self, watch: CompileWatch) -> None:
        """Show how far the compiler is."""
        if self._status is not None:
            bar = compiling_bar(watch.n_done, watch.n_expected, self._name)
            self._status.update(bar)
        elif not (self._quiet or self._said):
            self._said = True
            print_message(f"{self._name}: {COMPILING} ({watch.n_expected} of them)")
