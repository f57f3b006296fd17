"""Define the options of ``shoal report``."""

from __future__ import annotations

from typing import Annotated

import typer

from shoal.cli.options.shared import File, JobPath, Json, Number, Published, PublishedFormat, Text

__all__ = ["report"]


def report(
    job: JobPath,
    published: Published,
    original: Annotated[Text, typer.Option(help="The original input.")] = None,
    trace: Annotated[Text, typer.Option(help="The trace written by the run.")] = None,
    population: Annotated[
        Text,
        typer.Option(metavar="FILE", help="The population that the people are part of."),
    ] = None,
    audience: Annotated[
        str,
        typer.Option(help="internal: all figures. public: only what the release itself reveals."),
    ] = "internal",
    attacks: Annotated[
        Text,
        typer.Option(help="Attacks to run, separated by commas, or 'none'. [default: all]"),
    ] = None,
    control: Annotated[
        Number,
        typer.Option(metavar="SHARE", help="Share of people for the control of the attacks."),
    ] = None,
    output: Annotated[
        File,
        typer.Option(
            "--output", "-o", help="The HTML file. [default: report.html]", show_default=False
        ),
    ] = None,
    from_format: PublishedFormat = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    json: Json = False,
) -> None:
    """Report risk, attacks and utility. One offline HTML file."""
    from typing import get_args

    from shoal.cli.report import ReportOptions
    from shoal.cli.report import report as command
    from shoal.errors import check_choice
    from shoal.report.release import Audience

    check_choice("--audience", audience, get_args(Audience))
    options = ReportOptions(
        original=original,
        trace=trace,
        population=population,
        audience="public" if audience == "public" else "internal",
        attacks=attacks,
        control=control,
        output=output,
        from_format=from_format,
        force=force,
        as_json=json,
    )
    raise typer.Exit(command(job, published, options))
