"""How good a run was: loss, delay, suppression, groups and reuse, counted as the stream goes by.

Every accumulator has bounded memory, however long the stream is.
"""

from shoal.metrics.summary import Summary, summarize

__all__ = ["Summary", "summarize"]
