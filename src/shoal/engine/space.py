"""Code space: a schema, a policy and a batch as the arrays that an engine works on."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from shoal.engine.kernels.arrays import Floats, Ints, Records
from shoal.engine.kernels.boxes import ATTRIBUTE, NODE, Sides, box_loss, points
from shoal.engine.kernels.emd import NODE as SENSITIVE_NODE
from shoal.engine.kernels.emd import TREE as SENSITIVE_TREE
from shoal.engine.kernels.emd import Trees
from shoal.engine.kernels.measured import (
    BASIC,
    DISCLOSURE,
    ENHANCED,
    EUCLIDEAN,
    JENSEN_SHANNON,
    MEASURE,
    ORDERED,
    RANGES,
    SEMANTIC,
    TREE,
    VARIATIONAL,
    Measures,
)
from shoal.engine.kernels.predicate import DIVERSITY, Limits
from shoal.engine.kernels.window_counts import empty_counts
from shoal.errors import ParameterError, did_you_mean
from shoal.spec.hierarchy import Hierarchy, Range
from shoal.spec.ladder import n_levels
from shoal.spec.policy import (
    BasicLikeness,
    BetaLikeness,
    Closeness,
    DeltaDisclosure,
    EntropyLDiversity,
    EuclideanCloseness,
    JensenShannonCloseness,
    KAnonymity,
    LDiversity,
    Measured,
    Missing,
    Policy,
    RangeLikeness,
    RecursiveLDiversity,
    SemanticLikeness,
    TCloseness,
    VariationalCloseness,
    Window,
    ZAnonymity,
)
from shoal.spec.schema import Quasi, Schema, Sensitive

__all__ = ["Codes", "Deadlines", "Loss", "Space", "WindowSpan"]

Loss: TypeAlias = Literal["glm", "lm", "uncertainty"]
#: The missing values of a row are the bits of one 64-bit number.
MOST_WITH_GAPS = 63
NO_TABLE = np.empty((0, 0), np.int64)


class Codes(NamedTuple):
    """A batch of rows as arrays.

    ``values`` are numbers, or codes of leaves, by row and quasi attribute (NaN: missing);
    ``sensitive`` are codes by row and sensitive attribute; ``subjects`` are integers, equal for the
    same subject; ``times`` are arrival times in seconds, NaN where the stream has none.
    Where each value is decided on its own (`Policy.per_value`), ``keys`` stand in for ``values``:
    for each attribute the keys of its levels from fine to coarse, all 0 where the value is missing.
    """

    values: Floats
    subjects: Ints
    sensitive: Ints
    times: Floats
    keys: Ints = NO_TABLE

    def __repr__(self) -> str:
        return f"Codes({len(self.subjects)} rows)"

    @classmethod
    def empty(cls, n_quasi: int, n_sensitive: int) -> Codes:
        """Return a batch of no rows."""
        return cls(
            np.empty((0, n_quasi)), np.empty(0, np.int64),
            np.empty((0, n_sensitive), np.int64), np.empty(0),
        )  # fmt: skip


class Deadlines(NamedTuple):
    """The longest that a row may be held, in rows and in seconds; 0: no such bound."""

    rows: int
    seconds: float


class WindowSpan(NamedTuple):
    """The rows of the policy's window and its advance, or its seconds; 0: not set."""

    rows: int
    advance: int
    seconds: float = 0.0


