"""What a connector registers: the keys that select it in a job, and its endpoints.

A connector is a module or package of `shoal.io` that defines ``CONNECTOR``. It is imported when a
job is read, so it imports its client library and Arrow only when an endpoint is opened. The first
line of its docstring states its guarantee.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from shoal.errors import JobError, Problem
from shoal.io.base import CommitMark, DurableSink, Sink, SinkFactory, Source

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "Connector",
    "InputEndpoint",
    "Opener",
    "OutputEndpoint",
    "SparkInput",
    "absolute_secret",
    "place_of",
]


class SparkInput(NamedTuple):
    """What Spark must know to read an endpoint.

    Parameters
    ----------
    columns
        The columns of the job.
    corrupt
        The column for the text of a row that can't be read.
    n_files, n_rows
        The maximum number of files or rows in a batch; None for all.
    folder
        Where the job keeps its state.
    """

    columns: tuple[str, ...]
    corrupt: str
    n_files: int | None
    n_rows: int | None
    folder: Path


class _Endpoint(ABC):
    """What inputs and outputs share."""

    #: The local path, ``-`` for standard input or output; None where there is none.
    path: str | None = None
    #: Whether a job needs checkpoints with it, since a restart would publish rows twice.
    needs_checkpoints = False

    @property
    @abstractmethod
    def noun(self) -> str:
        """What it is, for messages: "a topic"."""

    @abstractmethod
    def identity(self, state: Path) -> tuple[object, ...]:
        """Return what makes positions or marks mean the same rows: not the server, or its security.

        ``state`` is the folder of the checkpoints. A local path is seen from there, so that a job
        can move with its files (`place_of`).
        """

    def check_run(self, section: str) -> None:
        """Raise `JobError` if `shoal run` can't open it; ``section`` is input or output."""
        return

    def _no_spark(self, section: str) -> JobError:
        return JobError(Problem(section, f"is {self.noun}, which isn't supported on Spark"))


class InputEndpoint(_Endpoint):
    """Where the rows of a job come from; immutable and not opened yet."""

    @property
    def is_replayable(self) -> bool:
        """Whether a job can read it again after a crash."""
        return True

    @property
    def repeats_rows(self) -> bool:
        """Whether a row may come again in another version, as the row of the same person."""
        return False

    @property
    @abstractmethod
    def is_endless(self) -> bool:
        """Whether more rows may come as long as it is read."""

    @abstractmethod
    def with_options(self, format: str | None, *, follow: bool) -> InputEndpoint:  # noqa: A002
        """Apply ``--from`` and ``--follow``; raise `JobError` if they don't fit."""

    def with_numbers(self, columns: Sequence[str]) -> InputEndpoint:
        """Tell which columns the job reads as numbers, where they are texts in a dialect."""
        return self

    def with_job(self, name: str) -> InputEndpoint:
        """Tell the name of the job, where the other side knows its readers by a name."""
        return self

    @abstractmethod
    def open(self, columns: Sequence[str], *, replay: bool) -> Source:
        """Open it; with ``replay`` as a `ReplayableSource`."""

    def spark_stream(self, session: Any, asked: SparkInput) -> Any:
        """Return it as a streaming DataFrame."""
        raise self._no_spark("input")


class OutputEndpoint(_Endpoint):
    """Where the public rows of a job go; immutable and not opened yet."""

    #: Whether the name of the job is part of what is stored there.
    stores_job_name = False

    def check_columns(self, published: Sequence[str]) -> None:
        """Raise `JobError` if it asks for a column that isn't among the published ones."""
        return

    @abstractmethod
    def with_format(self, format: str | None) -> OutputEndpoint:  # noqa: A002
        """Apply ``--to``; raise `JobError` if it doesn't fit."""

    @abstractmethod
    def sink_factory(self, job: str, *, durable: bool) -> SinkFactory:
        """Return what opens the sink, with ``durable`` a `DurableSink`, for a job of this name."""

    def spark_writer(self) -> Callable[[Any, str], None]:
        """Return what writes the rows of an epoch under its name, replacing earlier ones."""
        raise self._no_spark("output")


@dataclass(frozen=True, slots=True)
class Opener:
    """A `SinkFactory` made of two functions."""

    opener: Callable[[pa.Schema, CommitMark | None], Sink | DurableSink]
    checker: Callable[[], None] = lambda: None

    def check(self) -> None:
        """Raise an error if there are rows already, to which a new job would add."""
        self.checker()

    def open(self, schema: pa.Schema, mark: CommitMark | None) -> Sink:
        """Open the sink at a mark."""
        return self.opener(schema, mark)


@dataclass(frozen=True, slots=True)
class Connector:
    """A kind of endpoint.

    Parameters
    ----------
    key
        The key of ``[input]`` and ``[output]`` that selects it.
    input_keys, output_keys
        All keys that it takes, each with its type and its default. Two connectors that share a key
        must agree on both. Empty: it has no inputs, or no outputs.
    make_input, make_output
        Return an endpoint from the keys that were given and the folder of the job, to which paths
        are relative; raise `JobError` with keys relative to the section.
    """

    key: str
    input_keys: Mapping[str, tuple[Any, Any]]
    output_keys: Mapping[str, tuple[Any, Any]]
    make_input: Callable[[Mapping[str, Any], Path], InputEndpoint]
    make_output: Callable[[Mapping[str, Any], Path], OutputEndpoint]


def place_of(path: str, state: Path) -> str:
    """Return where a file is, as seen from the folder of the checkpoints.

    A folder with the job, its files and its state may be restored or mounted elsewhere. What has
    nothing in common with the state but the root is named by its absolute path.

    >>> place_of("/srv/jobs/in.csv", Path("/srv/jobs/state"))
    '../in.csv'
    >>> place_of("/data/in.csv", Path("/srv/jobs/state"))
    '/data/in.csv'
    """
    there, here = str(Path(path).resolve()), str(state.resolve())
    is_apart = os.path.commonpath([there, here]) == os.path.sep
    return there if is_apart else os.path.relpath(there, here)


def absolute_secret(spec: str, folder: Path) -> str:
    """Make the path in ``file:PATH`` absolute, which is relative to the job; leave the rest.

    >>> absolute_secret("file:key", Path("/jobs")), absolute_secret("env:KEY", Path("/jobs"))
    ('file:/jobs/key', 'env:KEY')
    """
    return f"file:{folder / spec[5:]}" if spec.startswith("file:") else spec
