"""Define the options of ``shoal checkpoint show`` and ``shoal checkpoint rekey``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from shoal.cli.options.shared import Json, Key, Text

__all__ = ["checkpoints"]

checkpoints = typer.Typer(
    name="checkpoint",
    help="Inspect the checkpoints of a job.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@checkpoints.callback()
def checkpoint_options() -> None:
    """Group the commands; it has no options."""


@checkpoints.command()
def show(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The checkpoint folder.")],
    seal: Key = None,
    short: Annotated[
        bool, typer.Option("--short", "-s", help="One line for each checkpoint and journal.")
    ] = False,
    json: Json = False,
) -> None:
    """Show the checkpoints and the journal of a job, without any value of a person."""
    from shoal.cli.checkpoint import show as command

    raise typer.Exit(command(folder, seal=seal, short=short, as_json=json))


@checkpoints.command()
def rekey(
    folders: Annotated[
        list[Path],
        typer.Argument(
            metavar="DIR",
            help="The checkpoint folder, and folders of sealed traces and quarantines.",
            show_default=False,
        ),
    ],
    seal: Annotated[
        Text, typer.Option(metavar="KEY", help="The key they have: env:NAME or file:PATH.")
    ] = None,
    new_seal: Annotated[
        Text, typer.Option(metavar="KEY", help="The key they get: env:NAME or file:PATH.")
    ] = None,
) -> None:
    """Seal the files of a job with another key, while it doesn't run."""
    from shoal.cli.sealing import rekey as command

    raise typer.Exit(command(folders, seal=seal, new_seal=new_seal))
