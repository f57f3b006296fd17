"""Code space: what an engine sees of a schema, a policy and a batch. Arrays, free of Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from shoal.errors import ParameterError, did_you_mean
from shoal.hierarchy import Hierarchy
from shoal.kernels.arrays import Floats, Ints
from shoal.kernels.boxes import Sides, box_loss, points
from shoal.kernels.criteria import Limits
from shoal.policy import EntropyLDiversity, Policy, RecursiveLDiversity
from shoal.schema import Quasi, Schema

__all__ = ["Codes", "Deadlines", "Loss", "Space"]

Loss: TypeAlias = Literal["glm", "lm"]


class Codes(NamedTuple):
    """A batch of rows as arrays.

    ``values`` are numbers, or codes of leaves, by row and quasi attribute; ``sensitive`` are codes
    by row and sensitive attribute; ``subjects`` are integers that only have to be told apart;
    ``times`` are arrival times in seconds, NaN where the stream has none.
    """

    values: Floats
    subjects: Ints
    sensitive: Ints
    times: Floats


class Deadlines(NamedTuple):
    """How long a row may be held; 0 where there is no such bound."""

    rows: int
    seconds: float


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
        A number loses its share of the range in both.

    >>> from shoal.hierarchy import Range
    >>> from shoal.policy import Delay, KAnonymity
    >>> schema = Schema(subject=None, quasi=[Quasi("age", Range(0, 100))])
    >>> space = Space(schema, Policy(KAnonymity(2), delay=Delay(rows=10)))
    >>> space.loss(np.array([20.0]), np.array([45.0]))
    0.25
    """

    __slots__ = ("deadlines", "limits", "measure", "n_quasi", "n_sensitive", "sides")

    def __init__(self, schema: Schema, policy: Policy, loss: Loss = "glm") -> None:
        if loss not in get_args(Loss):
            raise ParameterError(
                "loss",
                f"must be one of {', '.join(get_args(Loss))}",
                got=repr(loss),
                mend=did_you_mean(str(loss), get_args(Loss)),
            )
        policy.check(schema)
        self.measure = loss
        self.n_quasi = len(schema.quasi)
        self.n_sensitive = len(schema.sensitive)
        self.sides = _sides(schema.quasi, loss)
        self.limits = _limits(schema, policy)
        delay = policy.delay
        self.deadlines = Deadlines(
            rows=0 if delay is None or delay.rows is None else delay.rows,
            seconds=0.0 if delay is None or delay.seconds is None else float(delay.seconds),
        )

    def points(self, values: Floats) -> tuple[Floats, Floats]:
        """The box of each row by itself."""
        lo, hi = np.empty_like(values), np.empty_like(values)
        points(self.sides, values, lo, hi)
        return lo, hi

    def loss(self, lo: Floats, hi: Floats) -> float:
        """The loss of a box, between 0 and 1."""
        return float(box_loss(self.sides, lo, hi))


def _sides(attributes: Sequence[Quasi], loss: Loss) -> Sides:
    total = sum(attribute.weight for attribute in attributes)
    d = len(attributes)
    lowest, highest, step, unit = np.zeros(d), np.zeros(d), np.zeros(d), np.zeros(d)
    first_leaf = np.full(d, -1, np.int64)
    leaf_node: list[int] = []
    node_lo: list[float] = []
    node_hi: list[float] = []
    parent: list[int] = []
    node_loss: list[float] = []
    for i, attribute in enumerate(attributes):
        weight = attribute.weight / total
        domain = attribute.domain
        if isinstance(domain, Hierarchy):
            first_leaf[i] = len(leaf_node)
            first_node = len(node_lo)
            highest[i] = len(domain) - 1
            leaf_node += [first_node + node for node in domain.leaf_nodes]
            parent += [first_node + node for node in domain.parents]
            node_lo += [float(low) for low in domain.lows]
            node_hi += [float(high) for high in domain.highs]
            node_loss += [
                weight * _share(high - low + 1, len(domain), loss)
                for low, high in zip(domain.lows, domain.highs, strict=True)
            ]
        else:
            lowest[i], highest[i] = domain.lo, domain.hi
            step[i] = domain.step or 0.0
            unit[i] = weight / (domain.hi - domain.lo)
    return Sides(
        lowest, highest, step, unit, first_leaf,
        np.array(leaf_node, np.int64),
        np.array(node_lo, np.float64), np.array(node_hi, np.float64),
        np.array(parent, np.int64), np.array(node_loss, np.float64),
    )  # fmt: skip


def _share(leaves: int, of: int, loss: Loss) -> float:
    if leaves == 1:
        return 0.0
    return leaves / of if loss == "glm" else (leaves - 1) / (of - 1)


def _limits(schema: Schema, policy: Policy) -> Limits:
    names = [attribute.name for attribute in schema.sensitive]
    m = len(names)
    diverse, recursive_l = np.ones(m, np.int64), np.zeros(m, np.int64)
    entropy, recursive_c = np.zeros(m), np.zeros(m)
    for criterion in policy.diversity:
        for j, name in enumerate(names):
            if criterion.attribute not in (None, name):
                continue
            diverse[j] = max(diverse[j], criterion.needed)
            if isinstance(criterion, EntropyLDiversity):
                entropy[j] = max(entropy[j], criterion.l)
            elif isinstance(criterion, RecursiveLDiversity):
                recursive_c[j], recursive_l[j] = criterion.c, criterion.needed
    return Limits(policy.k, diverse, entropy, recursive_c, recursive_l)
