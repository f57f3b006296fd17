"""The audit of z-anonymity, where each cell is published by itself, at a rung of its ladder.

It needs the private trace with one line for each cell, and the original: how many people exposed a
value in a window can't be seen in the output, since most of them may be hidden there.
"""

from shoal.audit.z.evidence import CellEvidence, Count
from shoal.audit.z.run import judge
from shoal.audit.z.trace import read_cell_trace

__all__ = ["CellEvidence", "Count", "judge", "read_cell_trace"]
