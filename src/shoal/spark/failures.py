"""Failures as Shoal tells them, where Spark tells them its own way."""

from __future__ import annotations

import re

from shoal import errors
from shoal.errors import ShoalError

__all__ = ["retold"]

_OURS = re.compile(r"^shoal\.errors\.(\w+): (.*)$", re.MULTILINE)


def retold(error: BaseException) -> BaseException:
    """An error of ours that Spark carried from a shard, as it was there; any other as it is.

    >>> told = "Job aborted: Traceback ...\\nshoal.errors.DataError: age is missing\\n\\tat org..."
    >>> retold(RuntimeError(told))
    DataError('age is missing')
    """
    if isinstance(error, ShoalError):
        return error
    found = _OURS.findall(str(error))
    if not found:
        return error
    name, text = found[-1]
    kind = getattr(errors, name, ShoalError)
    try:
        return kind(text) if issubclass(kind, ShoalError) else ShoalError(text)
    except TypeError:
        # One that is made of problems, and not of a text.
        return ShoalError(text)
