"""The metadata of a published file, which may hold more than the names of its columns."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

__all__ = ["has_extra_metadata"]

#: What Spark writes into every Parquet file: its version, and a description of the columns.
_VERSION = b"org.apache.spark.version"
_COLUMNS = b"org.apache.spark.sql.parquet.row.metadata"
_NUMBER = re.compile(rb"[0-9]{1,3}(\.[0-9]{1,3}){1,3}(-SNAPSHOT)?")
_TYPE = re.compile(r"[a-z_]+(\([0-9]+,[0-9]+\))?")


def has_extra_metadata(metadata: Mapping[bytes, bytes] | None, names: Sequence[str]) -> bool:
    """Return whether the metadata of a table hold more than the names and types of its columns.

    Those of Spark don't, unless a column has something of its own, such as a comment.

    >>> has_extra_metadata({b"org.apache.spark.version": b"4.1.0"}, ["age"])
    False
    >>> has_extra_metadata({b"note": b"4.1.0"}, ["age"])
    True
    """
    rest = dict(metadata or {})
    version, columns = rest.pop(_VERSION, None), rest.pop(_COLUMNS, None)
    if version is not None and not _NUMBER.fullmatch(version):
        return True
    return bool(rest) or (columns is not None and not _only_columns(columns, names))


def _only_columns(text: bytes, names: Sequence[str]) -> bool:
    """Return whether a description of columns, as Spark writes it, has these and nothing else."""
    try:
        described = json.loads(text)
        types = [(field["type"], field["nullable"]) for field in described["fields"]]
        if not all(_TYPE.fullmatch(kind) and isinstance(null, bool) for kind, null in types):
            return False
    except (KeyError, TypeError, ValueError):
        return False
    fields = [
        {"name": name, "type": kind, "nullable": null, "metadata": {}}
        for name, (kind, null) in zip(names, types, strict=False)
    ]
    return len(types) == len(names) and bool(described == {"type": "struct", "fields": fields})
