"""Compare algorithms and promises on one's own data: a grid of runs, each measured and judged.

A `Cell` is an algorithm under a policy. `measure` runs a cell and returns its `Figures`;
`run_cells` does so for many cells, in several processes if asked, and `ResultCache` keeps what was
measured. A `Comparison` has all of them, marks the Pareto front and recommends one.

`shoal.compare` itself can be called: see `shoal.compare.comparing`.
"""
