"""Define the commands and their options; turn failures into messages and exit codes."""

from __future__ import annotations

import os
import sys
import traceback
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Annotated, NoReturn, Optional

import typer

from shoal.errors import ParameterError, ReaderGoneError, ResourceError, ShoalError

__all__ = ["app", "main"]

app = typer.Typer(
    name="shoal",
    help="Publish a live stream without exposing the people in it.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

JobPath = Annotated[Path, typer.Argument(metavar="JOB", help="The job file (TOML).")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
# Typer reads annotations at run time, and needs the older spelling of optional types.
Text = Optional[str]  # noqa: UP045
File = Optional[Path]  # noqa: UP045
Whole = Optional[int]  # noqa: UP045
Number = Optional[float]  # noqa: UP045
Names = Optional[list[str]]  # noqa: UP045
From = Annotated[
    Text, typer.Option("--from", help="Format of the input, such as csv; else its ending decides.")
]
To = Annotated[Text, typer.Option("--to", help="Format of the output.")]
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
    typer.Option(metavar="PLACE", help="Ask for the token in file:PATH or env:NAME."),
]
PageCert = Annotated[
    File, typer.Option(metavar="FILE", help="Serve the page by TLS with this certificate (PEM).")
]
PageKey = Annotated[
    File, typer.Option(metavar="FILE", help="Key of the certificate. [default: in its file]")
]
PageHost = Annotated[
    Names, typer.Option(metavar="NAME", help="A name that the page answers to; repeatable.")
]
Key = Annotated[
    Text, typer.Option(metavar="KEY", help="The key of the seal: env:NAME or file:PATH.")
]
Log = Annotated[Text, typer.Option(metavar="KIND", help="Log to stderr as text or json.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress and no summary.")]


def _at_least_1(param: typer.CallbackParam, value: float | None) -> float | None:
    """Refuse a smaller value of an option, in the words of all other messages."""
    return _at_least(1, param, value)


def _at_least_0(param: typer.CallbackParam, value: float | None) -> float | None:
    return _at_least(0, param, value)


def _at_least(least: int, param: typer.CallbackParam, value: float | None) -> float | None:
    if value is not None and not value >= least:
        raise ParameterError(param.opts[0], f"must be at least {least}", got=value)
    return value


@app.callback(invoke_without_command=True)
def options(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Define the options of the program itself."""
    if version:
        from shoal import __version__

        typer.echo(f"shoal {__version__}")
        raise typer.Exit


@app.command()
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
    trace: Annotated[
        Text, typer.Option(help="Write a private trace for the audit: a Parquet file or a folder.")
    ] = None,
    from_format: From = None,
    to_format: To = None,
    follow: Follow = False,
    drain: Drain = False,
    fall_back: Annotated[
        bool,
        typer.Option("--fall-back", help="Resume from the last undamaged checkpoint."),
    ] = False,
    accept_weaker: Annotated[
        bool,
        typer.Option("--accept-weaker", help="Resume although the job promises less than before."),
    ] = False,
    undo_pseudonyms: Annotated[
        bool,
        typer.Option("--undo-pseudonyms", help="Allow a trace that links pseudonyms to subjects."),
    ] = False,
    report: Annotated[
        File, typer.Option(help="Write a report of the run for the house: one HTML file.")
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
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Anonymize a stream."""
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
                as_json=json,
                quiet=quiet,
            ),
        )
    )


