"""How figures are written for a terminal."""

from __future__ import annotations

__all__ = ["percent", "short"]


def short(number: float | None) -> str:
    """Write three figures, which are enough to read; a large number keeps all of its places.

    >>> short(0.12345), short(12345.6), short(None)
    ('0.123', '12,346', 'none')
    """
    if number is None:
        return "none"
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def percent(share: float | None) -> str:
    """Write a share in percent.

    >>> percent(0.3333), percent(None)
    ('33.3 %', 'none')
    """
    return "none" if share is None else f"{100 * share:.1f} %"
