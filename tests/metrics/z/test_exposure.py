"""What z-anonymity let through: fast against slow, and figures that can be told by hand."""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from shoal.errors import ParameterError
from shoal.metrics import ValueExposure, value_exposure
from shoal.metrics.z.labels import label_codes
from shoal.spec.ladder import Open, Path, level_labels
from shoal.spec.policy import KAnonymity, Policy, Window, ZAnonymity
from shoal.spec.schema import Quasi, Schema
from tests.audit.z.world import SCHEMA, CellWorld, ladder, stream


def ran(seed: int, window: Window, z: int = 2) -> CellWorld:
    policy = Policy(ZAnonymity(z), window=window, missing="maybe", lateness=2.0)
    return CellWorld(policy=policy, original=stream(seed, gaps=0.15, jitter=4)).run()


def measured(world: CellWorld, **given: Any) -> ValueExposure:
    return value_exposure(world.schema, world.policy, world.input(), world.lines(), **given)


def entropy(sets: list[frozenset[Any]]) -> float:
    return -sum(n / len(sets) * math.log(n / len(sets)) for n in Counter(sets).values())


def slow(world: CellWorld, k: int) -> tuple[list[list[float]], list[list[float]]]:
    """Line by line: the figures of each window, and those of each value, in any order."""
    window = world.policy.window
    assert isinstance(window, Window)
    decided = [line for line in world.trace if line["outcome"] in ("group", "suppressed")]
    begin = min(line["arrived_s"] for line in decided)
    exposed: dict[tuple[int, str], set[Any]] = {}
    shown: dict[tuple[int, str], set[Any]] = {}
    as_is: dict[tuple[int, str], set[Any]] = {}
    for line in decided:
        number = line["arrived"] // window.rows if window.rows else 0
        if window.seconds is not None:
            number = math.floor((line["arrived_s"] - begin) / window.seconds)
        pair = number, line["subject"]
        name = line["attribute"]
        quasi = next(quasi for quasi in world.schema.quasi if quasi.name == name)
        labels = ladder(quasi, world.original[line["row"]])
        assert labels is not None
        exposed.setdefault(pair, set()).add((name, labels[0]))
        shown.setdefault(pair, set())
        as_is.setdefault(pair, set())
        if line["outcome"] == "group":
            shown[pair].add((name, labels[line["level"]]))
            if line["level"] == 0:
                as_is[pair].add((name, labels[0]))
    windows = []
    for number in sorted({number for number, _ in exposed}):
        pairs = [pair for pair in exposed if pair[0] == number]
        sets = [frozenset(shown[pair]) for pair in pairs]
        crowds = Counter(sets)
        share = sum(crowds[one] >= k for one in sets) / len(sets)
        all_ = entropy([frozenset(exposed[pair]) for pair in pairs])
        windows.append([len(pairs), share, entropy(sets), all_])
    ranks = []
    for value in set().union(*exposed.values()):
        people = {who for (_, who), values in exposed.items() if value in values}
        shares = [
            sum(value in values for values in sets.values()) / len(exposed)
            for sets in (exposed, as_is)
        ]
        ranks.append([len(people), *shares])
    return windows, ranks


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("window", [Window(seconds=9), Window(rows=15)])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_fast_equals_slow(seed: int, window: Window, k: int) -> None:
    world = ran(seed, window)
    found = measured(world, k=k)
    windows, ranks = slow(world, k)
    together = [found.n_subjects, found.k_anonymous, found.entropy, found.exposed_entropy]
    assert np.stack(together, axis=1) == pytest.approx(np.array(windows))
    assert found.information_loss == pytest.approx(found.exposed_entropy - found.entropy)
    # Values that equally many people exposed may have their ranks in any order.
    shares = np.stack([found.exposed_by_rank, found.published_by_rank], axis=1)
    by_people: dict[int, list[list[float]]] = {}
    for n, *pair in sorted(ranks, reverse=True):
        by_people.setdefault(int(n), []).append(pair)
    begin = 0
    for pairs in by_people.values():
        ranked = sorted(shares[begin : begin + len(pairs)].tolist())
        assert np.array(ranked) == pytest.approx(np.array(sorted(pairs)))
        begin += len(pairs)
    assert begin == len(shares)


def test_shares_by_level() -> None:
    world = ran(1, Window(seconds=9))
    found = measured(world)
    assert found.n_cells == len(world.cells("group")) + len(world.cells("suppressed"))
    for quasi in world.schema.quasi:
        cells = [line for line in world.trace if line["attribute"] == quasi.name]
        levels = [line["level"] for line in cells if line["outcome"] in ("group", "suppressed")]
        shares = found.levels[quasi.name]
        assert shares == pytest.approx([levels.count(i) / len(levels) for i in range(len(shares))])
    assert [len(shares) for shares in found.levels.values()] == [1, 3, 3, 1, 2]


