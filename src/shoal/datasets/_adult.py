"""Load UCI Adult, the data set of most papers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from shoal.datasets._adult_domains import COLUMNS, NUMBERS, TABLE_5_4, domains
from shoal.datasets._dataset import Dataset
from shoal.errors import DataError, ParameterError, ResourceError, did_you_mean
from shoal.spec.schema import Quasi, Schema, Sensitive

__all__ = ["adult"]

MISSING = ("", "?")


def adult(
    path: str | Path,
    *,
    quasi: Sequence[str] | None = None,
    sensitive: str | None = None,
    complete: bool = True,
) -> Dataset:
    """Read UCI Adult: ``adult.data`` as published, or a CSV file with a header.

    Each row is a different subject. The rows have all fifteen columns; the schema names the
    quasi attributes and the sensitive one.

    Parameters
    ----------
    path
        The file. In the original form it has no header, ``?`` for missing values and a blank
        line at its end; in the CSV form a header with this package's names, and missing values
        are empty.
    quasi
        The quasi attributes, in order; by default the ten of the thesis' Table 5.4 in its order,
        without the sensitive one.
    sensitive
        The sensitive attribute, if any.
    complete
        Drop the rows that have a missing value in any column: 30,162 rows of 32,561 remain.
        Otherwise missing values are nulls.
    """
    known = domains(complete=complete)
    if quasi is None:
        quasi = [name for name in TABLE_5_4 if name != sensitive]
    for key, name in [("quasi", name) for name in quasi] + [("sensitive", sensitive)]:
        if name is not None and name not in known:
            raise ParameterError(
                f"adult.{key}", "isn't a column", got=name, fix=did_you_mean(name, COLUMNS)
            )
    schema = Schema(
        subject=None,
        quasi=[Quasi(name, known[name]) for name in quasi],
        sensitive=[] if sensitive is None else [Sensitive(sensitive, known[sensitive])],
    )
    table = _read(Path(path), complete=complete)
    return Dataset.from_table(
        table, schema, name="adult", description="US census extract of 1994 (UCI Adult)"
    )


def _read(path: Path, *, complete: bool) -> pa.Table:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise ResourceError(
            f"{path}: can't be read: {error.strerror}. Give the path of adult.data or adult.csv."
        ) from None
    except UnicodeDecodeError:
        raise ResourceError(f"{path}: can't be read: it isn't UTF-8.") from None
    names: tuple[str, ...] = COLUMNS
    first = 0
    if lines and set(_fields(lines[0])) == set(COLUMNS):
        names = tuple(_fields(lines[0]))
        first = 1
    columns: dict[str, list[str | int | None]] = {name: [] for name in names}
    for number, line in enumerate(lines[first:], start=first + 1):
        if not line.strip():
            continue
        row = [None if field in MISSING else field for field in _fields(line)]
        if len(row) != len(names):
            raise DataError(
                f"{path}, line {number}: must have {len(names)} fields; got {len(row)}. "
                "Use the file as published."
            )
        if complete and None in row:
            continue
        for name, field in zip(names, row, strict=True):
            columns[name].append(_value(name, field, f"{path}, line {number}"))
    return pa.table(
        {
            name: pa.array(columns[name], pa.int64() if name in NUMBERS else pa.string())
            for name in COLUMNS
        }
    )


def _fields(line: str) -> list[str]:
    return [field.strip() for field in line.split(",")]


def _value(name: str, field: str | None, where: str) -> str | int | None:
    if field is None or name not in NUMBERS:
        return field
    try:
        return int(field)
    except ValueError:
        raise DataError(
            f"{where}: {name} must be a whole number. Use the file as published."
        ) from None
