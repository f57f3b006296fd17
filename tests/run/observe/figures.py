"""A run's figures, made up."""

from __future__ import annotations

import numpy as np

from shoal.metrics import Summary
from shoal.run.observe import Figures


def a_summary(n: int = 4) -> Summary:
    """Rows in two groups of 12 and 500 subjects, one of them by reuse, and two suppressed."""
    summary = Summary()
    summary.n_in, summary.n_quarantined, summary.n_held, summary.n_late = n + 5, 1, 2, 1
    summary.add(
        np.array([0] * (n - 1) + [1, 2, 2], dtype=np.int8),
        np.array([0.123456] * n + [1.0, 1.0]),
        np.array([5] * (n - 1) + [2_000, 9, 9]),
        np.array([0.05] * (n - 1) + [20.0, 9.0, 9.0]),
        np.array([20, 900]),
        np.array([12, 500]),
    )
    return summary


def some_figures(n: int = 4) -> Figures:
    return Figures.of(
        a_summary(n), algorithm="castle", k=10, lag=77, checkpoint_bytes=1000,
        checkpoint_seconds=0.25,
    )  # fmt: skip
