"""Draw docs/architecture.svg from the real imports between the packages of Shoal.

Run it with ``.venv/bin/python docs/draw_architecture.py`` after a package or an import between two
packages has been added or removed; `tests/docs/test_architecture.py` fails until then.

Rows are the layers of the import-linter contract in pyproject.toml. An arrow is drawn only where
no longer way leads to the same package: with all of them the picture couldn't be read.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import NamedTuple, TypeAlias

import grimp

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "architecture.svg"

#: What is written below the name of a package.
PURPOSE = {
    "algorithms": "one mechanism, one file",
    "arrow": "rows to codes and back",
    "attacks": "one attack, one file",
    "audit": "the independent check",
    "cli": "the commands",
    "compare": "a grid over own data",
    "datasets": "generators and loaders",
    "engine": "contract, families, kernels",
    "errors": "the exception tree",
    "events": "log lines with fields",
    "io": "sources, sinks, formats",
    "job": "the job file",
    "metrics": "loss, delay, queries",
    "models": "from z to k",
    "report": "charts, pages, reports",
    "run": "one run, its state",
    "scan": "classes by their names",
    "spark": "the same job on Spark",
    "spec": "schema, policy, criteria",
    "testing": "contract checks, faults",
}

Imports: TypeAlias = Mapping[str, set[str]]

BOX_WIDTH, BOX_HEIGHT = 176, 44
LANE, GAP = 14, 46
ROW_HEIGHT = 92
MARGIN = 16
SWEEPS = 24

STYLE = """
  .box { fill: #eef4fb; stroke: #4a78a8; stroke-width: 1.2 }
  .arrow { fill: none; stroke: #7a8794; stroke-width: 1.2 }
  .head { fill: #7a8794 }
  text { font-family: system-ui, sans-serif; text-anchor: middle; fill: #1f2933 }
  .name { font-size: 15px; font-weight: 600 }
  .purpose { font-size: 11.5px; fill: #52606d }
  @media (prefers-color-scheme: dark) {
    .box { fill: #1c2733; stroke: #6f9fd0 }
    .arrow { stroke: #8b98a5 }
    .head { fill: #8b98a5 }
    text { fill: #e4e9ee }
    .purpose { fill: #a3b1bf }
  }
"""


class Arrow(NamedTuple):
    """An import: between neighbouring rows, or down a lane of its own past the rows between."""

    source: str
    target: str
    lane: float | None


def imports() -> dict[str, set[str]]:
    """The packages and modules directly below `shoal`, and which of the others each imports."""
    graph = grimp.build_graph("shoal", cache_dir=None)
    parts = sorted(graph.find_children("shoal"))
    for part in parts:
        graph.squash_module(part)
    return {
        part.removeprefix("shoal."): {
            found.removeprefix("shoal.")
            for found in graph.find_modules_directly_imported_by(part)
            if found not in (part, "shoal")
        }
        for part in parts
    }


def layers() -> list[list[str]]:
    """The rows of the layers contract, highest first."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    rows = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    return [[name.strip().removeprefix("shoal.") for name in re.split("[|:]", r)] for r in rows]


def reduced(graph: Imports) -> dict[str, set[str]]:
    """The same graph without the arrows that a longer way makes unnecessary."""

    def reached(start: str) -> set[str]:
        found = set(graph[start])
        for name in graph[start]:
            found |= reached(name)
        return found

    return {
        name: {t for t in targets if not any(t in reached(other) for other in targets - {t})}
        for name, targets in graph.items()
    }


def placed(graph: Imports, rows: list[list[str]]) -> dict[str, float]:
    """Where the middle of each box is: near those it is joined to, without overlap."""
    near = {
        name: [*targets, *(other for other, others in graph.items() if name in others)]
        for name, targets in ((name, sorted(graph[name])) for name in sorted(graph))
    }
    at = dict.fromkeys(near, 0.0)
    for row in rows:
        _spread(row, at, at)
    for sweep in range(SWEEPS):
        for row in rows if sweep % 2 == 0 else reversed(rows):
            _spread(row, at, {name: fmean([at[n] for n in near[name]] or [0]) for name in row})
    return {name: round(x) for name, x in at.items()}


def _spread(row: list[str], at: dict[str, float], wish: Mapping[str, float]) -> None:
    """Place the boxes of a row as near to their wishes as their width allows."""
    row = sorted(row, key=lambda name: (round(wish[name], 3), name))
    places = []
    for name in row:
        places.append(max(wish[name], places[-1] + BOX_WIDTH + GAP if places else wish[name]))
    # What was pushed to the right goes back by half.
    shift = fmean(place - wish[name] for name, place in zip(row, places, strict=True))
    at.update((name, place - shift) for name, place in zip(row, places, strict=True))


def routed(graph: Imports, rows: list[list[str]], at: Mapping[str, float]) -> list[Arrow]:
    """The arrows, each with a lane that touches neither a box nor another lane."""
    row_of = {name: i for i, row in enumerate(rows) for name in row}
    edges = [(name, target) for name in sorted(graph) for target in sorted(graph[name])]
    edges.sort(key=lambda edge: row_of[edge[1]] - row_of[edge[0]])
    taken: list[tuple[float, int, int]] = []
    arrows = []
    for source, target in edges:
        first, last = row_of[source] + 1, row_of[target] - 1
        lane = None
        if first <= last:
            boxes = [at[name] for row in rows[first : last + 1] for name in row]
            others = [x for x, begin, end in taken if begin <= last and first <= end]
            middle = round((at[source] + at[target]) / 2)
            wishes = sorted(range(middle - 900, middle + 900, 2), key=lambda x: abs(x - middle))
            lane = next(
                x
                for x in wishes
                if all(abs(x - box) >= BOX_WIDTH / 2 + LANE for box in boxes)
                and all(abs(x - other) >= LANE for other in others)
            )
            taken.append((lane, first, last))
        arrows.append(Arrow(source, target, lane))
    return arrows


def draw() -> str:
    """The picture as SVG."""
    graph, rows = imports(), layers()
    if missing := set(graph) - {name for row in rows for name in row}:
        raise SystemExit(f"pyproject.toml: no layer has {', '.join(sorted(missing))}")
    graph = reduced(graph)
    at = placed(graph, rows)
    arrows = routed(graph, rows, at)
    y_of = {name: MARGIN + i * ROW_HEIGHT for i, row in enumerate(rows) for name in row}
    sides = [x + side for x in at.values() for side in (-BOX_WIDTH / 2, BOX_WIDTH / 2)]
    sides += [arrow.lane for arrow in arrows if arrow.lane is not None]
    left, right = min(sides) - MARGIN, max(sides) + MARGIN
    height = max(y_of.values()) + BOX_HEIGHT + MARGIN
    return "\n".join(
        [
            '<svg xmlns="http://www.w3.org/2000/svg" role="img" '
            f'viewBox="{left:g} 0 {right - left:g} {height}">',
            "<title>The packages of Shoal and what each imports</title>",
            f"<style>{STYLE}</style>",
            '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
            'markerHeight="7" orient="auto"><path class="head" d="M0 0 8 4 0 8z"/></marker></defs>',
            *(_path(arrow, at, y_of) for arrow in arrows),
            *(_box(name, at[name], y_of[name]) for name in sorted(at)),
            "</svg>",
            "",
        ]
    )


def _box(name: str, x: float, y: int) -> str:
    return (
        f'<rect class="box" x="{x - BOX_WIDTH / 2:g}" y="{y}" width="{BOX_WIDTH}" '
        f'height="{BOX_HEIGHT}" rx="6"/>'
        f'<text class="name" x="{x:g}" y="{y + 19}">{name}</text>'
        f'<text class="purpose" x="{x:g}" y="{y + 35}">{PURPOSE[name]}</text>'
    )


def _path(arrow: Arrow, at: Mapping[str, float], y_of: Mapping[str, int]) -> str:
    """A curve from the lower edge of a box to the upper edge of another."""
    x, y = at[arrow.source], y_of[arrow.source] + BOX_HEIGHT
    path = f"M{x:g} {y} "
    space = ROW_HEIGHT - BOX_HEIGHT
    if arrow.lane is not None:
        path += f"C{x:g} {y + space / 2:g} {arrow.lane} {y + space / 2:g} {arrow.lane} {y + space} "
        x, y = arrow.lane, y_of[arrow.target] - space
        path += f"V{y} "
    end_x, end_y = at[arrow.target], y_of[arrow.target]
    half = (y + end_y) / 2
    path += f"C{x:g} {half:g} {end_x:g} {half:g} {end_x:g} {end_y}"
    return f'<path class="arrow" marker-end="url(#head)" d="{path}"/>'


if __name__ == "__main__":
    PICTURE.write_text(draw(), encoding="utf-8")
