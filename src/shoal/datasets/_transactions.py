"""Generate shopping baskets with one row per item, so that a person has several rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.datasets._census import census
from shoal.datasets._dataset import BATCH_ROWS, Dataset, at_least
from shoal.errors import ParameterError
from shoal.spec.hierarchy import Hierarchy
from shoal.spec.schema import Schema, Sensitive

__all__ = ["transactions"]

Ints = npt.NDArray[np.int64]

N_ITEMS = 1000
N_PATTERNS = 400
MOST_ITEMS = 100
PATTERN_ITEMS = 4.0
"""The mean number of items in a pattern."""
SHARED = 0.5
"""The mean share of a pattern's items that come from the pattern before it."""
CORRUPTION = (0.5, 0.1)
"""Mean and deviation of the share of a pattern that a customer omits."""
ROUNDS = 200
OWN_COLUMNS = ("person", "basket", "item")


def transactions(
    customers: int,
    *,
    items: float = 10.0,
    people: Dataset | None = None,
    seed: int = 0,
    batch_rows: int = BATCH_ROWS,
) -> Dataset:
    """Generate a stream of bought items, each with the quasi values of the person who bought it.

    This is the transaction stream of the thesis (section 5.7.1): every customer has a basket,
    and a basket of n different items is n consecutive rows. Baskets follow the idea of
    the Quest generator: items are bought in patterns, patterns overlap and differ in popularity,
    and a customer omits some items of a pattern.

    The columns are ``person``, ``basket``, the quasi attributes, ``item``. The item is sensitive.
    The schema doesn't name the basket: published, it would link the rows of one person.

    Parameters
    ----------
    customers
        The number of customers.
    items
        The mean number of items in a basket, from 1 to 100; there are 1000 different items.
    people
        The source of the quasi values, such as ``adult(path)``: customer i is row i. If there are
        more customers than rows, the others get the values of a random row. By default a census
        of that many people.
    seed
        The same seed returns the same rows.
    batch_rows
        How many rows a batch has; it doesn't change the rows.

    >>> stream = transactions(100, items=5, seed=1)
    >>> stream.schema.subject, stream.schema.payload
    ('person', ('item',))
    >>> stream.table().column_names[:3]
    ['person', 'basket', 'age']
    """
    at_least("transactions.customers", customers, 1)
    at_least("transactions.seed", seed, 0)
    if not (math.isfinite(items) and 1 <= items <= MOST_ITEMS):
        raise ParameterError(
            "transactions.items", f"must be a number from 1 to {MOST_ITEMS}", got=items
        )
    if people is None:
        people = census(customers, subjects=customers, seed=seed)
    names = [attribute.name for attribute in people.schema.quasi]
    reserved = [name for name in names if name in OWN_COLUMNS]
    if reserved:
        raise ParameterError(
            "transactions.people",
            f"has quasi attributes with names that the stream needs: {', '.join(reserved)}",
            fix="Rename them",
        )
    if not people.n_rows:
        raise ParameterError("transactions.people", "has no rows", fix="Give at least one person")
    labels = [f"item-{number:04d}" for number in range(N_ITEMS)]
    schema = Schema(
        subject="person",
        quasi=people.schema.quasi,
        sensitive=[Sensitive("item", Hierarchy.flat(labels))],
    )
    rng = np.random.default_rng(seed)
    basket, item = _baskets(rng, customers, items)
    source_row = np.arange(customers)
    beyond = source_row >= people.n_rows
    source_row[beyond] = rng.integers(0, people.n_rows, int(beyond.sum()))
    source = people

    def chunks() -> Iterator[pa.RecordBatch]:
        table = source.table().select(names).combine_chunks()
        item_labels = pa.array(labels)
        for start in range(0, len(basket), BATCH_ROWS):
            owner = basket[start : start + BATCH_ROWS]
            values = table.take(source_row[owner]).combine_chunks()
            columns: dict[str, Any] = {"person": pa.array(owner), "basket": pa.array(owner)}
            columns |= {name: values[name].combine_chunks() for name in names}
            columns["item"] = item_labels.take(item[start : start + BATCH_ROWS])
            yield pa.record_batch(columns)

    return Dataset(
        name="transactions",
        schema=schema,
        description=f"baskets of about {items:g} items of {customers} customers ({people.name})",
        n_rows=len(basket),
        chunks=chunks,
        batch_rows=batch_rows,
    )


