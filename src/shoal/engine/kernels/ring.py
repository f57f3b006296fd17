"""Index arithmetic of rings and hash tables: arrays whose length is a power of two."""

from __future__ import annotations

from shoal.engine.jit import inlined

__all__ = ["wrap"]


@inlined
def wrap(position: int, length: int) -> int:
    """Return a position modulo the length of a ring or hash table, which is a power of two.

    >>> wrap(9, 8), wrap(-1, 8)
    (1, 7)
    """
    return position & (length - 1)
