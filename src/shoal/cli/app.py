"""Put the commands together; turn failures into messages and exit codes."""

from __future__ import annotations

import os
import sys
import traceback
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from shoal.cli.hints import CommandWithHints
from shoal.cli.options.algorithms import algorithms
from shoal.cli.options.attack import attack
from shoal.cli.options.audit import audit
from shoal.cli.options.check import check
from shoal.cli.options.checkpoint import checkpoints
from shoal.cli.options.compare import compare
from shoal.cli.options.demo import demo
from shoal.cli.options.init import init
from shoal.cli.options.model import models
from shoal.cli.options.report import report
from shoal.cli.options.run import run
from shoal.cli.options.schema import schemas
from shoal.cli.options.serve import serve
from shoal.cli.options.spark import spark
from shoal.cli.options.unseal import unseal
from shoal.cli.options.warm import warm
from shoal.errors import ReaderGoneError, ResourceError, ShoalError

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


@app.callback(invoke_without_command=True)
def options(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Define the options of the program itself."""
    if version:
        from shoal import __version__

        typer.echo(f"shoal {__version__}")
        raise typer.Exit


# In the order of `shoal --help`, which lists groups last.
for command in (
    run,
    serve,
    spark,
    audit,
    attack,
    report,
    check,
    compare,
    init,
    algorithms,
    warm,
    demo,
    unseal,
):
    app.command(cls=CommandWithHints)(command)
for group in (checkpoints, models, schemas):
    app.add_typer(group)


def main() -> NoReturn:
    """Run a command; print a failure as one sentence and exit with its code."""
    _keep_pandas_out()
    try:
        app(standalone_mode=True)
    except ReaderGoneError as error:
        # `| head` has what it wants: that is nothing to complain about, except in a log.
        (_log_error if error.is_usual else _print_error)(f"shoal: {error}")
        sys.exit(error.exit_code)
    except ShoalError as error:
        _print_error(f"shoal: {error}")
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        _print_error("shoal: interrupted")
        sys.exit(130)
    except SystemExit as end:
        # Typer turns an interrupt inside a command into an exit without a word.
        if isinstance(getattr(end.__context__, "__cause__", None), KeyboardInterrupt):
            _print_error("shoal: interrupted")
        raise
    except MemoryError:
        _print_error("shoal: not enough memory on this machine. Read smaller files.")
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
    logs = _logs()
    if logs is not None and logs.is_logging():
        _print_error(text)


def _print_error(text: str) -> None:
    import logging

    from shoal.cli.terminal import print_message

    logs = _logs()
    if logs is None:
        print_message(text)
    else:
        logs.print_or_log(logging.ERROR, "command failed", text)


def _logs() -> Any:
    """Return the module of logs if a command has imported it: otherwise there is no log.

    Importing it here could fail: an interrupt may have left a library half imported.
    """
    return sys.modules.get("shoal.cli.logs")
