"""How a check fails."""

from __future__ import annotations

import numpy as np

__all__ = ["ROUNDING", "require"]

#: How far two computations of one loss may lie apart.
ROUNDING = 1e-9


def require(holds: bool | np.bool_, sentence: str) -> None:
    """Raise an `AssertionError` with a sentence, whatever Python's flags are."""
    if not holds:
        raise AssertionError(sentence)
