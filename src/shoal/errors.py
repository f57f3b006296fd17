"""The exceptions that Shoal raises, and the exit code of a command that each one ends.

::

    ShoalError                      70   the base class; raised itself only for a bug
    ├── JobError                     2   a job, schema, policy or knob is wrong; lists all problems
    │   ├── ParameterError           2   one parameter is wrong
    │   ├── HierarchyError           2   a hierarchy isn't a tree
    │   └── UnsupportedError         2   this anonymizer can't enforce that policy
    ├── DataError                    3   a bad row, in a job that stops at one, or too many of them
    ├── ResourceError                4   a file, pipe or broker that can't be read or written
    │   └── ReaderGoneError          4   nobody reads standard output any more; ends quietly
    ├── CheckpointError              5   a checkpoint that can't be used safely
    └── PromiseError                70   a group about to be released breaks the policy: a bug
        └── BrokenPromiseError       1   the audit of a running job found a broken promise

Messages have one shape: *what* is wrong, what was *got*, how to *fix* it. They name columns,
keys and counts, never a value of a person.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

__all__ = [
    "PUBLISHES_AGAIN",
    "BrokenPromiseError",
    "CheckpointError",
    "DataError",
    "HierarchyError",
    "JobError",
    "ParameterError",
    "Problem",
    "PromiseError",
    "ReaderGoneError",
    "ResourceError",
    "ShoalError",
    "UnsupportedError",
    "check_choice",
    "did_you_mean",
    "install_hint",
    "nearest_word",
]

#: What is said wherever starting over is advised.
PUBLISHES_AGAIN = (
    "That publishes the rows again, which is only safe if nobody has seen the former output: "
    "docs/checkpoints.md says what is safe otherwise"
)


class ShoalError(Exception):
    """The base class of all exceptions; ``exit_code`` is the exit code of a command."""

    exit_code = 70


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem of a job: the key, what is wrong, what was got, and how to fix it.

    >>> print(Problem("policy.k", "must be a whole number of at least 1", "0", "Try k = 10"))
    policy.k: must be a whole number of at least 1; got 0. Try k = 10.
    """

    key: str
    what: str
    got: str | None = None
    fix: str | None = None

    def __str__(self) -> str:
        text = f"{_short(self.key, 300)}: {_short(self.what, 600)}"
        if self.got is not None:
            text += f"; got {_short(self.got, 300)}"
        if self.fix is not None:
            text += f". {self.fix}"
        return text if text.endswith((".", "?", "!")) else text + "."


def _short(text: str, n_characters: int) -> str:
    """Return a text, or its beginning if it is very long: a key can have a million characters."""
    return text if len(text) <= n_characters else f"{text[:n_characters]}…"


class JobError(ShoalError):
    """A job, schema, policy or knob is wrong; ``problems`` has all that was found."""

    exit_code = 2

    def __init__(self, problems: Problem | Iterable[Problem], *, where: str | None = None) -> None:
        self.problems: tuple[Problem, ...] = (
            (problems,) if isinstance(problems, Problem) else tuple(problems)
        )
        self.where = where
        super().__init__(str(self))

    def __str__(self) -> str:
        if len(self.problems) == 1:
            text = str(self.problems[0])
            return f"{self.where}: {text}" if self.where else text
        head = f"{len(self.problems)} problems"
        head += f" in {self.where}" if self.where else ""
        return "\n".join([f"{head}:", *(f"  - {problem}" for problem in self.problems)])


class ParameterError(JobError):
    """One parameter is wrong.

    >>> raise ParameterError("Castle.clusters", "must be at least 1", got="0")
    Traceback (most recent call last):
    ...
    shoal.errors.ParameterError: Castle.clusters: must be at least 1; got 0.
    """

    def __init__(
        self, key: str, what: str, *, got: object | None = None, fix: str | None = None
    ) -> None:
        super().__init__(Problem(key, what, None if got is None else str(got), fix))


class HierarchyError(JobError):
    """A hierarchy isn't a tree with distinct leaves."""

    def __init__(self, what: str, *, where: str = "hierarchy", fix: str | None = None) -> None:
        super().__init__(Problem(where, what, None, fix))


class UnsupportedError(JobError):
    """The chosen anonymizer can't enforce the policy; the message names those that can."""

    def __init__(self, what: str, *, fix: str | None = None) -> None:
        super().__init__(Problem("algorithm", what, None, fix))


class DataError(ShoalError):
    """There is a bad row, and the job says ``action = "stop"``; or there are too many of them."""

    exit_code = 3


class ResourceError(ShoalError):
    """A file, a pipe, a folder or a broker can't be read or written."""

    exit_code = 4


class ReaderGoneError(ResourceError):
    """The reader of standard output went away, as ``head`` does when it has enough.

    Or that of a named pipe: then ``is_usual`` is false, and the command says so.
    """

    def __init__(self, message: str, *, is_usual: bool = True) -> None:
        super().__init__(message)
        self.is_usual = is_usual


class CheckpointError(ShoalError):
    """A checkpoint is damaged, too new, of another job, or sealed with another key."""

    exit_code = 5


class PromiseError(ShoalError):
    """A group that breaks the policy was about to be released. Nothing of it was published."""


class BrokenPromiseError(PromiseError):
    """The audit of a sample, while a job ran, found a promise broken."""

    exit_code = 1


def did_you_mean(word: str, known: Sequence[str]) -> str | None:
    """Suggest the nearest known word, or list all if there are few.

    >>> did_you_mean("cluster", ["clusters", "kept"])
    "Did you mean 'clusters'?"
    >>> did_you_mean("x", ["clusters", "kept"])
    'Known: clusters, kept'
    """
    near = nearest_word(word, known)
    if near is not None:
        return f"Did you mean '{near}'?"
    return f"Known: {', '.join(known)}" if 0 < len(known) <= 20 else None


def install_hint(extra: str) -> str:
    """Return how to install what an extra brings; every message about a missing package has it.

    >>> install_hint("kafka").partition(",")[0]
    "Install the extra 'kafka': pip install '.[kafka]' in a clone of Shoal"
    """
    return (
        f"Install the extra '{extra}': pip install '.[{extra}]' in a clone of Shoal, or "
        f"'./NAME.whl[{extra}]' with its wheel; the shoal on PyPI is another program"
    )


def nearest_word(word: str, known: Sequence[str]) -> str | None:
    """Return the known word that is nearest to another one, whatever their case; None if none is.

    >>> nearest_word("Plz", ["age", "PLZ"])
    'PLZ'
    """
    folded = {each.casefold(): each for each in reversed(known)}
    near = difflib.get_close_matches(word.casefold(), list(folded), n=1, cutoff=0.6)
    return folded[near[0]] if near else None


def check_choice(key: str, value: object, known: Sequence[str]) -> None:
    """Raise `ParameterError` if a parameter isn't one of the known words.

    >>> check_choice("order", "arival", ["released", "arrival"])
    Traceback (most recent call last):
    ...
    shoal.errors.ParameterError: order: must be one of released, arrival; got 'arival'. ...
    """
    if value not in known:
        what = f"must be one of {', '.join(known)}"
        raise ParameterError(key, what, got=repr(value), fix=did_you_mean(str(value), known))
