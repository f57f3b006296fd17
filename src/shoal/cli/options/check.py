"""Define the options of ``shoal check``."""

from __future__ import annotations

from typing import Annotated

import typer

from shoal.cli.options.shared import From, JobPath, Json, Text, at_least_1

__all__ = ["check"]


def check(
    job: JobPath,
    source: Annotated[
        Text,
        typer.Option(
            "--input",
            "-i",
            metavar="DATA",
            help="Data to try the job on: a file, a folder, or '-' for stdin. "
            "[default: the job's input]",
            show_default=False,
        ),
    ] = None,
    rows: Annotated[
        int, typer.Option(help="Maximum number of rows to read.", callback=at_least_1)
    ] = 100_000,
    whole: Annotated[bool, typer.Option("--all", help="Read all rows.")] = False,
    from_format: From = None,
    json: Json = False,
) -> None:
    """Tell whether a job works on some data. Nothing is published."""
    from shoal.cli.check.command import check as command

    raise typer.Exit(
        command(job, source, rows=None if whole else rows, from_format=from_format, as_json=json)
    )
