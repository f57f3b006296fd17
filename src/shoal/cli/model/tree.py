"""``shoal model tree``: how many samples the R-trees need for an error."""

from __future__ import annotations

import json

from shoal.cli.terminal import print_result
from shoal.errors import JobError, Problem
from shoal.models.tree import error_of, samples_for

__all__ = ["model_tree"]


def model_tree(
    *, error: float, probability: float, samples: int | None, quasi: int, window: int, as_json: bool
) -> int:
    """Print the samples for an error, or the error of some samples; return the exit code."""
    problems = [
        Problem(option, "must lie between 0 and 1", f"{value:g}")
        for option, value in (("--error", error), ("--probability", probability))
        if not 0.0 < value < 1.0
    ]
    if problems:
        raise JobError(problems)
    one = samples_for(error, probability)
    every = samples_for(error, probability, n_quasi=quasi, window=window)
    found: dict[str, float | int | None] = {
        "error": error,
        "probability": probability,
        "samples_for_one_leaf": one,
        "samples_for_all_leaves": every,
        "error_of_one_leaf": None,
        "error_of_all_leaves": None,
    }
    if samples is not None:
        found["error_of_one_leaf"] = error_of(samples, probability)
        found["error_of_all_leaves"] = error_of(samples, probability, n_quasi=quasi, window=window)
    if as_json:
        print_result(json.dumps(found))
        return 0
    sure = f"with a probability of {probability:g}"
    print_result(f"error of a leaf's share of the rows at most {error:g}, {sure}:")
    print_result(f"  samples = {one:,} for any one leaf")
    print_result(f"  samples = {every:,} for all leaves at once ({quasi} quasi, {window:,} rows)")
    if samples is not None:
        print_result(
            f"samples = {samples:,}: at most {found['error_of_one_leaf']:.4f} for any one leaf, "
            f"{found['error_of_all_leaves']:.4f} for all"
        )
    return 0
