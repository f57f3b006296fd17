"""The input and the output on common axes, for the metrics of utility.

Made from tables (`Compared.from_tables`), or from the codes and decisions of an engine
(`Compared.from_decisions`), with the same result.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from shoal.engine.base import Decisions
from shoal.engine.kernels.arrays import Floats, Ints
from shoal.engine.space import Codes
from shoal.errors import ParameterError, did_you_mean
from shoal.metrics.axes import MISSING, Axis, sensitive_axis, sensitive_places
from shoal.metrics.reading import read_codes, read_sensitive, read_sides
from shoal.spec.hierarchy import Domain
from shoal.spec.policy import Missing
from shoal.spec.schema import Schema

__all__ = ["Compared"]


@dataclass(frozen=True, slots=True, repr=False)
class Compared:
    """Rows as they were and rows as they were published.

    Published rows aren't joined with original ones: no metric here needs that.

    Parameters
    ----------
    axes
        The line of each quasi attribute.
    sensitive
        That of the sensitive attribute; None where the schema has none.
    values
        Where each original row lies, by quasi attribute; NaN where a value is missing.
    secrets
        Where the sensitive value of each original row lies; NaN: missing; 0 if there is none.
    lo, hi
        The first and last place of each box, by quasi attribute; an empty side (of a value that
        was published as missing) is from infinity to minus infinity.
    boxes
        The box of each published row, in the order of the output.
    published_secrets
        Where the sensitive value of each published row lies.

    >>> from shoal.spec.hierarchy import Range
    >>> from shoal.spec.schema import Quasi
    >>> schema = Schema(subject=None, quasi=[Quasi("age", Range(0, 99, step=1))])
    >>> original = pa.table({"age": [31, 34, 47]})
    >>> published = pa.table({"age": ["[31, 34]", "[31, 34]"]})
    >>> Compared.from_tables(schema, original, published)
    Compared(3 rows, 2 published in 1 boxes)
    """

    axes: tuple[Axis, ...]
    sensitive: Axis | None
    values: Floats
    secrets: Floats
    lo: Floats
    hi: Floats
    boxes: Ints
    published_secrets: Floats

    def __repr__(self) -> str:
        # Everything else is values of people.
        return f"Compared({self.n_rows} rows, {self.n_published} published in {len(self.lo)} boxes)"

    @property
    def n_rows(self) -> int:
        """How many rows there were."""
        return len(self.values)

    @property
    def n_published(self) -> int:
        """How many rows were published."""
        return len(self.boxes)

    @classmethod
    def from_tables(
        cls,
        schema: Schema,
        original: pa.Table,
        published: pa.Table,
        *,
        sensitive: str | None = None,
    ) -> Compared:
        """Read an input and its output.

        Rows of the input that a run would quarantine are left out. Numbers must have been
        published as ranges or as bounds: a midpoint doesn't tell how wide its box was.

        Parameters
        ----------
        schema
            The columns.
        original, published
            The rows that were read and those that were written.
        sensitive
            The sensitive attribute that queries ask for; without it, the first of the schema.

        Raises
        ------
        ParameterError
            If a table lacks a column, or has labels that can't be read as sides of a box.
        """
        j = _chosen(schema, sensitive)
        codes, _ = read_codes(schema, original)
        lo, hi = read_sides(schema, published)
        secrets = None if j is None else read_sensitive(schema.sensitive[j], published)
        sides = np.concatenate([lo, hi], axis=1)
        different, boxes = np.unique(sides, axis=0, return_inverse=True)
        n_quasi = len(schema.quasi)
        return cls._of(
            schema, codes, j, different[:, :n_quasi], different[:, n_quasi:],
            boxes.reshape(-1).astype(np.int64), secrets,
        )  # fmt: skip

    @classmethod
    def from_decisions(
        cls,
        schema: Schema,
        codes: Codes,
        decisions: Iterable[Decisions],
        *,
        missing: Missing = "quarantine",
        sensitive: str | None = None,
    ) -> Compared:
        """Take all rows that an engine was given, and all its decisions.

        Parameters
        ----------
        schema
            The columns.
        codes
            The rows, from the first.
        decisions
            What the calls of the engine returned, in their order.
        missing
            What the policy says of missing values: with ``"maybe"`` they were published as missing.
        sensitive
            The sensitive attribute that queries ask for; without it, the first of the schema.
        """
        j = _chosen(schema, sensitive)
        n_quasi = len(schema.quasi)
        lows, highs = [np.empty((0, n_quasi))], [np.empty((0, n_quasi))]
        boxes, rows = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        n_boxes = 0
        for decided in decisions:
            out = decided.boxes >= 0
            gaps = decided.gaps[out] if missing == "maybe" else np.zeros(out.sum(), np.int64)
            # Rows of one box that lack different values are published differently.
            pairs = np.stack([decided.boxes[out], gaps], axis=1)
            different, at = np.unique(pairs, axis=0, return_inverse=True)
            box, lacking = different[:, 0], different[:, 1]
            is_gap = (lacking[:, None] >> np.arange(n_quasi)) & 1 == 1
            lows.append(np.where(is_gap, np.inf, decided.lo[box]))
            highs.append(np.where(is_gap, -np.inf, decided.hi[box]))
            boxes.append(n_boxes + at.reshape(-1))
            rows.append(decided.rows[out])
            n_boxes += len(box)
        published = np.concatenate(rows)
        return cls._of(
            schema, codes, j, np.concatenate(lows), np.concatenate(highs), np.concatenate(boxes),
            None if j is None else codes.sensitive[published, j],
        )  # fmt: skip

    @classmethod
    def _of(
        cls, schema: Schema, codes: Codes, j: int | None, lo: Floats, hi: Floats, boxes: Ints,
        secrets: Ints | None,
    ) -> Compared:  # fmt: skip
        axes = tuple(Axis.of(quasi.name, quasi.sided) for quasi in schema.quasi)
        if j is None or secrets is None:
            axis, before, after = None, np.zeros(len(codes.values)), np.zeros(len(boxes))
        else:
            attribute, own = schema.sensitive[j], codes.sensitive[:, j]
            domain: Domain | None = attribute.domain
            known = np.unique(own[own != MISSING])
            axis = sensitive_axis(attribute.name, domain, known)
            before = sensitive_places(axis, domain, own, known)
            after = sensitive_places(axis, domain, secrets, known)
        return cls(
            axes, axis, _placed(axes, codes.values), before, _placed(axes, lo), _placed(axes, hi),
            boxes, after,
        )  # fmt: skip

    def window(self, begin: int, end: int) -> Compared:
        """Return the rows from one position to another, of the input and of the output."""
        different, boxes = np.unique(self.boxes[begin:end], return_inverse=True)
        return replace(
            self,
            values=self.values[begin:end],
            secrets=self.secrets[begin:end],
            lo=self.lo[different],
            hi=self.hi[different],
            boxes=boxes.astype(np.int64),
            published_secrets=self.published_secrets[begin:end],
        )


def _placed(axes: tuple[Axis, ...], values: Floats) -> Floats:
    columns = [axis.places(values[:, d]) for d, axis in enumerate(axes)]
    return np.stack(columns, axis=1)


def _chosen(schema: Schema, sensitive: str | None) -> int | None:
    """Return the position of the sensitive attribute, or None if there is none."""
    names = [attribute.name for attribute in schema.sensitive]
    if sensitive is None:
        return 0 if names else None
    if sensitive not in names:
        raise ParameterError(
            "sensitive",
            "isn't a sensitive attribute of the schema",
            got=repr(sensitive),
            fix=did_you_mean(sensitive, names),
        )
    return names.index(sensitive)
