"""How many examples a property is tried on: an eighth in `make test`, all in `make nightly`."""

from __future__ import annotations

import os

__all__ = ["ALL", "examples"]

#: Whether everything that can be drawn is drawn.
ALL = os.environ.get("SHOAL_TEST_EXAMPLES") == "all"
#: Fewer would say little.
LEAST = 5


def examples(n: int) -> int:
    """Return how many of n examples are tried now. The same ones are drawn first every time."""
    return n if ALL else max(n // 8, min(n, LEAST))
