"""Iceberg tables as outputs of a job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shoal.errors import JobError, Problem
from shoal.io.base import SinkFactory
from shoal.io.connector import (
    Connector,
    InputEndpoint,
    Opener,
    OutputEndpoint,
    absolute_secret,
    place_of,
)
from shoal.io.iceberg.settings import check_settings, names_place

__all__ = ["CONNECTOR", "IcebergOutput"]

#: Rows are committed when so many wait, or the first of them has waited for so many seconds.
ROWS, SECONDS = 10_000, 60.0


@dataclass(frozen=True)
class IcebergOutput(OutputEndpoint):
    """A table of a catalog.

    Parameters
    ----------
    table
        Its name, with its namespace: ``public.admissions``.
    folder
        The folder of a local catalog and its files; None: ``settings`` name a catalog.
    partition
        The columns by which its files are divided.
    rows, seconds
        When rows are committed.
    settings
        The properties of the catalog. Secrets are named by their places.
    """

    table: str
    folder: str | None = None
    partition: tuple[str, ...] = ()
    rows: int = ROWS
    seconds: float = SECONDS
    settings: Mapping[str, Any] = field(default_factory=dict, repr=False)
    noun = "an Iceberg table"
    needs_checkpoints = True
    # By its name a table tells whose rows it counts.
    stores_job_name = True

    @property
    def where(self) -> str:
        """What it is, for messages."""
        return f"table {self.table}"

    def identity(self, state: Path) -> tuple[object, ...]:
        """Return the table, and the folder of its catalog."""
        place = None if self.folder is None else place_of(self.folder, state)
        return "iceberg", self.table, place, self.partition

    def check_columns(self, published: Sequence[str]) -> None:
        """Raise `JobError` if it is divided by a column that isn't published."""
        for name in self.partition:
            if name not in published:
                what = f"names column {name}, which the job doesn't publish"
                fix = f"Choose among {', '.join(published)}"
                raise JobError(Problem("output.partition", what, None, fix))

    def with_format(self, format: str | None) -> IcebergOutput:  # noqa: A002
        """Refuse a format."""
        if format is not None:
            what = "can't be set for an Iceberg table, whose files are Parquet"
            raise JobError(Problem("--to", what, None, "Leave it out"))
        return self

    def sink_factory(self, job: str, *, durable: bool) -> SinkFactory:
        """Return what opens the table, which is always durable."""
        from shoal.io.iceberg.sink import IcebergSink, refuse_rows

        return Opener(
            lambda schema, mark: IcebergSink(self, schema, mark, job=job),
            lambda: refuse_rows(self),
        )


def _no_input(given: Mapping[str, Any], folder: Path) -> InputEndpoint:
    raise JobError(Problem("iceberg", "can't be read by shoal run", None, "Read its Parquet files"))


def _output(given: Mapping[str, Any], folder: Path) -> IcebergOutput:
    problems = []
    table = given["iceberg"]
    if table.count(".") < 1 or not all(table.split(".")):
        what = "must be a namespace and a table"
        problems.append(Problem("iceberg", what, repr(table), 'For example "public.admissions"'))
    problems += [
        Problem(key, "must be above 0", str(given[key]))
        for key in ("rows", "seconds")
        if given.get(key) is not None and not given[key] > 0
    ]
    settings = dict(given.get("settings", {}))
    problems += check_settings(settings)
    path = given.get("path")
    if path is not None and "://" in path:
        what = "isn't on the file system of this machine, and the catalog in it would be a file"
        fix = 'Leave it out, and name a catalog: settings = { uri = "…", warehouse = "s3://…" }'
        problems.append(Problem("path", what, None, fix))
    elif (path is None) == ("uri" not in settings):
        what = (
            "is missing"
            if path is None
            else "can't be combined with settings.uri: only one of them names the catalog"
        )
        fix = 'Name a local folder, path = "lake/", or a catalog, settings = { uri = "…" }'
        problems.append(Problem("path", what, None, fix))
    if problems:
        raise JobError(problems)
    partition = tuple(dict.fromkeys(given.get("partition") or ()))
    return IcebergOutput(
        table,
        None if path is None else str(folder / path),
        partition,
        given.get("rows") or ROWS,
        float(given.get("seconds") or SECONDS),
        {
            name: absolute_secret(value, folder) if names_place(value) else value
            for name, value in settings.items()
        },
    )


CONNECTOR = Connector(
    "iceberg",
    {},
    {
        "iceberg": (str | None, None),
        "path": (str | None, None),
        "partition": (list[str] | None, None),
        "rows": (int | None, None),
        "seconds": (int | float | None, None),
        "settings": (dict[str, str | int | float | bool], {}),
    },
    _no_input,
    _output,
)