class Space:
    """The quasi attributes of a schema with a measure of loss, and the limits of a policy.

    Parameters
    ----------
    schema
        The columns and their domains.
    policy
        What is promised; it must fit the schema.
    loss
        ``"glm"``: the general loss metric (thesis §2.3): a category loses the share of leaves
        under its node, and nothing at a leaf. ``"lm"``: (leaves - 1) / (all leaves - 1).
        ``"uncertainty"`` (Zhou et al., Definition 2): categories are numbers too, in the order of
        the leaves of their tree, and lose their share of that. So rows are grouped whose leaves
        are near each other, whatever node is above them; only the published box is a node.
        A number loses its share of the range in all of them.

    Attributes
    ----------
    sides
        The attributes as they are used to join and measure boxes while rows are held.
    shown
        The attributes as they are published: categories as nodes of their tree. The same object as
        ``sides``, except under ``"uncertainty"``.
    clock
        The index of the quasi attribute that is also the time of a row, in the same seconds, or -1.

    >>> from shoal.spec.hierarchy import Range
    >>> from shoal.spec.policy import Delay, KAnonymity
    >>> schema = Schema(subject=None, quasi=[Quasi("age", Range(0, 100))])
    >>> space = Space(schema, Policy(KAnonymity(2), delay=Delay(rows=10)))
    >>> space.loss(np.array([20.0]), np.array([45.0]))
    0.25
    """

    __slots__ = (
        "clock", "deadlines", "each_row", "limits", "measure", "missing", "n_levels", "n_quasi",
        "n_sensitive", "others", "shown", "sides", "window", "z",
    )  # fmt: skip

    def __init__(self, schema: Schema, policy: Policy, loss: Loss = "glm") -> None:
        if loss not in get_args(Loss):
            raise ParameterError(
                "loss",
                f"must be one of {', '.join(get_args(Loss))}",
                got=repr(loss),
                fix=did_you_mean(str(loss), get_args(Loss)),
            )
        policy.check(schema)
        self.measure = loss
        #: Whether each row is of another subject.
        self.each_row = schema.each_row
        self.missing: Missing = policy.missing
        self.n_quasi = len(schema.quasi)
        if self.missing != "quarantine" and self.n_quasi > MOST_WITH_GAPS:
            raise ParameterError(
                "policy.missing",
                f'other than "quarantine" works with at most {MOST_WITH_GAPS} quasi attributes',
                got=str(self.n_quasi),
                fix='Name fewer, or set missing = "quarantine"',
            )
        self.n_sensitive = len(schema.sensitive)
        self.z = policy.z
        #: The number of levels of each attribute if each value is decided on its own; else empty.
        self.n_levels = tuple(n_levels(quasi.domain) for quasi in schema.quasi) if self.z else ()
        self.shown = _sides(() if self.z else schema.quasi, loss)
        self.sides = _in_order(self.shown) if loss == "uncertainty" else self.shown
        self.clock = -1 if self.z else _clock(schema)
        self.limits = _limits(schema, policy)
        #: Criteria that no kernel knows: an anonymizer that enforces one checks it on its own.
        self.others = tuple(
            criterion
            for criterion in policy.criteria
            if not isinstance(criterion, KAnonymity | LDiversity | Measured | ZAnonymity)
        )
        self.window = _span(policy)
        delay = policy.delay
        self.deadlines = Deadlines(
            rows=0 if delay is None or delay.rows is None else delay.rows,
            seconds=0.0 if delay is None or delay.seconds is None else float(delay.seconds),
        )

    def points(self, values: Floats, room: Floats | None = None) -> tuple[Floats, Floats]:
        """Return the box of each single row, in two arrays of ``room`` if there is some."""
        lo, hi = np.empty((2, *values.shape)) if room is None else room[:, : len(values)]
        points(self.sides, values, self.missing == "extended", lo, hi)
        return lo, hi

    def gaps(self, values: Floats) -> Ints:
        """Return which values of each row are missing: bit d for quasi attribute d."""
        if self.missing == "quarantine":
            return np.zeros(len(values), np.int64)
        bits: Ints = np.isnan(values) @ (1 << np.arange(self.n_quasi))
        return bits

    def loss(self, lo: Floats, hi: Floats) -> float:
        """Return the loss of a box, between 0 and 1."""
        return float(box_loss(self.sides, lo, hi))


def _sides(quasi: Sequence[Quasi], loss: Loss) -> Sides:
    total = reduce(add, (attribute.weight for attribute in quasi), 0.0)
    attributes = np.zeros(len(quasi), ATTRIBUTE)
    leaf_node: list[int] = []
    nodes: list[tuple[float, float, float, int]] = []
    for entry, attribute in zip(attributes, quasi, strict=True):
        weight = attribute.weight / total
        entry["weight"] = weight
        domain = attribute.sided
        if isinstance(domain, Hierarchy):
            entry["first_leaf"] = len(leaf_node)
            entry["highest"] = len(domain) - 1
            first_node = len(nodes)
            leaf_node += [first_node + node for node in domain.leaf_nodes]
            nodes += [
                (lo, hi, _node_loss(hi - lo + 1, len(domain), weight, loss), first_node + parent)
                for lo, hi, parent in zip(domain.lows, domain.highs, domain.parents, strict=True)
            ]
        else:
            entry["first_leaf"] = -1
            entry["lowest"], entry["highest"] = domain.lo, domain.hi
            entry["step"], entry["per_unit"] = domain.step or 0.0, domain.per_unit
            entry["unit"] = weight / (domain.hi - domain.lo)
    return Sides(attributes, np.array(leaf_node, np.int64), np.array(nodes, NODE))


def _node_loss(leaves: int, of: int, weight: float, loss: Loss) -> float:
    if leaves == 1:
        return 0.0
    if loss == "glm":
        return weight * (leaves / of)
    if loss == "lm":
        return weight * ((leaves - 1) / (of - 1))
    # Bit-identical to the loss of the interval of its leaves where categories are numbers.
    return (leaves - 1) * (weight / (of - 1))