def test_people_with_nothing_published_are_a_crowd() -> None:
    world = ran(1, Window(seconds=9), z=99)
    found = measured(world, k=3)
    # A crowd of three needs three people.
    assert found.k_anonymous.tolist() == (found.n_subjects >= 3).tolist()
    assert found.entropy.tolist() == [0.0] * len(found.n_subjects)
    assert not found.published_by_rank.any()
    assert 0.9 < (found.mean(found.k_anonymous) or 0.0) < 1.0


def test_the_figures_as_plain_values_and_in_words() -> None:
    world = ran(2, Window(rows=20))
    found = measured(world)
    plain: Any = json.loads(json.dumps(found.as_dict()))
    assert plain["n_windows"] == len(plain["windows"]) == 3
    assert [one["rank"] for one in plain["ranks"]] == [1, 2, 5, 10, 20, len(found.exposed_by_rank)]
    weights = [one["n_subjects"] for one in plain["windows"]]
    shares = [one["k_anonymous"] for one in plain["windows"]]
    assert plain["k_anonymous"] == pytest.approx(np.average(shares, weights=weights))
    text = "\n".join(found.lines())
    assert text.startswith(f"{found.n_cells:,} cells of {len(found.exposed_by_rank)} values")
    assert "2-anonymous: " in text
    assert "hidden" in text
    assert repr(found) == f"ValueExposure({found.n_cells} cells, 3 windows, k=2)"
    for words in (text, repr(found), json.dumps(plain)):
        assert "lingotto" not in words


def test_a_run_without_cells() -> None:
    world = CellWorld().run()
    found = measured(world)
    assert found.lines()[0] == "0 cells of 0 values, in 0 windows"
    assert found.as_dict()["k_anonymous"] is None
    assert found.as_dict()["ranks"] == []


def test_what_does_not_belong_together_is_refused() -> None:
    world = ran(1, Window(seconds=9))
    schema, policy, original, trace = world.schema, world.policy, world.input(), world.lines()
    with pytest.raises(ParameterError, match="doesn't promise z"):
        value_exposure(schema, Policy(KAnonymity(2)), original, trace)
    with pytest.raises(ParameterError, match="k"):
        value_exposure(schema, policy, original, trace, k=0)
    with pytest.raises(ParameterError, match="lacks the columns attribute"):
        value_exposure(schema, policy, original, trace.drop_columns(["attribute"]))
    with pytest.raises(ParameterError, match="rows that the input doesn't have"):
        value_exposure(schema, policy, original.slice(0, 3), trace)
    fewer = Schema(subject="who", quasi=SCHEMA.quasi[:2], time="at")
    with pytest.raises(ParameterError, match="attributes that the schema doesn't have"):
        value_exposure(fewer, policy, original, trace)
    gone = original.set_column(
        original.column_names.index("page"), "page", pa.array([None] * len(original), pa.string())
    )
    with pytest.raises(ParameterError, match="cells of page whose values or levels"):
        value_exposure(schema, policy, gone, trace)
    for line in world.trace:
        line["arrived_s"] = None
    with pytest.raises(ParameterError, match="without a time"):
        measured(world)


@pytest.mark.parametrize("quasi", SCHEMA.quasi, ids=lambda quasi: quasi.name)
def test_labels_are_those_of_the_ladder(quasi: Quasi) -> None:
    rows = stream(5, gaps=0.2)
    table = pa.table({name: [row[name] for row in rows] for name in quasi.columns})
    found = label_codes(quasi, table)
    labels: dict[str, int] = {}
    for row, value in zip(rows, found.value, strict=True):
        own = ladder(quasi, row)
        assert (own is None) == (value < 0)
        for label, code in zip(own or (), found.labels[value], strict=False):
            assert labels.setdefault(label, code) == code
    assert len(set(labels.values())) == len(labels)


def test_labels_of_text_that_is_a_dictionary_or_numbers() -> None:
    table = pa.table({"page": pa.array([" 7", "7", None]).dictionary_encode()})
    assert label_codes(Quasi("page", Open()), table).value.tolist() == [0, 0, -1]
    table = pa.table({"page": [7.0, float("nan"), 8.0]})
    found = label_codes(Quasi("page", Path("*", levels=2)), table)
    assert (found.value >= 0).tolist() == [True, False, True]
    assert level_labels(Path("*", levels=2), "7") == ("7", "7")