@app.command()
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
        Optional[list[str]],  # noqa: UP045
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
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Anonymize a stream on Apache Spark."""
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
                as_json=json,
                quiet=quiet,
            ),
        )
    )


@app.command()
def audit(
    job: JobPath,
    published: Annotated[str, typer.Argument(metavar="PUBLISHED", help="The published data.")],
    original: Annotated[
        Text, typer.Option(help="The original input, for the checks that need it.")
    ] = None,
    trace: Annotated[File, typer.Option(help="The trace written by the run.")] = None,
    from_format: Annotated[
        Text, typer.Option("--from", help="Format of the published data.")
    ] = None,
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


@app.command()
def attack(
    job: JobPath,
    published: Annotated[str, typer.Argument(metavar="PUBLISHED", help="The published data.")],
    original: Annotated[
        Text, typer.Option(help="The original input: whom the attacker knows. Required.")
    ] = None,
    trace: Annotated[
        File, typer.Option(help="The trace written by the run: tells which attacks succeeded.")
    ] = None,
    attacks: Annotated[
        Text, typer.Option(metavar="A,B", help="The attacks to make. [default: all]")
    ] = None,
    known: Annotated[
        Text, typer.Option(metavar="A,B", help="Quasi attributes that the attacker knows.")
    ] = None,
    control: Annotated[
        Number,
        typer.Option(metavar="SHARE", help="Run the job again without this share of people."),
    ] = None,
    targets: Annotated[
        int, typer.Option(help="The most people to attack.", callback=_at_least_1)
    ] = 1000,
    seed: Annotated[int, typer.Option(help="Seed for the choice of people.")] = 0,
    from_format: Annotated[
        Text, typer.Option("--from", help="Format of the published data.")
    ] = None,
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


@app.command()
def report(
    job: JobPath,
    published: Annotated[str, typer.Argument(metavar="PUBLISHED", help="The published data.")],
    original: Annotated[Text, typer.Option(help="The original input.")] = None,
    trace: Annotated[Text, typer.Option(help="The trace written by the run.")] = None,
    population: Annotated[
        Text,
        typer.Option(metavar="FILE", help="People among whom those in the data are some."),
    ] = None,
    audience: Annotated[
        str,
        typer.Option(help="house: all figures. public: only what the release gives away itself."),
    ] = "house",
    attacks: Annotated[
        Text,
        typer.Option(help="Attacks to make, separated by commas, or 'none'. [default: all]"),
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
    from_format: Annotated[
        Text, typer.Option("--from", help="Format of the published data.")
    ] = None,
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
        audience="public" if audience == "public" else "house",
        attacks=attacks,
        control=control,
        output=output,
        from_format=from_format,
        force=force,
        as_json=json,
    )
    raise typer.Exit(command(job, published, options))


@app.command()
def check(
    job: JobPath,
    source: Annotated[
        Text,
        typer.Option(
            "--input",
            "-i",
            metavar="DATA",
            help="Data to try the job on: a file, a folder, or '-' for stdin. "
            "[default: the job's input]",
            show_default=False,
        ),
    ] = None,
    rows: Annotated[
        int, typer.Option(help="The most rows to read.", callback=_at_least_1)
    ] = 100_000,
    whole: Annotated[bool, typer.Option("--all", help="Read all rows.")] = False,
    from_format: From = None,
    json: Json = False,
) -> None:
    """Tell whether a job works on some data. Nothing is published."""
    from shoal.cli.check.command import check as command

    raise typer.Exit(
        command(job, source, rows=None if whole else rows, from_format=from_format, as_json=json)
    )


@app.command()
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
        str, typer.Option(metavar="A,B,…", help="The algorithms, with commas; or all.")
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
            help="The most rows: the first of a stream; of a table at random.", callback=_at_least_1
        ),
    ] = 100_000,
    whole: Annotated[bool, typer.Option("--all", help="Read all rows.")] = False,
    seeds: Annotated[
        int,
        typer.Option(
            help="Run each cell under so many seeds: mean and spread.", callback=_at_least_1
        ),
    ] = 1,
    jobs: Annotated[
        Whole,
        typer.Option(help="Number of processes. [default: one per core]", callback=_at_least_1),
    ] = None,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Run everything again, and keep nothing.")
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


@app.command()
def init(
    data: Annotated[str, typer.Argument(metavar="DATA", help="A sample file of the stream.")],
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
        int, typer.Option(help="The least number of people in a group.", callback=_at_least_1)
    ] = 10,
    rows: Annotated[
        int, typer.Option(help="The most rows to read.", callback=_at_least_1)
    ] = 100_000,
    measure: Annotated[
        int,
        typer.Option(
            metavar="ROWS", help="Measure loss on this many rows; 0: don't.", callback=_at_least_0
        ),
    ] = 3000,
    from_format: Annotated[Text, typer.Option("--from", help="Format of the data.")] = None,
    force: Annotated[bool, typer.Option(help="Overwrite existing files.")] = False,
) -> None:
    """Draft a job file from a data file. Review the draft before use."""
    from shoal.cli.init.command import InitOptions
    from shoal.cli.init.command import init as command
    from shoal.cli.init.roles import Asked

    asked = Asked.parse(
        subject=subject, time=time, quasi=quasi, sensitive=sensitive, keep=keep, drop=drop
    )
    options = InitOptions(
        rows=rows, from_format=from_format, asked=asked, k=k, measured_rows=measure, force=force
    )
    raise typer.Exit(command(data, output, options))


@app.command()
def algorithms(json: Json = False) -> None:
    """List the algorithms, their criteria and their knobs."""
    from shoal.cli.algorithms import algorithms as command

    raise typer.Exit(command(as_json=json))


@app.command()
def warm(
    names: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Argument(metavar="[ALGORITHM]...", help="Algorithms to compile. [default: all]"),
    ] = None,
    for_demo: Annotated[
        bool, typer.Option("--demo", help="Compile what the demo needs instead.")
    ] = False,
    into: Annotated[
        File,
        typer.Option(metavar="FOLDER", help="Make a cache there that all users can read."),
    ] = None,
    cpu: Annotated[
        Text,
        typer.Option(help="With --into: x86-64-v3, generic or host. [default: host]"),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing.")] = False,
) -> None:
    """Compile the kernels of algorithms ahead of the first run."""
    if into is None and cpu is None:
        from shoal.cli.warm import warm as command

        raise typer.Exit(command(names or (), for_demo=for_demo, quiet=quiet))

    from shoal.cli.warm_into import warm_into

    raise typer.Exit(warm_into(into, names or (), cpu=cpu, for_demo=for_demo, quiet=quiet))


@app.command()
def demo(
    seconds: Annotated[
        float, typer.Option(help="Duration in seconds.", callback=_at_least_1)
    ] = 20.0,
    k: Annotated[
        int, typer.Option(help="Least number of people per group.", callback=_at_least_1)
    ] = 20,
    rate: Annotated[int, typer.Option(help="Rows per second.", callback=_at_least_1)] = 2000,
    seed: Annotated[Optional[int], typer.Option(help="Seed for a repeatable demo.")] = None,  # noqa: UP045
    plain: Annotated[bool, typer.Option(help="Print plain lines instead of a live view.")] = False,
    page: Annotated[
        bool, typer.Option("--page", help="Open the live page of the run in a browser.")
    ] = False,
) -> None:
    """Show a live stream of made-up people being anonymized."""
    from shoal.cli.demo.command import demo as command

    raise typer.Exit(command(seconds=seconds, k=k, rate=rate, seed=seed, plain=plain, page=page))


checkpoints = typer.Typer(
    name="checkpoint",
    help="Inspect the checkpoints of a job.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(checkpoints)


@checkpoints.callback()
def checkpoint_options() -> None:
    """Group the commands; it has no options."""


@checkpoints.command()
def show(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The checkpoint folder.")],
    seal: Key = None,
    short: Annotated[
        bool, typer.Option("--short", "-s", help="One line for each checkpoint and journal.")
    ] = False,
    json: Json = False,
) -> None:
    """Show the checkpoints and the journal of a job, without any value of a person."""
    from shoal.cli.checkpoint import show as command

    raise typer.Exit(command(folder, seal=seal, short=short, as_json=json))


@checkpoints.command()
def rekey(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The checkpoint folder.")],
    others: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[PRIVATE]...",
            help="Folders of sealed traces and quarantines.",
            show_default=False,
        ),
    ] = None,
    seal: Annotated[
        Text, typer.Option(metavar="KEY", help="The key they have: env:NAME or file:PATH.")
    ] = None,
    new_seal: Annotated[
        Text, typer.Option(metavar="KEY", help="The key they get: env:NAME or file:PATH.")
    ] = None,
) -> None:
    """Seal the files of a job with another key, while it doesn't run."""
    from shoal.cli.sealing import rekey as command

    raise typer.Exit(command(folder, others or [], seal=seal, new_seal=new_seal))


