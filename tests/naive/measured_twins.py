"""The twins of the algorithms for tables and windows by their names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shoal.spec.policy import Policy, Window
from shoal.spec.schema import Schema
from tests.naive.burel import NaiveBurel
from tests.naive.by_window import NaiveByWindow
from tests.naive.dynamic_group import NaiveDynamicGroup
from tests.naive.incognito import NaiveIncognito
from tests.naive.measured import Promises
from tests.naive.mondrian import NaiveMondrian
from tests.naive.parts import Partition
from tests.naive.sabre import NaiveSabre
from tests.naive.space import Space
from tests.naive.whole_table import Make, NaiveWholeTable

__all__ = ["FOR_STREAMS", "FOR_TABLES", "twin"]


def sabre(**knobs: Any) -> Make:
    return lambda space, promises, draw: NaiveSabre(space, promises, draw=draw, **knobs)


def sabre_knn(**knobs: Any) -> Make:
    return sabre(look=None, **knobs)


def burel(**knobs: Any) -> Make:
    return lambda space, promises, draw: NaiveBurel(space, promises, draw=draw, **knobs)


def dynamic_group(**knobs: Any) -> Make:
    return lambda space, promises, draw: NaiveDynamicGroup(space, promises, draw=draw, **knobs)


def without_draws(kind: Callable[..., Partition]) -> Callable[..., Make]:
    def with_knobs(**knobs: Any) -> Make:
        def make(space: Space, promises: Promises, draw: Callable[[int], int]) -> Partition:
            return kind(space, promises, **knobs)

        return make

    return with_knobs


MONDRIAN, INCOGNITO = without_draws(NaiveMondrian), without_draws(NaiveIncognito)
#: What makes the partition, given the knobs.
FOR_TABLES: dict[str, Callable[..., Make]] = {
    "sabre-ak": sabre, "sabre-knn": sabre_knn, "burel": burel,
    "mondrian": MONDRIAN, "t-mondrian": MONDRIAN, "l-mondrian": MONDRIAN, "d-mondrian": MONDRIAN,
    "t-incognito": INCOGNITO, "dynamic-group": dynamic_group,
}  # fmt: skip
FOR_STREAMS: dict[str, Callable[..., Make]] = {
    "sabre-w": sabre, "burel-w": burel, "t-mondrian-w": MONDRIAN,
    "t-incognito-w": INCOGNITO,
}  # fmt: skip


def twin(
    name: str, schema: Schema, policy: Policy, *, loss: str = "glm", seed: bytes = b"", **knobs: Any
) -> NaiveWholeTable:
    """One run of an algorithm: over windows for those whose names end in w, else over all rows."""
    domains = [attribute.domain for attribute in schema.quasi]
    weights = [attribute.weight for attribute in schema.quasi]
    promises = Promises.of(schema, policy)
    common: dict[str, Any] = {"loss": loss, "missing": policy.missing, "seed": seed}
    if name in FOR_TABLES:
        return NaiveWholeTable(domains, weights, promises, FOR_TABLES[name](**knobs), **common)
    window = policy.window
    assert isinstance(window, Window)
    assert window.advance is not None
    return NaiveByWindow(
        domains, weights, promises, FOR_STREAMS[name](**knobs),
        rows=window.rows, advance=window.advance,
        delay_seconds=policy.delay and policy.delay.seconds, **common,
    )  # fmt: skip
