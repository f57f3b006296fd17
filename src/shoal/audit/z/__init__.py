"""The audit of z-anonymity, where each cell is published on its own, at a level of its ladder.

It needs the private trace with one line for each cell, and the original: the output doesn't show
how many people exposed a value in a window, since most of them may be hidden.
"""

from shoal.audit.z.evidence import Count, ZEvidence
from shoal.audit.z.run import judge
from shoal.audit.z.trace import read_cell_trace

__all__ = ["Count", "ZEvidence", "judge", "read_cell_trace"]
