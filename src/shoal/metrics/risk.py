"""How likely an attacker finds a person in what was published, counted in people.

The rows that an attacker can't distinguish are a class: those with equal labels, or those that left
together as well. Three attackers are usual (El Emam, *Guide to the De-Identification of Personal
Health Information*, 2013):

- the **prosecutor** knows that a person is in the release: 1 of the people of their class;
- the **journalist** knows only that they are in a population: 1 of its people who fit the class;
- the **marketer** links everybody, and counts how many of the links are right.

Somebody with several rows is found by one of them: the prosecutor and the journalist choose the
class with the fewest people. The marketer takes any row.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shoal.engine.kernels.arrays import Floats, Ints

__all__ = ["Risk", "attribute_shares", "covered", "risk"]

#: Up to this many attributes all subsets are compared; of more, random orders of them.
_MOST_EXACT = 6
_N_ORDERS = 24
#: The most rows over which the shares of attributes are measured.
_MOST_ROWS = 50_000
_SEED = 20_889


@dataclass(frozen=True, slots=True, repr=False)
class Risk:
    """The risk of each person, and the people of each class.

    Parameters
    ----------
    sizes
        The people of each class.
    worst
        For each person one divided by the people of the smallest class they are in.
    mean
        For each person the mean of that over their rows.
    row_share
        The largest share of the rows of a class that are one person's.
    """

    sizes: Ints
    worst: Floats
    mean: Floats
    row_share: float

    def __repr__(self) -> str:
        return f"Risk({len(self.worst):,} people in {len(self.sizes):,} classes)"

    @property
    def n_people(self) -> int:
        """The number of people: the denominator of the averages."""
        return len(self.worst)

    @property
    def highest(self) -> float | None:
        """The risk of the person who is easiest to find; None without people."""
        return float(self.worst.max()) if len(self.worst) else None

    @property
    def average(self) -> float | None:
        """The mean over people of their highest risk."""
        return float(self.worst.mean()) if len(self.worst) else None

    @property
    def marketer(self) -> float | None:
        """The share of people who are found if every person is linked to one of their rows."""
        return float(self.mean.mean()) if len(self.mean) else None

    @property
    def n_unique(self) -> int:
        """The number of people who are alone in some class."""
        return int(np.count_nonzero(self.worst >= 1.0))

    def as_dict(self) -> dict[str, float | int | None]:
        """Return the figures as plain values, for JSON."""
        return {
            "people": self.n_people,
            "classes": len(self.sizes),
            "smallest_class": int(self.sizes.min()) if len(self.sizes) else None,
            "highest": self.highest,
            "average": self.average,
            "marketer": self.marketer,
            "unique": self.n_unique,
            "highest_row_share": self.row_share,
        }


def risk(classes: Ints, people: Ints, population: Ints | None = None) -> Risk:
    """Measure the risk of each person.

    Parameters
    ----------
    classes, people
        The class of each row, numbered from 0 without gaps, and whose it is.
    population
        For the journalist: how many people of the population fit each class. Who is in the release
        is in the population, so fewer than in the release count as that many.

    >>> found = risk(np.array([0, 0, 0, 1, 1]), np.array([7, 7, 8, 8, 9]))
    >>> found.sizes.tolist(), found.highest, round(found.row_share, 2)
    ([2, 2], 0.5, 0.67)
    >>> risk(np.array([0, 0]), np.array([7, 8]), np.array([10])).highest
    0.1
    """
    _, person = np.unique(people, return_inverse=True)
    n_people = int(person.max(initial=-1)) + 1
    n_classes = int(classes.max(initial=-1)) + 1
    pairs, n_of_pair = np.unique(classes * max(n_people, 1) + person, return_counts=True)
    of_class, of_person = np.divmod(pairs, max(n_people, 1))
    sizes = np.bincount(of_class, minlength=n_classes).astype(np.int64)
    n_rows = np.bincount(classes, minlength=n_classes)
    chance = 1.0 / np.maximum(sizes, 0 if population is None else population)
    worst = np.zeros(n_people)
    np.maximum.at(worst, of_person, chance[of_class])
    total = np.bincount(of_person, chance[of_class] * n_of_pair, minlength=n_people)
    share = float((n_of_pair / n_rows[of_class]).max(initial=0.0))
    return Risk(sizes, worst, total / np.bincount(person, minlength=n_people), share)


def covered(lo: Floats, hi: Floats, values: Floats, people: Ints) -> Ints:
    """Return how many people of a population have values inside each box.

    A value that is missing, or a side without bounds, fits everything.

    >>> ages = np.array([[30.0], [35.0], [35.0], [60.0]])
    >>> covered(np.array([[30.0]]), np.array([[40.0]]), ages, np.array([0, 1, 1, 2]))
    array([2])
    """
    found = np.empty(len(lo), np.int64)
    known = ~np.isnan(values)
    for i, (low, high) in enumerate(zip(lo, hi, strict=True)):
        inside = ((values >= low) & (values <= high)) | ~known | (low > high)
        found[i] = len(np.unique(people[inside.all(axis=1)]))
    return found


def attribute_shares(columns: Sequence[Ints], people: Ints) -> list[float]:
    """Return which part of the average risk each attribute makes: its Shapley value.

    How much an attribute adds depends on which others are known. Its value is the mean of what it
    adds over all orders in which attributes become known; all values together are what the average
    risk exceeds that of an attacker who knows nothing. Of more than 6 attributes some orders are
    drawn, with a fixed seed.

    Parameters
    ----------
    columns
        For each attribute the code of its value, by row.
    people
        Whose each row is.

    >>> name, sex = np.array([0, 1, 2, 3]), np.array([0, 0, 1, 1])
    >>> attribute_shares([name, sex], np.arange(4))
    [0.625, 0.125]
    """
    if len(people) > _MOST_ROWS:
        rows = np.random.default_rng(_SEED).permutation(len(people))[:_MOST_ROWS]
        columns, people = [column[rows] for column in columns], people[rows]
    n, known = len(columns), {frozenset[int](): 0.0}
    known[frozenset()] = _average([], people)

    def value(subset: frozenset[int]) -> float:
        if subset not in known:
            known[subset] = _average([columns[i] for i in sorted(subset)], people)
        return known[subset]

    if n <= _MOST_EXACT:
        orders = list(itertools.permutations(range(n)))
    else:
        random = np.random.default_rng(_SEED)
        orders = [tuple(random.permutation(n).tolist()) for _ in range(_N_ORDERS)]
    added = np.zeros(n)
    for order in orders:
        before: frozenset[int] = frozenset()
        for i in order:
            added[i] += value(before | {i}) - value(before)
            before |= {i}
    return [float(value) for value in added / max(1, len(orders))]


def _average(columns: Sequence[Ints], people: Ints) -> float:
    classes = np.zeros(len(people), np.int64)
    for column in columns:
        joint = classes * (int(column.max(initial=0)) + 1) + column
        classes = np.unique(joint, return_inverse=True)[1]
    return risk(classes, people).average or 0.0
