"""How good a run was: loss, delay, suppression, groups and reuse, counted as the stream goes by.

`Cost` (loss that grows with delay) and `Rounds` (in how many rounds a row takes part) are counted
from a trace, `Pollution` (values that are missing only as published) as the stream goes by. Every
one of these accumulators has bounded memory, however long the stream is.

What published data are still good for is measured afterwards, on a `Compared`: by `query_error`,
`windowed_query_error` and `cube_divergence`; and what they really tell by `exposure`, or
under z-anonymity by `cell_exposure`.
"""

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
from shoal.metrics.z.exposure import CellExposure, cell_exposure

__all__ = [
    "CellExposure",
    "Compared",
    "Cost",
    "CubeDivergence",
    "Exposure",
    "Pollution",
    "QueryError",
    "Rounds",
    "Summary",
    "WindowedQueryError",
    "cell_exposure",
    "cube_divergence",
    "exposure",
    "query_error",
    "summarize",
    "windowed_query_error",
]
