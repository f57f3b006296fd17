"""Tables as Markdown that reads well in a terminal too, and pages with a part that is generated."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = ["measured_on", "met", "parts", "replace_parts", "replace_section", "spread", "table"]


def table(head: Sequence[str], rows: Sequence[Sequence[object]], *, numbers: bool = True) -> str:
    """A table; columns of numbers, which are all but the first, are set to the right.

    >>> print(table(["k", "loss"], [["10", 0.25]]))
    | k  | loss |
    |----|-----:|
    | 10 | 0.25 |
    """
    lines = [[str(cell) for cell in line] for line in (head, *rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    aligned = [str.ljust, *(str.rjust if numbers else str.ljust for _ in widths[1:])]
    rule = [
        "-" * (width + 1) + (":" if fit is str.rjust else "-")
        for width, fit in zip(widths, aligned, strict=True)
    ]
    texts = [
        "| "
        + " | ".join(fit(cell, n) for fit, cell, n in zip(aligned, line, widths, strict=True))
        + " |"
        for line in lines
    ]
    return "\n".join([texts[0], f"|{'|'.join(rule)}|", *texts[1:]])


def spread(sample: Mapping[str, Any], digits: int = 2) -> str:
    """A median, with the least and the most.

    >>> spread({"median": 2.5, "least": 2.0, "most": 1000.0}, 1)
    '2.5 (2.0 to 1,000.0)'
    """
    median, least, most = (f"{sample[name]:,.{digits}f}" for name in ("median", "least", "most"))
    return f"{median} ({least} to {most})"


def met(is_met: bool) -> str:
    """Whether a target is met; one that isn't stands out."""
    return "met" if is_met else "**not met**"


def measured_on(machine: Mapping[str, str], others: float) -> str:
    """What figures were measured on, while other programs used a share of the machine."""
    return (
        "Measured on {processor}, {cores} cores, with Python {python}, NumPy {numpy}, Numba "
        "{numba}, PyArrow {pyarrow}, while other programs used {others:.0%} of the machine. "
        "Medians, with minimum and maximum in brackets; ratios are per repeat."
    ).format(**machine, others=others)


def parts(
    results: Mapping[str, Any], sections: Mapping[str, tuple[str, Callable[[Any], str]]]
) -> dict[str, str]:
    """What was measured, part by part: its title, and the text."""
    return {
        title: measured_on(results["machine"], results["others"][part])
        + "\n\n"
        + tell(results[part])
        for part, (title, tell) in sections.items()
        if part in results
    }


def replace_section(path: Path, name: str, text: str) -> None:
    """Put text between the markers ``<!-- name:begin -->`` and ``<!-- name:end -->`` of a page."""
    before, _, after = _cut(path, name)
    path.write_text(f"{before}\n\n{text.strip()}\n\n{after}", encoding="utf-8")


def replace_parts(path: Path, name: str, parts: Mapping[str, str]) -> None:
    """Put texts under their titles (``### …``) between the markers, and leave other parts alone."""
    _, section, _ = _cut(path, name)
    head, *there = re.split(r"^### ", section, flags=re.MULTILINE)
    known = {title: text.strip() for title, _, text in (part.partition("\n") for part in there)}
    texts = [f"### {title}\n\n{text.strip()}" for title, text in (known | dict(parts)).items()]
    replace_section(path, name, "\n\n".join([head.strip(), *texts]))


def _cut(path: Path, name: str) -> tuple[str, str, str]:
    """A page up to a marker, what is between it and its end, and the rest."""
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    page = path.read_text(encoding="utf-8")
    if page.count(begin) != 1 or page.count(end) != 1 or page.index(begin) > page.index(end):
        raise SystemExit(f"{path}: has no lines '{begin}' and '{end}', in this order. Add them.")
    before, _, rest = page.partition(begin)
    section, _, after = rest.partition(end)
    return before + begin, section, end + after
