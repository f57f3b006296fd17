"""The dialect of a CSV file: how its fields, texts, numbers and missing values are written."""

from __future__ import annotations

import codecs
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from shoal.errors import JobError, Problem

__all__ = ["DIALECT_KEYS", "PLAIN", "UTF8", "Dialect"]

UTF8 = "utf-8"
#: The keys of ``[input]`` that describe a dialect, each with its type and its default.
DIALECT_KEYS: dict[str, tuple[Any, Any]] = {
    "delimiter": (str | None, None),
    "quote": (str | None, None),
    "encoding": (str | None, None),
    "decimal": (str | None, None),
    "null": (str | list[str] | None, None),
}
#: Encodings that Python has for host names and for its own source.
_NOT_FOR_FILES = {"idna", "punycode", "undefined", "unicode-escape", "raw-unicode-escape"}


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a CSV file is written.

    Parameters
    ----------
    delimiter
        The character between two fields; None for that of the format.
    quote
        The character around a field that has delimiters or newlines in it; empty for none.
    encoding
        The encoding of the text, by the name that Python has for it.
    decimal
        The character before the decimals of a number, in the columns of ``numbers``.
    null
        The texts that stand for a missing value, beside a field that is empty.
    numbers
        The columns that are read as numbers.

    >>> Dialect(";", encoding="latin-1", decimal=",").as_keys()
    {'delimiter': ';', 'encoding': 'latin-1', 'decimal': ','}
    """

    delimiter: str | None = None
    quote: str = '"'
    encoding: str = UTF8
    decimal: str = "."
    null: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        problems = [*self._problems()]
        if problems:
            raise JobError(problems)
        name = codecs.lookup(self.encoding).name
        # A byte order mark before UTF-8 is always left out.
        known = UTF8 if name in (UTF8, "utf-8-sig") else self.encoding
        object.__setattr__(self, "encoding", known)
        object.__setattr__(self, "null", tuple(dict.fromkeys(self.null)))

    def _problems(self) -> list[Problem]:
        problems = []
        for key, text in (("delimiter", self.delimiter), ("quote", self.quote or None)):
            if text is None:
                continue
            if len(text) != 1 or not text.isascii() or text in "\r\n\0" or text.isalnum():
                what = "must be one ASCII character, no letter, digit or newline"
                problems.append(Problem(key, what, _shown(text)))
        if self.quote and self.delimiter == self.quote:
            problems.append(Problem("quote", "must differ from the delimiter", _shown(self.quote)))
        if self.decimal not in (".", ","):
            problems.append(Problem("decimal", 'must be "." or ","', _shown(self.decimal)))
        elif self.decimal == "," and self.delimiter == ",":
            what = "can't be the comma, which is the delimiter"
            problems.append(Problem("decimal", what, None, "Set input.delimiter"))
        try:
            found = codecs.lookup(self.encoding)
            is_text = found._is_text_encoding and found.name not in _NOT_FOR_FILES
        except (LookupError, ValueError):
            is_text = False
        if not is_text:
            fix = 'For example "utf-8", "utf-16", "latin-1" or "cp1252"'
            problems.append(
                Problem("encoding", "isn't a known encoding", _shown(self.encoding), fix)
            )
        return problems

    @classmethod
    def of_keys(cls, given: Mapping[str, Any]) -> Dialect:
        """Return the dialect that keys of ``[input]`` describe.

        Raises
        ------
        JobError
            If a value is wrong, with keys relative to the section.
        """
        keys = {key: given[key] for key in DIALECT_KEYS if given.get(key) is not None}
        if isinstance(keys.get("null"), str):
            keys["null"] = (keys["null"],)
        return cls(**keys)

    def as_keys(self) -> dict[str, Any]:
        """Return the keys of ``[input]`` for this dialect; those of plain CSV are left out."""
        keys: dict[str, Any] = {
            key: getattr(self, key)
            for key in ("delimiter", "quote", "encoding", "decimal")
            if getattr(self, key) != getattr(PLAIN, key)
        }
        if self.null:
            keys["null"] = self.null[0] if len(self.null) == 1 else list(self.null)
        return keys

    @property
    def is_utf8(self) -> bool:
        """Whether the bytes of the file are those that are parsed."""
        return self.encoding == UTF8

    def with_default(self, delimiter: str) -> Dialect:
        """Return the dialect with the delimiter of a format, unless it has its own."""
        return self if self.delimiter else replace(self, delimiter=delimiter)

    def with_numbers(self, columns: Sequence[str]) -> Dialect:
        """Return the dialect with the columns that are read as numbers."""
        return replace(self, numbers=tuple(columns)) if self.decimal != "." else self


#: Commas, double quotes, UTF-8, points, and empty fields for missing values.
PLAIN = Dialect()


def _shown(text: str) -> str:
    return repr(text if len(text) <= 20 else text[:17] + "...")
