"""Define the options of ``shoal demo``."""

from __future__ import annotations

from typing import Annotated

import typer

from shoal.cli.options.shared import Whole, at_least_1

__all__ = ["demo"]


def demo(
    seconds: Annotated[
        float, typer.Option(help="Duration in seconds.", callback=at_least_1)
    ] = 20.0,
    k: Annotated[
        int, typer.Option(help="Minimum number of people in a group.", callback=at_least_1)
    ] = 20,
    rate: Annotated[int, typer.Option(help="Rows per second.", callback=at_least_1)] = 2000,
    seed: Annotated[Whole, typer.Option(help="Seed for a repeatable demo.")] = None,
    plain: Annotated[bool, typer.Option(help="Print plain lines instead of a live view.")] = False,
    page: Annotated[
        bool, typer.Option("--page", help="Open the live page of the run in a browser.")
    ] = False,
) -> None:
    """Show a live stream of made-up people being anonymized."""
    from shoal.cli.demo.command import demo as command

    raise typer.Exit(command(seconds=seconds, k=k, rate=rate, seed=seed, plain=plain, page=page))
