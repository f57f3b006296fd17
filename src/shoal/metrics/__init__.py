"""How good a run was: loss, delay, suppression, groups and reuse, counted batch by batch.

A metric of a run is one module here: a `Metric` that is registered with `in_summary`, and so part
of every `Summary`. `Cost` (loss that grows with delay) and `Rounds` (in how many rounds a row takes
part) are counted from a trace, `Pollution` (values that are missing only as published) batch by
batch. All of these have bounded memory, however long the stream is.

What published data are still good for is measured afterwards, on a `Compared`: by `query_error`,
`windowed_query_error`, `cube_divergence` and `groups_of`; and what they disclose by `exposure`, or
under z-anonymity by `value_exposure`. `loss_by_attribute` tells which attribute has lost how much.
`uniqueness` counts in the input who is alone with their quasi values, `risk` in the output how
likely people are found.
"""

import importlib
import pkgutil

from shoal.metrics.attributes import loss_by_attribute
from shoal.metrics.base import Batch, Metric, in_summary
from shoal.metrics.boxes import GroupsOf, groups_of
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
from shoal.metrics.risk import Risk, attribute_shares, risk
from shoal.metrics.rounds import Rounds
from shoal.metrics.summary import Summary, summarize
from shoal.metrics.uniqueness import Uniqueness, uniqueness
from shoal.metrics.workload import for_workload, workload_weights
from shoal.metrics.z.exposure import ValueExposure, value_exposure

__all__ = [
    "Batch",
    "Compared",
    "Cost",
    "CubeDivergence",
    "Exposure",
    "GroupsOf",
    "Metric",
    "Pollution",
    "QueryError",
    "Risk",
    "Rounds",
    "Summary",
    "Uniqueness",
    "ValueExposure",
    "WindowedQueryError",
    "attribute_shares",
    "cube_divergence",
    "exposure",
    "for_workload",
    "groups_of",
    "in_summary",
    "loss_by_attribute",
    "query_error",
    "risk",
    "summarize",
    "uniqueness",
    "value_exposure",
    "windowed_query_error",
    "workload_weights",
]

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
