"""Figures 5 and 6: over the number of attributes and of subjects."""

from __future__ import annotations

from itertools import pairwise

from benchmarks.figures.model import Claim, Figure, below, rises
from benchmarks.figures.z.settings import ZSizes, line, panel, turns, verdict
from shoal.models.z import Scenario, entropy, exact, k_anonymity

__all__ = ["figure_5", "figure_6"]

#: Where z-anonymity is in place, in Figure 5.
ALL_Z = (1, 100, 150, 200)
#: Figure 6a.
SUBJECTS_Z = (20, 50, 150)


def figure_5(sizes: ZSizes) -> Figure:
    """p_k-anon and entropy over the number of attributes."""
    likely, entropies = [], []
    for z in ALL_Z:
        scenarios = [Scenario.power_law(sizes.n_subjects, n, z=z) for n in sizes.all_n_attributes]
        likely.append(line(f"z = {z}", [k_anonymity(one) for one in scenarios]))
        entropies.append(line(f"z = {z}", [entropy(one) for one in scenarios], digits=2))
    free, strict = likely[0].cells, likely[-1].cells
    few, many = sizes.all_n_attributes[-2:]
    n = sizes.all_n_attributes
    per_attribute = [cell.mean / count for cell, count in zip(entropies[0].cells, n, strict=True)]
    claims = [
        Claim("With few attributes p_k-anon is 1 (here: above 0.99 with one; all z).",
              verdict(all(curve.cells[0].mean > 0.99 for curve in likely)),
              f"at least {min(curve.cells[0].mean for curve in likely):.4f}"),
        Claim("Without z-anonymity it goes to 0 (here: below 0.01 at the end).",
              verdict(free[-1].mean < 0.01), f"{free[-1].mean:.5f} with {many} attributes"),
        Claim("With z-anonymity the number of attributes plays a marginal role (here: z = "
              f"{ALL_Z[-1]}, from {few} to {many} attributes less than 0.01).",
              verdict(abs(strict[-1].mean - strict[-2].mean) < 0.01),
              f"{strict[-2].mean:.3f} and {strict[-1].mean:.3f}"),
        *(Claim(f"Entropy grows with the attributes ({curve.label}).", *rises(curve.cells))
          for curve in entropies),
        Claim("It grows less than linearly (z = 1; here: less for each attribute).",
              verdict(sorted(per_attribute, reverse=True)[-1] == per_attribute[-1]),
              f"{max(per_attribute):.2f} nats an attribute at most, {per_attribute[-1]:.2f} with "
              f"{many}"),
        *(Claim(f"With z-anonymity entropy converges ({curve.label}; here: from {few} to {many} "
                "attributes by less than 1 %).",
                verdict(curve.cells[-1].mean <= 1.01 * curve.cells[-2].mean),
                f"{curve.cells[-2].mean:.2f} and {curve.cells[-1].mean:.2f}")
          for curve in entropies[1:]),
        *(Claim(f"The higher z, the less is revealed ({higher.label} and {lower.label}, with "
                f"{few} attributes and more).", *below(higher.cells[-2:], lower.cells[-2:]))
          for lower, higher in pairwise(entropies)),
    ]  # fmt: skip
    return Figure(
        "5",
        "p_k-anon and entropy over the number of attributes",
        f"{sizes.n_subjects:,} subjects, k = 2, Δt = 12. Bounds where there are more than 16 "
        "attributes, which are close. Entropy in nats.",
        (
            panel("(a) over A", "attributes", n, likely, log=True),
            panel("(b) over A", "attributes", n, entropies, what="entropy in nats", log=True),
        ),
        tuple(claims),
        page="z",
        source="the paper",
        one_axis=False,
    )


def figure_6(sizes: ZSizes) -> Figure:
    """p_k-anon over the number of subjects, with a fixed z and with one that grows."""
    n = sizes.all_n_subjects
    fixed = [
        line(f"z = {z}", [exact(Scenario.power_law(u, sizes.n_attributes, z=z)) for u in n])
        for z in SUBJECTS_Z
    ]
    grown = [
        line(f"k = {k}", [
            exact(Scenario.power_law(u, sizes.n_attributes, z=max(1, u // sizes.proportion), k=k))
            for u in n
        ])
        for k in sizes.ks
    ]  # fmt: skip
    claims = [
        *(Claim(f"With few subjects p_k-anon is high, falls, and rises again ({curve.label}).",
                *turns(curve.cells)) for curve in fixed),
        *(Claim(f"With z = U/{sizes.proportion} it grows with U ({curve.label}).",
                *rises(curve.cells)) for curve in grown),
        Claim("It is close to 1 with very many subjects (k = 2; here: above 0.95).",
              verdict(grown[0].cells[-1].mean > 0.95),
              f"{grown[0].cells[-1].mean:.3f} with {n[-1]:,}"),
        *(Claim(f"With k = {k + 1} it is lower than with k = {k}.",
                *below(grown[i + 1].cells, grown[i].cells))
          for i, k in enumerate(sizes.ks[:-1])),
    ]  # fmt: skip
    return Figure(
        "6",
        "p_k-anon over the number of subjects",
        f"{sizes.n_attributes} attributes, Δt = 12; (a) k = 2 and a fixed z, (b) z = U/"
        f"{sizes.proportion}. The paper doesn't say how few and how many it means: with 100 "
        "subjects and z = 20 p_k-anon has fallen already, and with a million it isn't near to 1 "
        "yet, so that the axis goes further at both ends.",
        (
            panel("(a) over U", "subjects", n, fixed, log=True),
            panel(f"(b) over U, z = U/{sizes.proportion}", "subjects", n, grown, log=True),
        ),
        tuple(claims),
        page="z",
        source="the paper",
    )
