"""Define the options of ``shoal attack``."""

from __future__ import annotations

from typing import Annotated

import typer

from shoal.cli.options.shared import (
    File,
    JobPath,
    Json,
    Number,
    Published,
    PublishedFormat,
    Text,
    at_least_1,
)

__all__ = ["attack"]


def attack(
    job: JobPath,
    published: Published,
    original: Annotated[
        Text, typer.Option(help="The original input: whom the attacker knows. Required.")
    ] = None,
    trace: Annotated[
        File, typer.Option(help="The trace written by the run: shows which attacks succeeded.")
    ] = None,
    attacks: Annotated[
        Text, typer.Option(metavar="A,B", help="The attacks to run. [default: all]")
    ] = None,
    known: Annotated[
        Text, typer.Option(metavar="A,B", help="Quasi attributes that the attacker knows.")
    ] = None,
    control: Annotated[
        Number,
        typer.Option(metavar="SHARE", help="Run the job again without this share of people."),
    ] = None,
    targets: Annotated[
        int, typer.Option(help="Maximum number of people to attack.", callback=at_least_1)
    ] = 1000,
    seed: Annotated[int, typer.Option(help="Seed for the choice of people.")] = 0,
    from_format: PublishedFormat = None,
    json: Json = False,
) -> None:
    """Attack published data on purpose. Exit code 1 if an attack exceeds what is promised."""
    from shoal.cli.attack import AttackOptions
    from shoal.cli.attack import attack as command

    options = AttackOptions(
        original=original,
        trace=trace,
        attacks=attacks,
        known=known,
        control=control,
        targets=targets,
        seed=seed,
        from_format=from_format,
        as_json=json,
    )
    raise typer.Exit(command(job, published, options))
