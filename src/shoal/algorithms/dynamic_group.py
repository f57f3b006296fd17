"""dynamicGroup: condensation, the baseline that CASTLE is compared with.

Groups are built from the first rows of a table. Every further row joins the group with the nearest
centroid, and a group that has enough subjects for two is cut where its rows are spread most.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from shoal.engine.kernels.arrays import Ints
from shoal.engine.kernels.condensation import condensed_parts
from shoal.engine.kernels.held import RowArrays
from shoal.engine.kernels.parts import Parts
from shoal.engine.kernels.predicate import Limits
from shoal.engine.space import Space
from shoal.engine.whole_table import WholeTable
from shoal.spec.policy import Criterion, KAnonymity, LDiversity

__all__ = ["DynamicGroup"]


@dataclass(frozen=True, kw_only=True)
class DynamicGroup(WholeTable):
    """Condensation for k-anonymity and l-diversity, for whole tables.

    Groups that miss l are merged with near ones.

    Parameters
    ----------
    history
        The number of first rows that groups are built from. Building compares each group with all
        rows that are left: the time grows with the square of these rows.
    loss
        How loss is measured, ``"glm"``, ``"lm"`` or ``"uncertainty"``; see `Space`. It matters only
        where groups have to be merged.

    >>> import pyarrow as pa
    >>> from shoal import KAnonymity, Policy, Quasi, Range, Schema, anonymize
    >>> people = pa.table({"name": ["Ann", "Bob", "Cem", "Dan"], "age": [20, 70, 22, 71]})
    >>> schema = Schema("name", [Quasi("age", Range(0, 100))])
    >>> policy = Policy(KAnonymity(2), window="all")
    >>> sorted(anonymize(people, schema, policy, DynamicGroup())["age"].to_pylist())
    ['[20, 22]', '[20, 22]', '[70, 71]', '[70, 71]']

    References
    ----------
    C. C. Aggarwal, P. S. Yu, "A Condensation Approach to Privacy Preserving Data Mining", EDBT
    2004; as dynamicGroup in J. Cao's thesis, NUS, 2010, section 5.7.3.
    """

    name: ClassVar[str] = "dynamic-group"
    enforces: ClassVar[tuple[type[Criterion], ...]] = (KAnonymity, LDiversity)
    reference: ClassVar[str] = "Aggarwal, Yu: condensation (EDBT 2004)"

    history: int = 8000

    def __post_init__(self) -> None:
        self._at_least(1, "history")

    def parts(self, space: Space, limits: Limits, rows: RowArrays, random: Ints) -> Parts:
        """Put rows around centroids."""
        return condensed_parts(space.sides, limits, rows, self.history, random)
