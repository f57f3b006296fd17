"""Secrets of a connection: a job names where each one is, and never has it in clear."""

from __future__ import annotations

import os
import re
from pathlib import Path

from shoal.errors import JobError, Problem, ResourceError
from shoal.io.streams import os_reason

__all__ = ["in_clear", "is_reference", "look_up"]

_REFERENCE = re.compile(r"(env|file):(.+)", re.S)


def is_reference(value: object) -> bool:
    """Return whether a value names the place of a secret.

    >>> is_reference("env:PASSWORD"), is_reference("file:/run/password"), is_reference("hunter2")
    (True, True, False)
    """
    return isinstance(value, str) and _REFERENCE.fullmatch(value) is not None


def in_clear(key: str) -> Problem:
    """Return the problem of a secret that stands in a job file."""
    fix = 'Write "env:NAME" or "file:PATH", and keep the secret there'
    return Problem(key, "is a secret in plain text", None, fix)


def look_up(key: str, reference: str) -> str:
    """Return the content of an environment variable or a file.

    Parameters
    ----------
    key
        The key of the job, for messages.
    reference
        ``env:NAME`` or ``file:PATH``.

    Raises
    ------
    JobError
        If the environment variable isn't set.
    ResourceError
        If the file can't be read.
    """
    kind, _, place = reference.partition(":")
    if kind == "env":
        value = os.environ.get(place)
        if value is None:
            what = f"the environment variable {place} isn't set"
            raise JobError(Problem(key, what, None, "Set it before the job is run"))
        return value
    path = Path(place).expanduser()
    try:
        return path.read_text(encoding="utf-8").rstrip("\r\n")
    except OSError as error:
        raise ResourceError(f"{key}: {path} can't be read: {os_reason(error)}.") from None
    except UnicodeDecodeError:
        raise ResourceError(f"{key}: {path} can't be read: it isn't UTF-8.") from None
