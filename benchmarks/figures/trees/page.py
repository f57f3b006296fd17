"""The page of the figures: its head, its sections and what they need."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.figures.model import Figure
from benchmarks.figures.trees.data import MOST_ROWS, NEEDS
from benchmarks.figures.trees.due import figure_due
from benchmarks.figures.trees.others import figure_9, figure_10, figure_11
from benchmarks.figures.trees.scale import figure_3, figure_4, figure_5
from benchmarks.figures.trees.settings import TreeSizes
from benchmarks.figures.trees.sweeps import figure_6, figure_7, figure_8

__all__ = ["FREE", "HEAD", "NEEDS", "SECTIONS"]

_SIZES = TreeSizes()

HEAD = f"""\
# Delay as part of the loss: the figures of the paper

Made by `python -m benchmarks.figures trees`; don't edit. The figures are those of Zhou and others
(EDBT 2009), §5: the minimum-delay method (`min-delay`), the basic method (`tree-basic`), the
density-aware method (`tree-density`) and the full method (`tree-full`). Numbers are means over
seeds, which are other rows in another order and other coins, ± half of the distance between the
least and the largest (the bars in the pictures). Whether a claim of the paper holds is computed
from the numbers: a difference counts if it is larger than the spreads of both sides together; what
vaguer words are taken for is stated beside them. The paper's pictures aren't in its text, so only
orderings, trends and the few numbers of its text can be compared.

- The *uncertainty penalty* loss(T) and the *information loss* cost(T) are those of Definition 3: a
  row's loss is a sum over its quasi attributes, so it can be up to their number; with each instant
  that a row waits it grows by α. The delay is given in rows. Rows that are still held at the end of
  the stream leave then, and count like all others.
- SAL can't be had. Here it is `acs_gov_employees_2018`, {MOST_ROWS:,} government employees, with a
  counterpart of each attribute in the paper's order: age, sex, marital status, economic region (in
  place of the birth place), level of education, major group of occupation (23, in place of 25) and
  race. As in the paper, rows that are equal in all seven are those of one person, who counts
  once in a group. SAL(n, d) has n rows, drawn at random, and the first d attributes.
- Categories are ordered as the leaves of their trees, as the paper has it; but what is published is
  a node of the tree, not any interval of leaves, and that is what is counted
  (`loss = "uncertainty"`). All methods lose a bit more by that.
- The paper doesn't say over how many rows it samples; here these are the latest
  {_SIZES.sampled:,}.
- **The paper's methods** draw the due time of a leaf once, when it forms: `due = "drawn"`. There is
  no bound, and hardly any need for one: {_SIZES.wide} is set here, and how often that was
  reached is stated under each figure. By default Shoal draws at every instant
  ([tree-1](../deviations.md#tree-1-current)). Then nothing leads the active set back, and a bound
  decides how long rows wait: {_SIZES.tight}, 1 / α, where a row has come to cost e times
  its loss. All figures have both, but for Figure 4, which has the first. Figure 5 also shows draws
  at every instant with the first bound: there cost(T) is decided by the few rows that wait longest.
  Which of the differences makes delays grow is shown first.
- The paper has 20,000 to 100,000 rows in Figures 4, 5 and 9 to 11, and 100,000 in Figures 6 to 8;
  here there are up to {_SIZES.all_rows[-1]:,} in Figures 4 and 5, {_SIZES.some_rows[-1]:,} in
  Figures 9 to 11, {_SIZES.few_rows:,} in Figures 6 and 7, and {_SIZES.rows:,} in Figure 8. Runs
  have {_SIZES.few_seeds} seeds, where the paper has 10; Figure 3 has {_SIZES.seeds}.

Every run is judged before its numbers count, by a measure of its own that knows nothing of the
algorithms: that each row was decided once, that each group has at least k different people, that
each box covers its rows, that it loses what the engine says, by Definition 2, and that no more rows
were held than allowed. A run that breaks this ends the making of the page.
"""

SECTIONS: dict[str, Callable[[bool], Figure]] = {
    name: lambda quick, make=make: make(TreeSizes.quick() if quick else TreeSizes())
    for name, make in {
        "trees-due": figure_due,
        "trees-3": figure_3,
        "trees-4": figure_4,
        "trees-5": figure_5,
        "trees-6": figure_6,
        "trees-7": figure_7,
        "trees-8": figure_8,
        "trees-9": figure_9,
        "trees-10": figure_10,
        "trees-11": figure_11,
    }.items()
}
#: Those that need no data.
FREE = frozenset({"trees-10", "trees-11"})
