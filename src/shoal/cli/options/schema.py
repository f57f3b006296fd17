"""Define ``shoal schema job``."""

from __future__ import annotations

import typer

__all__ = ["schemas"]

schemas = typer.Typer(
    name="schema",
    help="Print a JSON Schema for editors.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@schemas.callback()
def schema_options() -> None:
    """Group the commands; it has no options."""


@schemas.command("job")
def job() -> None:
    """Print the JSON Schema of a job file: keys, types and choices, for completion and checks."""
    import json

    from shoal.cli.terminal import print_result
    from shoal.job.json_schema import job_schema

    print_result(json.dumps(job_schema(), indent=2))
