"""Log events of a run, with plain fields, on the logger ``shoal``.

An event is about the run, never about a person, and the code enforces it: a field is a number, a
boolean or a short plain word, and nothing else is accepted. Of an exception, only its type and the
place where it was raised are logged: the message of a foreign exception may quote a value. No event
is logged for a single row or release: its time would link arrivals with what is published.

As a library, Shoal logs nothing unless a handler is added to the logger ``shoal``.
"""

from __future__ import annotations

import logging
import math
import numbers
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, Self, TypeAlias

__all__ = [
    "WITHHELD",
    "Plain",
    "Raised",
    "event",
    "facts_of",
    "is_name",
    "plain",
    "plain_fields",
    "raised_of",
    "sentence",
]

#: The type of a field.
Plain: TypeAlias = bool | int | float | str | None
#: Shown instead of a value that isn't plain.
WITHHELD = "(withheld)"

_NAME = re.compile(r"[a-z]+(?:[ -][a-z]+){0,7}")
_KEY = re.compile(r"[a-z]+(?:_[a-z]+){0,3}")
_WORD = re.compile(r"[A-Za-z]+(?:-[A-Za-z]+){0,3}")
_LONGEST_NAME, _LONGEST_KEY, _LONGEST_WORD = 60, 30, 30
#: Keys that every line has, or that `event` uses itself.
_RESERVED = frozenset({"time", "level", "event", "text", "place"})

logging.getLogger("shoal").addHandler(logging.NullHandler())


class Raised(NamedTuple):
    """What is logged of an exception: its type, and the file and line where it was raised.

    >>> try:
    ...     int("Ada Lovelace")
    ... except ValueError as error:
    ...     Raised.of(error).error
    'ValueError'
    """

    error: str
    place: str

    @classmethod
    def of(cls, error: BaseException) -> Self:
        """Return the type and place of an exception, without its message."""
        trace = error.__traceback__
        if trace is None:
            return cls(type(error).__name__, "unknown")
        while trace.tb_next is not None:
            trace = trace.tb_next
        file = Path(trace.tb_frame.f_code.co_filename).name
        return cls(type(error).__name__, f"{file}:{trace.tb_lineno}")


def event(
    logger: logging.Logger,
    level: int,
    name: str,
    /,
    *,
    error: BaseException | None = None,
    **fields: Plain,
) -> None:
    """Log an event.

    A field that isn't plain is refused even if nothing is logged, so that any test finds it.

    Parameters
    ----------
    logger
        The logger of the module, ``logging.getLogger(__name__)``.
    level
        One of the levels of `logging`.
    name
        What happened, in a few lower-case words.
    error
        The exception, if there is one; its type and place are logged.
    fields
        Counts, durations, positions, booleans, and words that are literals in the code; None if
        unknown.

    Raises
    ------
    TypeError
        If the name, a key or a field isn't plain.

    >>> log = logging.getLogger("shoal.example")
    >>> event(log, logging.INFO, "checkpoint saved", number=3, bytes=120_000, sealed=True)
    >>> event(log, logging.INFO, "row read", subject="Ada Lovelace")
    Traceback (most recent call last):
    ...
    TypeError: event 'row read': field subject must be a number or a short plain word
    """
    if not is_name(name):
        raise TypeError("the name of an event must be a few lower-case words")
    checked: dict[str, Plain] = {}
    for key, value in fields.items():
        if not _is_key(key):
            raise TypeError(f"event {name!r}: a key must be a free lower-case word")
        found = plain(value)
        if found == WITHHELD:
            raise TypeError(f"event {name!r}: field {key} must be a number or a short plain word")
        checked[key] = found
    if not logger.isEnabledFor(level):
        return
    # Not as exc_info: a foreign handler would print the message.
    raised = None if error is None else Raised.of(error)
    logger.log(level, name, extra={"fields": checked, "raised": raised}, stacklevel=2)


def sentence(logger: logging.Logger, level: int, name: str, text: str) -> None:
    """Log a sentence of Shoal's own about a job, a file or a broker.

    Such sentences name columns, files, topics and counts, never a person's value. Don't use it for
    foreign text, such as the message of another library's exception.
    """
    if not is_name(name):
        raise TypeError("the name of an event must be a few lower-case words")
    # The text is the message, so that other handlers can show it.
    logger.log(level, text, extra={"event": name, "sentence": text}, stacklevel=2)


def is_name(name: object) -> bool:
    """Return whether this can be the name of an event: a few lower-case words.

    >>> is_name("checkpoint saved"), is_name("Ada was here")
    (True, False)
    """
    return (
        isinstance(name, str) and len(name) <= _LONGEST_NAME and _NAME.fullmatch(name) is not None
    )


def plain(value: object) -> Plain:
    """Return a number, a boolean, None or a short plain word unchanged; else `WITHHELD`.

    A number that JSON can't represent is None.

    >>> plain(7), plain("castle"), plain("7 Main Street"), plain(float("inf"))
    (7, 'castle', '(withheld)', None)
    """
    if value is None or isinstance(value, bool):
        return value
    # NumPy's numbers too.
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        number = float(value)
        return number if math.isfinite(number) else None
    if isinstance(value, str) and len(value) <= _LONGEST_WORD and _WORD.fullmatch(value):
        return str(value)
    return WITHHELD


def plain_fields(fields: object) -> dict[str, Plain]:
    """Return the fields of a record as they may be shown, also of a foreign record."""
    if not isinstance(fields, Mapping):
        return {}
    return {key: plain(value) for key, value in fields.items() if _is_key(key)}


def facts_of(record: logging.LogRecord) -> dict[str, Plain]:
    """Return what may be shown of a record from any library, beside its time and level.

    It is the name of an event, its plain fields, a sentence of Shoal's own, and the type and place
    of an exception.
    """
    name = getattr(record, "event", record.msg)
    known = is_name(name) and not record.args
    facts: dict[str, Plain] = {"event": name if known else WITHHELD}
    text = getattr(record, "sentence", None)
    if isinstance(text, str):
        facts["text"] = text
    facts |= plain_fields(getattr(record, "fields", None))
    raised = raised_of(record)
    if raised is not None:
        facts |= raised._asdict()
    elif not known:
        facts["place"] = f"{record.filename}:{record.lineno}"
    return facts


def raised_of(record: logging.LogRecord) -> Raised | None:
    """Return what may be shown of the exception of a record; None if it has none."""
    if record.exc_info and record.exc_info[1] is not None:
        return Raised.of(record.exc_info[1])
    raised = getattr(record, "raised", None)
    return raised if isinstance(raised, Raised) else None


def _is_key(key: object) -> bool:
    return (
        isinstance(key, str)
        and len(key) <= _LONGEST_KEY
        and key not in _RESERVED
        and _KEY.fullmatch(key) is not None
    )
