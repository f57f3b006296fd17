"""SABRE-KNN beside SABRE-AK (whose tests are in `test_sabre_ak`): it looks at all rows."""

from __future__ import annotations

import random

import numpy as np

from shoal import Codes, Policy, Quasi, Range, Schema, Sensitive, TCloseness
from shoal.algorithms.sabre_ak import SabreAk
from shoal.algorithms.sabre_knn import SabreKnn
from shoal.engine.base import Anonymizer
from shoal.spec.criteria import KAnonymity
from tests.algorithms.rows import groups
from tests.algorithms.test_emd_twin_examples import RAGGED
from tests.tables import Table, spread

PLANE = Schema(
    "p", [Quasi("x", Range(0, 100)), Quasi("y", Range(0, 100))], [Sensitive("s", RAGGED)]
)


def scattered(seed: int, n: int = 160) -> Codes:
    draw = random.Random(seed)
    return Codes(
        np.array([[draw.uniform(0, 100), draw.uniform(0, 100)] for _ in range(n)]),
        np.arange(n),
        np.array([[draw.randrange(4)] for _ in range(n)]),
        np.full(n, np.nan),
    )


def test_it_loses_less_than_what_looks_along_the_curve_only() -> None:
    policy = Policy(KAnonymity(4), TCloseness(0.2), window="all")

    def loss(recipe: Anonymizer) -> float:
        lost = 0.0
        for seed in range(4):
            engine = recipe.start(PLANE, policy, seed=b"1")
            engine.push(scattered(seed))
            lost += float(engine.flush().losses.mean())
        return lost

    along = loss(SabreAk(look=1))
    assert loss(SabreKnn()) < 0.95 * along
    assert loss(SabreAk(look=8)) < 0.95 * along


def test_equally_near_rows_are_taken_in_the_order_of_the_curve() -> None:
    # All at one place: nothing tells rows apart but when they came.
    points = [(50, n, value) for n, (_, _, value) in enumerate(spread([6, 6]))]
    table = Table(points, KAnonymity(2), TCloseness(0.1), domains=[RAGGED])
    found = [sorted(group) for group in groups(table.run("sabre-knn"))]
    assert found == [[n, n + 6] for n in range(6)]


def test_its_recipe_has_no_knob_for_looking() -> None:
    assert repr(SabreKnn()) == "SabreKnn(loss='glm')"
