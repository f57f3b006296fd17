"""The domain of one attribute: a tree of labels, or a range of numbers.

Leaves are numbered in pre-order, so every node of a tree is an interval of leaf numbers (codes),
and the lowest common ancestor of a set of leaves is the node that covers ``[min, max]``. So an
engine can treat numbers and categories alike, as boxes.
"""

from __future__ import annotations

import csv
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Union

from shoal.errors import HierarchyError, ParameterError
from shoal.spec.files import UnreadableError, read_whole

__all__ = ["Domain", "Hierarchy", "Range", "read_hierarchy"]

#: A nested dictionary: inner nodes map to their children, leaves to ``None`` or an empty mapping.
Nested = Mapping[str, Union["Nested", Sequence[str], None]]

ROOT = "*"
MAX_DIGITS = 6
#: Whole numbers up to this one are exact in floating point.
EXACT = 2**53
#: The maximum size of a file, the maximum length of a label, and the maximum number of levels.
MAX_BYTES = 256 << 20
MAX_LABEL = 10_000
MAX_LEVELS = 1_000
#: Beyond this, sums and lengths of ranges would overflow.
LARGEST = 1e300


def read_hierarchy(path: str | Path) -> bytes:
    """Return the content of the file of a hierarchy; raise `HierarchyError` if that fails."""
    try:
        return read_whole(path, MAX_BYTES)
    except FileNotFoundError:
        raise HierarchyError(
            "the file doesn't exist",
            where=str(path),
            fix="Paths in a job are relative to the job file",
        ) from None
    except UnreadableError as error:
        raise HierarchyError(f"can't be read: {error}", where=str(path)) from None


