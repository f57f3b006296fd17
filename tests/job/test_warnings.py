"""What a job allows, and is warned about."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.algorithms import find
from shoal.algorithms.mondrian import Mondrian
from shoal.algorithms.tide import Tide
from shoal.algorithms.z_anonymity import ZAnonymizer
from shoal.arrow.pseudonyms import Pseudonym
from shoal.arrow.release import Publish
from shoal.job.warnings import warnings_of
from shoal.spec.hierarchy import Range
from shoal.spec.ladder import Open
from shoal.spec.policy import (
    Delay,
    DistinctLDiversity,
    EuclideanCloseness,
    JensenShannonCloseness,
    KAnonymity,
    Policy,
    TCloseness,
    VariationalCloseness,
    Window,
    ZAnonymity,
)
from shoal.spec.schema import Quasi, Schema, Sensitive


def warned(
    *,
    z: int = 20,
    window: Window | None = None,
    keep: tuple[str, ...] = (),
    seed: int | None = None,
    publish: Publish | None = None,
    missing: Any = "quarantine",
    **knobs: Any,
) -> list[str]:
    schema = Schema("who", [Quasi("page", Open())], keep=keep, time="at")
    policy = Policy(ZAnonymity(z), window=window or Window(seconds=3600), missing=missing)
    return list(warnings_of(schema, policy, ZAnonymizer(**knobs), publish or Publish(), seed))


def test_a_plain_promise_of_z_is_nothing_to_warn_of():
    assert warned() == []
    # A value that is missing exposes nothing and tells nobody apart in a group.
    assert warned(missing="maybe") == []
    assert warned(publish=Publish(pseudonym=Pseudonym(3600), time=60)) == []
    assert warned(window=Window(rows=100), publish=Publish(pseudonym=Pseudonym(100))) == []


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"z": 1}, "policy.z = 1 promises nothing"),
        ({"keep": ("note", "ward")}, "schema.keep publishes note, ward as it is"),
        ({"count": "plain"}, 'algorithm.count = "plain" publishes a general value'),
        ({"seed": 7}, "run.seed makes every random choice predictable"),
        (
            {"publish": Publish(pseudonym=Pseudonym(3601))},
            "publish.pseudonym.rotate is longer than policy.window",
        ),
        (
            {"publish": Publish(pseudonym=Pseudonym(101)), "window": Window(rows=100)},
            "publish.pseudonym.rotate is longer than policy.window",
        ),
    ],
)
def test_one_thing_one_warning(given, says):
    (warning,) = warned(**given)
    assert warning.startswith(says)


@pytest.mark.parametrize(
    ("criteria", "keep", "n"),
    [
        ([KAnonymity(2)], ["ward"], 1),
        ([KAnonymity(2)], ["ward", "note"], 1),
        ([KAnonymity(1), TCloseness(0.2)], ["ward"], 1),
        ([DistinctLDiversity(2)], ["ward"], 1),
        ([KAnonymity(2)], [], 0),
        # There is nothing that it could undo.
        ([KAnonymity(1)], ["ward"], 0),
    ],
)
def test_a_kept_column_can_undo_what_is_promised_of_groups(criteria, keep, n):
    domain = Range(0, 9, step=1)
    schema = Schema("who", [Quasi("age", domain)], [Sensitive("pay", domain)], keep)
    policy = Policy(*criteria, window="all")
    found = list(warnings_of(schema, policy, Mondrian(), Publish(), None))
    said = [warning for warning in found if warning.startswith("schema.keep publishes ")]
    assert len(said) == n
    for warning in said:
        assert f"{', '.join(keep)} unchanged" in warning
        assert "Name such a column under schema.quasi, or leave it out" in warning


@pytest.mark.parametrize(("t", "n"), [(0.2, 0), (1, 1), (20, 1)])
def test_a_t_that_allows_everything(t, n):
    domain = Range(0, 9, step=1)
    schema = Schema("who", [Quasi("age", domain)], [Sensitive("pay", domain)])
    policy = Policy(KAnonymity(2), TCloseness(t), window="all")
    found = list(warnings_of(schema, policy, Mondrian(), Publish(), None))
    assert [warning.startswith("policy.t promises nothing") for warning in found] == [True] * n


@pytest.mark.parametrize(
    ("criterion", "n"),
    [
        (EuclideanCloseness(1.4), 0),
        (EuclideanCloseness(1.5), 1),
        (VariationalCloseness(1.0), 1),
        (JensenShannonCloseness(0.99), 0),
    ],
)
def test_a_form_of_t_that_allows_everything(criterion, n):
    schema = Schema("who", [Quasi("age", Range(0, 9, step=1))], [Sensitive("pay")])
    policy = Policy(KAnonymity(2), criterion, window="all")
    found = list(warnings_of(schema, policy, Mondrian(), Publish(), None))
    assert [" promises nothing from " in warning for warning in found] == [True] * n


@pytest.mark.parametrize(
    ("knobs", "says"),
    [
        ({}, []),
        ({"reuse": "best", "joins": "alone"}, []),
        ({"kept": 9}, ["algorithm.kept lets rows join groups that were published before"]),
        ({"kept": 9, "joins": "alone"}, ['algorithm.joins = "alone" lets every row']),
        (
            {"kept": 9, "reuse": "best"},
            ["algorithm.kept lets rows", 'algorithm.reuse = "best" reveals more'],
        ),
    ],
)
@pytest.mark.parametrize("name", ["castle", "fads", "fast", "idea", "k-varp", "iot"])
def test_reuse_is_warned_about_with_what_it_costs(name, knobs, says):
    schema = Schema("who", [Quasi("age", Range(0, 9, step=1))])
    policy = Policy(KAnonymity(2), delay=Delay(rows=9))
    found = list(warnings_of(schema, policy, find(name)(**knobs), Publish(), None))
    assert len(found) == len(says)
    for warning, begin in zip(found, says, strict=True):
        assert warning.startswith(begin)
    if says:
        assert "when somebody came can tell which published row is theirs" in found[0]


@pytest.mark.parametrize(("k", "release"), [(10, "rolling"), (50, "batch")])
def test_a_release_that_is_chosen_by_itself_is_named_with_the_reason(k: int, release: str) -> None:
    schema = Schema("who", [Quasi("age", Range(0, 100))])
    policy = Policy(KAnonymity(k), delay=Delay(rows=1000))
    (said,) = warnings_of(schema, policy, Tide(release="auto"), Publish(), None)
    assert said.startswith(f'algorithm.release = "auto" chooses "{release}": groups of ')
    assert list(warnings_of(schema, policy, Tide(), Publish(), None)) == []
