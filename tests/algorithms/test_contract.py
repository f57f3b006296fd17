"""Every anonymizer in the registry keeps the contract, but for the exceptions with a reason."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numba
import pytest

from shoal.algorithms import find, names
from shoal.engine.base import Anonymizer
from shoal.testing import checks
from shoal.testing.checks import (
    CHECKS,
    FIXED_CHECKS,
    NOT_APPLICABLE,
    Check,
    not_applicable,
    run_check,
)
from shoal.testing.streams import Stream
from tests.examples import examples
from tests.expected_failures import EXPECTED_FAILURES

#: Compiled code draws many; plain Python, which is slow, few, if it is asked at all.
EXAMPLES = examples(1 if numba.config.DISABLE_JIT else 12)
#: Thousands of samples take plain Python minutes, and show no more than some hundred.
FEW_SAMPLES = 200


def with_few_samples(check: Check, anonymizer: Anonymizer, stream: Stream) -> None:
    """Run a check in plain Python on an anonymizer that draws samples."""
    samples = min(anonymizer.samples, FEW_SAMPLES)  # type: ignore[attr-defined]
    check(replace(anonymizer, samples=samples), stream)  # type: ignore[call-arg]


def run(name: str, check: str) -> None:
    if reason := not_applicable(getattr(checks, check), find(name)):
        pytest.skip(reason)
    draws_samples = hasattr(find(name), "samples")
    if check in {each.__name__ for each in CHECKS}:
        asked = getattr(checks, check)
        if numba.config.DISABLE_JIT and draws_samples:
            asked = partial(with_few_samples, asked)
        run_check(asked, find(name), examples=EXAMPLES)
    elif check == "check_jit_equals_python" and numba.config.DISABLE_JIT:
        pytest.skip("compiling takes a minute; the compiled run of the tests compares the two")
    else:
        few = {"samples": FEW_SAMPLES} if draws_samples else {}
        getattr(checks, check)(find(name)(**few))


@pytest.mark.parametrize("check", [each.__name__ for each in (*CHECKS, *FIXED_CHECKS)])
@pytest.mark.parametrize("name", names())
def test_contract(name: str, check: str) -> None:
    if (name, check) not in EXPECTED_FAILURES:
        run(name, check)
        return
    # An exception that isn't needed any more has to go.
    with pytest.raises(AssertionError):
        run(name, check)


def test_exceptions_are_of_known_checks_and_have_a_reason() -> None:
    known = {(name, each.__name__) for name in names() for each in (*CHECKS, *FIXED_CHECKS)}
    assert set(EXPECTED_FAILURES) <= known
    assert all(reason.strip() for reason in EXPECTED_FAILURES.values())


def test_what_is_not_asked_is_of_known_checks_and_has_a_reason() -> None:
    known = {each.__name__ for each in (*CHECKS, *FIXED_CHECKS)}
    ways = {find(name).publishes for name in names()}
    for (check, way), reason in NOT_APPLICABLE.items():
        assert check in known
        assert way in ways
        assert reason.strip()
