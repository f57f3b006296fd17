"""Define the options of ``shoal init``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from shoal.cli.options.shared import DataFormat, Names, Text, at_least_0, at_least_1

__all__ = ["init"]


def init(
    data: Annotated[
        str,
        typer.Argument(metavar="DATA", help="A sample file, or a topic: kafka://HOST:PORT/TOPIC."),
    ],
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
    registry: Annotated[
        Text, typer.Option(metavar="URL", help="The registry with the schema of a topic.")
    ] = None,
    schema: Annotated[
        Text,
        typer.Option(metavar="SUBJECT", help="Its subject in the registry. [default: TOPIC-value]"),
    ] = None,
    settings: Annotated[
        Names,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="A key of settings or registry_settings; repeatable."
        ),
    ] = None,
    force: Annotated[bool, typer.Option(help="Overwrite existing files.")] = False,
) -> None:
    """Draft a job file from a data file or a topic. Review the draft before use."""
    from shoal.cli.init.command import InitOptions
    from shoal.cli.init.command import init as command
    from shoal.cli.init.roles import Asked
    from shoal.cli.init.topic import TopicOptions

    asked = Asked.parse(
        subject=subject, time=time, quasi=quasi, sensitive=sensitive, keep=keep, drop=drop
    )
    options = InitOptions(
        rows=rows,
        from_format=from_format,
        asked=asked,
        k=k,
        measured_rows=measure,
        force=force,
        topic=TopicOptions(registry, schema, tuple(settings or ())),
    )
    raise typer.Exit(command(data, output, options))
