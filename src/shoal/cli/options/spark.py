"""Define the options of ``shoal spark``."""

from __future__ import annotations

from typing import Annotated

import typer

from shoal.cli.options.shared import (
    Drain,
    Follow,
    From,
    JobPath,
    Json,
    Log,
    LogFile,
    LogFileHours,
    LogFileMegabytes,
    LogKeepDays,
    LogKeepMegabytes,
    Metrics,
    Names,
    Page,
    PageCert,
    PageHost,
    PageKey,
    PageToken,
    Quiet,
    Text,
    To,
    Whole,
)

__all__ = ["spark"]


def spark(
    job: JobPath,
    source: Annotated[
        Text,
        typer.Option(
            "--input",
            "-i",
            metavar="IN",
            show_default=False,
            help="Input: a folder that all machines can reach. [default: the job's input]",
        ),
    ] = None,
    sink: Annotated[
        Text,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            show_default=False,
            help="Output: a folder, with a subfolder for each batch. [default: the job's output]",
        ),
    ] = None,
    from_format: From = None,
    to_format: To = None,
    shards: Annotated[
        Whole, typer.Option(help="Number of parallel engines. [default: as in the job]")
    ] = None,
    follow: Follow = False,
    master: Annotated[
        Text,
        typer.Option(metavar="URL", help="Spark master. [default: local[*], or spark-submit's]"),
    ] = None,
    conf: Annotated[
        Names,
        typer.Option(metavar="KEY=VALUE", help="A Spark setting; repeatable."),
    ] = None,
    sample: Annotated[
        Text,
        typer.Option(
            metavar="PATH",
            help="Sample rows from which rows are assigned to shards. [default: the first batch]",
        ),
    ] = None,
    trace: Annotated[
        Text, typer.Option(help="Write a private trace for the audit to this folder.")
    ] = None,
    migrate: Annotated[
        bool,
        typer.Option("--migrate", help="Publish held rows, then reassign rows to shards."),
    ] = False,
    drain: Drain = False,
    metrics: Metrics = None,
    page: Page = None,
    page_token: PageToken = None,
    page_cert: PageCert = None,
    page_key: PageKey = None,
    page_host: PageHost = None,
    log: Log = None,
    log_file: LogFile = None,
    log_file_megabytes: LogFileMegabytes = None,
    log_file_hours: LogFileHours = None,
    log_keep_megabytes: LogKeepMegabytes = None,
    log_keep_days: LogKeepDays = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Anonymize a stream on Apache Spark."""
    from shoal.cli.log_file import LogFileOptions
    from shoal.cli.run.page import PageOptions
    from shoal.cli.spark.command import SparkOptions
    from shoal.cli.spark.command import spark as command

    raise typer.Exit(
        command(
            job,
            SparkOptions(
                source=source,
                sink=sink,
                from_format=from_format,
                to_format=to_format,
                shards=shards,
                follow=follow,
                master=master,
                settings=tuple(conf or ()),
                sample=sample,
                trace=trace,
                migrate=migrate,
                drain=drain,
                metrics=metrics,
                page=PageOptions.given(page, page_token, page_cert, page_key, page_host),
                log=log,
                log_file=LogFileOptions.given(
                    log_file, log_file_megabytes, log_file_hours, log_keep_megabytes, log_keep_days
                ),
                as_json=json,
                quiet=quiet,
            ),
        )
    )
