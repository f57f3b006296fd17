"""How good a run was: loss, delay, suppression, groups and reuse, counted as the stream goes by.

`Cost` (loss that grows with delay) and `Rounds` (in how many rounds a row takes part) are counted
from a trace, `Pollution` (values that are missing only as published) as the stream goes by.

Every accumulator has bounded memory, however long the stream is.
"""

from shoal.metrics.cost import Cost
from shoal.metrics.pollution import Pollution
from shoal.metrics.rounds import Rounds
from shoal.metrics.summary import Summary, summarize

__all__ = ["Cost", "Pollution", "Rounds", "Summary", "summarize"]
