"""The section on UCI Adult, published by CASTLE and audited."""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.adult import Audited, audit_adult
from benchmarks.figures.sizes import Sizes
from benchmarks.figures.streams import ADULT

__all__ = ["audited", "audited_text"]


def audited(sizes: Sizes) -> Audited:
    """Publish and audit."""
    with tempfile.TemporaryDirectory(prefix="shoal-audit-") as folder:
        return audit_adult(ADULT, Path(folder), rows=sizes.rows, k=sizes.k, delay=sizes.delay)


def audited_text(found: Audited) -> str:
    """The section."""
    lines = [*found.summary.lines(), "", *str(found.report).splitlines()]
    return "\n\n".join(
        [
            "## UCI Adult, published and audited",
            f"From file to file with a trace, ten quasi attributes, k = {found.k}, "
            f"δ = {found.delay:,} rows. The audit shares no code with what it judges.",
            "\n".join(["```text", *lines, "```"]),
        ]
    )