class Hierarchy:
    """A tree of labels over the values of a categorical attribute.

    Build one with `from_csv`, `from_rows`, `from_dict`, `flat`, `masked` or `digits`.

    Nodes are numbered in pre-order (the root is 0); leaves have codes, in the same order.

    >>> education = Hierarchy.from_dict(
    ...     {"Any": {"School": ["Primary", "Secondary"], "University": ["Bachelor", "Master"]}}
    ... )
    >>> education.leaves
    ('Primary', 'Secondary', 'Bachelor', 'Master')
    >>> education.label(2, 3), education.label(1, 2), education.label(3, 3)
    ('University', 'Any', 'Master')
    """

    __slots__ = ("_codes", "_nodes", "highs", "labels", "leaf_nodes", "leaves", "lows", "parents")

    labels: tuple[str, ...]
    """The label of each node."""
    parents: tuple[int, ...]
    """The parent of each node; the root is its own parent."""
    lows: tuple[int, ...]
    """The smallest code under each node."""
    highs: tuple[int, ...]
    """The largest code under each node."""
    leaves: tuple[str, ...]
    """The label of each code."""
    leaf_nodes: tuple[int, ...]
    """The node of each code."""

    def __init__(self, labels: Sequence[str], parents: Sequence[int]) -> None:
        """Take a tree whose nodes are in pre-order; the class methods make it so."""
        n = len(labels)
        has_child = [False] * n
        for child in range(1, n):
            has_child[parents[child]] = True
        lows, highs = [0] * n, [-1] * n
        leaves: list[int] = []
        for node in range(n):
            lows[node] = len(leaves)
            if not has_child[node]:
                leaves.append(node)
                highs[node] = lows[node]
        for node in range(n - 1, 0, -1):
            highs[parents[node]] = max(highs[parents[node]], highs[node])
        self.labels = tuple(labels)
        self.parents = tuple(parents)
        self.lows, self.highs = tuple(lows), tuple(highs)
        self.leaf_nodes = tuple(leaves)
        self.leaves = tuple(labels[node] for node in leaves)
        self._codes = {label: code for code, label in enumerate(self.leaves)}
        self._nodes = {label: node for node, label in enumerate(self.labels)}

    # -- constructors --------------------------------------------------------------------------

    @classmethod
    def from_rows(
        cls, rows: Iterable[Sequence[str]], *, where: str = "hierarchy", first_line: int = 1
    ) -> Hierarchy:
        """Build a tree from paths, one for each leaf, from the leaf up to the root.

        A label that repeats its neighbour (as short branches do in a rectangular file) is the same
        node. If the paths end in different labels, a root ``*`` is added.

        >>> Hierarchy.from_rows([("cat", "pet", "*"), ("oak", "oak", "*")]).leaves
        ('cat', 'oak')
        """
        parent: dict[str, str | None] = {}
        children: dict[str, list[str]] = {}
        tops: list[str] = []
        seen: dict[str, int] = {}
        for line, raw in enumerate(rows, start=first_line):
            path = [label for label, _ in itertools.groupby(text.strip() for text in raw)]
            at = f"{where}, line {line}"
            if not path or any(label == "" for label in path):
                raise HierarchyError("has an empty label", where=at, fix="Give every node a name")
            if len(path) > MAX_LEVELS:
                raise HierarchyError(
                    f"has {len(path):,} levels, and a hierarchy has at most {MAX_LEVELS}", where=at
                )
            if any(len(label) > MAX_LABEL for label in path):
                raise HierarchyError(
                    f"has a label of more than {MAX_LABEL:,} characters",
                    where=at,
                    fix="Is it the right file, and is a quote never closed?",
                )
            if len(set(path)) != len(path):
                twice = next(label for label in path if path.count(label) > 1)
                raise HierarchyError(
                    f"has a cycle: '{twice}' is above itself",
                    where=at,
                    fix="A path goes from the leaf to the root and names each node once",
                )
            leaf = path[0]
            if leaf in seen:
                first, mine = parent.get(leaf), path[1] if len(path) > 1 else None
                if first == mine:
                    raise HierarchyError(
                        f"repeats the leaf '{leaf}' of line {seen[leaf]}",
                        where=at,
                        fix="Delete one of the two lines",
                    )
                raise HierarchyError(
                    f"gives the leaf '{leaf}' a second parent, '{mine}' beside '{first}' "
                    f"of line {seen[leaf]}",
                    where=at,
                    fix="Decide on one parent",
                )
            if leaf in parent:
                raise HierarchyError(
                    f"has the leaf '{leaf}', which is an inner node elsewhere",
                    where=at,
                    fix="Rename one of the two",
                )
            seen[leaf] = line
            for node, above in itertools.zip_longest(path, path[1:]):
                if node in parent:
                    if parent[node] != above:
                        raise HierarchyError(
                            f"gives '{node}' a second parent, '{above}' beside '{parent[node]}'",
                            where=at,
                            fix="A label stands for one node: use different names for two",
                        )
                    break
                parent[node] = above
                if above is None:
                    tops.append(node)
                else:
                    if above in seen:
                        raise HierarchyError(
                            f"puts '{node}' under '{above}', which is a leaf in line {seen[above]}",
                            where=at,
                            fix="Rename one of the two",
                        )
                    children.setdefault(above, []).append(node)
        return cls._from_children(tops, children, where)

    @classmethod
    def from_csv(cls, path: str | Path, *, separator: str | None = None) -> Hierarchy:
        """Read an ARX-style file: one line for each leaf, ``leaf;level 1;…;root``, no header.

        The separator is ``;`` where the first line has one, else ``,``.
        """
        return cls.from_bytes(read_hierarchy(path), where=str(path), separator=separator)

    @classmethod
    def from_bytes(cls, data: bytes, *, where: str, separator: str | None = None) -> Hierarchy:
        """Read the content of a file, as `from_csv` does; ``where`` is its name, for messages."""
        try:
            lines = data.decode("utf-8-sig").splitlines()
        except UnicodeDecodeError:
            raise HierarchyError("can't be read: it isn't UTF-8", where=where) from None
        if separator is None:
            separator = ";" if lines and ";" in lines[0] else ","
        reader = csv.reader(lines, delimiter=separator)
        try:
            rows = [row for row in reader if any(row)]
        except csv.Error:
            # What the module says isn't for users: a field of more than 131,072 characters.
            raise HierarchyError(
                f"has a label of more than {MAX_LABEL:,} characters",
                where=f"{where}, line {reader.line_num}",
                fix="Is it the right file, and is a quote never closed?",
            ) from None
        if not rows:
            raise HierarchyError("the file is empty", where=where)
        return cls.from_rows(rows, where=where)

    @classmethod
    def from_dict(cls, tree: Nested, *, where: str = "hierarchy") -> Hierarchy:
        """Build a tree from nested dictionaries; a list is a set of leaves.

        With several keys at the top, a root ``*`` is added.
        """
        rows: list[tuple[str, ...]] = []

        def walk(label: str, below: Nested | Sequence[str] | None, above: tuple[str, ...]) -> None:
            if label in above:
                raise HierarchyError(f"has a cycle: '{label}' is above itself", where=where)
            path = (label, *above)
            if not below:
                rows.append(path)
            elif isinstance(below, Mapping):
                for child, grandchildren in below.items():
                    walk(str(child), grandchildren, path)
            else:
                for child in below:
                    walk(str(child), None, path)

        for label, below in tree.items():
            walk(str(label), below, ())
        if not rows:
            raise HierarchyError("has no leaf", where=where)
        return cls.from_rows(rows, where=where)

    @classmethod
    def flat(cls, values: Iterable[str], *, where: str = "hierarchy") -> Hierarchy:
        """Build a tree of one level: the values, and ``*`` above them.

        >>> Hierarchy.flat(["Female", "Male"]).label(0, 1)
        '*'
        """
        if isinstance(values, str):
            fix = "Write Hierarchy.flat([...])"
            raise ParameterError(where, "must be a list of values", got="a text", fix=fix)
        return cls.from_rows([(str(value), ROOT) for value in values], where=where)

    @classmethod
    def masked(
        cls, codes: Iterable[str], *, mask: str = "*", where: str = "hierarchy"
    ) -> Hierarchy:
        """Build a tree of codes by masking one character after another from the right.

        >>> postcodes = Hierarchy.masked(["53703", "53706", "53715"])
        >>> postcodes.label(0, 1), postcodes.label(0, 2)
        ('5370*', '537**')
        """
        sorted_codes = sorted(str(code) for code in codes)
        widths = {len(code) for code in sorted_codes}
        if len(widths) > 1:
            raise HierarchyError(
                f"has codes of different length, from {min(widths)} to {max(widths)} places",
                where=where,
                fix="Pad them to one length",
            )
        if any(mask in code for code in sorted_codes):
            raise HierarchyError(
                f"has a code that contains the mask '{mask}'",
                where=where,
                fix="Choose another mask",
            )
        rows = [
            [code[: len(code) - level] + mask * level for level in range(len(code) + 1)]
            for code in sorted_codes
        ]
        return cls.from_rows(rows, where=where)

    @classmethod
    def digits(cls, places: int, *, where: str = "hierarchy") -> Hierarchy:
        """Build the tree of all decimal codes of ``places`` digits, masked from the right.

        >>> Hierarchy.digits(2).label(40, 49)
        '4*'
        """
        if not 1 <= places <= MAX_DIGITS:
            raise ParameterError(
                where, f"must have 1 to {MAX_DIGITS} places", got=places, fix="List the codes"
            )
        return cls.masked((f"{code:0{places}d}" for code in range(10**places)), where=where)

    @classmethod
    def _from_children(
        cls, tops: list[str], children: Mapping[str, list[str]], where: str
    ) -> Hierarchy:
        if not tops:
            raise HierarchyError("has no leaf", where=where)
        if len(tops) > 1:
            if any(ROOT in (top, *children.get(top, ())) for top in tops):
                raise HierarchyError(
                    f"has {len(tops)} roots, and one of them holds '{ROOT}'",
                    where=where,
                    fix=f"End every line with the same root, such as '{ROOT}'",
                )
            children = {**children, ROOT: tops}
            tops = [ROOT]
        labels: list[str] = []
        parents: list[int] = []
        stack = [(tops[0], 0)]
        while stack:
            label, above = stack.pop()
            node = len(labels)
            labels.append(label)
            parents.append(above)
            stack.extend((child, node) for child in reversed(children.get(label, ())))
        return cls(labels, parents)

    # -- queries -------------------------------------------------------------------------------

    def __len__(self) -> int:
        """The number of leaves."""
        return len(self.leaves)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Hierarchy):
            return NotImplemented
        return self.labels == other.labels and self.parents == other.parents

    def __hash__(self) -> int:
        return hash((self.labels, self.parents))

    def __repr__(self) -> str:
        return f"Hierarchy({len(self.leaves)} leaves, {self.depth} levels)"

    @property
    def depth(self) -> int:
        """The number of levels, leaves and root included."""
        return max(self._level(node) for node in self.leaf_nodes)

    def _level(self, node: int) -> int:
        level = 1
        while node:
            node = self.parents[node]
            level += 1
        return level

    def code(self, label: str) -> int | None:
        """Return the code of a leaf, or None if there is no such leaf."""
        return self._codes.get(label)

    def node(self, label: str) -> int | None:
        """Return the node with a label, inner or leaf, or None."""
        return self._nodes.get(label)

    def cover(self, lo: int, hi: int) -> int:
        """Return the lowest node that covers the codes from lo to hi."""
        node = self.leaf_nodes[lo]
        while self.highs[node] < hi:
            node = self.parents[node]
        return node

    def label(self, lo: int, hi: int) -> str:
        """Return the label of the lowest node that covers the codes from lo to hi."""
        return self.labels[self.cover(lo, hi)]


