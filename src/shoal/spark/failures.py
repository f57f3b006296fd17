"""Errors across Spark: without values on the way in, as Shoal's own errors on the way out."""

from __future__ import annotations

import os
import re
import traceback
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from shoal import errors
from shoal.errors import JobError, Problem, ResourceError, ShoalError

__all__ = ["original_error", "without_values"]

_OURS = re.compile(r"^shoal\.errors\.(\w+): (.*)$", re.MULTILINE)


def original_error(error: BaseException) -> BaseException:
    """Return the Shoal error that Spark wraps, or one that names only the kind of Spark's error.

    Spark's own messages may quote values.

    >>> text = "Job aborted: Traceback ...\\nshoal.errors.DataError: age is missing\\n\\tat org..."
    >>> original_error(RuntimeError(text))
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
            f"Spark has given up ({condition}). Its log says why; SHOAL_DEBUG=1 shows it here, "
            "where it may show values of your data."
        )
    name, text = found[-1]
    kind = getattr(errors, name, ShoalError)
    if issubclass(kind, JobError):
        # It takes problems, not a text.
        key, _, what = text.partition(": ")
        return JobError(Problem(key, what))
    return kind(text) if issubclass(kind, ShoalError) else ShoalError(text)


def without_values(batches: Iterator[pa.RecordBatch], epoch: str) -> Iterator[pa.RecordBatch]:
    """Pass on what a task returns; an error loses all values, since Spark logs it in full."""
    try:
        yield from batches
    except ShoalError as error:
        # Only the classes of `shoal.errors` are recognized on the other side.
        kind = next(each for each in type(error).__mro__ if each.__module__ == errors.__name__)
        raise (error if type(error) is kind else kind(str(error))) from None
    except Exception as error:
        if os.environ.get("SHOAL_DEBUG"):
            raise
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(frame.filename).name}, line {frame.lineno}"
        raise ShoalError(f"{type(error).__name__} in {where}, in a shard of {epoch}") from None
