"""Checks of the contract that an algorithm is known to break, and why that is accepted.

A key is the name of the algorithm and of the check. `tests/algorithms/test_contract.py` expects
these to fail, and fails itself when one of them doesn't.
"""

from __future__ import annotations

EXPECTED_FAILURES: dict[tuple[str, str], str] = {}
