"""How a report writes figures."""

from __future__ import annotations

from shoal.report.markup import Markup, tag

__all__ = ["chance", "count", "judged", "number", "percent"]


def count(n: int | None) -> str:
    """Return a count with separators.

    >>> count(12345), count(None)
    ('12,345', 'unknown')
    """
    return "unknown" if n is None else f"{n:,}"


def number(value: float | None) -> str:
    """Return three figures of a number; a large one keeps all of its places.

    >>> number(0.12345), number(1680.4), number(None)
    ('0.123', '1,680', 'unknown')
    """
    if value is None:
        return "unknown"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def percent(share: float | None) -> str:
    """Return a share in percent; a small one isn't written as 0.

    >>> percent(0.123), percent(0), percent(0.0001), percent(None)
    ('12.3 %', '0 %', 'below 0.1 %', 'unknown')
    """
    if share is None:
        return "unknown"
    if 0 < share < 0.001:
        return "below 0.1 %"
    return f"{100 * share:.1f} %" if share not in (0, 1) else f"{100 * share:.0f} %"


def chance(value: float | None) -> str:
    """Return a probability in percent, and as one in how many.

    >>> chance(0.05), chance(1.0), chance(None)
    ('5.0 % (1 in 20)', '100 %', 'unknown')
    """
    if value is None or value in (0, 1):
        return percent(value)
    return f"{percent(value)} (1 in {1 / value:.3g})"


def judged(verdict: str) -> Markup:
    """Return a verdict, which stands out by its colour as well."""
    return tag("span", verdict, class_=verdict)
