"""Define the options of ``shoal serve``."""

from __future__ import annotations

from typing import Annotated

import typer

from shoal.cli.options.shared import (
    AcceptWeaker,
    Drain,
    FallBack,
    JobPath,
    Json,
    Log,
    LogFile,
    LogFileHours,
    LogFileMegabytes,
    LogKeepDays,
    LogKeepMegabytes,
    Metrics,
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

__all__ = ["serve"]


def serve(
    job: JobPath,
    page: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Address of the server and its live page.")
    ] = "127.0.0.1:8800",
    page_token: PageToken = None,
    releases_token: Annotated[
        Text,
        typer.Option(metavar="PLACE", help="A second token, which may only read /releases."),
    ] = None,
    page_cert: PageCert = None,
    page_key: PageKey = None,
    page_host: PageHost = None,
    sink: Annotated[
        Text,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            help="Output: a file or a folder ('out/'). [default: the job's output]",
            show_default=False,
        ),
    ] = None,
    to_format: To = None,
    trace: Trace = None,
    drain: Drain = False,
    fall_back: FallBack = False,
    accept_weaker: AcceptWeaker = False,
    undo_pseudonyms: UndoPseudonyms = False,
    metrics: Metrics = None,
    log: Log = None,
    log_file: LogFile = None,
    log_file_megabytes: LogFileMegabytes = None,
    log_file_hours: LogFileHours = None,
    log_keep_megabytes: LogKeepMegabytes = None,
    log_keep_days: LogKeepDays = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Anonymize rows that come by HTTP."""
    from shoal.cli.log_file import LogFileOptions
    from shoal.cli.run.command import RunOptions
    from shoal.cli.run.command import run as command
    from shoal.cli.run.page import PageOptions
    from shoal.errors import JobError, Problem

    if releases_token is not None and page_token is None:
        what = "needs --page-token: without it the server asks for no token"
        raise JobError(Problem("--releases-token", what, None, "Add --page-token file:PATH"))
    raise typer.Exit(
        command(
            job,
            RunOptions(
                sink=sink,
                trace=trace,
                to_format=to_format,
                drain=drain,
                fall_back=fall_back,
                accept_weaker=accept_weaker,
                undo_pseudonyms=undo_pseudonyms,
                metrics=metrics,
                page=PageOptions.given(page, page_token, page_cert, page_key, page_host),
                serves=True,
                releases_token=releases_token,
                log=log,
                log_file=LogFileOptions.given(
                    log_file, log_file_megabytes, log_file_hours, log_keep_megabytes, log_keep_days
                ),
                as_json=json,
                quiet=quiet,
            ),
        )
    )
