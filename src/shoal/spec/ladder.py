"""Domains for z-anonymity, which publishes each value at a level of a ladder.

Each level has a label; they go from the value itself to more and more general ones.
The set of values may be open, without a list of them. `Hierarchy` and `Range` have ladders too, see
`level_labels`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TypeAlias

from shoal.errors import ParameterError
from shoal.spec.hierarchy import Domain, Hierarchy, Range

__all__ = ["AnyDomain", "Cell", "Grid", "Open", "Path", "level_labels", "n_levels"]

#: The mean radius of the Earth, in metres, and the length of one degree on it.
RADIUS = 6_371_008.8
DEGREE = math.pi * RADIUS / 180
#: Labels of cells have five decimals, about a metre: smaller cells would have equal labels.
SMALLEST_CELL = 10
LARGEST_CELL = 10_000_000
MAX_LEVELS = 20
#: Cells nearer to a pole are as many degrees wide as those at this latitude.
POLAR = 89.0


class Open:
    """Values of any kind, compared by their text. A ladder of one level.

    >>> level_labels(Open(), "85123A")
    ('85123A',)
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Open) or NotImplemented

    def __hash__(self) -> int:
        return hash(Open)

    def __repr__(self) -> str:
        return "Open()"


class Path:
    """Text with parts from the general to the specific, separated by a separator.

    The first level is the whole text; each further one has one part less, down to the first part. A
    text with fewer parts is repeated, one with more loses several parts at the first step. A
    separator at the very beginning belongs to the first part.

    >>> level_labels(Path("/", levels=3), "shoes/boys/laces")
    ('shoes/boys/laces', 'shoes/boys', 'shoes')
    >>> level_labels(Path("/", levels=3), "shoes")
    ('shoes', 'shoes', 'shoes')
    >>> level_labels(Path("/", levels=2), "/news/today")
    ('/news/today', '/news')
    """

    __slots__ = ("levels", "separator")

    def __init__(self, separator: str, levels: int = 5) -> None:
        if not isinstance(separator, str) or not separator:
            raise ParameterError(
                "Path.separator", "must be a text of at least one character", got=repr(separator)
            )
        if isinstance(levels, bool) or not isinstance(levels, int) or not 1 <= levels <= MAX_LEVELS:
            raise ParameterError(
                "Path.levels", f"must be a whole number from 1 to {MAX_LEVELS}", got=repr(levels)
            )
        self.separator, self.levels = separator, levels

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Path):
            return NotImplemented
        return (self.separator, self.levels) == (other.separator, other.levels)

    def __hash__(self) -> int:
        return hash((self.separator, self.levels))

    def __repr__(self) -> str:
        return f"Path({self.separator!r}, levels={self.levels})"

    def level_labels(self, text: str) -> tuple[str, ...]:
        """Return the labels of a text, from fine to coarse."""
        begin = self.separator if text.startswith(self.separator) else ""
        first, *others = text.removeprefix(begin).split(self.separator)
        # White space around a part and parts of white space are dropped; white space of the
        # separator is kept.
        parts = [begin + first.strip(), *filter(None, (part.strip() for part in others))]
        shorter = (self.separator.join(parts[:n]) for n in range(self.levels - 1, 0, -1))
        return text, *shorter


class Cell:
    """A square of a grid: its row from the south, its column from the west, its side in metres."""

    __slots__ = ("column", "row", "scale", "side")

    def __init__(self, row: int, column: int, side: int, scale: float) -> None:
        self.row, self.column, self.side, self.scale = row, column, side, scale

    @property
    def label(self) -> str:
        """The latitude and longitude of the centre, and the side in metres.

        >>> Cell(9000, 8000, 1000, 111195.0).label
        '-9.05667,-108.04982/1000'
        """
        latitude = (self.row + 0.5) * self.side / DEGREE - 90
        longitude = (self.column + 0.5) * self.side / self.scale - 180
        return f"{latitude:.5f},{longitude:.5f}/{self.side}"


