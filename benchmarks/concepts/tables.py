"""The tables of docs/ten-people.md, from what is computed about the ten."""

from __future__ import annotations

from benchmarks.concepts.people import (
    ARRIVALS,
    ATTACKS,
    DELAYS,
    PEOPLE,
    PROMISES,
    published,
    stays,
    values_at_once,
)
from benchmarks.markdown import table

__all__ = ["tables"]


def tables() -> dict[str, str]:
    """All tables, by the name of their place on the page."""
    return {
        "ten": _ten(),
        "delays": _delays(),
        "promises": _promises(),
        "together": _together(),
        "attacks": _attacks(),
    }


def _ten() -> str:
    rows = [
        [ARRIVALS.index(one.name) + 1, one.name, one.age, one.district, one.diagnosis]
        for one in sorted(PEOPLE, key=lambda one: ARRIVALS.index(one.name))
    ]
    return table(["comes", "name", "age", "district", "diagnosis"], rows, numbers=False)


def _delays() -> str:
    rows = []
    for delay in DELAYS:
        found = stays(delay)
        waits = [stay.left - stay.arrived for stay in found]
        out = sum(stay.group is None for stay in found)
        loss = sum(stay.loss for stay in found) / len(found)
        rows.append([delay, f"{sum(waits) / len(waits):.1f}", out, f"{loss:.2f}"])
    return table(["delay, rows", "mean wait, rows", "suppressed", "mean loss"], rows)


def _promises() -> str:
    rows = []
    for promise in PROMISES:
        found = published(promise)
        counts = ", ".join(str(len(group.people)) for group in found.groups)
        if promise == "nothing":
            counts = f"{len(found.groups)} times 1"
        rows.append(
            [
                promise,
                counts,
                f"{found.loss:.2f}",
                f"{found.closeness:.2f}",
                f"{found.likeness:.1f}",
            ]
        )
    head = ["promise", "people in each group", "mean loss", "farthest from all", "largest gain"]
    return table(head, rows)


def _together() -> str:
    """How many people share what is published under z, value by value and together."""
    rows = []
    for z in (2, 3):
        shown = values_at_once(z)
        both = [(name, cells) for name, cells in zip(ARRIVALS, shown, strict=True) if all(cells)]
        alone = [
            name
            for name, cells in both
            if sum((one.district, one.diagnosis) == cells for one in PEOPLE) == 1
        ]
        n_hidden = sum(cell is None for cells in shown for cell in cells)
        rows.append([f"z = {z}", n_hidden, len(both), ", ".join(alone) or "nobody"])
    head = ["promise", "hidden, of 20 values", "rows with both values", "alone with both"]
    return table(head, rows)


def _attacks() -> str:
    rows = []
    for name in ATTACKS:
        cells = []
        for promise in PROMISES:
            success = published(promise).attacks[name].success
            tried = success is not None and success.attempts
            assert success is not None or not tried
            cells.append(
                f"{success.successes:.2g} of {success.attempts}" if success and tried else "-"
            )
        rows.append([f"[{name}](attacks.md#{name})", *cells])
    return table(["attack", *PROMISES], rows)
