"""Shopping baskets, one row per item: a stream with several rows for each person."""

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
"""The mean number of items that are bought together."""
SHARED = 0.5
"""The mean share of a pattern's items that come from the pattern before it."""
CORRUPTION = (0.5, 0.1)
"""Mean and deviation of how much of a pattern a customer leaves out."""
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
    """Make a stream of bought items, each with the quasi values of the person who bought it.

    This is the transaction stream of the thesis (section 5.7.1): every customer has a basket,
    and a basket of n different items is n rows, one after the other. Baskets follow the idea of
    the Quest generator: items are bought in patterns, patterns overlap and differ in popularity,
    and a customer leaves some items of a pattern out.

    The columns are ``person``, ``basket``, the quasi attributes, ``item``. The item is sensitive.
    The schema doesn't name the basket: published, it would link the rows of one person.

    Parameters
    ----------
    customers
        How many people buy something.
    items
        The mean number of items in a basket, from 1 to 100; a thousand are sold.
    people
        Where the quasi values come from, such as ``adult(path)``: customer i is row i. If there
        are more customers than rows, the others have the values of a row drawn at random. By
        default a census of as many people is made up.
    seed
        The same seed gives the same rows.
    batch_rows
        How many rows a batch has; never changes the rows themselves.

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
    taken = [name for name in names if name in OWN_COLUMNS]
    if taken:
        raise ParameterError(
            "transactions.people",
            f"has quasi attributes with names that the stream needs: {', '.join(taken)}",
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
    whose = np.arange(customers)
    beyond = whose >= people.n_rows
    whose[beyond] = rng.integers(0, people.n_rows, int(beyond.sum()))
    source = people

    def chunks() -> Iterator[pa.RecordBatch]:
        table = source.table().select(names).combine_chunks()
        sold = pa.array(labels)
        for start in range(0, len(basket), BATCH_ROWS):
            owner = basket[start : start + BATCH_ROWS]
            values = table.take(whose[owner]).combine_chunks()
            columns: dict[str, Any] = {"person": pa.array(owner), "basket": pa.array(owner)}
            columns |= {name: values[name].combine_chunks() for name in names}
            columns["item"] = sold.take(item[start : start + BATCH_ROWS])
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
    """The item sets that are bought together: all their items in a row, and where each begins."""
    lengths = 1 + rng.poisson(PATTERN_ITEMS - 1, N_PATTERNS)
    patterns: list[Ints] = []
    for length in lengths:
        pattern = np.zeros(0, dtype=np.int64)
        if patterns:
            share = min(1.0, float(rng.exponential(SHARED)))
            previous = rng.permutation(patterns[-1])
            pattern = previous[: round(share * min(int(length), len(previous)))]
        # Fresh items come from anywhere; a draw that is there already is simply dropped.
        fresh = rng.choice(N_ITEMS, int(length) - len(pattern), replace=False)
        patterns.append(np.unique(np.concatenate([pattern, fresh])))
    begins = np.cumsum([0, *(len(pattern) for pattern in patterns)])
    return np.concatenate(patterns), begins


def _baskets(rng: np.random.Generator, customers: int, items: float) -> tuple[Ints, Ints]:
    """Baskets of different items: for each row its basket and its item, by basket."""
    pattern_items, begins = _patterns(rng)
    chance = rng.exponential(1.0, N_PATTERNS)
    cumulative = np.cumsum(chance) / chance.sum()
    corruption = np.clip(rng.normal(*CORRUPTION, N_PATTERNS), 0.0, 0.9)
    wanted = np.minimum(1 + rng.poisson(items - 1, customers), N_ITEMS)
    # A row is the number basket × N_ITEMS + item, so that repetitions are equal numbers. In each
    # round every basket that isn't full takes one pattern.
    filled = np.zeros(0, dtype=np.int64)
    n_have = np.zeros(customers, dtype=np.int64)
    for _ in range(ROUNDS):
        hungry = np.flatnonzero(n_have < wanted)
        if not len(hungry):
            break
        pattern = np.searchsorted(cumulative[:-1], rng.random(len(hungry)), "right")
        lengths = begins[pattern + 1] - begins[pattern]
        ends = np.cumsum(lengths)
        offset = np.arange(ends[-1]) - np.repeat(ends - lengths, lengths)
        item = pattern_items[np.repeat(begins[pattern], lengths) + offset]
        bought = rng.random(len(item)) >= np.repeat(corruption[pattern], lengths)
        found = (np.repeat(hungry, lengths) * N_ITEMS + item)[bought]
        filled = _first_of_each(np.concatenate([filled, found]), wanted)
        n_have = np.bincount(filled // N_ITEMS, minlength=customers)
    else:
        # The popular patterns hold too few different items for the largest baskets.
        hungry = np.flatnonzero(n_have < wanted)
        shelves = rng.permuted(np.tile(np.arange(N_ITEMS), (len(hungry), 1)), axis=1)
        anything = (hungry[:, None] * N_ITEMS + shelves).ravel()
        filled = _first_of_each(np.concatenate([filled, anything]), wanted)
    ordered = filled[np.argsort(filled // N_ITEMS, kind="stable")]
    return ordered // N_ITEMS, ordered % N_ITEMS


def _first_of_each(rows: Ints, wanted: Ints) -> Ints:
    """Drop repetitions and what no longer fits into a basket; earlier rows stay."""
    _, first = np.unique(rows, return_index=True)
    rows = rows[np.sort(first)]
    order = np.argsort(rows // N_ITEMS, kind="stable")
    basket = rows[order] // N_ITEMS
    begins = np.searchsorted(basket, basket)
    fits = np.arange(len(basket)) - begins < wanted[basket]
    return rows[np.sort(order[fits])]
