"""The trace of rows whose values are published one by one: a private line for each cell."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from shoal.arrow.order import Departures
from shoal.arrow.trace import Lines, finite, known
from shoal.engine.decisions import MISSING
from shoal.engine.kernels.arrays import Floats, Ints
from shoal.spec.ladder import n_rungs
from shoal.spec.schema import Schema

__all__ = ["CellTracer", "cell_trace_schema"]

OUTCOMES = pa.array(["group", "suppressed", "missing", "quarantined"])
GROUP, SUPPRESSED, LACKING, QUARANTINED = range(4)


def cell_trace_schema(subject: Any) -> pa.Schema:
    """The columns of a trace with a line for each cell, with the Arrow type of the subject."""
    whole, number = pa.int64(), pa.float64()
    return pa.schema(
        [
            ("row", whole),
            ("subject", subject),
            ("attribute", pa.string()),
            ("outcome", pa.string()),
            ("arrived", whole),
            ("published", whole),
            ("arrived_s", number),
            ("published_s", number),
            ("group", whole),
            ("window", whole),
            ("level", whole),
            ("z", whole),
            ("loss", number),
            ("seq", whole),
        ]
    )


class CellTracer:
    """Write a line for each cell that is decided, and one for each row that can't be used.

    Parameters
    ----------
    lines
        Where they go.
    subject
        The Arrow type of the subject.
    schema
        The attributes.
    """

    def __init__(self, lines: Lines, subject: Any, schema: Schema) -> None:
        self._lines = lines
        self._schema = cell_trace_schema(subject)
        self.subject = subject
        self._names = pa.array([quasi.name for quasi in schema.quasi])
        self._rungs = np.array([n_rungs(quasi.domain) for quasi in schema.quasi])

    def decided(
        self, departures: Departures, inputs: Ints, arrived_s: Floats, subjects: Any, seq: Ints
    ) -> None:
        """Rows leave: ``inputs`` are their positions in the input, ``seq`` in the output."""
        n, n_cells = departures.levels.shape
        of_row = np.repeat(np.arange(n), n_cells)
        of_cell = np.tile(np.arange(n_cells), n)
        levels = departures.levels.reshape(-1)
        outcomes = np.where(levels >= 0, GROUP, SUPPRESSED)
        outcomes[levels == MISSING] = LACKING
        loss = np.where(levels >= 0, levels / self._rungs[of_cell], 1.0)
        loss[levels == MISSING] = np.nan
        none = np.full(n * n_cells, -1)
        self._lines.write(
            pa.record_batch(
                [
                    pa.array(inputs[of_row]),
                    subjects.take(pa.array(of_row)),
                    self._names.take(pa.array(of_cell)),
                    OUTCOMES.take(pa.array(outcomes)),
                    known(departures.rows[of_row]),
                    known(departures.published[of_row]),
                    finite(arrived_s[of_row]),
                    finite(departures.published_s[of_row]),
                    known(none),
                    known(none),
                    known(levels),
                    known(departures.z[of_row]),
                    finite(loss),
                    known(seq[of_row]),
                ],
                schema=self._schema,
            )
        )

    def quarantined(self, inputs: Ints, subjects: Any) -> None:
        """Rows that couldn't be used."""
        n = len(inputs)
        told = {
            "row": pa.array(inputs),
            "subject": subjects,
            "outcome": OUTCOMES.take(pa.array(np.full(n, QUARANTINED))),
        }
        self._lines.write(
            pa.record_batch(
                [told.get(field.name, pa.nulls(n, field.type)) for field in self._schema],
                schema=self._schema,
            )
        )
