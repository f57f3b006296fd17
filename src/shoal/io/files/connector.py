"""Files, folders, pipes and standard input and output as endpoints of a job."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from shoal.errors import JobError, Problem
from shoal.io.base import SinkFactory, Source
from shoal.io.connector import (
    Connector,
    InputEndpoint,
    Opener,
    OutputEndpoint,
    SparkInput,
    place_of,
)
from shoal.io.text.dialect import DIALECT_KEYS, PLAIN, Dialect

__all__ = ["CONNECTOR", "FileInput", "FileOutput", "durable_factory"]

STDIO = "-"
#: How long, in seconds, a file of a folder stays open where no checkpoint finishes it.
PART_SECONDS = 10.0


@dataclass(frozen=True)
class FileInput(InputEndpoint):
    """A file, a folder, or standard input for ``-``; with ``follow`` it may grow.

    ``dialect`` says how it is written if it is CSV.
    """

    path: str = STDIO
    format: str | None = None
    follow: bool = False
    dialect: Dialect = PLAIN

    @property
    def noun(self) -> str:
        """What it is, for messages."""
        return "a pipe" if self.path == STDIO else "a file"

    @property
    def is_replayable(self) -> bool:
        """Whether it can be read again: not so standard input."""
        return self.path != STDIO

    @property
    def is_endless(self) -> bool:
        """Whether it is followed."""
        return self.follow

    def identity(self, state: Path) -> tuple[object, ...]:
        """Return its place, the format, and the dialect if it isn't that of plain CSV."""
        dialect = () if self.dialect == PLAIN else (self.dialect,)
        return *_identity(self.path, self.format, state), *dialect

    def check_run(self, section: str) -> None:
        """Raise `JobError` if it is on a file system that only Spark reads."""
        _check_local(section, self.path)

    def with_options(self, format: str | None, *, follow: bool) -> FileInput:  # noqa: A002
        """Set the format, and follow if asked to."""
        return replace(self, format=format or self.format, follow=follow or self.follow)

    def with_numbers(self, columns: Sequence[str]) -> FileInput:
        """Read these columns as numbers of the dialect."""
        return replace(self, dialect=self.dialect.with_numbers(columns))

    def open(self, columns: Sequence[str], *, replay: bool) -> Source:
        """Open it. A folder, and what is followed, is always replayable."""
        from shoal.io.files.open import open_source
        from shoal.io.files.replayable import open_replayable
        from shoal.io.streams import is_directory

        reads_folder = self.path != STDIO and is_directory(self.path)
        if replay or self.follow or reads_folder:
            return open_replayable(
                self.path, columns, format=self.format, dialect=self.dialect, follow=self.follow
            )
        return open_source(self.path, columns, format=self.format, dialect=self.dialect)

    def spark_stream(self, session: Any, asked: SparkInput) -> Any:
        """Return the files of the folder as a streaming DataFrame."""
        from shoal.io.files.spark import read_stream

        return read_stream(session, self.path, self.format, self.dialect, asked)


@dataclass(frozen=True)
class FileOutput(OutputEndpoint):
    """A file, a folder, or standard output for ``-``.

    A folder gets files of at most ``rows`` rows, none of them open for longer than ``seconds``.
    """

    path: str = STDIO
    format: str | None = None
    rows: int | None = None
    seconds: float | None = None

    noun = "a file"

    def identity(self, state: Path) -> tuple[object, ...]:
        """Return its place, and the format."""
        return _identity(self.path, self.format, state)

    def check_run(self, section: str) -> None:
        """Raise `JobError` if it is on a file system that only Spark writes, or has no format."""
        from shoal.io.files.durable import is_folder
        from shoal.io.formats import file_type

        _check_local(section, self.path)
        if self.format is not None or not is_folder(self.path):
            file_type(self.path, self.format)

    def with_format(self, format: str | None) -> FileOutput:  # noqa: A002
        """Set the format."""
        return replace(self, format=format or self.format)

    def sink_factory(self, job: str, *, durable: bool) -> SinkFactory:
        """Return what opens the file. A folder is always durable."""
        from shoal.io.files.durable import is_folder
        from shoal.io.files.open import open_sink

        if durable:
            return durable_factory(self)
        if self.path != STDIO and is_folder(self.path):
            # Without checkpoints nothing else would ever finish a part file.
            seconds = PART_SECONDS if self.seconds is None else self.seconds
            return durable_factory(replace(self, seconds=seconds))
        return Opener(lambda schema, mark: open_sink(self.path, schema, format=self.format))

    def spark_writer(self) -> Callable[[Any, str], None]:
        """Return what writes a folder for each epoch."""
        from shoal.io.files.spark import FolderWriter

        return FolderWriter(self.path, self.format)


def durable_factory(sink: FileOutput, *, private: bool = False, key: str = "output") -> SinkFactory:
    """Return what opens a file or folder that a job can resume; ``key`` names it in errors."""
    from shoal.io.files.durable import check_new, open_durable

    return Opener(
        lambda schema, mark: open_durable(
            sink.path, schema, mark, format=sink.format, private=private,
            part_rows=sink.rows, part_seconds=sink.seconds,
        ),
        lambda: check_new(sink.path, sink.format, key=key),
    )  # fmt: skip


def _identity(path: str, form: str | None, state: Path) -> tuple[object, ...]:
    return path if path == STDIO else place_of(path, state), form


def _check_local(section: str, path: str) -> None:
    if "://" in path:
        what = "isn't on the file system of this machine, and object storage isn't supported here"
        raise JobError(Problem(f"{section}.path", what, None, "Use `shoal spark`, or a local copy"))


def _path(given: Mapping[str, Any], folder: Path) -> str:
    raw: str = given.get("path", STDIO)
    # Spark knows other file systems.
    if raw == STDIO or "://" in raw:
        return raw
    # Path would drop the slash that marks a folder.
    slash = "/" if raw.endswith("/") else ""
    return str(folder / raw) + slash


def _input(given: Mapping[str, Any], folder: Path) -> FileInput:
    path, form = _path(given, folder), given.get("format")
    dialect = Dialect.of_keys(given)
    if dialect != PLAIN:
        _check_is_csv(path, form, given)
    return FileInput(path, form, given.get("follow", False), dialect)


def _check_is_csv(path: str, form: str | None, given: Mapping[str, Any]) -> None:
    """Raise `JobError` for a dialect of a format that has none."""
    from shoal.io.formats import file_type

    if form is None and not Path(path).suffix:
        return
    kind = file_type(path, form)
    if kind.format.in_dialect is None:
        keys = [key for key in DIALECT_KEYS if key in given]
        raise JobError(
            Problem(key, f"is for CSV only, and the input is {kind.name}", None, "Leave it out")
            for key in keys
        )


def _output(given: Mapping[str, Any], folder: Path) -> FileOutput:
    wrong = [
        Problem(key, "must be above 0", str(given[key]))
        for key in ("rows", "seconds")
        if key in given and given[key] <= 0
    ]
    if wrong:
        raise JobError(wrong)
    return FileOutput(
        _path(given, folder), given.get("format"), given.get("rows"), given.get("seconds")
    )


_SHARED = {"path": (str | None, None), "format": (str | None, None)}
CONNECTOR = Connector(
    "path",
    _SHARED | {"follow": (bool, False)} | DIALECT_KEYS,
    _SHARED | {"rows": (int | None, None), "seconds": (int | float | None, None)},
    _input,
    _output,
)
