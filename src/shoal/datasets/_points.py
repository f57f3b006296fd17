"""Generate points in a cube, uniform or Gaussian, whose density is known exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.datasets._dataset import BATCH_ROWS, Dataset, at_least
from shoal.spec.hierarchy import Range
from shoal.spec.schema import Quasi, Schema

__all__ = ["gaussian_points", "uniform_points"]

Floats = npt.NDArray[np.float64]

NAMES = ("x", "y", "z")
LOWEST, HIGHEST = 0.0, 10.0
MEANS = (5.0, 3.3, 6.6)
#: The second numbers in the paper are read as variances: that is the usual N(μ, σ²), all of them
#: are squares, and a deviation of 9 in a range of 10 would be close to uniform, which the paper
#: contrasts it with.
DEVIATIONS = (2.0, 3.0, 3.0)


def uniform_points(rows: int, *, seed: int = 0, batch_rows: int = BATCH_ROWS) -> Dataset:
    """Generate uniform points in a cube: ``x``, ``y`` and ``z`` from 0 to 10.

    These are the uniform data of Zhou et al. (EDBT 2009, section 5.2). Each row is a different
    subject.

    Parameters
    ----------
    rows
        How many rows.
    seed
        The same seed returns the same rows.
    batch_rows
        How many rows a batch has; it doesn't change the rows.

    >>> data = uniform_points(1000)
    >>> data.table().column_names, data.schema.quasi[0].domain
    (['x', 'y', 'z'], Range(0, 10))
    """
    at_least("uniform_points.rows", rows, 0)
    at_least("uniform_points.seed", seed, 0)

    def draw(rng: np.random.Generator, n: int) -> Floats:
        return rng.uniform(LOWEST, HIGHEST, (len(NAMES), n))

    return _points("uniform-points", "evenly spread", draw, rows, seed, batch_rows)


def gaussian_points(rows: int, *, seed: int = 0, batch_rows: int = BATCH_ROWS) -> Dataset:
    """Generate Gaussian points in a cube: ``x``, ``y`` and ``z`` are normal and independent.

    These are the Gaussian data of Zhou et al. (EDBT 2009, section 5.2): N(5, 4), N(3.3, 9) and
    N(6.6, 9), by mean and variance, in a domain from 0 to 10. Values outside are drawn again.
    Each row is a different subject.

    Parameters
    ----------
    rows
        How many rows.
    seed
        The same seed returns the same rows.
    batch_rows
        How many rows a batch has; it doesn't change the rows.

    >>> x = gaussian_points(1000).table()["x"].to_numpy()
    >>> bool(x.min() >= 0 and x.max() <= 10 and abs(x.mean() - 5) < 0.5)
    True
    """
    at_least("gaussian_points.rows", rows, 0)
    at_least("gaussian_points.seed", seed, 0)

    def draw(rng: np.random.Generator, n: int) -> Floats:
        means = np.repeat(np.array(MEANS)[:, None], n, axis=1)
        deviations = np.repeat(np.array(DEVIATIONS)[:, None], n, axis=1)
        values = rng.normal(means, deviations)
        # If values were clipped instead, one y and one z in seven would lie on a face of the cube.
        while (outside := (values < LOWEST) | (values > HIGHEST)).any():
            values[outside] = rng.normal(means[outside], deviations[outside])
        return values

    return _points("gaussian-points", "normal", draw, rows, seed, batch_rows)


def _points(
    name: str,
    spread: str,
    draw: Callable[[np.random.Generator, int], Floats],
    rows: int,
    seed: int,
    batch_rows: int,
) -> Dataset:
    """Return a dataset of points, drawn in chunks that don't depend on the batches."""

    def chunks() -> Iterator[pa.RecordBatch]:
        rng = np.random.default_rng(seed)
        for start in range(0, max(rows, 1), BATCH_ROWS):
            values = draw(rng, min(BATCH_ROWS, rows - start))
            yield pa.record_batch([pa.array(column) for column in values], names=list(NAMES))

    return Dataset(
        name=name,
        schema=Schema(None, [Quasi(column, Range(LOWEST, HIGHEST)) for column in NAMES]),
        description=f"{len(NAMES)} columns of numbers from {LOWEST:g} to {HIGHEST:g}, {spread}",
        n_rows=rows,
        chunks=chunks,
        batch_rows=batch_rows,
    )
