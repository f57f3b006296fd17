"""Figures 7 and 8: two classes of subjects, of unlike activity or of unlike interests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from benchmarks.figures.model import Claim, Curve, Figure, Panel, below, rises
from benchmarks.figures.z.settings import ZSizes, line, panel, verdict
from shoal.models.z import (
    ByClass,
    Scenario,
    by_class,
    classes_of_activity,
    classes_of_interest,
    exact,
)

__all__ = ["figure_7", "figure_8"]

#: What may be a rounding error.
ALIKE = 1e-6


def figure_7(sizes: ZSizes) -> Figure:
    """Classes of activity."""
    found, curves, panels = _measured(
        sizes, sizes.imbalances, classes_of_activity, "λ₂/λ₁", log=True
    )
    first, second, overall = curves
    middle = sizes.imbalances.index(1)
    single = exact(sizes.scenario(z=sizes.class_z))
    mirrored = max(
        abs(one.mean - other.mean)
        for one, other in zip(first.cells, reversed(second.cells), strict=True)
    )
    falling, rising = overall.cells[: middle + 1], overall.cells[middle:]
    claims = (
        Claim("The picture is symmetric about 1 (here: within 0.001).",
              verdict(mirrored < 1e-3), f"at most {mirrored:.5f} apart"),
        Claim("Overall, p_k-anon grows the more unlike the classes are (below 1).",
              *rises(falling, falls=True)),
        Claim("Overall, p_k-anon grows the more unlike the classes are (above 1).",
              *rises(rising)),
        Claim("The least active class gains (the second, below 1; its p_k-anon falls towards 1).",
              *rises(second.cells[: middle + 1], falls=True)),
        Claim("The most active class loses (the first, below 1).",
              *below(first.cells[:middle], [first.cells[middle]] * middle)),
        Claim("At 1 it is that of a single class, as in Figure 3.",
              verdict(abs(overall.cells[middle].mean - single) < ALIKE),
              f"{overall.cells[middle].mean:.4f} and {single:.4f}"),
        Claim("The more unlike the classes, the less is revealed (entropy of all, above 1).",
              *rises(line("", [one.entropy for one in found[middle:]], 2).cells, falls=True)),
    )  # fmt: skip
    return _figure(sizes, "7", "Classes of activity", panels, claims, "")


def figure_8(sizes: ZSizes) -> Figure:
    """Classes of interest."""
    found, curves, panels = _measured(
        sizes, sizes.separations, classes_of_interest, "class separation", log=False
    )
    first, second, overall = curves
    usual = sizes.scenario(z=sizes.class_z)
    single = exact(usual)
    halved = exact(replace(usual, rates=tuple(rate / 2 for rate in usual.rates)))
    apart = overall.cells[0].mean
    claims = (
        Claim("The more the classes are apart, the higher p_k-anon.", *rises(overall.cells)),
        Claim("Both classes benefit (the first).", *rises(first.cells)),
        Claim("Both classes benefit (the second).", *rises(second.cells)),
        Claim("At 0 it is that of a single class.",
              verdict(abs(apart - single) < ALIKE), f"{apart:.4f} and {single:.4f}"),
        Claim("At 0 it is that of a single class of half the rates (which is what Table 3 says).",
              verdict(abs(apart - halved) < ALIKE), f"{apart:.4f} and {halved:.4f}"),
        Claim("The more the classes are apart, the less is revealed (entropy of all).",
              *rises(line("", [one.entropy for one in found], 2).cells, falls=True)),
    )  # fmt: skip
    return _figure(
        sizes, "8", "Classes of interest", panels, claims,
        " With η = 1/2 Table 3 gives both classes half of the rates, not the rates.",
    )  # fmt: skip


def _measured(
    sizes: ZSizes,
    xs: tuple[float, ...],
    classes: Callable[[Scenario, float], tuple[Scenario, Scenario]],
    x_label: str,
    *,
    log: bool,
) -> tuple[list[ByClass], list[Curve], tuple[Panel, ...]]:
    usual = sizes.scenario(z=sizes.class_z)
    found = [by_class(classes(usual, x)) for x in xs]
    curves = [line(f"class {i + 1}", [one.probabilities[i] for one in found]) for i in (0, 1)]
    curves.append(line("all", [one.overall for one in found]))
    entropies = line("entropy", [one.entropy for one in found], 2)
    return found, curves, (
        panel("(a) p_k-anon", x_label, xs, curves, log=log),
        panel("(b) entropy (not in the paper)", x_label, xs, [entropies], what="nats", log=log),
    )  # fmt: skip


def _figure(
    sizes: ZSizes, name: str, title: str, panels: tuple[Panel, ...], claims: tuple[Claim, ...],
    more: str,
) -> Figure:  # fmt: skip
    half = sizes.n_subjects // 2
    return Figure(
        name,
        title,
        f"Two classes of {half:,} subjects, {sizes.n_attributes} attributes, z = {sizes.class_z}, "
        f"k = 2, Δt = 12; exact.{more}",
        panels,
        claims,
        page="z",
        source="the paper",
        one_axis=False,
    )
