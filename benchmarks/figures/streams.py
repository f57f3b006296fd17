"""The streams of the figures: encoded once in a process, and then run with many knobs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from benchmarks.workloads import SHARED
from shoal.arrow.codec import Codec
from shoal.datasets import Dataset, adult, power_law, transactions
from shoal.engine.space import Codes
from shoal.spec.schema import Schema

__all__ = [
    "ADULT", "Adult", "PowerLaw", "Stream", "Transactions", "adult_quasi", "encoded", "stream_of",
]  # fmt: skip

ADULT = SHARED / "adult.csv"


@dataclass(frozen=True)
class Stream:
    """The rows of a stream as codes, and the schema that they follow."""

    schema: Schema
    codes: Codes

    def with_quasi(self, names: tuple[str, ...]) -> Stream:
        """The same rows with some of the quasi attributes, in this order."""
        quasi = {attribute.name: attribute for attribute in self.schema.quasi}
        places = [list(quasi).index(name) for name in names]
        schema = Schema(
            subject=self.schema.subject,
            quasi=[quasi[name] for name in names],
            sensitive=self.schema.sensitive,
        )
        values = np.ascontiguousarray(self.codes.values[:, places])
        return Stream(schema, self.codes._replace(values=values))


@dataclass(frozen=True)
class Adult:
    """UCI Adult in the order of the file: its first rows, with some quasi attributes."""

    rows: int
    quasi: tuple[str, ...]

    def dataset(self) -> Dataset:
        return _adult(self.rows)


@dataclass(frozen=True)
class PowerLaw:
    """Independent columns of 1…largest by a power law."""

    rows: int
    columns: int
    largest: int
    alpha: float
    seed: int

    @property
    def quasi(self) -> tuple[str, ...]:
        return tuple(f"a{column}" for column in range(1, self.columns + 1))

    def dataset(self) -> Dataset:
        return power_law(
            self.rows, self.columns, alpha=self.alpha, largest=self.largest, seed=self.seed
        )


@dataclass(frozen=True)
class Transactions:
    """Baskets of about ``dup`` items, one row each, of the people of UCI Adult."""

    customers: int
    dup: int
    quasi: tuple[str, ...]
    seed: int

    def dataset(self) -> Dataset:
        return transactions(
            self.customers, items=self.dup, people=_adult(self.customers), seed=self.seed
        )


@lru_cache(maxsize=1)
def _whole_adult() -> Dataset:
    return adult(ADULT)


def _adult(rows: int) -> Dataset:
    data = _whole_adult()
    return Dataset.from_table(data.table().slice(0, rows), data.schema, name=data.name)


def stream_of(spec: Adult | PowerLaw | Transactions) -> Stream:
    """Make a stream, or take the one that this process made last if only the quasi differ."""
    if isinstance(spec, PowerLaw):
        return _encoded(spec)
    return _encoded(replace(spec, quasi=adult_quasi())).with_quasi(spec.quasi)


def adult_quasi() -> tuple[str, ...]:
    """The ten quasi attributes of UCI Adult in the order of the thesis' Table 5.4."""
    return tuple(attribute.name for attribute in _whole_adult().schema.quasi)


@lru_cache(maxsize=2)
def _encoded(spec: Adult | PowerLaw | Transactions) -> Stream:
    return encoded(spec.dataset())


def encoded(data: Dataset) -> Stream:
    """All rows of a data set as codes."""
    codec = Codec(data.schema, key=bytes(8))
    parts = [codec.encode(batch).codes for batch in data.batches()]
    arrays = (np.concatenate(pieces) for pieces in zip(*parts, strict=True))
    return Stream(data.schema, Codes(*arrays))
