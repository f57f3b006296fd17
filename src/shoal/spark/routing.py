"""The partition map as a Spark SQL expression: rows are routed to shards without Python.

A value that Spark reads differently from the codec, or can't read, is routed as a missing value or
another one. That is harmless: the promise holds in any shard, groups are only less tight.
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
from shoal.spark.partition_map import PartitionMap, Tree
from shoal.spec.hierarchy import Hierarchy
from shoal.spec.schema import Quasi, Schema

__all__ = ["shard_of", "shard_sql"]

#: The end of a time that names its zone.
ZONE = "[0-9]([zZ]|[+-][0-9]{2}:?[0-9]{2})$"
NOTHING = "CAST(NULL AS DOUBLE)"
#: Up to this many ranges of labels are compared one by one; more become one set of labels.
MOST_RANGES = 8
#: Whole numbers up to this are exact as floats.
EXACT = 2**53


def shard_of(partition_map: PartitionMap, schema: Schema, fields: StructType) -> Column:
    """Return the shard of each row, as an expression over the columns of a stream.

    Parameters
    ----------
    partition_map
        The map.
    schema
        The columns that are quasi attributes, and their domains.
    fields
        The columns of the stream as Spark has them: ``df.schema``.
    """
    return expr(shard_sql(partition_map, schema, fields))


def shard_sql(partition_map: PartitionMap, schema: Schema, fields: StructType) -> str:
    """Return the expression of `shard_of` as text.

    >>> from pyspark.sql.types import IntegerType, StructField
    >>> from shoal import Quasi, Range, Schema
    >>> from shoal.spark.partition_map import Cut, PartitionMap
    >>> schema = Schema("person", [Quasi("age", Range(0, 100))])
    >>> fields = StructType([StructField("age", IntegerType())])
    >>> shard_sql(PartitionMap(2, 1, Cut(0, 44.5, 0, 1)), schema, fields)
    'CASE WHEN CAST(`age` AS DOUBLE) <= 44.5D THEN 0 ELSE 1 END'
    """
    kinds = {field.name: field.dataType for field in fields}
    values: dict[int, str] = {}
    for d in partition_map.sides:
        quasi = schema.quasi[d]
        if quasi.name not in kinds:
            raise ParameterError(
                f"schema.quasi.{quasi.name}",
                "isn't a column of the stream",
                fix=f"Its columns are {', '.join(kinds)}",
            )
        values[d] = _value(quasi, kinds[quasi.name], is_time=quasi.name == schema.time)
    return _case(partition_map.root, schema, values, {})


def _case(tree: Tree, schema: Schema, values: dict[int, str], above: dict[int, int]) -> str:
    """A cut as a CASE; ``above`` has the codes up to which leaves are excluded by cuts above."""
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
    # A missing value is neither true nor false here, and takes the ELSE.
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
    """A time that is text: a number, a time with a zone, or else one in UTC."""
    return (
        f"COALESCE(TRY_CAST({text} AS DOUBLE), CASE WHEN {text} RLIKE '{ZONE}' "
        f"THEN UNIX_MICROS(TRY_CAST({text} AS TIMESTAMP)) / 1e6D "
        f"ELSE {_local_seconds(f'TRY_CAST({text} AS TIMESTAMP_NTZ)')} END)"
    )


def _local_seconds(point: str) -> str:
    return f"(TIMESTAMPDIFF(MICROSECOND, TIMESTAMP_NTZ'1970-01-01 00:00:00', {point}) / 1e6D)"


def _trimmed(column: str) -> str:
    """Trim blanks only; to trim rarer white space would take longer than all else."""
    return f"TRIM({column})"


# -- categories ------------------------------------------------------------------------------------


def _is_among(text: str, hierarchy: Hierarchy, first: int, last: int) -> str:
    """Whether a text is one of the leaves from code ``first`` to ``last``."""
    ranges = list(_ranges(hierarchy, first, last))
    if len(ranges) > MOST_RANGES:
        # Spark makes one look-up in a hash set of it.
        return f"{text} IN ({', '.join(map(_literal, hierarchy.leaves[first : last + 1]))})"
    tests = [
        f"{text} = {_literal(least)}"
        if least == most
        else f"{text} BETWEEN {_literal(least)} AND {_literal(most)}"
        for least, most in ranges
    ]
    return f"({' OR '.join(tests)})" if tests else "FALSE"


def _ranges(hierarchy: Hierarchy, first: int, last: int) -> Iterator[tuple[str, str]]:
    """Return the leaves as ranges of text without any other leaf; for postcodes one is enough."""
    # Spark compares the bytes of texts.
    order = sorted(range(len(hierarchy)), key=lambda code: hierarchy.leaves[code].encode())
    for is_inside, codes in groupby(order, key=lambda code: first <= code <= last):
        if is_inside:
            run = list(codes)
            yield hierarchy.leaves[run[0]], hierarchy.leaves[run[-1]]


def _literal(text: str) -> str:
    """Quote a text, or write it in hexadecimal digits where the parser might interpret it."""
    return _hex(text) if re.search(r"['\\$]", text) else f"'{text}'"


def _hex(text: str) -> str:
    return f"CAST(X'{text.encode().hex()}' AS STRING)"
