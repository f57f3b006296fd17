"""Parse the text of a job file, within bounds that no job needs to pass; write values of one."""

from __future__ import annotations

import json
import re
import tomllib
from datetime import date, time
from pathlib import PurePath
from typing import Any

from shoal.errors import JobError, ParameterError, Problem
from shoal.io.formats import file_type

__all__ = [
    "DATA_FIRST",
    "MAX_BYTES",
    "MAX_DEPTH",
    "inline",
    "is_data",
    "parse_toml",
    "quote",
    "quote_key",
]

#: The maximum size of a job file, which may list the values of an attribute.
MAX_BYTES = 16 << 20
#: The maximum depth of nested tables and lists.
MAX_DEPTH = 32
#: The maximum number of bits of a whole number: more can't become a float.
MAX_BITS = 1000
#: A dotted key of more parts than are allowed, which the parser would take hours to read.
_LONG_KEY = re.compile(
    r"""(?<![\w.'"-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){32}"""
)


def parse_toml(text: str, where: str | None) -> dict[str, Any]:
    """Return the tables of a TOML text.

    Raises
    ------
    JobError
        If it isn't TOML, is nested too deeply, or has a number that is too large.
    """
    try:
        if _LONG_KEY.search(text):
            raise RecursionError
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise JobError(
            Problem("job", f"isn't TOML: {error}", None, _hint(str(error), where)), where=where
        ) from None
    except RecursionError:
        raise JobError(_too_deep("job"), where=where) from None
    except ValueError:
        # Python's own bound of digits.
        raise JobError(_too_large("job"), where=where) from None
    problem = _beyond_bounds(raw)
    if problem is not None:
        raise JobError(problem, where=where)
    return raw


def quote(text: str) -> str:
    r"""Write a string of TOML.

    >>> print(quote('say "hi"'))
    "say \"hi\""
    """
    # JSON escapes what TOML does, save the delete character.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def quote_key(text: str) -> str:
    """Write a key of TOML, with quotes if it needs them.

    >>> print(quote_key("age"), quote_key("date of birth"))
    age "date of birth"
    """
    return text if re.fullmatch(r"[A-Za-z0-9_-]+", text) else quote(text)


def inline(value: object) -> str:
    """Write a value of TOML in one line.

    >>> print(inline({"rows": 40, "by": ["ward", "town"], "is final": True}))
    { rows = 40, by = ["ward", "town"], "is final" = true }
    """
    match value:
        case bool():
            return str(value).lower()
        case str():
            return quote(value)
        case dict():
            pairs = [f"{quote_key(str(key))} = {inline(each)}" for key, each in value.items()]
            return f"{{ {', '.join(pairs)} }}" if pairs else "{}"
        case list() | tuple():
            return f"[{', '.join(inline(each) for each in value)}]"
        case date() | time():
            return value.isoformat()
        case _:
            return repr(value)


def is_data(where: str | None) -> bool:
    """Return whether a file that should be a job has the ending of a data file.

    >>> is_data("people.csv"), is_data("job.toml"), is_data(None)
    (True, False, False)
    """
    try:
        return where is not None and bool(PurePath(where).suffix and file_type(where))
    except ParameterError:
        return False


#: What to do if a data file is given as the job.
DATA_FIRST = "This is a data file: give the job file as the first argument"


def _hint(error: str, where: str | None) -> str | None:
    """Return what may be wrong with a text that isn't TOML."""
    if is_data(where):
        return DATA_FIRST
    if "Invalid value" in error:
        return "Texts need quotation marks"
    if "after a key" in error or "for a key part" in error:
        return "Names with spaces or special letters need quotation marks"
    return None


def _beyond_bounds(raw: dict[str, Any]) -> Problem | None:
    """Return the first value that is nested too deeply or too large, if there is one."""
    waiting: list[tuple[str, Any, int]] = [("", raw, 0)]
    while waiting:
        key, value, depth = waiting.pop()
        if isinstance(value, int) and value.bit_length() > MAX_BITS:
            return _too_large(key)
        if isinstance(value, dict | list) and depth > MAX_DEPTH:
            return _too_deep(key)
        if isinstance(value, dict):
            waiting += [(f"{key}.{k}".lstrip("."), v, depth + 1) for k, v in value.items()]
        elif isinstance(value, list):
            waiting += [(key, v, depth + 1) for v in value]
    return None


def _too_deep(key: str) -> Problem:
    return Problem(key, f"is nested too deeply: at most {MAX_DEPTH} nested tables and lists")


def _too_large(key: str) -> Problem:
    return Problem(key, "has a whole number of more than 300 digits")