class Grid:
    """Positions on the Earth, published as square cells from fine to coarse.

    Rows of cells begin at the south pole. All cells inside one row of the coarsest cells have the
    same width in degrees, by the latitude of its middle, so that each cell lies in one cell of
    every coarser grid, and is a square but for the curvature over the coarsest cell.

    Parameters
    ----------
    latitude, longitude
        The columns, in degrees.
    cells
        The sides of the cells in metres, from fine to coarse, each a multiple of the one before.

    >>> torino = Grid("lat", "lon", [1000, 5000, 50000])
    >>> torino.level_labels(45.0703, 7.6869)
    ('45.07342,7.68645/1000', '45.05544,7.71194/5000', '45.12288,7.68008/50000')
    """

    __slots__ = ("cells", "latitude", "longitude")

    def __init__(self, latitude: str, longitude: str, cells: Sequence[int]) -> None:
        for key, name in (("latitude", latitude), ("longitude", longitude)):
            if not isinstance(name, str) or not name:
                raise ParameterError(f"Grid.{key}", "must name a column", got=repr(name))
        if latitude == longitude:
            raise ParameterError(
                "Grid.longitude", "must be another column than the latitude", got=repr(longitude)
            )
        if not cells or len(cells) > MAX_LEVELS:
            raise ParameterError(
                "Grid.cells", f"must be 1 to {MAX_LEVELS} sides in metres", got=f"{len(cells)}",
                fix="For example 500, 1000, 5000",
            )  # fmt: skip
        for side in cells:
            if isinstance(side, bool) or not isinstance(side, int):
                raise ParameterError("Grid.cells", "must be whole metres", got=repr(side))
            if not SMALLEST_CELL <= side <= LARGEST_CELL:
                raise ParameterError(
                    "Grid.cells",
                    f"must be from {SMALLEST_CELL} to {LARGEST_CELL:,} metres",
                    got=repr(side),
                )
        for fine, coarse in itertools.pairwise(cells):
            if coarse <= fine or coarse % fine:
                raise ParameterError(
                    "Grid.cells",
                    "must go from fine to coarse, each a multiple of the one before, so that a "
                    "cell lies in one cell of the next grid",
                    got=f"{coarse} after {fine}",
                    fix=f"For example {fine}, {fine * max(2, round(coarse / fine))}",
                )
        self.latitude, self.longitude, self.cells = latitude, longitude, tuple(cells)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Grid):
            return NotImplemented
        mine = (self.latitude, self.longitude, self.cells)
        return mine == (other.latitude, other.longitude, other.cells)

    def __hash__(self) -> int:
        return hash((self.latitude, self.longitude, self.cells))

    def __repr__(self) -> str:
        return f"Grid({self.latitude!r}, {self.longitude!r}, {list(self.cells)})"

    def scale(self, band: int) -> float:
        """Return the metres of a degree of longitude in a row of the coarsest cells."""
        middle = (band + 0.5) * self.cells[-1] / DEGREE - 90
        return DEGREE * math.cos(math.radians(min(abs(middle), POLAR)))

    def cell(self, latitude: float, longitude: float, level: int) -> Cell:
        """Return the cell of a position; level 0 is the finest."""
        finest, side = self.cells[0], self.cells[level]
        row = math.floor((latitude + 90) * DEGREE / finest)
        scale = self.scale(row // (self.cells[-1] // finest))
        column = math.floor((longitude + 180) * scale / finest)
        times = side // finest
        return Cell(row // times, column // times, side, scale)

    def level_labels(self, latitude: float, longitude: float) -> tuple[str, ...]:
        """Return the labels of the cells of a position, from fine to coarse."""
        levels = range(len(self.cells))
        return tuple(self.cell(latitude, longitude, level).label for level in levels)


#: The domains that a quasi attribute can have.
AnyDomain: TypeAlias = Domain | Open | Path | Grid


def n_levels(domain: AnyDomain) -> int:
    """Return the number of levels of the ladders of a domain.

    >>> n_levels(Path("/", levels=3)), n_levels(Hierarchy.flat(["a", "b"]))
    (3, 1)
    """
    if isinstance(domain, Path):
        return domain.levels
    if isinstance(domain, Grid):
        return len(domain.cells)
    if isinstance(domain, Hierarchy):
        return max(1, domain.depth - 1)
    return 1


def level_labels(domain: AnyDomain, value: str | float | tuple[float, float]) -> tuple[str, ...]:
    """Return the labels of a value from fine to coarse.

    The ladder of a leaf of a hierarchy ends at the node below the root; a short branch repeats its
    leaf first. The label of a number is the interval of one step around it. A position is a pair of
    latitude and longitude.

    >>> tree = Hierarchy.from_dict({"*": {"pets": {"cats": None, "dogs": ["pug"]}, "oak": None}})
    >>> level_labels(tree, "pug"), level_labels(tree, "oak")
    (('pug', 'dogs', 'pets'), ('oak', 'oak', 'oak'))
    >>> level_labels(Range(0, 100, step=10), 25.0)
    ('[20, 30)',)
    """
    if isinstance(domain, Grid):
        assert isinstance(value, tuple)
        return domain.level_labels(*value)
    if isinstance(domain, Hierarchy):
        return tuple(domain.labels[node] for node in nodes_up(domain, str(value)))
    if isinstance(domain, Range):
        assert isinstance(value, int | float)
        return (interval(domain, value),)
    return domain.level_labels(str(value)) if isinstance(domain, Path) else (str(value),)


def nodes_up(tree: Hierarchy, leaf: str) -> list[int]:
    """Return the nodes from a leaf to below the root; a short branch repeats its leaf first."""
    code = tree.code(leaf)
    assert code is not None
    node = tree.leaf_nodes[code]
    climbed = [node]
    while tree.parents[node]:
        node = tree.parents[node]
        climbed.append(node)
    return [climbed[0]] * (n_levels(tree) - len(climbed)) + climbed


def interval(domain: Range, number: float) -> str:
    """Return the label of the half-open interval of one step around a number.

    >>> interval(Range(0, 1, step=0.01), 0.29)
    '[0.29, 0.3)'
    """
    place = step_of(domain, number)
    return f"[{bound(domain, place):.15g}, {bound(domain, place + 1):.15g})"


def step_of(domain: Range, number: float) -> int:
    """Return the index of the step in which a number lies."""
    assert domain.step is not None
    place = math.floor(number / domain.step)
    # Rounding must not put a bound into the wrong interval.
    while bound(domain, place + 1) <= number:
        place += 1
    while bound(domain, place) > number:
        place -= 1
    return place


def bound(domain: Range, place: int) -> float:
    """Return the lower bound of a step."""
    assert domain.step is not None
    return place / domain.per_unit if domain.per_unit else place * domain.step