def _patterns(rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Return the item sets that are bought together: all their items, and where each set begins."""
    lengths = 1 + rng.poisson(PATTERN_ITEMS - 1, N_PATTERNS)
    patterns: list[Ints] = []
    for length in lengths:
        pattern = np.zeros(0, dtype=np.int64)
        if patterns:
            share = min(1.0, float(rng.exponential(SHARED)))
            previous = rng.permutation(patterns[-1])
            pattern = previous[: round(share * min(int(length), len(previous)))]
        # New items are drawn from all; one that the pattern already has is dropped.
        fresh = rng.choice(N_ITEMS, int(length) - len(pattern), replace=False)
        patterns.append(np.unique(np.concatenate([pattern, fresh])))
    begins = np.cumsum([0, *(len(pattern) for pattern in patterns)])
    return np.concatenate(patterns), begins


def _baskets(rng: np.random.Generator, customers: int, items: float) -> tuple[Ints, Ints]:
    """Return the basket and the item of each row, sorted by basket."""
    pattern_items, begins = _patterns(rng)
    chance = rng.exponential(1.0, N_PATTERNS)
    cumulative = np.cumsum(chance) / chance.sum()
    corruption = np.clip(rng.normal(*CORRUPTION, N_PATTERNS), 0.0, 0.9)
    wanted = np.minimum(1 + rng.poisson(items - 1, customers), N_ITEMS)
    # A row is the number basket × N_ITEMS + item, so that duplicates are equal numbers. In each
    # round every basket that isn't full gets one pattern.
    filled = np.zeros(0, dtype=np.int64)
    n_items = np.zeros(customers, dtype=np.int64)
    for _ in range(ROUNDS):
        unfilled = np.flatnonzero(n_items < wanted)
        if not len(unfilled):
            break
        pattern = np.searchsorted(cumulative[:-1], rng.random(len(unfilled)), "right")
        lengths = begins[pattern + 1] - begins[pattern]
        ends = np.cumsum(lengths)
        offset = np.arange(ends[-1]) - np.repeat(ends - lengths, lengths)
        item = pattern_items[np.repeat(begins[pattern], lengths) + offset]
        bought = rng.random(len(item)) >= np.repeat(corruption[pattern], lengths)
        found = (np.repeat(unfilled, lengths) * N_ITEMS + item)[bought]
        filled = _first_of_each(np.concatenate([filled, found]), wanted)
        n_items = np.bincount(filled // N_ITEMS, minlength=customers)
    else:
        # The popular patterns have too few different items for the largest baskets.
        unfilled = np.flatnonzero(n_items < wanted)
        shuffled = rng.permuted(np.tile(np.arange(N_ITEMS), (len(unfilled), 1)), axis=1)
        anything = (unfilled[:, None] * N_ITEMS + shuffled).ravel()
        filled = _first_of_each(np.concatenate([filled, anything]), wanted)
    ordered = filled[np.argsort(filled // N_ITEMS, kind="stable")]
    return ordered // N_ITEMS, ordered % N_ITEMS


def _first_of_each(rows: Ints, wanted: Ints) -> Ints:
    """Drop duplicates and items that don't fit into a basket; earlier rows are kept."""
    _, first = np.unique(rows, return_index=True)
    rows = rows[np.sort(first)]
    order = np.argsort(rows // N_ITEMS, kind="stable")
    basket = rows[order] // N_ITEMS
    begins = np.searchsorted(basket, basket)
    fits = np.arange(len(basket)) - begins < wanted[basket]
    return rows[np.sort(order[fits])]
