"""How good a run was: loss, delay, suppression, groups and reuse, counted batch by batch.

A metric of a run is one module here: a `Metric` that is registered with `in_summary`, and so part
of every `Summary`. `Cost` (loss that grows with delay) and `Rounds` (in how many rounds a row takes
part) are counted from a trace, `Pollution` (values that are missing only as published) batch by
batch. All of these have bounded memory, however long the stream is.

What published data are still good for is measured afterwards, on a `Compared`: by `query_error`,
`windowed_query_error` and `cube_divergence`; and what they disclose by `exposure`, or under
z-anonymity by `value_exposure`. `uniqueness` counts in the input who is alone with their quasi
values.
"""

import importlib
import pkgutil

from shoal.metrics.base import Batch, Metric, in_summary
from shoal.metrics.closeness import Exposure, exposure
from shoal.metrics.compared import Compared
from shoal.metrics.cost import Cost
from shoal.metrics.cubes import CubeDivergence, cube_divergence
from shoal.metrics.pollution import Pollution
from shoal.metrics.queries import (
    QueryError,
    WindowedQueryError,
    query_error,
    windowed_query_error,
)
from shoal.metrics.rounds import Rounds
from shoal.metrics.summary import Summary, summarize
from shoal.metrics.uniqueness import Uniqueness, uniqueness
from shoal.metrics.z.exposure import ValueExposure, value_exposure

__all__ = [
    "Batch",
    "Compared",
    "Cost",
    "CubeDivergence",
    "Exposure",
    "Metric",
    "Pollution",
    "QueryError",
    "Rounds",
    "Summary",
    "Uniqueness",
    "ValueExposure",
    "WindowedQueryError",
    "cube_divergence",
    "exposure",
    "in_summary",
    "query_error",
    "summarize",
    "uniqueness",
    "value_exposure",
    "windowed_query_error",
]

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
