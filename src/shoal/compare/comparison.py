"""The result of a comparison: all runs, their Pareto front and the recommended one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa

from shoal.compare.choice import GridRun, Recommendation, pareto_front, recommend
from shoal.compare.words import lines_of
from shoal.spec.policy import Policy

__all__ = ["Comparison"]


@dataclass(frozen=True, repr=False)
class Comparison:
    """A grid of runs, each measured and judged.

    ``print`` it for a table; in a notebook it draws itself. It has figures only, no value of a
    person.

    Parameters
    ----------
    runs
        The cells of the grid and what came of each, those that couldn't be run too.
    n_rows
        How many rows each of them had.
    own
        The policy that was asked for before the grid; None: none.
    interrupted
        Whether it was stopped before all cells were run.
    """

    runs: Sequence[GridRun]
    n_rows: int
    own: Policy | None = None
    interrupted: bool = False
    _to_frame: Callable[[pa.Table], Any] = field(default=lambda table: table, compare=False)

    @cached_property
    def front(self) -> frozenset[int]:
        """The places of the runs that no other beats in both loss and risk."""
        return pareto_front(self.runs)

    @cached_property
    def recommended(self) -> Recommendation | None:
        """The run that is recommended, with the reason in words.

        None if none keeps its promise, or if the grid was interrupted: what wasn't run may be
        better.
        """
        return None if self.interrupted else recommend(self.runs, self.own)

    @property
    def n_done(self) -> int:
        """How many cells were run."""
        return sum(run.figures is not None for run in self.runs)

    def records(self) -> list[dict[str, Any]]:
        """Return one dictionary for each cell: what was promised, and what came of it."""
        keys = list(dict.fromkeys(key for run in self.runs for key in run.cell.promise))
        chosen = self.recommended
        return [
            {
                "algorithm": run.cell.label,
                **{key: run.cell.promise.get(key) for key in keys},
                "status": run.outcome.status,
                "reason": run.outcome.reason or None,
                "pareto": place in self.front,
                "recommended": chosen is not None and chosen.place == place,
                "cached": run.outcome.cached,
                **(_NOTHING if run.figures is None else run.figures.as_dict()),
            }
            for place, run in enumerate(self.runs)
        ]

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON."""
        chosen = self.recommended
        return {
            "n_rows": self.n_rows,
            "interrupted": self.interrupted,
            "runs": self.records(),
            "recommended": None
            if chosen is None
            else {
                "algorithm": self.runs[chosen.place].cell.label,
                "promise": self.runs[chosen.place].cell.promise,
                "reason": " ".join(chosen.reason),
            },
        }

    def table(self) -> pa.Table:
        """Return one row for each cell, as an Arrow table; lists and losses by attribute flat."""
        records = [_flat(record) for record in self.records()]
        names = list(dict.fromkeys(name for record in records for name in record))
        columns = {name: [record.get(name) for record in records] for name in names}
        return pa.table({name: _column(values) for name, values in columns.items()})

    def frame(self) -> Any:
        """Return one row for each cell, as a frame of the kind that was compared."""
        return self._to_frame(self.table())

    def __repr__(self) -> str:
        return "\n".join(lines_of(self))

    def _repr_html_(self) -> str:
        from shoal.compare.page import notebook

        return notebook(self)


#: The figures of a cell that wasn't run.
_NOTHING: dict[str, Any] = {}


def _flat(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record without lists: of losses by attribute one column for each."""
    losses = record.get("loss_by_attribute") or {}
    plain = {
        name: value
        for name, value in record.items()
        if name not in ("loss_by_attribute", "spread", "waits", "wait_bounds")
    }
    spreads = record.get("spread") or {}
    return (
        plain
        | {f"loss_{name}": loss for name, loss in losses.items()}
        | {f"{name}_sd": spread for name, spread in spreads.items()}
    )


def _column(values: list[Any]) -> pa.Array:
    """Return a column; numbers and words in one column are all words."""
    kinds = {type(value) for value in values if value is not None}
    if str in kinds and len(kinds) > 1:
        values = [None if value is None else str(value) for value in values]
    elif kinds == {int, float}:
        values = [None if value is None else float(value) for value in values]
    return pa.array(values)