class Range:
    """An interval of numbers, with a step to which published bounds are widened.

    >>> age = Range(17, 90, step=5)
    >>> age.snap(23, 31), age.snap(17, 18)
    ((20.0, 35.0), (17.0, 20.0))
    >>> age
    Range(17, 90, step=5)
    """

    __slots__ = ("hi", "lo", "step")

    def __init__(self, lo: float, hi: float, *, step: float | None = None) -> None:
        for name, number in (("lo", lo), ("hi", hi)):
            if isinstance(number, bool) or not isinstance(number, int | float):
                raise ParameterError(f"Range.{name}", "must be a number", got=repr(number))
            # Compared as it is: a whole number may be too large for a float.
            if abs(number) > LARGEST and abs(number) != math.inf:
                what, fix = "must lie between -1e300 and 1e300", "Choose another unit"
                raise ParameterError("Range", what, got=_number(number), fix=fix)
            if not math.isfinite(number):
                raise ParameterError(f"Range.{name}", "must be finite", got=number)
        if not lo < hi:
            raise ParameterError(
                "Range", "the lower bound must be below the upper one", got=f"[{lo}, {hi}]"
            )
        if step is not None:
            if isinstance(step, bool) or not isinstance(step, int | float):
                raise ParameterError("Range.step", "must be a number", got=repr(step))
            if not 0 < step <= hi - lo:
                what = "must be above 0 and at most the length of the range"
                raise ParameterError("Range.step", what, got=_number(step))
            if max(abs(lo), abs(hi)) / step >= EXACT:
                raise ParameterError(
                    "Range.step",
                    "is too fine for so large a range: its multiples aren't exact numbers",
                    got=step,
                    fix="Choose a larger step",
                )
        self.lo, self.hi = float(lo), float(hi)
        self.step = None if step is None else float(step)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Range):
            return NotImplemented
        return (self.lo, self.hi, self.step) == (other.lo, other.hi, other.step)

    def __hash__(self) -> int:
        return hash((self.lo, self.hi, self.step))

    def __repr__(self) -> str:
        step = "" if self.step is None else f", step={self.step:g}"
        return f"Range({self.lo:g}, {self.hi:g}{step})"

    @property
    def is_whole(self) -> bool:
        """Whether every published bound is a whole number."""
        return (
            self.step is not None
            and self.step.is_integer()
            and self.lo.is_integer()
            and self.hi.is_integer()
            and max(abs(self.lo), abs(self.hi)) < EXACT
        )

    @property
    def per_unit(self) -> float:
        """The number of steps in 1, if that is a whole number (10 for a step of 0.1); else 0."""
        if self.step is None or self.step >= 1 or abs(1 / self.step - round(1 / self.step)) > 1e-9:
            return 0.0
        return float(round(1 / self.step))

    def snap(self, lo: float, hi: float) -> tuple[float, float]:
        """Widen an interval outward to multiples of the step, within the range."""
        if self.step is None:
            return float(lo), float(hi)
        per = self.per_unit
        if per:
            # 3 / 10 is 0.3 where 3 * 0.1 isn't: published bounds should be round numbers.
            low, high = math.floor(lo * per) / per, math.ceil(hi * per) / per
        else:
            low, high = (
                math.floor(lo / self.step) * self.step,
                math.ceil(hi / self.step) * self.step,
            )
        return max(self.lo, min(low, lo)), min(self.hi, max(high, hi))


def _number(number: float) -> str:
    """Return a number for a message; a whole one may be too long to be shown, or to be a float."""
    is_long = isinstance(number, int) and number.bit_length() > 64
    return "a number of more than 64 bits" if is_long else str(number)


Domain = Hierarchy | Range
