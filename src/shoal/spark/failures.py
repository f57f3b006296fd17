"""Failures as Shoal tells them, where Spark tells them its own way."""

from __future__ import annotations

import os
import re
import traceback
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from shoal import errors
from shoal.errors import JobError, Problem, ResourceError, ShoalError

__all__ = ["quietly", "retold"]

_OURS = re.compile(r"^shoal\.errors\.(\w+): (.*)$", re.MULTILINE)


def retold(error: BaseException) -> BaseException:
    """An error of ours that Spark carried from a shard, as it was there.

    Of any other only the kind is told: what Spark says of a failure may quote values.

    >>> told = "Job aborted: Traceback ...\\nshoal.errors.DataError: age is missing\\n\\tat org..."
    >>> retold(RuntimeError(told))
    DataError('age is missing')
    """
    if isinstance(error, ShoalError) or not isinstance(error, Exception):
        return error
    found = _OURS.findall(str(error))
    if not found:
        if os.environ.get("SHOAL_DEBUG"):
            return error
        condition = getattr(error, "getCondition", lambda: None)() or type(error).__name__
        return ResourceError(
            f"Spark has given up ({condition}). Its log tells why; SHOAL_DEBUG=1 shows it here, "
            "where it may show values of your data."
        )
    name, text = found[-1]
    kind = getattr(errors, name, ShoalError)
    if issubclass(kind, JobError):
        # It is made of problems, and not of a text.
        key, _, what = text.partition(": ")
        return JobError(Problem(key, what))
    return kind(text) if issubclass(kind, ShoalError) else ShoalError(text)


def quietly(batches: Iterator[pa.RecordBatch], turn: str) -> Iterator[pa.RecordBatch]:
    """What a task gives. If it fails no value is told: Spark writes all of it down in its logs."""
    try:
        yield from batches
    except ShoalError as error:
        raise error from None
    except Exception as error:
        if os.environ.get("SHOAL_DEBUG"):
            raise
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(frame.filename).name}, line {frame.lineno}"
        raise ShoalError(f"{type(error).__name__} in {where}, in a shard of {turn}") from None
