"""Define the options of ``shoal init``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from shoal.cli.options.shared import DataFormat, Names, Text, at_least_0, at_least_1

__all__ = ["init"]


def init(
    data: Annotated[str, typer.Argument(metavar="DATA", help="A sample file of the stream.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The job file to write.")] = Path(
        "job.toml"
    ),
    subject: Annotated[Text, typer.Option(help="The column that identifies people.")] = None,
    time: Annotated[Text, typer.Option(help="The column of the arrival time.")] = None,
    quasi: Annotated[Names, typer.Option(help="The quasi attributes; repeatable.")] = None,
    sensitive: Annotated[Names, typer.Option(help="The sensitive columns; repeatable.")] = None,
    keep: Annotated[Names, typer.Option(help="Columns to publish as they are; repeatable.")] = None,
    drop: Annotated[Names, typer.Option(help="Columns to leave out; repeatable.")] = None,
    k: Annotated[
        int, typer.Option(help="Minimum number of people in a group.", callback=at_least_1)
    ] = 10,
    rows: Annotated[
        int, typer.Option(help="Maximum number of rows to read.", callback=at_least_1)
    ] = 100_000,
    measure: Annotated[
        int,
        typer.Option(
            metavar="ROWS", help="Measure loss on this many rows; 0 skips it.", callback=at_least_0
        ),
    ] = 3000,
    from_format: DataFormat = None,
    force: Annotated[bool, typer.Option(help="Overwrite existing files.")] = False,
) -> None:
    """Draft a job file from a data file. Review the draft before use."""
    from shoal.cli.init.command import InitOptions
    from shoal.cli.init.command import init as command
    from shoal.cli.init.roles import Asked

    asked = Asked.parse(
        subject=subject, time=time, quasi=quasi, sensitive=sensitive, keep=keep, drop=drop
    )
    options = InitOptions(
        rows=rows, from_format=from_format, asked=asked, k=k, measured_rows=measure, force=force
    )
    raise typer.Exit(command(data, output, options))
