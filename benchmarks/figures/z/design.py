"""Figures 3 and 4: over z and over the window, with simulations."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from benchmarks.figures.model import Claim, Curve, Figure, Reading, Verdict, below, rises
from benchmarks.figures.z.settings import ZSizes, about, line, panel, verdict
from shoal.models.z import exact, simulate

__all__ = ["figure_3", "figure_4"]

#: How many standard errors may lie between the model and the mean of simulations.
ERRORS = 3


def figure_3(sizes: ZSizes) -> Figure:
    """p_k-anon over z, by the model and by simulations."""
    runs = [simulate(sizes.scenario(), seed) for seed in sizes.seeds]
    model: dict[int, Curve] = {}
    seen: dict[int, list[Reading]] = {}
    for k in sizes.ks:
        shares = [exact(sizes.scenario(z=z, k=k)) for z in sizes.all_z]
        model[k] = line(f"k = {k}", shares)
        seen[k] = [
            Reading(tuple(run.anonymity_sets(z).share(k) for run in runs)) for z in sizes.all_z
        ]
    apart = [
        (abs(cell.mean - share.mean), _errors(cell, share.mean))
        for k in sizes.ks
        for cell, share in zip(seen[k], model[k].cells, strict=True)
    ]
    at = dict(zip(sizes.all_z, (cell.mean for cell in model[2].cells), strict=True))
    n_within = sum(errors <= ERRORS for _, errors in apart)
    claims = [
        Claim(f"The larger z, the higher p_k-anon (k = {k}).", *rises(model[k].cells))
        for k in sizes.ks
    ]
    claims += [
        Claim(
            "It grows from z = 100 on (here: by less than 0.01 until there, then by more).",
            verdict(at[100] - at[1] < 0.01 <= at[150] - at[100]),
            f"{at[1]:.3f} at 1, {at[100]:.3f} at 100, {at[150]:.3f} at 150",
        ),
        Claim("With z = 250 it is 0.8 (k = 2; here: within 0.05).", *about(at[250], 0.8, 0.05)),
        Claim(
            "With z above 350 it approaches 1 (here: at least 0.99).",
            verdict(at[400] >= 0.99),
            f"{at[350]:.4f} at 350, {at[400]:.4f} at 400",
        ),
        *(
            Claim(
                f"It is harder to find {k + 1} who are alike than {k}.",
                *below(model[k + 1].cells, model[k].cells),
            )
            for k in sizes.ks[:-1]
        ),
        Claim(
            "Simulations match the model almost perfectly (here: within three standard errors).",
            _matches(n_within, len(apart)),
            f"in {n_within} of {len(apart)} places; means at most "
            f"{max(gap for gap, _ in apart):.3f} apart",
        ),
    ]
    return Figure(
        "3",
        "p_k-anon over z",
        f"Table 2 of the paper: {sizes.n_subjects:,} subjects, {sizes.n_attributes} attributes of "
        f"rates 0.2/r, Δt = 12. Simulated with the seeds {sizes.seeds[0]} to {sizes.seeds[-1]}, "
        "mean ± half of the difference between the smallest and the largest.",
        (
            panel("(a) model", "z", sizes.all_z, [model[k] for k in sizes.ks]),
            panel(
                "(b) simulated", "z", sizes.all_z, [Curve(f"k = {k}", seen[k]) for k in sizes.ks]
            ),
        ),
        tuple(claims),
        page="z",
        source="the paper",
    )


def _matches(n_within: int, n: int) -> Verdict:
    if n_within == n:
        return "holds"
    return "holds in general" if 2 * n_within > n else "doesn't hold"


def _errors(cell: Reading, model: float) -> float:
    error = float(np.std(cell.values, ddof=1)) / math.sqrt(len(cell.values))
    gap = abs(cell.mean - model)
    return gap / error if error else (0.0 if gap < 1e-9 else math.inf)


def figure_4(sizes: ZSizes) -> Figure:
    """p_k-anon over the window."""
    curves = []
    for k in sizes.ks:
        shares = [exact(replace(sizes.scenario(k=k), window=window)) for window in sizes.windows]
        curves.append(line(f"k = {k}", shares))
    return Figure(
        "4",
        "p_k-anon over the window",
        "Table 2, with z = 150.",
        (panel("over Δt", "Δt", sizes.windows, curves),),
        tuple(
            Claim(
                f"The longer the window, the lower p_k-anon ({curve.label}).",
                *rises(curve.cells, falls=True),
            )
            for curve in curves
        ),
        page="z",
        source="the paper",
    )
