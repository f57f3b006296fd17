"""Fuzz what comes from outside: files, messages of a topic, and job files.

``python -m tests.fuzz --count 1000000`` changes good inputs at random and reads them. Each must end
well: with rows, with bad rows, or with an error of Shoal that shows no value of a person. Anything
else is a finding: a crash, a hang, or a leak. A finding is written with its number; the same seed
and number make the same input again.
"""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator
from typing import NamedTuple

from shoal.errors import ShoalError
from tests.fuzz.targets import CANARY, TARGETS

__all__ = ["TARGETS", "Finding", "fuzz"]

#: What breaks parsers.
TOKENS = [
    b'"', b"'", b",", b"\n", b"\r", b"\0", b"\xff", b"\xef\xbb\xbf", b"{", b"}", b"[", b"]", b"\\",
    b"[" * 2000, b'{"a":' * 500, b"9" * 400, b"1e999", b"-0", b"NaN", b"Infinity", b"\\ud800",
    b"\xed\xa0\x80", b"null", b"true", b"=", b"#", b'"""', b"%s", b"inf", b"\x1f\x8b", b"PAR1",
]  # fmt: skip
#: The most seconds that an input may take.
HANG = 20


class Finding(NamedTuple):
    """An input that didn't end well."""

    target: str
    number: int
    what: str


def changed(good: bytes, draw: random.Random) -> bytes:
    """Return an input that is changed at a few places."""
    data = bytearray(good)
    for _ in range(draw.choice([1, 1, 1, 2, 3, 8])):
        at = draw.randrange(len(data) + 1)
        end = min(len(data), at + draw.choice([1, 1, 2, 5, 20, 200]))
        match draw.randrange(6):
            case 0 if at < len(data):
                data[at] ^= 1 << draw.randrange(8)
            case 1:
                del data[at:end]
            case 2:
                data[at:at] = draw.choice(TOKENS)
            case 3:
                data[at:at] = data[at:end]
            case 4:
                data[at:end] = draw.randbytes(end - at)
            case _:
                other = draw.randrange(len(data) + 1)
                data[at:end] = data[other : other + end - at]
    return bytes(data)


def fuzz(target: str, count: int, seed: int, first: int = 0) -> Iterator[Finding]:
    """Yield the findings about one kind of input."""
    good, read = TARGETS[target]
    for number in range(first, first + count):
        data = changed(good, random.Random(f"{seed} {target} {number}"))
        signal.alarm(HANG)
        try:
            read(data)
        except ShoalError as error:
            if target != "job" and CANARY in str(error):
                yield Finding(target, number, "a message shows a value of a person")
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            yield Finding(target, number, f"{type(error).__name__} at {_place(error)}")
        finally:
            signal.alarm(0)


def _place(error: BaseException) -> str:
    """Return where an exception was raised; its text may show a value."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "?" if trace is None else f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"


def _hang(*_: object) -> None:
    raise TimeoutError("it hangs")


signal.signal(signal.SIGALRM, _hang)
