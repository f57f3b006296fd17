"""The contract that every anonymizer keeps, as functions that raise `AssertionError`.

`CHECKS` take an anonymizer and any stream; `FIXED_CHECKS` take an anonymizer and bring their own
stream. `check_anonymizer` runs all of them on a class, on hostile streams and on drawn ones; what
doesn't apply to every class is in `NOT_APPLICABLE`.

>>> from shoal.testing.hostile import hostile_streams
>>> from shoal.algorithms import Castle
>>> check_promise(Castle(clusters=2), hostile_streams(Castle, n=9)["alternating extremes"])

Messages name positions and numbers of groups, never a value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from hypothesis import HealthCheck, Phase, given, settings

from shoal.engine.base import Anonymizer
from shoal.errors import UnsupportedError
from shoal.testing.checks.called import (
    check_batching,
    check_canary,
    check_inputs,
    check_relabelled,
    check_resume,
    check_seeded,
)
from shoal.testing.checks.fixed import (
    check_jit_equals_python,
    check_memory,
    check_order,
    check_refuses,
)
from shoal.testing.checks.published import (
    check_conservation,
    check_cover,
    check_delay,
    check_gaps,
    check_promise,
)
from shoal.testing.hostile import hostile_streams
from shoal.testing.strategies import anonymizers, streams
from shoal.testing.streams import Stream

__all__ = [
    "CHECKS",
    "FIXED_CHECKS",
    "NOT_APPLICABLE",
    "Check",
    "FixedCheck",
    "check_anonymizer",
    "check_batching",
    "check_canary",
    "check_conservation",
    "check_cover",
    "check_delay",
    "check_gaps",
    "check_inputs",
    "check_jit_equals_python",
    "check_memory",
    "check_order",
    "check_promise",
    "check_refuses",
    "check_relabelled",
    "check_resume",
    "check_seeded",
    "not_applicable",
    "run_check",
]

Check: TypeAlias = Callable[[Anonymizer, Stream], None]
FixedCheck: TypeAlias = Callable[[Anonymizer], None]

#: Checks that hold on any stream.
CHECKS: tuple[Check, ...] = (
    check_promise,
    check_conservation,
    check_cover,
    check_gaps,
    check_delay,
    check_batching,
    check_resume,
    check_seeded,
    check_relabelled,
    check_inputs,
    check_canary,
)
#: Checks that bring their own stream.
FIXED_CHECKS: tuple[FixedCheck, ...] = (
    check_memory,
    check_order,
    check_refuses,
    check_jit_equals_python,
)
#: Checks that make no sense for one way of publishing (`Anonymizer.publishes`), with the reason.
NOT_APPLICABLE: dict[tuple[str, str], str] = {
    ("check_memory", "table"): "a whole table is in memory until it is published",
    ("check_order", "values"): "there are no groups; every row leaves when it comes (check_delay)",
}


def not_applicable(check: Check | FixedCheck, anonymizer: type[Anonymizer]) -> str | None:
    """Return why a check doesn't apply to an anonymizer; None if it does.

    >>> from shoal.algorithms import Castle
    >>> from shoal.algorithms import find
    >>> not_applicable(check_order, Castle)
    >>> not_applicable(check_memory, find("sabre-ak"))
    'a whole table is in memory until it is published'
    """
    return NOT_APPLICABLE.get((check.__name__, anonymizer.publishes))


def run_check(check: Check, anonymizer: type[Anonymizer], *, examples: int = 25) -> None:
    """Run a check on hostile streams with default knobs, and on drawn streams with drawn knobs.

    What is drawn is the same every time.
    """
    for stream in hostile_streams(anonymizer).values():
        check(anonymizer(), stream)

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=True,
        # Without the phase that explains: it takes long, and small streams are clear.
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(instance=anonymizers(anonymizer), stream=streams(anonymizer))
    def drawn(instance: Anonymizer, stream: Stream) -> None:
        try:
            stream.start(instance)
        except UnsupportedError:
            # A knob may need what this stream lacks, a time for example.
            instance = anonymizer()
        check(instance, stream)

    drawn()


def check_anonymizer(anonymizer: type[Anonymizer], *, examples: int = 25) -> None:
    """Run all checks of the contract that apply to a class."""
    for check in CHECKS:
        if not_applicable(check, anonymizer) is None:
            run_check(check, anonymizer, examples=examples)
    for fixed in FIXED_CHECKS:
        if not_applicable(fixed, anonymizer) is None:
            fixed(anonymizer())
