"""Write the trace of z-anonymity: a private line for each value of each row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from shoal.arrow.order import Departures
from shoal.arrow.trace import Lines, finite, known
from shoal.engine.decisions import MISSING
from shoal.engine.kernels.arrays import Floats, Ints
from shoal.spec.ladder import n_levels
from shoal.spec.schema import Schema

__all__ = ["ZTracer", "z_trace_schema"]

OUTCOMES = pa.array(["group", "suppressed", "missing", "quarantined"])
GROUP, SUPPRESSED, LACKING, QUARANTINED = range(4)


def z_trace_schema(subject: Any) -> pa.Schema:
    """Return the columns of a trace with a line for each value, given the subject's type."""
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


class ZTracer:
    """Write a line for each decided value, and one for each row that can't be used.

    Parameters
    ----------
    lines
        Takes the lines.
    subject
        The Arrow type of the subject.
    schema
        The attributes.
    """

    def __init__(self, lines: Lines, subject: Any, schema: Schema) -> None:
        self._lines = lines
        self._schema = z_trace_schema(subject)
        self.subject = subject
        self._names = pa.array([quasi.name for quasi in schema.quasi])
        self._n_levels = np.array([n_levels(quasi.domain) for quasi in schema.quasi])

    def decided(
        self, departures: Departures, inputs: Ints, arrived_s: Floats, subjects: Any, seq: Ints
    ) -> None:
        """Trace departures; ``inputs`` are positions in the input, ``seq`` in the output."""
        n, n_values = departures.levels.shape
        of_row = np.repeat(np.arange(n), n_values)
        of_value = np.tile(np.arange(n_values), n)
        levels = departures.levels.reshape(-1)
        outcomes = np.where(levels >= 0, GROUP, SUPPRESSED)
        outcomes[levels == MISSING] = LACKING
        loss = np.where(levels >= 0, levels / self._n_levels[of_value], 1.0)
        loss[levels == MISSING] = np.nan
        none = np.full(n * n_values, -1)
        self._lines.write(
            pa.record_batch(
                [
                    pa.array(inputs[of_row]),
                    subjects.take(pa.array(of_row)),
                    self._names.take(pa.array(of_value)),
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
        """Trace rows that couldn't be used."""
        n = len(inputs)
        known_columns = {
            "row": pa.array(inputs),
            "subject": subjects,
            "outcome": OUTCOMES.take(pa.array(np.full(n, QUARANTINED))),
        }
        self._lines.write(
            pa.record_batch(
                [known_columns.get(field.name, pa.nulls(n, field.type)) for field in self._schema],
                schema=self._schema,
            )
        )
