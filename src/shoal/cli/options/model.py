"""Define the options of ``shoal model z`` and ``shoal model tree``."""

from __future__ import annotations

from typing import Annotated

import typer

from shoal.cli.options.shared import DataFormat, File, Json, Names, Number, Text, Whole, at_least_1

__all__ = ["models"]

models = typer.Typer(
    name="model",
    help="Estimate what a promise achieves.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@models.callback()
def model_options() -> None:
    """Group the commands; it has no options."""


@models.command("z")
def z_anonymity(
    data: Annotated[Text, typer.Option(help="A sample of the stream; '-' for stdin.")] = None,
    job: Annotated[File, typer.Option(help="A job that names the columns of the data.")] = None,
    subject: Annotated[Text, typer.Option(help="The column of the subject.")] = None,
    attribute: Annotated[
        Names,
        typer.Option(help="A column of attributes; repeatable."),
    ] = None,
    time: Annotated[Text, typer.Option(help="The column of the time.")] = None,
    from_format: DataFormat = None,
    rows: Annotated[
        int, typer.Option(help="Maximum number of rows to read.", callback=at_least_1)
    ] = 1_000_000,
    window: Annotated[
        Number, typer.Option(help="Length of the window in seconds. [default without data: 12]")
    ] = None,
    window_rows: Annotated[
        Whole, typer.Option(help="Length of the window in rows.", callback=at_least_1)
    ] = None,
    k: Annotated[int, typer.Option(help="The k of k-anonymity.", callback=at_least_1)] = 2,
    probability: Annotated[
        Number, typer.Option(help="Find the smallest z that reaches it. [default with data: 0.9]")
    ] = None,
    z: Annotated[
        Whole, typer.Option(help="The z of z-anonymity. [default: 150]", callback=at_least_1)
    ] = None,
    users: Annotated[
        Whole, typer.Option(help="Number of subjects. [default: 1000]", callback=at_least_1)
    ] = None,
    attributes: Annotated[
        Whole, typer.Option(help="Number of attributes. [default: 20]", callback=at_least_1)
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
        float, typer.Option(help="Maximum error of a leaf's share of the rows.")
    ] = 0.025,
    probability: Annotated[
        float, typer.Option(help="Probability that the error is no larger.")
    ] = 0.95,
    samples: Annotated[
        Whole, typer.Option(help="Also print the error for this many samples.", callback=at_least_1)
    ] = None,
    quasi: Annotated[
        int, typer.Option(help="Number of quasi attributes.", callback=at_least_1)
    ] = 3,
    sampled: Annotated[
        int, typer.Option(help="Number of latest rows that are sampled.", callback=at_least_1)
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
