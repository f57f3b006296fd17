"""The sensitive values of windows and of what was published, as columns of a table of counts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.audit.columns import Array, canonical_text, encoded, is_missing, numbers, shared_codes
from shoal.spec.hierarchy import Domain, Range

__all__ = ["SensitiveValues", "read_values"]


@dataclass(frozen=True, slots=True, repr=False)
class SensitiveValues:
    """The different values of one attribute, in order, and which rows have which.

    Parameters
    ----------
    places
        Of each value: the number itself, or the leaf's code; of an open domain any number. A value
        outside the domain is infinite, a missing one NaN; both are at the end.
    arrived, shown
        The position in ``places`` of the value of each row that arrived, and of each that was
        published.
    n_outside, n_missing
        How many rows that arrived have a value outside the domain, or none.
    """

    places: NDArray[np.float64]
    arrived: NDArray[np.int64]
    shown: NDArray[np.int64]
    n_outside: int
    n_missing: int


def read_values(arrived: Array, shown: Array, domain: Domain | None) -> SensitiveValues:
    """Read the values of the rows that arrived and of those that were published.

    >>> values = read_values(pa.array(["2", "10", "10.0"]), pa.array([10, None]), Range(0, 99))
    >>> values.places.tolist(), values.arrived.tolist(), values.shown.tolist()
    ([2.0, 10.0, nan], [0, 1, 1], [1, 2])
    """
    found: tuple[NDArray[np.float64], ...]
    if domain is None:
        # Where values only have to be distinguished, a missing one is a value like any other.
        found = tuple(codes.astype(np.float64) for codes in shared_codes(arrived, shown))
    else:
        found = _placed(arrived, domain), _placed(shown, domain)
    places, position = np.unique(np.concatenate(found), return_inverse=True)
    return SensitiveValues(
        places,
        position[: len(arrived)],
        position[len(arrived) :],
        int(np.count_nonzero(np.isinf(found[0]))),
        int(np.count_nonzero(np.isnan(found[0]))),
    )


def _placed(array: Array, domain: Domain) -> NDArray[np.float64]:
    missing = is_missing(array)
    if isinstance(domain, Range):
        place = numbers(array)
        if pa.types.is_floating(array.type):
            missing |= np.isnan(place)
        inside = (place >= domain.lo) & (place <= domain.hi)
    else:
        indices, labels = encoded(array)
        # Text is a leaf as it is written; a number is written in one way only.
        texts = [
            label.strip() if isinstance(label, str) else canonical_text(label) for label in labels
        ]
        leaves = [domain.code(text) for text in texts]
        place = np.array([np.nan if leaf is None else leaf for leaf in leaves], dtype=np.float64)
        place = place[indices]
        inside = ~np.isnan(place)
    return np.where(missing, np.nan, np.where(inside, place, np.inf))
