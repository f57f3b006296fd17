"""Topics with wildcards, and their levels as columns."""

from __future__ import annotations

import re

from shoal.errors import JobError, Problem

__all__ = ["TopicPattern"]

_NAMED = re.compile(r"\{([^{}]+)\}")
_MOST_BYTES = 65_535


class TopicPattern:
    """A topic filter in which levels may have names.

    Parameters
    ----------
    pattern
        Levels with ``/`` between them. ``+`` stands for any one level, ``{name}`` for any one level
        that becomes the column of that name, ``#`` at the end for all further levels.

    Raises
    ------
    JobError
        If it isn't one.

    >>> topic = TopicPattern("ward/{ward}/+/#")
    >>> topic.filter, topic.names
    ('ward/+/+/#', ('ward',))
    >>> topic.parts("ward/A/bed 7/pulse")
    ('A',)
    >>> TopicPattern("+x")
    Traceback (most recent call last):
    ...
    shoal.errors.JobError: topic: level 1 has a brace, + or # next to other characters; got '+x'. \
Each of {name}, + and # must be a level of its own, # the last one.
    """

    def __init__(self, pattern: str) -> None:
        levels = pattern.split("/")
        if not pattern or "\0" in pattern or len(pattern.encode(errors="replace")) > _MOST_BYTES:
            raise JobError(Problem("topic", "isn't a topic of 1 to 65,535 bytes of UTF-8 text"))
        if levels[0] in ("$share", "$queue"):
            what = "is a shared subscription, which spreads the rows of a person over jobs"
            raise JobError(Problem("topic", what, repr(pattern), "Name the topic itself"))
        names: dict[str, int] = {}
        for place, level in enumerate(levels):
            named = _NAMED.fullmatch(level)
            if named is not None:
                if named[1] in names:
                    what = f"names column {named[1]} twice"
                    raise JobError(Problem("topic", what, repr(pattern)))
                names[named[1]] = place
            elif level == "+" or (level == "#" and place == len(levels) - 1):
                continue
            elif re.search(r"[{}+#]", level):
                raise JobError(
                    Problem(
                        "topic",
                        f"level {place + 1} has a brace, + or # next to other characters",
                        repr(level),
                        "Each of {name}, + and # must be a level of its own, # the last one",
                    )
                )
        self.pattern = pattern
        #: What the broker is asked for.
        self.filter = "/".join(_NAMED.sub("+", level) for level in levels)
        #: The columns.
        self.names = tuple(names)
        self._places = tuple(names.values())

    def parts(self, topic: str) -> tuple[str | None, ...]:
        """Return the values of the columns in a topic; None where it is too short."""
        levels = topic.split("/")
        return tuple(levels[place] if place < len(levels) else None for place in self._places)
