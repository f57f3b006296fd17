"""Figure C.10: the model against simulations, one by one, and how far off it is over z."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from benchmarks.figures.model import Claim, Curve, Figure, Reading
from benchmarks.figures.z.settings import ZSizes, line, panel, verdict
from shoal.models.z import approximate, exact, simulate, simulated_shares

__all__ = ["figure_c_10"]

#: What the paper says its means and its standard deviation are.
GAP, DEVIATION = 0.005, 0.04
#: This many times the standard deviation of ten bound the true one, with a confidence of 95 %.
LEAST, MOST = 0.69, 1.83
#: How many standard errors a difference may be.
ERRORS = 3


@dataclass(frozen=True)
class Bias:
    """How much more subjects are k-anonymous in simulations than by the model."""

    z: int
    mean: float
    error: float

    @property
    def reading(self) -> Reading:
        margin = ERRORS * self.error
        return Reading((self.mean - margin, self.mean + margin), digits=4)


def figure_c_10(sizes: ZSizes) -> Figure:
    """p_k-anon of ten simulations, exactly and approximately."""
    scenario = sizes.scenario()
    seen = simulated_shares(scenario, sizes.seeds)
    mean, deviation = float(seen.mean()), float(seen.std(ddof=1))
    model, near = exact(scenario), approximate(scenario)
    error = deviation / math.sqrt(len(seen))
    errors = abs(mean - model) / error
    biases = _biases(sizes)
    within = [one for one in biases if abs(one.mean) <= ERRORS * one.error]
    above = [one for one in biases if one.mean < -ERRORS * one.error]
    largest = max(biases, key=lambda one: abs(one.mean))
    n = len(seen)
    curves = [
        line("simulated", seen.tolist()),
        line("mean of all", [mean] * n),
        line("exact", [model] * n),
        line("approximated", [near.probability] * n),
    ]
    claims = (
        Claim(f"The mean of the simulations is within {GAP:g} of the exact model.",
              verdict(abs(mean - model) <= GAP), f"{mean:.4f} and {model:.4f}"),
        Claim("Their standard deviation is 0.04 (here: within what ten seeds can tell, 0.69 to "
              "1.83 times theirs).",
              verdict(LEAST * deviation <= DEVIATION <= MOST * deviation), f"{deviation:.3f}"),
        Claim("Exact and approximated model return the same (here: within 0.001).",
              verdict(abs(near.probability - model) <= 1e-3),
              f"{model:.5f} and {near.probability:.5f} with a mass of {near.mass:.3f}"),
        Claim("(Not in the paper) With z = 150 the model is within three standard errors of the "
              "mean.", verdict(errors <= ERRORS), f"{errors:.2f} standard errors of {error:.4f}"),
        Claim(f"(Not in the paper) With {sizes.more_seeds} other seeds it is so under every z.",
              verdict(len(within) == len(biases)),
              f"in {len(within)} of {len(biases)}; {largest.mean:+.4f} at most, "
              f"with z = {largest.z}"),
        Claim("(Not in the paper) Where it isn't, the model promises too little, not too much.",
              verdict(not above), f"too much in {len(above)} of {len(biases)}"),
    )  # fmt: skip
    return Figure(
        "C.10",
        "The model against simulations",
        "Table 2, (a) with z = 150. Each simulation lasts two windows, the first of which is "
        "discarded; all subjects count, also those who publish nothing. "
        f"θ₁ = {near.theta_1:g}, θ₂ = {near.theta_2:.3g}: {near.n_attributes} effective attributes "
        f"and {near.n_realizations:,} sets. (b) has the mean of {sizes.more_seeds} other seeds "
        "less the model, ± three standard errors. The model assumes that an attribute passes or "
        "not for each subject independently. In reality all see the same counts: an attribute near "
        "the threshold passes for nearly all or for nearly none, which leaves subjects more alike. "
        "So the standard deviation between seeds is larger, too, than the "
        f"{math.sqrt(model * (1 - model) / scenario.n_subjects):.3f} of independent subjects.",
        (
            panel("(a) by seed", "seed", [float(seed) for seed in sizes.seeds], curves),
            panel(
                "(b) over z", "z", sizes.all_z,
                [Curve("simulated less model", [one.reading for one in biases])],
                what="difference",
            ),
        ),
        claims,
        page="z",
        source="the paper",
        one_axis=False,
    )  # fmt: skip


def _biases(sizes: ZSizes) -> list[Bias]:
    first = len(sizes.seeds)
    runs = [simulate(sizes.scenario(), seed) for seed in range(first, first + sizes.more_seeds)]
    found = []
    for z in sizes.all_z:
        shares = np.array([run.anonymity_sets(z).share(2) for run in runs])
        error = float(shares.std(ddof=1)) / math.sqrt(len(runs))
        found.append(Bias(z, float(shares.mean()) - exact(sizes.scenario(z=z)), error))
    return found
