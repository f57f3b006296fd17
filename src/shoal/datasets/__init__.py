"""Example streams: seeded generators that need no file, and a loader of UCI Adult.

Every function returns a `Dataset`: a schema and Arrow batches that can be read repeatedly.
"""

from shoal.datasets._adult import adult
from shoal.datasets._census import census
from shoal.datasets._dataset import Dataset
from shoal.datasets._points import gaussian_points, uniform_points
from shoal.datasets._power_law import power_law
from shoal.datasets._transactions import transactions

__all__ = [
    "Dataset",
    "adult",
    "census",
    "gaussian_points",
    "power_law",
    "transactions",
    "uniform_points",
]