@app.command()
def unseal(
    path: Annotated[Path, typer.Argument(metavar="PRIVATE", help="A sealed file, or a folder.")],
    seal: Key = None,
    output: Annotated[
        File, typer.Option("--output", "-o", metavar="OUT", help="A file. [default: stdout]")
    ] = None,
) -> None:
    """Write a sealed trace or quarantine in clear, as JSON lines."""
    from shoal.cli.sealing import unseal as command

    raise typer.Exit(command(path, seal=seal, output=output))


models = typer.Typer(
    name="model",
    help="Predict what a promise is worth.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(models)


@models.callback()
def model_options() -> None:
    """Group the commands; it has no options."""


@models.command("z")
def z_anonymity(
    data: Annotated[Text, typer.Option(help="A sample of the stream; '-' for stdin.")] = None,
    job: Annotated[File, typer.Option(help="A job that names the columns of the data.")] = None,
    subject: Annotated[Text, typer.Option(help="The column of the subject.")] = None,
    attribute: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(help="A column of attributes; repeatable."),
    ] = None,
    time: Annotated[Text, typer.Option(help="The column of the time.")] = None,
    from_format: Annotated[Text, typer.Option("--from", help="Format of the data.")] = None,
    rows: Annotated[
        int, typer.Option(help="The most rows to read.", callback=_at_least_1)
    ] = 1_000_000,
    window: Annotated[
        Number, typer.Option(help="Length of the window in seconds. [default without data: 12]")
    ] = None,
    window_rows: Annotated[
        Whole, typer.Option(help="Length of the window in rows.", callback=_at_least_1)
    ] = None,
    k: Annotated[int, typer.Option(help="The k of k-anonymity.", callback=_at_least_1)] = 2,
    probability: Annotated[
        Number, typer.Option(help="Find the least z that reaches it. [default with data: 0.9]")
    ] = None,
    z: Annotated[
        Whole, typer.Option(help="The z of z-anonymity. [default: 150]", callback=_at_least_1)
    ] = None,
    users: Annotated[
        Whole, typer.Option(help="Number of subjects. [default: 1000]", callback=_at_least_1)
    ] = None,
    attributes: Annotated[
        Whole, typer.Option(help="Number of attributes. [default: 20]", callback=_at_least_1)
    ] = None,
    rate: Annotated[
        Number, typer.Option(help="Exposure rate of the most frequent attribute. [default: 0.2]")
    ] = None,
    exponent: Annotated[
        Number, typer.Option(help="Rates fall with rank r as 1/r^exponent. [default: 1]")
    ] = None,
    curve: Annotated[bool, typer.Option("--curve", help="Print a chart over z.")] = False,
    simulate: Annotated[
        bool, typer.Option("--simulate", help="Also simulate, with ten seeds.")
    ] = False,
    exact: Annotated[
        bool, typer.Option("--exact", help="Also sum over all sets of up to 24 attributes.")
    ] = False,
    classes: Annotated[
        Text, typer.Option(help="Two classes of subjects: activity=10 or interest=0.5.")
    ] = None,
    plot: Annotated[
        File, typer.Option(metavar="FILE", help="Write the chart over z to an SVG file.")
    ] = None,
    json: Json = False,
) -> None:
    """Estimate the probability of k-anonymity under z-anonymity, or find the z for it."""
    from shoal.cli.model.command import ModelOptions, model_z

    raise typer.Exit(
        model_z(
            ModelOptions(
                data=data,
                job=job,
                subject=subject,
                attribute=tuple(attribute or ()),
                time=time,
                from_format=from_format,
                rows=rows,
                window=window,
                window_rows=window_rows,
                k=k,
                probability=probability,
                z=z,
                users=users,
                attributes=attributes,
                rate=rate,
                exponent=exponent,
                curve=curve,
                simulate=simulate,
                exact=exact,
                classes=classes,
                plot=plot,
                as_json=json,
            )
        )
    )


