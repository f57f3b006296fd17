"""The result of a run: what it published, its figures, and its trace."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import pyarrow as pa

from shoal.arrow.release import Publish
from shoal.metrics import Summary
from shoal.metrics.wording import html_lines

__all__ = ["Result"]

F = TypeVar("F")


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Result(Generic[F]):
    """What a run published, and its figures.

    The repr and the view in a notebook show counts and figures, and no row. ``result["age"]`` and
    ``len(result)`` are those of the frame.

    Parameters
    ----------
    frame
        The published rows, of the kind that was given; None if they were written to an output.
    summary
        The figures: rows in, published, suppressed, quarantined and held; loss, delay, groups.
    trace
        A line for each input row: its group, and its place among the published rows. It undoes the
        anonymization. None if no trace was asked for.
    output
        Where the rows were written; None if they are in ``frame``.
    quarantine
        The file of the rows that couldn't be used, if there are any; it holds personal data.
    interrupted
        Whether the run was stopped before the end of its input.
    publish
        How the rows look, which an audit must know.
    """

    frame: F
    summary: Summary
    trace: pa.Table | None = None
    output: str | None = None
    quarantine: Path | None = None
    interrupted: bool = False
    publish: Publish | None = None

    def __getitem__(self, key: Any) -> Any:
        frame: Any = self.frame
        return frame[key]

    def __len__(self) -> int:
        frame: Any = self.frame
        return self.summary.n_published if frame is None else _n_rows(frame)

    def __repr__(self) -> str:
        return "\n".join([f"Result: {self._where()}", *(f"  {line}" for line in self._lines())])

    def _repr_html_(self) -> str:
        first, *others = self._lines()
        return html_lines([f"{self._where()}: {first}", *others])

    def _where(self) -> str:
        n_rows = f"{len(self):,} rows"
        if self.frame is None:
            return f"{n_rows} in {self.output}"
        kind = type(self.frame)
        module = kind.__module__.partition(".")[0]
        name = kind.__name__ if module == "builtins" else f"{module}.{kind.__name__}"
        return f"{n_rows} in a {name}"

    def _lines(self) -> list[str]:
        lines = self.summary.lines()
        if self.interrupted:
            lines.append("interrupted: it was stopped before the end of its input")
        if self.trace is not None:
            lines.append(f"trace: {self.trace.num_rows:,} lines; private")
        if self.quarantine is not None:
            lines.append(f"quarantine: {self.quarantine}; private")
        return lines


def _n_rows(frame: Any) -> int:
    return int(frame.num_rows) if hasattr(frame, "num_rows") else len(frame)
