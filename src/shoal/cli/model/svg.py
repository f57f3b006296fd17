"""Draw the result of ``shoal model z`` as SVG."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.models.z import Point

__all__ = ["svg"]


def svg(points: Sequence[Point], *, k: int, probability: float | None, title: str) -> str:
    """Return an SVG of the curve over z: the model in black, the counted share in orange."""
    most = max(2, points[-1].z)
    left, top, wide, high = 56, 56, 480, 260

    def x(z: int) -> float:
        return left + wide * (z - 1) / (most - 1)

    def y(share: float) -> float:
        return top + high * (1.0 - share)

    def line(shares: Sequence[float], style: str) -> str:
        path = " ".join(
            f"{x(at.z):.1f},{y(share):.1f}" for at, share in zip(points, shares, strict=True)
        )
        return f'<polyline points="{path}" fill="none" stroke-width="2" {style}/>'

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + wide + 24}" '
        f'height="{top + high + 56}" font-family="sans-serif" font-size="12">',
        f"<title>{title}</title>",
        f'<text x="{left}" y="20">{title}</text>',
    ]
    parts += [
        f'<line x1="{left}" x2="{left + wide}" y1="{y(share):.1f}" y2="{y(share):.1f}" '
        f'stroke="#ddd"/><text x="{left - 8}" y="{y(share) + 4:.1f}" text-anchor="end">'
        f"{share:g}</text>"
        for share in (0.0, 0.25, 0.5, 0.75, 1.0)
    ]
    parts += [
        f'<text x="{x(z):.1f}" y="{top + high + 18}" text-anchor="middle">{z}</text>'
        for z in sorted({1, *(round(most * part) for part in (0.25, 0.5, 0.75, 1.0))})
    ]
    if probability is not None:
        parts.append(
            f'<line x1="{left}" x2="{left + wide}" y1="{y(probability):.1f}" '
            f'y2="{y(probability):.1f}" stroke="#0072B2" stroke-dasharray="4 3"/>'
        )
    parts.append(line([at.model.middle for at in points], 'stroke="#000"'))
    shares = [at.measured for at in points if at.measured is not None]
    if len(shares) == len(points):
        parts.append(line(shares, 'stroke="#D55E00" stroke-dasharray="7 3"'))
    legend = "model (black)" + ", counted (orange, dashed)" * (len(shares) == len(points))
    parts += [
        f'<text x="{left}" y="38">share of subjects that are {k}-anonymous: {legend}</text>',
        f'<text x="{left + wide / 2}" y="{top + high + 40}" text-anchor="middle">z</text>',
        "</svg>",
    ]
    return "\n".join(parts) + "\n"
