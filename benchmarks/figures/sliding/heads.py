"""What stands at the head of the page."""

from __future__ import annotations

from benchmarks.figures.sabre.heads import DATA_TEXT
from benchmarks.figures.sliding.settings import SlidingSizes

__all__ = ["SLIDING_HEAD"]

_SIZES = SlidingSizes()

SLIDING_HEAD = f"""\
# SABRE_W: the figures of the thesis

Made by `python -m benchmarks.figures sliding`; don't edit. The figures are those of chapter 6 of J.
Cao's thesis (NUS, 2010). Loss is the average information loss of §2.3, from 0 to 1. Numbers are
means over {_SIZES.seeds} seeds, ± half of the distance between the least and the largest (the bars
in the pictures). Whether a claim holds is computed from the numbers: a difference counts if it is
larger than the spreads of both sides together.

{DATA_TEXT}
- Streams have {_SIZES.rows:,} rows, in place of 500,000, in a random order, so that the longest
  window is a large part of its stream. Over which windows and advances the thesis goes can't be
  seen in its text. Why SABRE_W loses more than tMondrian_W is explained
  [beside SABRE](sabre.md#loss-by-the-order-of-groups).

Every run is judged before its numbers count, by a measure of its own that knows nothing of the
algorithms: that each row was decided once, that each group has at least k subjects, and that none
is farther than t from the window that it was formed under. A run that breaks this ends the making
of the page.
"""
