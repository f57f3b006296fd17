"""Define the options of ``shoal audit``."""

from __future__ import annotations

from typing import Annotated

import typer

from shoal.cli.options.shared import File, JobPath, Json, Published, PublishedFormat, Text

__all__ = ["audit"]


def audit(
    job: JobPath,
    published: Published,
    original: Annotated[
        Text, typer.Option(help="The original input, for the checks that need it.")
    ] = None,
    trace: Annotated[File, typer.Option(help="The trace written by the run.")] = None,
    from_format: PublishedFormat = None,
    html: Annotated[File, typer.Option(help="Also write the verdicts as one HTML file.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    json: Json = False,
) -> None:
    """Check published data against the policy. Exit code 1 if a promise is broken."""
    from shoal.cli.audit import audit as command

    raise typer.Exit(
        command(
            job,
            published,
            original=original,
            trace=trace,
            from_format=from_format,
            html=html,
            force=force,
            as_json=json,
        )
    )
