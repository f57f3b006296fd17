"""``--log``: the log of a run, on stderr or in a file, for people or for programs.

The formatters show only plain parts of a record from any library: the name of an event, its plain
fields, and the type and place of an exception. See `shoal.events`.
"""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any

from shoal.cli.log_file import LogFile, LogFileOptions
from shoal.cli.terminal import print_message
from shoal.errors import ParameterError, did_you_mean
from shoal.events import Plain, facts_of, sentence

__all__ = ["KINDS", "configure_logs", "is_logging", "is_on_stderr", "print_or_log"]

#: The values of ``--log``.
KINDS = ("text", "json")

_ROOT = "shoal"


def configure_logs(kind: str | None, file: LogFileOptions | None = None) -> None:
    """Send the events of Shoal to stderr or to a file; a second call replaces the first.

    Parameters
    ----------
    kind
        ``"text"`` for people, ``"json"`` for programs: one object per line. None: text in a file;
        on stderr only warnings and errors.
    file
        Where the log is written. What is printed without a log is printed to stderr, too.

    Raises
    ------
    ParameterError
        If the kind is unknown.
    ResourceError
        If the file can't be written to.
    """
    if kind not in (None, *KINDS):
        raise ParameterError(
            "--log", "must be text or json", got=kind, fix=did_you_mean(str(kind), KINDS)
        )
    logger = logging.getLogger(_ROOT)
    for handler in [one for one in logger.handlers if isinstance(one, _Stderr | LogFile)]:
        logger.removeHandler(handler)
        handler.close()
    if file is None:
        _add(_Stderr(), kind)
    else:
        _add(LogFile(file), kind or "text")
        _add(_Stderr(), None)
    logger.setLevel(logging.INFO)
    # A handler of the root logger would show records without these formatters.
    logger.propagate = False


def _add(handler: logging.Handler, kind: str | None) -> None:
    # Others, such as a page, may listen to more.
    handler.setLevel(logging.WARNING if kind is None else logging.INFO)
    handler.setFormatter({None: _Words(), "text": _Lines(), "json": _Objects()}[kind])
    logging.getLogger(_ROOT).addHandler(handler)


def is_logging() -> bool:
    """Return whether a log was asked for: then all messages are events, too."""
    return _has_log(_Stderr | LogFile)


def is_on_stderr() -> bool:
    """Return whether the log is on stderr: then nothing but events is printed there."""
    return _has_log(_Stderr)


def print_or_log(level: int, name: str, text: str) -> None:
    """Log a sentence as an event if a log was asked for, and print it unless it is on stderr."""
    if is_logging():
        sentence(logging.getLogger(_ROOT), level, name, text)
    # Beside a log in a file, warnings and errors are printed by their handler.
    if not is_logging() or (level < logging.WARNING and not is_on_stderr()):
        print_message(text)


def _has_log(kind: Any) -> bool:
    return any(
        isinstance(handler, kind) and handler.level == logging.INFO
        for handler in logging.getLogger(_ROOT).handlers
    )


class _Stderr(logging.Handler):
    """Write to the current stderr; failures are ignored."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            print_message(self.format(record))
        except Exception:
            # A log that can't be written must not end the run, and logging's own report of the
            # failure would show the record.
            return


def _time(record: logging.LogRecord) -> str:
    text = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


class _Objects(logging.Formatter):
    """Format a record as one JSON object per line: time, level, event and fields."""

    def format(self, record: logging.LogRecord) -> str:
        head = {"time": _time(record), "level": record.levelname.lower()}
        return json.dumps(head | facts_of(record), allow_nan=False)


class _Words(logging.Formatter):
    """Format a record as text: ``warning: broker went away (attempts 3)``."""

    def format(self, record: logging.LogRecord) -> str:
        facts = facts_of(record)
        name, text = str(facts.pop("event")), facts.pop("text", None)
        line = f"{record.levelname.lower()}: {name if text is None else text}"
        details = ", ".join(f"{key.replace('_', ' ')} {_text(facts[key])}" for key in facts)
        return f"{line} ({details})" if details else line


class _Lines(_Words):
    """Format a record as text, with the time before it."""

    def format(self, record: logging.LogRecord) -> str:
        return f"{_time(record)} {super().format(record)}"


def _text(value: Plain) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.3f}"
    return f"{value:,}" if isinstance(value, int) else value
