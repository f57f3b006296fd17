"""Pipe-separated values: a format that a test adds. One file is all that a format needs."""

from __future__ import annotations

import functools

from shoal.io.format import Format
from shoal.io.formats.csv import CsvFormat, CsvSink, CsvSource
from shoal.io.text.dialect import Dialect

FORMATS = (
    Format(
        "psv",
        ("psv",),
        functools.partial(CsvSource, dialect=Dialect("|")),
        functools.partial(CsvSink, delimiter="|"),
        CsvFormat(Dialect("|")),
    ),
)
