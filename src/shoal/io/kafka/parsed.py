"""What a parser of messages is, and what it returns."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.io.base import BadRow

__all__ = ["EMPTY", "LearnedValues", "ParsedRows", "Values", "load_json"]

EMPTY = "an empty message"
_DECODE = json.JSONDecoder().decode


def load_json(text: bytes) -> Any:
    """Return what a text of JSON holds; None if it isn't JSON.

    >>> load_json(b'{"age": 39}'), load_json(b'{"age"')
    ({'age': 39}, None)
    """
    try:
        if text[:1] == b"{" and text[1:2] not in (b"", b"\0"):
            # As `json.loads` does it, which takes time to find out that this is UTF-8.
            return _DECODE(text.decode("utf-8", "surrogatepass"))
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


class ParsedRows(NamedTuple):
    """The rows of some messages: those that could be read, their numbers, and bad rows."""

    batch: pa.RecordBatch
    rows: NDArray[np.int64]
    bad: list[BadRow]
    #: The ids of schemas that weren't in the registry.
    lost: tuple[int, ...] = ()
    #: How many messages are no rows, without being wrong, by what they are.
    skipped: Mapping[str, int] = MappingProxyType({})

    @property
    def n_rows(self) -> int:
        """The number of rows, including bad ones."""
        return len(self.rows) + len(self.bad)


class Values(ABC):
    """Parses the values of messages; one subclass for each format."""

    #: The columns that a message has, as far as is known before the first has arrived.
    names: tuple[str, ...]

    @property
    def kinds(self) -> dict[str, list[str]]:
        """What has been learned about types; a source that resumes from here must set it."""
        return {}

    def restore(self, kinds: dict[str, list[str]]) -> None:
        """Set what had been learned about types."""
        return

    @property
    def is_away(self) -> bool:
        """Whether something that is needed to read messages doesn't answer."""
        return False

    def close(self) -> None:
        """Close connections, if there are any."""
        return

    def read_messages(
        self, messages: Sequence[Any], first_row: int, lost: Sequence[int] | None = None
    ) -> ParsedRows:
        """Parse messages of the client, of which most formats read the value alone."""
        return self.read([message.value() for message in messages], first_row, lost)

    @abstractmethod
    def read(
        self,
        values: Sequence[bytes | None],
        first_row: int,
        lost: Sequence[int] | None = None,
    ) -> ParsedRows:
        """Parse messages; the first row gets this number.

        ``lost`` is given in a replay: the ids of schemas that weren't in the registry when these
        messages were first read.
        """


class LearnedValues(Values):
    """Parses messages whose types are learned from the values."""

    @property
    @abstractmethod
    def known(self) -> pa.Schema | None:
        """The columns in the types learned so far, or None before the first."""

    @abstractmethod
    def read_known(self, lines: bytes) -> pa.RecordBatch | None:
        """Parse lines of one object each, or return None if that would need other types."""
