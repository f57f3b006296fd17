"""Define the options of ``shoal compare``."""

from __future__ import annotations

from typing import Annotated

import typer

from shoal.cli.options.shared import File, From, JobPath, Json, Text, Whole, at_least_1

__all__ = ["compare"]


def compare(
    job: JobPath,
    source: Annotated[
        Text,
        typer.Option(
            "--input",
            "-i",
            metavar="DATA",
            help="Data to compare on: a file, a folder, or '-' for stdin. "
            "[default: the job's input]",
            show_default=False,
        ),
    ] = None,
    algorithms: Annotated[
        str, typer.Option(metavar="A,B,…", help="Algorithms, separated by commas, or 'all'.")
    ] = "all",
    k: Annotated[Text, typer.Option(metavar="K,K,…", help="Values of k to try.")] = None,
    l: Annotated[Text, typer.Option(metavar="L,L,…", help="Values of l to try.")] = None,  # noqa: E741
    t: Annotated[Text, typer.Option(metavar="T,T,…", help="Values of t to try.")] = None,
    delay: Annotated[
        Text, typer.Option(metavar="D,D,…", help="Delays to try: 1000 rows, or 30s.")
    ] = None,
    sample: Annotated[
        int,
        typer.Option(
            help="Maximum number of rows: the first of a stream, or drawn from a table.",
            callback=at_least_1,
        ),
    ] = 100_000,
    whole: Annotated[bool, typer.Option("--all", help="Read all rows.")] = False,
    seeds: Annotated[
        int,
        typer.Option(
            help="Run each cell with this many seeds: mean and spread.", callback=at_least_1
        ),
    ] = 1,
    jobs: Annotated[
        Whole,
        typer.Option(help="Number of processes. [default: one per core]", callback=at_least_1),
    ] = None,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Run everything again, and cache nothing.")
    ] = False,
    output: Annotated[
        File,
        typer.Option("--output", "-o", help="Write the runs as .csv, .parquet or .json."),
    ] = None,
    report: Annotated[File, typer.Option(metavar="FILE", help="Write an HTML report.")] = None,
    best: Annotated[
        File, typer.Option("--write", metavar="JOB", help="Write the recommended job.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite existing files.")] = False,
    from_format: From = None,
    json: Json = False,
) -> None:
    """Compare algorithms and promises on some data. Nothing is published."""
    from shoal.cli.compare.command import CompareOptions
    from shoal.cli.compare.command import compare as command

    raise typer.Exit(
        command(
            job,
            CompareOptions(
                source=source,
                from_format=from_format,
                algorithms=algorithms,
                k=k,
                l=l,
                t=t,
                delay=delay,
                sample=None if whole else sample,
                seeds=seeds,
                jobs=jobs,
                cache=not no_cache,
                output=output,
                report=report,
                best=best,
                force=force,
                as_json=json,
            ),
        )
    )
