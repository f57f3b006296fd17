"""Find a value inside a JSON object by a path."""

from __future__ import annotations

import re
from typing import Any

from shoal.errors import JobError, Problem

__all__ = ["FieldPath"]

_STEP = re.compile(r"\[(?:(?P<index>\d{1,6})|(?P<key>[^\[\]=]+)=(?P<value>[^\[\]]*))\]")


class FieldPath:
    """A path: keys with dots between them, and in brackets which element of an array.

    ``[2]`` is the third element, ``[name=pulse]`` the first one that is an object in which ``name``
    is the text ``pulse``, as in the metrics of Sparkplug.

    Parameters
    ----------
    text
        The path.
    key
        The key of the job, for messages.

    Raises
    ------
    JobError
        If it isn't a path.

    >>> path = FieldPath("metrics[name=pulse].value", "fields.pulse")
    >>> path.find({"metrics": [{"name": "age", "value": 39}, {"name": "pulse", "value": 71}]})
    71
    >>> path.find({"metrics": 7}) is None
    True
    """

    def __init__(self, text: str, key: str) -> None:
        self._steps: list[tuple[str, str | int, str]] = []
        for part in text.split("."):
            name, bracket, rest = part.partition("[")
            if not name or "]" in name:
                raise _wrong(text, key)
            self._steps.append(("key", name, ""))
            rest, at = bracket + rest, 0
            while at < len(rest):
                step = _STEP.match(rest, at)
                if step is None:
                    raise _wrong(text, key)
                if step["index"] is not None:
                    self._steps.append(("index", int(step["index"]), ""))
                else:
                    self._steps.append(("match", step["key"], step["value"]))
                at = step.end()

    def find(self, value: Any) -> Any:
        """Return what the path leads to; None where there is nothing."""
        for kind, which, text in self._steps:
            if kind == "key":
                value = value.get(which) if isinstance(value, dict) else None
            elif not isinstance(value, list):
                return None
            elif kind == "index":
                assert isinstance(which, int)
                value = value[which] if which < len(value) else None
            else:
                fits = (e for e in value if isinstance(e, dict) and e.get(which) == text)
                value = next(fits, None)
        return value


def _wrong(text: str, key: str) -> JobError:
    fix = 'Write keys with dots, and elements as [0] or [name=x]: "metrics[name=pulse].value"'
    return JobError(Problem(key, "isn't a path", repr(text), fix))
