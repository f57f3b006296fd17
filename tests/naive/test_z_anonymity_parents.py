"""The twin of z-anonymity: what a published parent tells; and the oracle, which decides alike."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.engine.space import Codes
from shoal.spec.criteria import ZAnonymity
from shoal.spec.ladder import Path
from shoal.spec.policy import Policy, Window
from shoal.spec.schema import Quasi, Schema
from shoal.testing.streams import Stream
from shoal.testing.z.codes import keys_of
from shoal.testing.z.definitions import Count, ExposureHistory, alike, behind, finest, path
from tests.algorithms.events import N_LEVELS, STREAMS, WINDOWS, stream
from tests.examples import examples
from tests.naive.z_anonymity import Crowds, Decision, NaiveZAnonymity, Node, Row, run

pytestmark = pytest.mark.plain

# -- what else a subject might have exposed ------------------------------------------------------


def counts(leaf: Node, below: int, crowds: Crowds, z: int) -> bool:
    """Whether all nodes from a leaf up to below a level count for the one above them."""
    attribute, _, labels = leaf
    nodes = [(attribute, level, labels[level:]) for level in range(below)]
    return all(len(crowds.get(node, set())) <= z - 2 for node in nodes)


def others_behind(before: NaiveZAnonymity, row: Row, attribute: int, level: int) -> list[Node]:
    """The leaves behind a parent when a row comes, and one that nobody has exposed."""
    time, _, cells = row
    labels = cells[attribute]
    assert labels is not None
    window = copy.deepcopy(before)
    now = window.move_on(time)
    window.forget(now, [])
    crowds = window.crowds(now, window.z, residual=True)
    fresh = *(f"new {n}" for n in range(level)), *labels[level:]
    leaves = [leaf for leaf in window.exposed if leaf[0] == attribute]
    leaves = [leaf for leaf in leaves if leaf[2][level:] == labels[level:]]
    leaves = [leaf for leaf in leaves if counts(leaf, level, crowds, window.z)]
    return [*leaves, (attribute, 0, fresh)]


def count_others(rows: Sequence[Row], z: int, n_window: int) -> int:
    """Replace each cell that is published above its leaf by all that would do as well."""
    twin, n_others = NaiveZAnonymity(z, window_rows=n_window), 0
    for row in rows:
        time, subject, cells = row
        before, decision = copy.deepcopy(twin), twin.push(row)
        for attribute, level in enumerate(decision.levels):
            for _, _, labels in others_behind(before, row, attribute, level) if level else []:
                instead = [labels if a == attribute else cell for a, cell in enumerate(cells)]
                assert copy.deepcopy(before).push((time, subject, instead)) == decision
                n_others += 1
    return n_others


@settings(max_examples=examples(40), deadline=None, derandomize=True, database=None)
@given(rows=STREAMS, z=st.integers(3, 8), n_window=st.sampled_from([9, 40]))
def test_a_parent_doesnt_tell_which_leaf_that_counts_it_stands_for(
    rows: list[Row], z: int, n_window: int
) -> None:
    count_others(rows, z, n_window)


def test_there_are_such_leaves() -> None:
    assert count_others(stream(3, 60, 30), 5, 40) > 50


# -- the oracle ----------------------------------------------------------------------------------


def as_stream(rows: Sequence[Row], z: int, window: dict[str, Any]) -> Stream:
    """Rows of the twin, as the oracle reads them."""
    quasi = [Quasi(f"q{a}", Path("*", levels=n_levels)) for a, n_levels in enumerate(N_LEVELS)]
    schema = Schema("person", quasi, time="at")
    keys = [
        [
            key
            for attribute, labels in enumerate(cells)
            for key in ([0] * N_LEVELS[attribute] if labels is None else keys_of(attribute, labels))
        ]
        for _, _, cells in rows
    ]
    codes = Codes(
        values=np.empty((len(rows), 0)),
        subjects=np.array([subject for _, subject, _ in rows], np.int64),
        sensitive=np.empty((len(rows), 0), np.int64),
        times=np.array([math.nan if time is None else time for time, _, _ in rows]),
        keys=np.array(keys, np.int64),
    )
    reach = Window(**{name.removeprefix("window_"): n for name, n in window.items()})
    return Stream(schema, Policy(ZAnonymity(z), window=reach, missing="maybe"), codes)


def by_oracle(windows: ExposureHistory, zs: Sequence[int], count: Count) -> list[Decision]:
    """What the oracle decides under the z of each row."""
    decisions: list[Decision] = []
    published: dict[int, list[int]] = {}
    for row, z in enumerate(zs):
        who = windows.subjects[row]
        leaves = windows.leaves(row, included=False)
        crowds = behind(leaves, z, count, windows.shown(row, published))
        levels: list[int | None] = []
        n_behind = []
        for attribute, keys in enumerate(windows.cells[row]):
            level = None if keys is None else finest((attribute, keys), who, crowds, z)
            levels.append(level)
            nodes = path((attribute, keys or ()))
            n_behind.append(0 if level is None else len(crowds.get(nodes[level], set()) | {who}))
        published[row] = [-1 if level is None else level for level in levels]
        decisions.append(Decision(tuple(levels), tuple(n_behind), z))
    return decisions


@settings(max_examples=examples(80), deadline=None, derandomize=True, database=None)
@given(
    rows=STREAMS,
    z=st.integers(1, 6),
    window=WINDOWS,
    count=st.sampled_from(["residual", "residual", "plain"]),
    probability=st.sampled_from([0.0, 0.6, 1.0]),
    k=st.integers(2, 4),
)
def test_twin_and_oracle_decide_alike(
    rows: list[Row], z: int, window: dict[str, Any], count: Count, probability: float, k: int
) -> None:
    probability = 0.0 if count == "plain" else probability
    decisions, estimates = run(rows, z=z, count=count, probability=probability, k=k, **window)
    windows = ExposureHistory(as_stream(rows, z, window))
    assert by_oracle(windows, [decision.z for decision in decisions], count) == decisions
    published = {
        row: [-1 if level is None else level for level in decision.levels]
        for row, decision in enumerate(decisions)
    }
    for estimate in estimates:
        leaves = windows.leaves(estimate.row, included=False)
        shown = windows.shown(estimate.row, published)
        n_subjects, share, entropy = alike(leaves, estimate.z_after, k, shown)
        assert (n_subjects, share) == (estimate.n_subjects, estimate.share)
        assert entropy == pytest.approx(estimate.entropy, abs=1e-12)
