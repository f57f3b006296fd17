"""Define the options that several commands have, and the limits of numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from shoal.errors import ParameterError

__all__ = [
    "AcceptWeaker",
    "DataFormat",
    "Drain",
    "FallBack",
    "File",
    "Follow",
    "From",
    "JobPath",
    "Json",
    "Key",
    "Log",
    "LogFile",
    "LogFileHours",
    "LogFileMegabytes",
    "LogKeepDays",
    "LogKeepMegabytes",
    "Metrics",
    "Names",
    "Number",
    "Page",
    "PageCert",
    "PageHost",
    "PageKey",
    "PageToken",
    "Published",
    "PublishedFormat",
    "Quiet",
    "Text",
    "To",
    "Trace",
    "UndoPseudonyms",
    "Whole",
    "at_least_0",
    "at_least_1",
]

# Typer reads annotations at run time, and needs the older spelling of optional types.
Text = Optional[str]  # noqa: UP045
File = Optional[Path]  # noqa: UP045
Whole = Optional[int]  # noqa: UP045
Number = Optional[float]  # noqa: UP045
Names = Optional[list[str]]  # noqa: UP045

JobPath = Annotated[Path, typer.Argument(metavar="JOB", help="The job file (TOML).")]
Published = Annotated[str, typer.Argument(metavar="PUBLISHED", help="The published data.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
From = Annotated[
    Text, typer.Option("--from", help="Format of the input, e.g. csv. [default: by its ending]")
]
PublishedFormat = Annotated[Text, typer.Option("--from", help="Format of the published data.")]
DataFormat = Annotated[Text, typer.Option("--from", help="Format of the data.")]
To = Annotated[Text, typer.Option("--to", help="Format of the output.")]
Trace = Annotated[
    Text, typer.Option(help="Write a private trace for the audit: a Parquet file or a folder.")
]
FallBack = Annotated[
    bool, typer.Option("--fall-back", help="Resume from the last undamaged checkpoint.")
]
AcceptWeaker = Annotated[
    bool,
    typer.Option("--accept-weaker", help="Resume although the job promises less than before."),
]
UndoPseudonyms = Annotated[
    bool,
    typer.Option("--undo-pseudonyms", help="Allow a trace that links pseudonyms to subjects."),
]
Follow = Annotated[
    bool, typer.Option("--follow", help="Wait for more rows at the end of the input.")
]
Drain = Annotated[
    bool, typer.Option("--drain", help="When stopped, publish held rows first, under the policy.")
]
Metrics = Annotated[
    Text,
    typer.Option(metavar="ADDRESS", help="Serve /metrics and /health, e.g. on 127.0.0.1:9464."),
]
Page = Annotated[
    Text, typer.Option(metavar="ADDRESS", help="Serve a live page, e.g. on 127.0.0.1:8800.")
]
PageToken = Annotated[
    Text,
    typer.Option(metavar="PLACE", help="Require the token in file:PATH or env:NAME."),
]
PageCert = Annotated[
    File, typer.Option(metavar="FILE", help="Serve the page over TLS with this certificate (PEM).")
]
PageKey = Annotated[
    File, typer.Option(metavar="FILE", help="Key of the certificate. [default: in its file]")
]
PageHost = Annotated[
    Names, typer.Option(metavar="NAME", help="A host name that the page answers to; repeatable.")
]
Key = Annotated[
    Text, typer.Option(metavar="KEY", help="The key of the seal: env:NAME or file:PATH.")
]
Log = Annotated[Text, typer.Option(metavar="KIND", help="Log to stderr as text or json.")]
LogFile = Annotated[File, typer.Option(metavar="FILE", help="Log to this file instead of stderr.")]
LogFileMegabytes = Annotated[
    Number, typer.Option(metavar="N", help="Rotate the log file at this size in MB. [default: 10]")
]
LogFileHours = Annotated[
    Number, typer.Option(metavar="N", help="Rotate the log file at this age in hours.")
]
LogKeepMegabytes = Annotated[
    Number, typer.Option(metavar="N", help="Keep this many MB of rotated logs. [default: 100]")
]
LogKeepDays = Annotated[
    Number, typer.Option(metavar="N", help="Remove rotated logs at this age in days.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress and no summary.")]


def at_least_0(param: typer.CallbackParam, value: float | None) -> float | None:
    """Refuse a value of an option below 0, in the words of all other messages."""
    return _at_least(0, param, value)


def at_least_1(param: typer.CallbackParam, value: float | None) -> float | None:
    """Refuse a value of an option below 1, in the words of all other messages."""
    return _at_least(1, param, value)


def _at_least(least: int, param: typer.CallbackParam, value: float | None) -> float | None:
    if value is not None and not value >= least:
        raise ParameterError(param.opts[0], f"must be at least {least}", got=value)
    return value
