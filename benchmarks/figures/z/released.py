"""Figure 2: which attributes are published at all."""

from __future__ import annotations

import numpy as np

from benchmarks.figures.model import Claim, Figure
from benchmarks.figures.z.settings import ZSizes, at_most, line, panel, verdict
from shoal.models.z import Scenario, published

__all__ = ["figure_2"]

#: The attribute, the z and the probability that the paper speaks of.
RANK, Z, PROBABILITY = 13, 100, 1e-6


def figure_2(sizes: ZSizes) -> Figure:
    """The probability that a subject publishes an attribute, over its rank."""
    lines = {z: _published(sizes, z) for z in sizes.few_z}
    places = [rank - 1 for rank in sizes.ranks]
    curves = [line(f"z = {z}", lines[z][places].tolist(), digits=6) for z in sizes.few_z]
    knees = [_knee(lines[1], lines[z]) for z in sizes.few_z[1:]]
    more = _published(sizes, Z, 2 * sizes.n_subjects)
    knee, far_knee = _knee(lines[1], lines[Z]), _knee(lines[1], more)
    below = int(np.argmax(lines[Z] < PROBABILITY)) + 1
    bound = at_most(float(lines[Z][RANK - 1]), PROBABILITY)
    return Figure(
        "2",
        "What is published of each attribute",
        f"{sizes.n_subjects:,} subjects, {sizes.many_attributes:,} attributes, Δt = 12. p_Y, the "
        "probability that a subject publishes an attribute in Δt; with z = 1 that is p_X. Both "
        "axes are logarithmic in the paper. A knee is the first rank that is published less than "
        "half as often as exposed.",
        (panel("over the rank", "rank", sizes.ranks, curves, what="p_Y", log=True),),
        (
            Claim(
                f"With z = {Z} the 13th attribute is published with a probability below 10⁻⁶.",
                bound[0],
                f"{bound[1]}; the first below is the {below}th",
            ),
            Claim(
                "It is exposed with probability 10⁻¹ (here: 0.05 to 0.2).",
                verdict(0.05 <= lines[1][RANK - 1] <= 0.2),
                f"{lines[1][RANK - 1]:.3f}",
            ),
            Claim(
                "A higher z moves the knee to attributes of a higher rank.",
                verdict(sorted(knees, reverse=True) == knees and len(set(knees)) == len(knees)),
                ", ".join(f"z = {z}: {at}" for z, at in zip(sizes.few_z[1:], knees, strict=True)),
            ),
            Claim(
                f"More subjects move the knee to the right (here: twice as many, z = {Z}).",
                verdict(far_knee > knee),
                f"from {knee} to {far_knee}",
            ),
        ),
        page="z",
        source="the paper",
    )


def _published(sizes: ZSizes, z: int, n_subjects: int | None = None) -> np.ndarray:
    scenario = Scenario.power_law(n_subjects or sizes.n_subjects, sizes.many_attributes, z=z)
    return published(scenario)


def _knee(exposed: np.ndarray, released: np.ndarray) -> int:
    """The first rank that is published less than half as often as it is exposed."""
    return int(np.argmax(released < exposed / 2)) + 1