@models.command("tree")
def tree(
    error: Annotated[
        float, typer.Option(help="The error of a leaf's share of the rows, at most.")
    ] = 0.025,
    probability: Annotated[float, typer.Option(help="How probably it is kept.")] = 0.95,
    samples: Annotated[
        Whole, typer.Option(help="Also the error of so many.", callback=_at_least_1)
    ] = None,
    quasi: Annotated[
        int, typer.Option(help="Number of quasi attributes.", callback=_at_least_1)
    ] = 3,
    sampled: Annotated[
        int, typer.Option(help="Rows that are sampled from.", callback=_at_least_1)
    ] = 10_000,
    json: Json = False,
) -> None:
    """Tell how many samples tree-density and tree-full need for an error."""
    from shoal.cli.model.tree import model_tree

    raise typer.Exit(
        model_tree(
            error=error,
            probability=probability,
            samples=samples,
            quasi=quasi,
            window=sampled,
            as_json=json,
        )
    )


def main() -> NoReturn:
    """Run a command; print a failure as one sentence and exit with its code."""
    _keep_pandas_out()
    try:
        app(standalone_mode=True)
    except ReaderGoneError as error:
        # `| head` has what it wants: that is nothing to complain about, except in a log.
        _log_error(f"shoal: {error}")
        sys.exit(error.exit_code)
    except ShoalError as error:
        _print_error(f"shoal: {error}")
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        _print_error("shoal: interrupted")
        sys.exit(130)
    except MemoryError:
        _print_error("shoal: the memory of this machine isn't enough. Read smaller files.")
        sys.exit(ResourceError.exit_code)
    except Exception as error:
        _report_bug(error)
        sys.exit(ShoalError.exit_code)
    raise AssertionError("a command always exits")


