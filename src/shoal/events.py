"""What a run tells about itself: named events with plain fields, on the logger ``shoal``.

An event is about the run, never about a person, and that is a property of the code: a field is a
number, a truth value or a short plain word, and nothing else is accepted. Of an exception, only
its type and the place where it was raised are told: the message of a foreign exception may quote
a value. For the same reason no event is logged for a single row or release: with its time, it
would pair arrivals with what is published.

Who imports Shoal as a library hears nothing unless they add a handler to the logger ``shoal``.
"""

from __future__ import annotations

import logging
import math
import numbers
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, Self, TypeAlias

__all__ = ["WITHHELD", "Plain", "Raised", "event", "is_name", "plain", "plain_fields", "sentence"]

#: What a field of an event may be.
Plain: TypeAlias = bool | int | float | str | None
#: What is shown in the place of something that isn't plain.
WITHHELD = "(withheld)"

_NAME = re.compile(r"[a-z]+(?:[ -][a-z]+){0,7}")
_KEY = re.compile(r"[a-z]+(?:_[a-z]+){0,3}")
_WORD = re.compile(r"[A-Za-z]+(?:-[A-Za-z]+){0,3}")
_LONGEST_NAME, _LONGEST_KEY, _LONGEST_WORD = 60, 30, 30
#: Keys that every line has of its own, or that `event` gives a meaning.
_TAKEN = frozenset({"time", "level", "event", "text", "place"})

logging.getLogger("shoal").addHandler(logging.NullHandler())


class Raised(NamedTuple):
    """What is told of an exception: its type, and the file and line where it was raised.

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
        """Look where an exception comes from; its message isn't looked at."""
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
    """Log that something has happened.

    What isn't plain is refused whether or not anybody listens, so that every test that comes by
    finds it.

    Parameters
    ----------
    logger
        The logger of the module, ``logging.getLogger(__name__)``.
    level
        One of the levels of `logging`.
    name
        What happened, in a few lower-case words.
    error
        What was raised, if that is what happened; its type and place are told.
    fields
        Counts, durations, positions, truth values, and words that stand in the code as they are;
        None where something isn't known.

    Raises
    ------
    TypeError
        If the name, a key or a field isn't plain.

    >>> log = logging.getLogger("shoal.example")
    >>> event(log, logging.INFO, "checkpoint saved", number=3, bytes=120_000, sealed=True)
    >>> event(log, logging.INFO, "row read", subject="Ada Lovelace")
    Traceback (most recent call last):
    ...
    TypeError: event 'row read': field subject is no number and no short plain word
    """
    if not is_name(name):
        raise TypeError("the name of an event is a few lower-case words, as they stand in the code")
    told: dict[str, Plain] = {}
    for key, value in fields.items():
        if not _is_key(key):
            raise TypeError(f"event {name!r}: a key isn't a plain lower-case word, or is taken")
        found = plain(value)
        if found == WITHHELD:
            raise TypeError(f"event {name!r}: field {key} is no number and no short plain word")
        told[key] = found
    if not logger.isEnabledFor(level):
        return
    # Not as exc_info: another's handler would print the message.
    raised = None if error is None else Raised.of(error)
    logger.log(level, name, extra={"fields": told, "raised": raised}, stacklevel=2)


def sentence(logger: logging.Logger, level: int, name: str, text: str) -> None:
    """Log a sentence that Shoal made: about a job, a file or a broker.

    Such sentences name columns, files, topics and counts, and never a person's value. Never use
    it for a text from elsewhere, such as the message of another's exception.
    """
    logger.log(level, name, extra={"fields": {}, "sentence": text}, stacklevel=2)


def is_name(name: object) -> bool:
    """Whether this can be the name of an event: a few lower-case words.

    >>> is_name("checkpoint saved"), is_name("Ada was here")
    (True, False)
    """
    return (
        isinstance(name, str) and len(name) <= _LONGEST_NAME and _NAME.fullmatch(name) is not None
    )


def plain(value: object) -> Plain:
    """Give a number, a truth value, None or a short plain word as it is, all else withheld.

    A number that JSON can't carry is None.

    >>> plain(7), plain("castle"), plain("7 Main Street"), plain(float("inf"))
    (7, 'castle', '(withheld)', None)
    """
    if value is None or isinstance(value, bool):
        return value
    # Numbers of NumPy are numbers too.
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        number = float(value)
        return number if math.isfinite(number) else None
    if isinstance(value, str) and len(value) <= _LONGEST_WORD and _WORD.fullmatch(value):
        return str(value)
    return WITHHELD


def plain_fields(fields: object) -> dict[str, Plain]:
    """The fields of a record as they may be shown, whoever made it."""
    if not isinstance(fields, Mapping):
        return {}
    return {key: plain(value) for key, value in fields.items() if _is_key(key)}


def _is_key(key: object) -> bool:
    return (
        isinstance(key, str)
        and len(key) <= _LONGEST_KEY
        and key not in _TAKEN
        and _KEY.fullmatch(key) is not None
    )
