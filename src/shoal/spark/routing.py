"""The map of places as an expression of Spark SQL: rows find their shard without any Python.

What Spark reads otherwise than the codec does, or can't read at all, goes the way of a missing
value or another one: harmless, for a promise holds in whatever shard a row is; only less tight.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from itertools import groupby

from pyspark.sql import Column
from pyspark.sql.functions import expr
from pyspark.sql.types import (
    DataType,
    DateType,
    FractionalType,
    NumericType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from shoal.errors import ParameterError
from shoal.spark.places import Places, Tree
from shoal.spec.hierarchy import Hierarchy
from shoal.spec.schema import Quasi, Schema

__all__ = ["shard_of", "shard_sql"]

#: The end of a time that says where it is told.
ZONE = "[0-9]([zZ]|[+-][0-9]{2}:?[0-9]{2})$"
NOTHING = "CAST(NULL AS DOUBLE)"
#: Up to so many ranges of labels are compared one by one; a set of labels is one look-up.
MOST_RANGES = 8
#: Whole numbers up to here are exact as fractions.
EXACT = 2**53


def shard_of(places: Places, schema: Schema, fields: StructType) -> Column:
    """The number of the shard of each row, as an expression over the columns of a stream.

    Parameters
    ----------
    places
        The map.
    schema
        The columns that are quasi attributes, and their domains.
    fields
        The columns of the stream as Spark has them: ``df.schema``.
    """
    return expr(shard_sql(places, schema, fields))


def shard_sql(places: Places, schema: Schema, fields: StructType) -> str:
    """The same as text.

    >>> from pyspark.sql.types import IntegerType, StructField
    >>> from shoal import Quasi, Range, Schema
    >>> from shoal.spark.places import Cut, Places
    >>> schema = Schema("person", [Quasi("age", Range(0, 100))])
    >>> fields = StructType([StructField("age", IntegerType())])
    >>> shard_sql(Places(2, 1, Cut(0, 44.5, 0, 1)), schema, fields)
    'CASE WHEN CAST(`age` AS DOUBLE) <= 44.5D THEN 0 ELSE 1 END'
    """
    kinds = {field.name: field.dataType for field in fields}
    values: dict[int, str] = {}
    for d in places.sides:
        quasi = schema.quasi[d]
        if quasi.name not in kinds:
            raise ParameterError(
                f"schema.quasi.{quasi.name}",
                "isn't a column of the stream",
                fix=f"Its columns are {', '.join(kinds)}",
            )
        values[d] = _value(quasi, kinds[quasi.name], is_time=quasi.name == schema.time)
    return _case(places.root, schema, values, {})


def _case(tree: Tree, schema: Schema, values: dict[int, str], above: dict[int, int]) -> str:
    """A cut as a choice; ``above`` has the codes up to which leaves are out of the question."""
    if isinstance(tree, int):
        return str(tree)
    domain, value = schema.quasi[tree.side].sided, values[tree.side]
    beyond = above
    if isinstance(domain, Hierarchy):
        code, before = math.floor(tree.at), above.get(tree.side, -1)
        low = _is_among(value, domain, before + 1, code)
        beyond = above | {tree.side: max(code, before)}
    else:
        low = f"{value} <= {tree.at!r}D"
    # What is missing is neither true nor false here, and gets what is left.
    return (
        f"CASE WHEN {low} THEN {_case(tree.low, schema, values, above)} "
        f"ELSE {_case(tree.high, schema, values, beyond)} END"
    )


# -- values ----------------------------------------------------------------------------------------


def _value(quasi: Quasi, kind: DataType, *, is_time: bool) -> str:
    """A column as a number of type DOUBLE, or as the text of a category."""
    column = f"`{quasi.name.replace('`', '``')}`"
    if isinstance(quasi.domain, Hierarchy):
        return _text(column, kind)
    if is_time and isinstance(kind, StringType):
        return _written_time(_trimmed(column))
    return _number(column, kind)


def _text(column: str, kind: DataType) -> str:
    if isinstance(kind, StringType):
        return _trimmed(column)
    if not isinstance(kind, FractionalType):
        return f"CAST({column} AS STRING)"
    number = f"CAST({column} AS DOUBLE)"
    return (
        f"CASE WHEN {number} = FLOOR({number}) AND ABS({number}) <= {EXACT} "
        f"THEN CAST(CAST({number} AS BIGINT) AS STRING) ELSE CAST({number} AS STRING) END"
    )


def _number(column: str, kind: DataType) -> str:
    if isinstance(kind, NumericType):
        return f"CAST({column} AS DOUBLE)"
    if isinstance(kind, StringType):
        return f"TRY_CAST({column} AS DOUBLE)"
    if isinstance(kind, TimestampType):
        return f"(UNIX_MICROS({column}) / 1e6D)"
    if isinstance(kind, TimestampNTZType):
        return _local_seconds(column)
    if isinstance(kind, DateType):
        return f"(UNIX_DATE({column}) * 86400D)"
    return NOTHING


def _written_time(text: str) -> str:
    """A time that is text: counted, told with a zone, or taken for universal time."""
    return (
        f"COALESCE(TRY_CAST({text} AS DOUBLE), CASE WHEN {text} RLIKE '{ZONE}' "
        f"THEN UNIX_MICROS(TRY_CAST({text} AS TIMESTAMP)) / 1e6D "
        f"ELSE {_local_seconds(f'TRY_CAST({text} AS TIMESTAMP_NTZ)')} END)"
    )


def _local_seconds(moment: str) -> str:
    return f"(TIMESTAMPDIFF(MICROSECOND, TIMESTAMP_NTZ'1970-01-01 00:00:00', {moment}) / 1e6D)"


def _trimmed(column: str) -> str:
    """Without blanks around it; to look for rarer white space would take longer than all else."""
    return f"TRIM({column})"


# -- categories ------------------------------------------------------------------------------------


def _is_among(text: str, hierarchy: Hierarchy, first: int, last: int) -> str:
    """Whether a text is one of the leaves from one code to another."""
    ranges = list(_ranges(hierarchy, first, last))
    if len(ranges) > MOST_RANGES:
        # Spark makes one look-up in a set of hashes of it, however many these are.
        return f"{text} IN ({', '.join(map(_literal, hierarchy.leaves[first : last + 1]))})"
    tests = [
        f"{text} = {_literal(least)}"
        if least == most
        else f"{text} BETWEEN {_literal(least)} AND {_literal(most)}"
        for least, most in ranges
    ]
    return f"({' OR '.join(tests)})" if tests else "FALSE"


def _ranges(hierarchy: Hierarchy, first: int, last: int) -> Iterator[tuple[str, str]]:
    """The leaves as ranges of text without any other leaf; of postcodes there is one."""
    # Spark compares the bytes of texts.
    order = sorted(range(len(hierarchy)), key=lambda code: hierarchy.leaves[code].encode())
    for is_inside, codes in groupby(order, key=lambda code: first <= code <= last):
        if is_inside:
            run = list(codes)
            yield hierarchy.leaves[run[0]], hierarchy.leaves[run[-1]]


def _literal(text: str) -> str:
    """A text in quotes, or in hexadecimal digits where a parser might see more than text in it."""
    return _hex(text) if re.search(r"['\\$]", text) else f"'{text}'"


def _hex(text: str) -> str:
    return f"CAST(X'{text.encode().hex()}' AS STRING)"
