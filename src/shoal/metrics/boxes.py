"""Metrics of published boxes: discernibility, the average group and the classification metric."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shoal.errors import ParameterError
from shoal.metrics.compared import Compared

__all__ = ["GroupsOf", "groups_of"]


@dataclass(frozen=True, slots=True)
class GroupsOf:
    """How far published rows are told apart by their boxes (thesis, §2.3).

    Parameters
    ----------
    n_rows, n_published, n_boxes
        Rows that were read, rows that were published, and the different boxes of these.
    discernibility
        The sum over all rows: as many as share the box of a published row, all rows for one that
        wasn't published (Bayardo, Agrawal: ICDE 2005).
    classification
        The share of rows that weren't published, or whose sensitive value isn't the most frequent
        one of their box: the error of who guesses it from the box (Iyengar: KDD 2002). None
        without a sensitive attribute.
    """

    n_rows: int
    n_published: int
    n_boxes: int
    discernibility: int
    classification: float | None

    @property
    def rows_per_box(self) -> float | None:
        """The average number of rows with one box; None if nothing was published."""
        return self.n_published / self.n_boxes if self.n_boxes else None

    def average(self, k: int) -> float | None:
        """Return the normalized average group, C_avg: 1 if all boxes have k rows.

        Raises
        ------
        ParameterError
            If k isn't at least 1.
        """
        if k < 1:
            raise ParameterError("k", "must be at least 1", got=k)
        rows = self.rows_per_box
        return None if rows is None else rows / k


def groups_of(compared: Compared) -> GroupsOf:
    """Measure the boxes of published rows; rows with the same box count as one group.

    Rows that joined a group later are in it, and groups with one box are one, as an outsider sees
    them.
    """
    _, group, rows = np.unique(compared.boxes, return_inverse=True, return_counts=True)
    n_missing = compared.n_rows - compared.n_published
    squares = int((rows.astype(np.int64) ** 2).sum())
    return GroupsOf(
        compared.n_rows,
        compared.n_published,
        len(rows),
        squares + n_missing * compared.n_rows,
        _classification(compared, group, n_missing),
    )


def _classification(
    compared: Compared, group: np.ndarray[tuple[int, ...], np.dtype[np.int64]], n_missing: int
) -> float | None:
    if compared.sensitive is None or not compared.n_rows:
        return None
    n_groups = int(group.max()) + 1 if len(group) else 0
    _, value = np.unique(compared.published_secrets, return_inverse=True)
    pairs, counts = np.unique(np.stack([group, value], axis=1), axis=0, return_counts=True)
    most = np.zeros(n_groups, np.int64)
    np.maximum.at(most, pairs[:, 0], counts)
    return float((compared.n_published - most.sum() + n_missing) / compared.n_rows)
