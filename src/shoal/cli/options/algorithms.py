"""Define the options of ``shoal algorithms``."""

from __future__ import annotations

import typer

from shoal.cli.options.shared import Json

__all__ = ["algorithms"]


def algorithms(json: Json = False) -> None:
    """List the algorithms, their criteria and their knobs."""
    from shoal.cli.algorithms import algorithms as command

    raise typer.Exit(command(as_json=json))
