"""z-anonymity: publish each value at once or hide it, by the number of subjects that share it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import ClassVar, Literal

from shoal.engine.base import Anonymizer, Engine, Publishes
from shoal.engine.space import Space
from shoal.engine.z.base import ZKnobs
from shoal.engine.z.flat import FlatEngine
from shoal.engine.z.ladders import LadderEngine
from shoal.errors import ParameterError
from shoal.spec.policy import Criterion, Missing, ZAnonymity

__all__ = ["ZAnonymizer"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class ZAnonymizer(Anonymizer):
    """Publish a value if at least z subjects have exposed it in the window that ends with it.

    Nothing is held: every value is decided when it comes, whatever the other values of its row. A
    value with a ladder of more general labels (a hierarchy, a path, a grid) is published at the
    finest level that z subjects share; a value with no such level is hidden.

    Parameters
    ----------
    count
        Who counts for a level. ``"residual"``: the subjects whose finer value can't be published.
        ``"plain"``: all who exposed anything below it, as the authors' own package counts; then a
        level that is popular because of one value is published for a rare one and reveals it.
    probability
        The share of subjects that should have the same published values in a window as ``k`` - 1
        others. Above 0, each estimate raises z as far as that needs, or lowers it again, but never
        below the policy's z. 0 leaves z as it is.
    k
        The size of the sets of subjects that ``probability`` asks for.
    estimates
        How many times per window length that share is estimated; 0: never.

    >>> import pyarrow as pa
    >>> from shoal import Open, Policy, Quasi, Schema, Window, ZAnonymity, anonymize
    >>> visits = pa.table({"user": [1, 2, 2, 3], "site": ["a.org"] * 4, "at": [0.0, 1, 2, 3]})
    >>> schema = Schema("user", [Quasi("site", Open())], time="at")
    >>> policy = Policy(ZAnonymity(3), window=Window(seconds=60))
    >>> # Only the last visit has two other users before it.
    >>> anonymize(visits, schema, policy, ZAnonymizer())["site"].to_pylist()
    ['a.org']

    References
    ----------
    N. Jha, L. Vassio, M. Trevisan, E. Leonardi, M. Mellia, "Practical anonymization for
    data streams: z-anonymity and relation with k-anonymity", Performance Evaluation 159, 2023.
    """

    name: ClassVar[str] = "z-anonymity"
    enforces: ClassVar[tuple[type[Criterion], ...]] = (ZAnonymity,)
    reference: ClassVar[str] = "Jha et al. 2023, Algorithm 1"
    needs_delay: ClassVar[bool] = False
    publishes: ClassVar[Publishes] = "values"
    missing: ClassVar[tuple[Missing, ...]] = ("quarantine", "maybe")

    count: Literal["residual", "plain"] = "residual"
    probability: float = 0.0
    k: int = 2
    estimates: int = 1

    def __post_init__(self) -> None:
        self._one_of("count", ("residual", "plain"))
        self._at_least(2, "k")
        self._at_least(0, "estimates")
        self._at_most(1000, "estimates")
        self._between(0.0, 1.0, "probability")
        if self.probability and not self.estimates:
            raise ParameterError(
                "ZAnonymizer.estimates",
                "must be at least 1, since z follows them",
                got=repr(self.estimates),
            )
        if self.probability and self.count == "plain":
            raise ParameterError(
                "ZAnonymizer.probability",
                'goes with count = "residual" only',
                fix='Leave one of the two out: what "plain" publishes isn\'t estimated',
            )

    def promised_by_knobs(self) -> Mapping[str, float]:
        """Return 1 for ``residual``; and what z is raised for, which counts if it is raised."""
        return {
            "count": float(self.count == "residual"),
            "probability": float(self.probability),
            "k": float(self.k if self.probability else 0),
        }

    def _start(self, space: Space, seed: bytes) -> Engine:
        knobs = ZKnobs(self.count == "plain", float(self.probability), self.k, self.estimates)
        engine = FlatEngine if max(space.n_levels) == 1 else LadderEngine
        return engine(space, knobs, seed)
