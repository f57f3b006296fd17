"""Define the options of ``shoal warm``."""

from __future__ import annotations

from typing import Annotated

import typer

from shoal.cli.options.shared import File, Names, Text

__all__ = ["warm"]


def warm(
    names: Annotated[
        Names,
        typer.Argument(metavar="[ALGORITHM]...", help="Algorithms to compile. [default: all]"),
    ] = None,
    for_demo: Annotated[
        bool, typer.Option("--demo", help="Compile only what the demo needs.")
    ] = False,
    into: Annotated[
        File,
        typer.Option(metavar="FOLDER", help="Write a cache there that all users can read."),
    ] = None,
    cpu: Annotated[
        Text,
        typer.Option(help="With --into: x86-64-v3, generic or host. [default: host]"),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing.")] = False,
) -> None:
    """Compile the kernels of algorithms ahead of the first run."""
    if into is None and cpu is None:
        from shoal.cli.warm import warm as command

        raise typer.Exit(command(names or (), for_demo=for_demo, quiet=quiet))

    from shoal.cli.warm_into import warm_into

    raise typer.Exit(warm_into(into, names or (), cpu=cpu, for_demo=for_demo, quiet=quiet))
