"""Define the options of ``shoal unseal``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from shoal.cli.options.shared import Key, Text

__all__ = ["unseal"]


def unseal(
    path: Annotated[Path, typer.Argument(metavar="PRIVATE", help="A sealed file, or a folder.")],
    seal: Key = None,
    output: Annotated[
        Text,
        typer.Option(
            "--output", "-o", metavar="OUT", help="A file, or a new folder/. [default: stdout]"
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
) -> None:
    """Decrypt a sealed trace or quarantine to JSON lines."""
    from shoal.cli.sealing import unseal as command

    raise typer.Exit(command(path, seal=seal, output=output, force=force))
