"""Define the options of ``shoal run``."""

from __future__ import annotations

from typing import Annotated

import typer

from shoal.cli.options.shared import (
    AcceptWeaker,
    Drain,
    FallBack,
    File,
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
    Page,
    PageCert,
    PageHost,
    PageKey,
    PageToken,
    Quiet,
    Text,
    To,
    Trace,
    UndoPseudonyms,
)

__all__ = ["run"]


def run(
    job: JobPath,
    source: Annotated[
        Text,
        typer.Option(
            "--input",
            "-i",
            metavar="IN",
            help="Input: a file, a folder, or '-' for stdin. [default: the job's input, or -]",
            show_default=False,
        ),
    ] = None,
    sink: Annotated[
        Text,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            help="Output: a file, a folder ('out/'), or '-' for stdout. "
            "[default: the job's output, or -]",
            show_default=False,
        ),
    ] = None,
    trace: Trace = None,
    from_format: From = None,
    to_format: To = None,
    follow: Follow = False,
    drain: Drain = False,
    fall_back: FallBack = False,
    accept_weaker: AcceptWeaker = False,
    undo_pseudonyms: UndoPseudonyms = False,
    report: Annotated[
        File, typer.Option(help="Write an internal report of the run: one HTML file.")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite an output, trace or quarantine that exists.")
    ] = False,
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
    """Anonymize a stream."""
    from shoal.cli.log_file import LogFileOptions
    from shoal.cli.run.command import RunOptions
    from shoal.cli.run.command import run as command
    from shoal.cli.run.page import PageOptions

    raise typer.Exit(
        command(
            job,
            RunOptions(
                source=source,
                sink=sink,
                trace=trace,
                from_format=from_format,
                to_format=to_format,
                follow=follow,
                drain=drain,
                fall_back=fall_back,
                accept_weaker=accept_weaker,
                undo_pseudonyms=undo_pseudonyms,
                report=report,
                force=force,
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
