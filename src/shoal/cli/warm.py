"""``shoal warm``: compile kernels ahead of the first run."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext, redirect_stderr
from io import StringIO
from typing import Any

import pyarrow as pa

from shoal import algorithms
from shoal.cli.demo.command import warm_up
from shoal.cli.terminal import COMPILING, compiling_bar, print_message
from shoal.datasets import census
from shoal.engine.base import Anonymizer
from shoal.engine.cache import cache_folder
from shoal.engine.compile_watch import CompileWatch
from shoal.errors import ParameterError, ResourceError
from shoal.run.frame import anonymize
from shoal.spec.ladder import Open
from shoal.spec.policy import (
    BasicLikeness,
    Criterion,
    Delay,
    DeltaDisclosure,
    DistinctLDiversity,
    KAnonymity,
    Policy,
    TCloseness,
    Window,
    ZAnonymity,
)
from shoal.spec.schema import Quasi, Schema

__all__ = ["run_once", "warm"]

#: Enough rows for groups, windows and rows that are suppressed.
N_ROWS = 300
MEASURED = (TCloseness(0.5), BasicLikeness(3), DeltaDisclosure(3))


def warm(names: Sequence[str], *, quiet: bool, for_demo: bool = False) -> int:
    """Compile the kernels of algorithms, or of all, and keep them; return the exit code.

    With ``for_demo`` those of the demo are compiled, and no others.
    """
    if for_demo and names:
        raise ParameterError(
            "--demo",
            f"was given with {', '.join(names)}; the demo has an algorithm of its own",
            fix="Give --demo or the names of algorithms",
        )
    found = [algorithms.find(name) for name in names or algorithms.names()]
    folder = cache_folder()
    if folder is None:
        raise ResourceError(
            "there is no folder to keep compiled kernels in. Name one of your own with "
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

            self._status = Console(stderr=True).status(f"{self._name}: looking at the cache …")
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


def run_once(algorithm: str, *, measured: bool = True) -> None:
    """Run an algorithm on made-up people, so that its kernels are compiled and kept.

    Parameters
    ----------
    algorithm
        The name of the algorithm.
    measured
        Whether a stream runs with a criterion that is measured against a window, too. Its kernels
        are compiled for such jobs only.

    >>> run_once("castle")
    """
    anonymizer = algorithms.find(algorithm)()
    made = census(N_ROWS, subjects=N_ROWS // 2, seed=0)
    table = made.table()
    quasi = [attribute for attribute in made.schema.quasi if attribute.name in ("age", "sex")]
    if anonymizer.publishes == "values":
        _warm_values(anonymizer, table, quasi)
        return
    schema = Schema(made.schema.subject, quasi, sensitive=made.schema.sensitive)
    for policy in _policies(anonymizer, measured=measured):
        anonymize(table, schema, policy, anonymizer, seed=0)


def _policies(anonymizer: Anonymizer, *, measured: bool) -> Iterator[Policy]:
    """Yield policies that an anonymizer can enforce and that take all of its ways."""
    basic: list[Criterion] = [KAnonymity(3), DistinctLDiversity(2)]
    more = [one for one in MEASURED if isinstance(one, anonymizer.enforces)][:1]
    if anonymizer.publishes == "table":
        yield Policy(*basic, *more, window="all")
    elif anonymizer.publishes == "windows":
        window = Window(rows=N_ROWS // 3, advance=N_ROWS // 6)
        yield Policy(*basic, *more, window=window)
    else:
        delay = Delay(rows=N_ROWS // 6)
        yield Policy(*basic, delay=delay)
        if more and measured:
            yield Policy(*basic, *more, delay=delay, window=Window(rows=N_ROWS // 3))


def _warm_values(anonymizer: Anonymizer, table: pa.Table, ladders: list[Quasi]) -> None:
    """Run z-anonymity, whose values with and without levels have kernels of their own."""
    policy = Policy(ZAnonymity(3), window=Window(rows=N_ROWS // 3))
    for quasi in ([Quasi("postcode", Open())], ladders):
        anonymize(table, Schema("person_id", quasi), policy, anonymizer, seed=0)
