"""How much each quasi attribute has lost in an output."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from shoal.engine.space import Loss, Space
from shoal.metrics.reading import read_sides
from shoal.spec.policy import KAnonymity, Policy
from shoal.spec.schema import Quasi, Schema

__all__ = ["loss_by_attribute"]


def loss_by_attribute(
    schema: Schema, published: pa.Table, *, measure: Loss = "glm"
) -> dict[str, float | None]:
    """Return the mean loss of each quasi attribute over the published rows that have it, 0 to 1.

    Where no value is missing, the mean of these by the weights of the attributes is the mean loss
    of a row. Suppressed rows aren't in it. None where nothing was published.

    Parameters
    ----------
    schema
        The columns.
    published
        The output, with numbers as ranges or bounds: a midpoint doesn't tell how wide its box was.
    measure
        How boxes lose; see `shoal.engine.space.Space`.

    >>> from shoal.spec.hierarchy import Hierarchy, Range
    >>> schema = Schema(
    ...     None, [Quasi("age", Range(0, 100)), Quasi("sex", Hierarchy.flat(["F", "M"]))]
    ... )
    >>> published = pa.table({"age": ["[20, 30]", "[40, 70]"], "sex": ["*", "M"]})
    >>> loss_by_attribute(schema, published)
    {'age': 0.2, 'sex': 0.5}
    """
    found: dict[str, float | None] = {}
    for quasi in schema.quasi:
        alone = Schema(None, [Quasi(quasi.name, quasi.domain)])
        space = Space(alone, Policy(KAnonymity(1)), measure)
        sides = np.concatenate(read_sides(alone, published), axis=1)
        # A missing value that stays missing has no side.
        sides = sides[sides[:, 0] <= sides[:, 1]]
        different, n_rows = np.unique(sides, axis=0, return_counts=True)
        losses = [space.loss(side[:1], side[1:]) for side in different]
        found[quasi.name] = float(np.average(losses, weights=n_rows)) if losses else None
    return found
