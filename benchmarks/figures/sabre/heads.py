"""What stands at the head of the page."""

from __future__ import annotations

from benchmarks.figures.sabre.settings import SabreSizes
from benchmarks.figures.salaries import MOST_ROWS

__all__ = ["DATA_TEXT", "SABRE_HEAD"]

#: How this data differ from the thesis'.
DATA_TEXT = f"""\
- The thesis measures on CENSUS, which can't be had. Here it is `acs_gov_employees_2018`,
  {MOST_ROWS:,} government employees of whom a random sample is drawn for each seed: age, sex, years
  of education, marital status, race, nativity and economic region, in this order. The salary is cut
  into 50 classes of near equal frequency; equal salaries share a class. In the thesis there are 10
  work classes and 83 birth places in place of 2 nativities and 9 regions.
- Each row is a subject. Numbers have a step of 1. tIncognito halves their range, down to eighths.
- Times are processor seconds of the engine alone, from codes to decisions, compiled beforehand. The
  thesis measured Java on another machine, and its text has one number: SABRE-AK took no more than
  4 s for 100,000 rows."""

_SIZES = SabreSizes()

SABRE_HEAD = f"""\
# SABRE: the figures of the thesis

Made by `python -m benchmarks.figures sabre`; don't edit. The figures are those of chapter 3 of J.
Cao's thesis (NUS, 2010). Loss is the average information loss of §2.3, from 0 to 1. Numbers are
means over {_SIZES.seeds} seeds, unless one table is named, ± half of the distance between the least
and the largest (the bars in the pictures). Whether a claim holds is computed from the numbers: a
difference counts if it is larger than the spreads of both sides together.

{DATA_TEXT}
- Tables have {_SIZES.rows:,} rows, in place of 100,000, but where that is varied. Over which k and
  which fanouts the thesis goes can't be seen in its text; k = {_SIZES.k} is its default.

Every run is judged before its numbers count, by a measure of its own that knows nothing of the
algorithms: that each row was decided once, that each group has at least k subjects, and that none
is farther than t from its table. A run that breaks this ends the making of the page.
"""