def _in_order(shown: Sides) -> Sides:
    """Return the sides with categories as numbers: their leaves, in the order of the tree."""
    attributes = shown.attributes.copy()
    # A tree with a single leaf has no length, and loses nothing.
    measured = (attributes["first_leaf"] >= 0) & (attributes["highest"] > 0)
    attributes["unit"][measured] = attributes["weight"][measured] / attributes["highest"][measured]
    attributes["first_leaf"] = -1
    return Sides(attributes, np.empty(0, np.int64), np.empty(0, NODE))


def _clock(schema: Schema) -> int:
    for d, attribute in enumerate(schema.quasi):
        if attribute.name == schema.time and isinstance(attribute.domain, Range):
            return d
    return -1


def _limits(schema: Schema, policy: Policy) -> Limits:
    names = [attribute.name for attribute in schema.sensitive]
    diversity = np.zeros(len(names), DIVERSITY)
    diversity["diverse"] = 1
    for criterion in policy.diversity:
        for name, asked in zip(names, diversity, strict=True):
            if criterion.attribute not in (None, name):
                continue
            asked["diverse"] = max(asked["diverse"], criterion.needed)
            if isinstance(criterion, EntropyLDiversity):
                asked["entropy"] = max(asked["entropy"], criterion.l)
            elif isinstance(criterion, RecursiveLDiversity):
                asked["c"], asked["l"] = criterion.c, criterion.needed
    measures = Measures(_asked(schema.sensitive, policy.measured), _trees(schema.sensitive))
    return Limits(policy.k, diversity, measures, empty_counts(len(names)))


def _span(policy: Policy) -> WindowSpan:
    if not isinstance(policy.window, Window):
        return WindowSpan(0, 0)
    window = policy.window
    return WindowSpan(window.rows, window.advance or 0, float(window.seconds or 0.0))


#: The kind of each criterion that has a single kind.
KINDS: dict[type[Measured], int] = {
    BasicLikeness: BASIC,
    RangeLikeness: RANGES,
    SemanticLikeness: SEMANTIC,
    DeltaDisclosure: DISCLOSURE,
    EuclideanCloseness: EUCLIDEAN,
    VariationalCloseness: VARIATIONAL,
    JensenShannonCloseness: JENSEN_SHANNON,
}


def _asked(sensitive: Sequence[Sensitive], measured: Sequence[Measured]) -> Records:
    """Return the measured criteria, attribute by attribute."""
    asked = [
        _measure(criterion, j, attribute)
        for j, attribute in enumerate(sensitive)
        for criterion in measured
        if criterion.attribute in (None, attribute.name)
    ]
    return np.array(asked, MEASURE)


def _measure(
    criterion: Measured, j: int, attribute: Sensitive
) -> tuple[int, int, float, int, float, bool]:
    level, epsilon, relative = 0, 0.0, False
    kind = KINDS.get(type(criterion), ENHANCED)
    if isinstance(criterion, TCloseness):
        kind = TREE if isinstance(attribute.domain, Hierarchy) else ORDERED
    if isinstance(criterion, Closeness):
        bound = criterion.t
    elif isinstance(criterion, DeltaDisclosure):
        bound = criterion.delta
    elif isinstance(criterion, BetaLikeness):
        bound = criterion.beta
    else:
        raise TypeError(f"{criterion.name} has no kernel")
    if isinstance(criterion, SemanticLikeness):
        level = criterion.level
    if isinstance(criterion, RangeLikeness):
        epsilon, relative = criterion.epsilon, criterion.relative
    return kind, j, bound, level, epsilon, relative


def _trees(sensitive: Sequence[Sensitive]) -> Trees:
    trees = np.zeros(len(sensitive), SENSITIVE_TREE)
    leaf_node: list[int] = []
    nodes: list[tuple[int, int, int]] = []
    for entry, attribute in zip(trees, sensitive, strict=True):
        domain = attribute.domain
        if not isinstance(domain, Hierarchy):
            continue
        first = len(nodes)
        entry["first_node"], entry["n_nodes"] = first, len(domain.parents)
        entry["first_leaf"] = len(leaf_node)
        leaf_node += [first + node for node in domain.leaf_nodes]
        heights, depths = [0] * len(domain.parents), [0] * len(domain.parents)
        for node in range(1, len(domain.parents)):
            depths[node] = depths[domain.parents[node]] + 1
        for node in range(len(domain.parents) - 1, 0, -1):
            parent = domain.parents[node]
            heights[parent] = max(heights[parent], heights[node] + 1)
        nodes += [
            (first + parent, height, depth)
            for parent, height, depth in zip(domain.parents, heights, depths, strict=True)
        ]
    return Trees(trees, np.array(nodes, SENSITIVE_NODE), np.array(leaf_node, np.int64))