def _keep_pandas_out() -> None:
    """Keep Arrow from importing pandas, which takes longer than all of Shoal's own modules.

    Arrow does it at its first conversion, to recognize frames. Only the command for Spark has any.
    """
    is_ours = not {"pandas", "pyarrow"} & set(sys.modules)
    if is_ours and sys.argv[1:2] != ["spark"]:
        sys.meta_path.insert(0, _NoPandas())


class _NoPandas(MetaPathFinder):
    """Says that there is no pandas."""

    def find_spec(self, fullname: str, *_: object) -> None:
        """Refuse to import pandas; leave all else to others."""
        if fullname == "pandas":
            raise ModuleNotFoundError("No module named 'pandas'", name=fullname)


def _report_bug(error: Exception) -> None:
    """Print where it happened, and no message: that may hold a person's value."""
    if os.environ.get("SHOAL_DEBUG"):
        traceback.print_exception(error)
        return
    frames = traceback.extract_tb(error.__traceback__)
    last = frames[-1] if frames else None
    where = f"{Path(last.filename).name}, line {last.lineno}" if last else "an unknown place"
    _print_error(
        f"shoal: {type(error).__name__} in {where}. This is a bug in Shoal: please report it. "
        "SHOAL_DEBUG=1 shows the whole trace, which may hold values of the data."
    )


def _log_error(text: str) -> None:
    from shoal.cli.logs import is_logging

    if is_logging():
        _print_error(text)


def _print_error(text: str) -> None:
    import logging

    from shoal.cli.logs import print_or_log

    print_or_log(logging.ERROR, "command failed", text)
