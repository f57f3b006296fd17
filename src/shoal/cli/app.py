"""The commands, their options, and how each of them ends."""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path
from typing import Annotated, NoReturn, Optional

import typer

from shoal.errors import ShoalError

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
#: typer reads annotations at run time, and needs the older spelling of optional types.
Text = Optional[str]  # noqa: UP045
File = Optional[Path]  # noqa: UP045
Whole = Optional[int]  # noqa: UP045
Number = Optional[float]  # noqa: UP045
From = Annotated[
    Text, typer.Option("--from", help="Format of the input: csv, tsv, jsonl, parquet, arrow.")
]
To = Annotated[Text, typer.Option("--to", help="Format of the output.")]
Follow = Annotated[bool, typer.Option("--follow", help="Wait for more at the end of the input.")]
Drain = Annotated[
    bool, typer.Option("--drain", help="Publish what is held before a stop, under the promise.")
]
Metrics = Annotated[
    Text, typer.Option(metavar="ADDRESS", help="Serve /metrics and /health, say on 127.0.0.1:9464.")
]
Log = Annotated[
    Text, typer.Option(metavar="KIND", help="Tell what happens on stderr: text or json.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no summary.")]


@app.callback(invoke_without_command=True)
def options(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Options of the program itself."""
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
            help="What to read: a file, a folder, '-' for stdin. [default: as the job says, or -]",
            show_default=False,
        ),
    ] = None,
    sink: Annotated[
        Text,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            help="Where to write: a file, a folder ('out/'), '-' for stdout. "
            "[default: as the job says, or -]",
            show_default=False,
        ),
    ] = None,
    trace: Annotated[
        Text, typer.Option(help="Write a private trace for the audit here (Parquet, or a folder).")
    ] = None,
    from_format: From = None,
    to_format: To = None,
    follow: Follow = False,
    drain: Drain = False,
    fall_back: Annotated[
        bool, typer.Option("--fall-back", help="Go on from the last checkpoint that is whole.")
    ] = False,
    undo_pseudonyms: Annotated[
        bool,
        typer.Option("--undo-pseudonyms", help="Write a trace that tells whose each pseudonym is."),
    ] = False,
    metrics: Metrics = None,
    log: Log = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Anonymize a stream: the main job."""
    from shoal.cli.run.command import RunOptions
    from shoal.cli.run.command import run as command

    raise typer.Exit(
        command(
            job,
            RunOptions(
                source, sink, trace, from_format, to_format, follow, drain, fall_back,
                undo_pseudonyms, metrics, log, json, quiet,
            ),
        )
    )  # fmt: skip


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
            help="What to read: a folder that all machines reach. [default: as the job says]",
        ),
    ] = None,
    sink: Annotated[
        Text,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            show_default=False,
            help="Where to write: a folder, with one in it for each batch. "
            "[default: as the job says]",
        ),
    ] = None,
    from_format: From = None,
    to_format: To = None,
    shards: Annotated[
        Whole, typer.Option(help="How many engines work side by side. [default: as the job says]")
    ] = None,
    follow: Follow = False,
    master: Annotated[
        Text, typer.Option(metavar="URL", help="Spark's master. [local[*], or spark-submit's]")
    ] = None,
    conf: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(metavar="KEY=VALUE", help="A setting of Spark's; may be said more than once."),
    ] = None,
    sample: Annotated[
        Text,
        typer.Option(
            metavar="PATH",
            help="Rows to learn from which place belongs to which shard. [the first batch]",
        ),
    ] = None,
    trace: Annotated[
        Text, typer.Option(help="Write a private trace for the audit into this folder.")
    ] = None,
    migrate: Annotated[
        bool,
        typer.Option("--migrate", help="Publish what is held, then deal rows out to shards anew."),
    ] = False,
    drain: Drain = False,
    metrics: Metrics = None,
    log: Log = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Anonymize a stream on Apache Spark: the main job, on many machines."""
    from shoal.cli.spark.command import SparkOptions
    from shoal.cli.spark.command import spark as command

    raise typer.Exit(
        command(
            job,
            SparkOptions(
                source, sink, from_format, to_format, shards, follow, master, tuple(conf or ()),
                sample, trace, migrate, drain, metrics, log, json, quiet,
            ),
        )
    )  # fmt: skip


@app.command()
def audit(
    job: JobPath,
    published: Annotated[str, typer.Argument(metavar="PUBLISHED", help="What was published.")],
    original: Annotated[
        Text, typer.Option(help="What was read, for the checks that need it.")
    ] = None,
    trace: Annotated[File, typer.Option(help="The trace that the run wrote.")] = None,
    from_format: Annotated[
        Text, typer.Option("--from", help="Format of what was published.")
    ] = None,
    json: Json = False,
) -> None:
    """Check what was published against the promise. Ends with 1 if one is broken."""
    from shoal.cli.audit import audit as command

    raise typer.Exit(
        command(
            job, published, original=original, trace=trace, from_format=from_format, as_json=json
        )
    )


@app.command()
def init(
    data: Annotated[str, typer.Argument(metavar="DATA", help="A file of the stream's format.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The job file to write.")] = Path(
        "job.toml"
    ),
    rows: Annotated[int, typer.Option(help="How many rows to look at.", min=1)] = 100_000,
    from_format: Annotated[Text, typer.Option("--from", help="Format of the data.")] = None,
    force: Annotated[bool, typer.Option(help="Overwrite files that are there.")] = False,
) -> None:
    """Draft a job from a data file: look it over before you use it."""
    from shoal.cli.init.command import init as command

    raise typer.Exit(command(data, output, rows=rows, from_format=from_format, force=force))


@app.command()
def algorithms(json: Json = False) -> None:
    """List the anonymizers, what each can enforce, and its knobs."""
    from shoal.cli.algorithms import algorithms as command

    raise typer.Exit(command(as_json=json))


@app.command()
def demo(
    seconds: Annotated[float, typer.Option(help="How long it runs.", min=1)] = 20.0,
    k: Annotated[int, typer.Option(help="How many people hide each other.", min=1)] = 20,
    rate: Annotated[int, typer.Option(help="Rows a second.", min=1)] = 2000,
    seed: Annotated[Optional[int], typer.Option(help="Repeat a certain demo.")] = None,  # noqa: UP045
    plain: Annotated[bool, typer.Option(help="Plain lines instead of a live view.")] = False,
) -> None:
    """Show a live stream, anonymized before your eyes."""
    from shoal.cli.demo.command import demo as command

    raise typer.Exit(command(seconds=seconds, k=k, rate=rate, seed=seed, plain=plain))


checkpoints = typer.Typer(
    name="checkpoint",
    help="Look at what a job keeps to go on from.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(checkpoints)


@checkpoints.callback()
def checkpoint_options() -> None:
    """Options of the group of commands: none."""


@checkpoints.command()
def show(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of the checkpoints.")],
    seal: Annotated[
        Text, typer.Option(metavar="WHERE", help="Where the key is: env:NAME or file:PATH.")
    ] = None,
    json: Json = False,
) -> None:
    """Tell what is in the checkpoints and the journal of a job, without any value."""
    from shoal.cli.checkpoint import show as command

    raise typer.Exit(command(folder, seal=seal, as_json=json))


models = typer.Typer(
    name="model",
    help="Tell beforehand what a promise is worth.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(models)


@models.callback()
def model_options() -> None:
    """Options of the group of commands: none."""


@models.command("z")
def z_anonymity(
    data: Annotated[Text, typer.Option(help="A sample of the stream; '-' is stdin.")] = None,
    job: Annotated[File, typer.Option(help="A job that names the columns of the data.")] = None,
    subject: Annotated[Text, typer.Option(help="The column that tells who.")] = None,
    attribute: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(help="A column that tells what; may be said more than once."),
    ] = None,
    time: Annotated[Text, typer.Option(help="The column that tells when.")] = None,
    from_format: Annotated[Text, typer.Option("--from", help="Format of the data.")] = None,
    rows: Annotated[int, typer.Option(help="How many rows to look at.", min=1)] = 1_000_000,
    window: Annotated[
        Number, typer.Option(help="How far back is counted, in seconds. [12 without data]")
    ] = None,
    window_rows: Annotated[Whole, typer.Option(help="The same in rows of the data.", min=1)] = None,
    k: Annotated[int, typer.Option(help="How many people should be alike.", min=1)] = 2,
    probability: Annotated[
        Number, typer.Option(help="Find the z that gives it. [0.9 with data]")
    ] = None,
    z: Annotated[
        Whole, typer.Option(help="How many people publish an attribute. [150]", min=1)
    ] = None,
    users: Annotated[Whole, typer.Option(help="How many people there are. [1000]", min=1)] = None,
    attributes: Annotated[
        Whole, typer.Option(help="How many attributes there are. [20]", min=1)
    ] = None,
    rate: Annotated[
        Number, typer.Option(help="How often one exposes the most frequent attribute. [0.2]")
    ] = None,
    exponent: Annotated[
        Number, typer.Option(help="Rates fall with rank r as 1/r^exponent. [1]")
    ] = None,
    curve: Annotated[bool, typer.Option("--curve", help="Draw it over z.")] = False,
    simulate: Annotated[
        bool, typer.Option("--simulate", help="Simulate it, too, with ten seeds.")
    ] = False,
    plot: Annotated[
        File, typer.Option(metavar="FILE", help="Draw the curve into a file (SVG).")
    ] = None,
    json: Json = False,
) -> None:
    """Tell how likely k-anonymity is under z-anonymity, and which z makes it so."""
    from shoal.cli.model.command import ModelOptions, model_z

    raise typer.Exit(
        model_z(
            ModelOptions(
                data, job, subject, tuple(attribute or ()), time, from_format, rows, window,
                window_rows, k, probability, z, users, attributes, rate, exponent, curve,
                simulate, plot, json,
            )
        )
    )  # fmt: skip


def main() -> NoReturn:
    """Run a command; every failure ends with a sentence and its exit code."""
    try:
        app(standalone_mode=True)
    except ShoalError as error:
        _say(f"shoal: {error}")
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        _say("shoal: interrupted")
        sys.exit(130)
    except Exception as error:
        _tell_bug(error)
        sys.exit(ShoalError.exit_code)
    raise AssertionError("a command always exits")


def _tell_bug(error: Exception) -> None:
    """Say where it happened. The message of a foreign exception may hold a person's value."""
    if os.environ.get("SHOAL_DEBUG"):
        traceback.print_exception(error)
        return
    frames = traceback.extract_tb(error.__traceback__)
    last = frames[-1] if frames else None
    where = f"{Path(last.filename).name}, line {last.lineno}" if last else "an unknown place"
    _say(
        f"shoal: {type(error).__name__} in {where}. This is a bug of ours: please report it. "
        "SHOAL_DEBUG=1 shows the whole trace, which may hold values of your data."
    )


def _say(text: str) -> None:
    import logging

    from shoal.cli.logs import say_or_log

    say_or_log(logging.ERROR, "command failed", text)
