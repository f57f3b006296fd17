"""The audit of z-anonymity: a right run keeps every promise, and what is changed is found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from shoal.audit import audit
from shoal.errors import ParameterError
from shoal.spec.ladder import Open
from shoal.spec.policy import KAnonymity, Policy, Window, ZAnonymity
from shoal.spec.schema import Quasi, Schema
from tests.audit.z.world import SCHEMA, CellWorld, ladder, stream

Z = "z-anonymity"
ALL = ["shape", "secrecy", Z, "delay", "conservation", "labels"]


def policy(z: int = 2, **given: Any) -> Policy:
    return Policy(ZAnonymity(z), **({"window": Window(seconds=10)} | given))


@pytest.fixture
def world() -> CellWorld:
    return CellWorld(policy=policy(4), original=stream(1)).run()


@pytest.fixture
def gappy() -> CellWorld:
    lenient = policy(missing="maybe", lateness=2.0)
    return CellWorld(policy=lenient, original=stream(2, gaps=0.2, jitter=4)).run()


def kept(world: CellWorld, **given: Any) -> dict[str, str]:
    return {verdict.name: verdict.verdict for verdict in world.report(**given).verdicts}


Change = Callable[[CellWorld], None]


# -- what is right ---------------------------------------------------------------------------------


def test_a_right_run_keeps_every_promise(world: CellWorld) -> None:
    assert kept(world) == dict.fromkeys(ALL, "kept")
    found = world.report()[Z].figures
    n_published = len(world.cells("group"))
    assert found["n_published"] == n_published
    assert (found["n_broken"], found["smallest"], found["largest_z"]) == (0, 4, 4)
    assert (found["n_coarser"], found["n_hidden_more"]) == (0, 0)
    by_level = [found[f"n_level_{i}"] for i in range(3)]
    assert sum(by_level) == n_published
    assert all(by_level)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(
    ("promise", "settings"),
    [
        (policy(3), {}),
        (policy(5), {}),
        (policy(4, window=Window(rows=12), missing="maybe"), {}),
        (policy(3), {"count": "plain"}),
        (policy(2, window=Window(rows=12)), {}),
        (policy(3, lateness=1.5, missing="maybe"), {"suppressed": "root"}),
        (policy(2, missing="maybe"), {"time": 5.0}),
        (policy(2), {"time": 0}),
        (policy(2), {"pseudonym": True, "rotate": 20.0}),
        (policy(2, window=Window(rows=9)), {"pseudonym": True, "rotate": 25.0}),
    ],
)
def test_whatever_is_promised_a_right_run_keeps_it(
    seed: int, promise: Policy, settings: dict[str, Any]
) -> None:
    rows = stream(seed, gaps=0.1, jitter=3)
    report = CellWorld(policy=promise, original=rows, settings=settings).run().report()
    assert report.verdict == "kept", str(report)
    figures = report[Z].figures
    assert (figures["n_coarser"], figures["n_hidden_more"]) == (0, 0)
    names = {verdict.name for verdict in report.verdicts}
    assert ("lateness" in names) == (promise.lateness is not None)
    assert ("pseudonyms" in names) == ("pseudonym" in settings)


@pytest.mark.parametrize("seed", range(4))
def test_a_z_that_moves_is_followed(seed: int) -> None:
    rows = stream(seed)
    z = [3] * 20 + [5] * 20 + [4] * 20
    world = CellWorld(policy=policy(3), original=rows).run(z)
    report = world.report()
    assert report.verdict == "kept", str(report)
    figures = report[Z].figures
    assert (figures["n_coarser"], figures["n_hidden_more"]) == (0, 0)
    assert figures["largest_z"] == 5
    assert "where z was raised" in report[Z].detail


@pytest.mark.parametrize("seed", range(3))
def test_a_stream_without_a_clock(seed: int) -> None:
    schema = Schema(subject="who", quasi=SCHEMA.quasi, keep=["note"])
    promise = policy(3, window=Window(rows=14))
    world = CellWorld(schema=schema, policy=promise, original=stream(seed)).run()
    for line in world.trace:
        line["arrived_s"] = line["published_s"] = None
    assert world.report().verdict == "kept"
    world.policy = policy(3, window=Window(rows=7))
    assert world.broken() == {Z}


def test_a_stream_without_rows() -> None:
    report = CellWorld().run().report()
    assert report.verdict == "kept"
    assert report[Z].figures["smallest"] is None


def test_a_stream_of_bad_rows_only() -> None:
    world = CellWorld(original=[{**row, "who": None} for row in stream(1, 5)]).run()
    assert world.report().verdict == "kept"


# -- what can't be seen is never called kept -------------------------------------------------------


def test_without_a_trace_only_the_file_itself_can_be_judged(gappy: CellWorld) -> None:
    gappy.settings = {"pseudonym": True, "rotate": 9.0}
    gappy.run()
    found = kept(gappy, trace=False)
    assert {name for name, verdict in found.items() if verdict == "kept"} == {"shape", "secrecy"}
    assert "broken" not in found.values()
    assert "needs a trace" in gappy.report(trace=False)[Z].detail


def test_without_the_original_the_trace_is_judged_alone(gappy: CellWorld) -> None:
    found = kept(gappy, original=False)
    assert {name for name, verdict in found.items() if verdict != "kept"} == {
        Z, "labels", "lateness",
    }  # fmt: skip
    assert "needs the original" in gappy.report(original=False)[Z].detail


def test_without_the_original_pseudonyms_go_by_the_times_of_the_trace(world: CellWorld) -> None:
    world.settings = {"pseudonym": True, "rotate": 20.0}
    world.run()
    assert world.report(original=False)["pseudonyms"].verdict == "kept"
    for line in world.trace:
        line["arrived_s"] = line["published_s"] = None
    assert world.report(original=False)["pseudonyms"].verdict == "unverifiable"
    assert world.report(rotate=None)["pseudonyms"].verdict == "unverifiable"


def test_a_trace_that_does_not_fit_confirms_nothing(world: CellWorld) -> None:
    hidden = world.cells("suppressed")[0]
    world.trace.remove(hidden)
    found = kept(world)
    assert (found["conservation"], found[Z], found["labels"]) == ("broken", *["unverifiable"] * 2)


def test_an_output_that_lacks_a_row_confirms_nothing(world: CellWorld) -> None:
    world.published.pop()
    found = kept(world)
    assert (found["conservation"], found[Z]) == ("broken", "unverifiable")


# -- changes that break a promise ------------------------------------------------------------------


def hidden_is_published(world: CellWorld) -> None:
    """A cell with too few people behind it, in a row that is there."""
    cell = next(line for line in world.cells("suppressed") if line["seq"] is not None)
    quasi = next(q for q in world.schema.quasi if q.name == cell["attribute"])
    labels = ladder(quasi, world.original[cell["row"]])
    assert labels is not None
    cell |= {"outcome": "group", "level": 0, "loss": 0.0}
    world.published[cell["seq"]][quasi.name] = labels[0]


def published_finer(world: CellWorld) -> None:
    cell = world.cells("group", least=1)[0]
    quasi = next(q for q in world.schema.quasi if q.name == cell["attribute"])
    labels = ladder(quasi, world.original[cell["row"]])
    assert labels is not None
    cell["level"] -= 1
    world.published[cell["seq"]][quasi.name] = labels[cell["level"]]


def z_is_lower(world: CellWorld) -> None:
    for line in world.trace:
        line["z"] = 1


def z_is_not_told(world: CellWorld) -> None:
    world.cells("group")[0]["z"] = None


def z_is_told_too_high(world: CellWorld) -> None:
    for line in world.trace:
        line["z"] = 50


def somebody_is_taken_for_another(world: CellWorld) -> None:
    for row in world.original:
        row["who"] = row["who"] if row["who"] == "a" else "b"


def level_is_wrong(world: CellWorld) -> None:
    world.cells("group")[0]["level"] = 9


def level_is_not_told(world: CellWorld) -> None:
    world.cells("group")[0]["level"] = None


@pytest.mark.parametrize(
    ("change", "broken"),
    [
        (hidden_is_published, {Z}),
        (published_finer, {Z}),
        (z_is_lower, {Z}),
        (z_is_not_told, {Z}),
        (z_is_told_too_high, {Z}),
        (somebody_is_taken_for_another, {Z, "labels"}),
        (level_is_wrong, {Z, "labels"}),
        (level_is_not_told, {Z, "labels"}),
    ],
)
def test_too_few_people(world: CellWorld, change: Change, broken: set[str]) -> None:
    change(world)
    assert world.broken() == broken


def test_a_z_below_the_promise_is_broken_without_the_original(world: CellWorld) -> None:
    z_is_lower(world)
    assert world.broken(original=False) == {Z}


def test_more_may_be_hidden_than_must_be(world: CellWorld) -> None:
    cell = next(
        line
        for line in world.cells("group")
        if sum(one["seq"] == line["seq"] for one in world.cells("group")) > 1
    )
    cell |= {"outcome": "suppressed", "level": None}
    world.published[cell["seq"]][cell["attribute"]] = None
    report = world.report()
    assert report.verdict == "kept"
    assert report[Z].figures["n_hidden_more"] >= 1
    assert "hidden cells could have been published" in report[Z].detail


def test_a_published_parent_must_stand_for_people_that_no_child_stands_for() -> None:
    """Two at one child, one at another: by the plain rule the parent betrays the one."""
    schema = Schema(subject="who", quasi=[SCHEMA.quasi[1]], time="at")
    rows = [
        {"who": who, "area": area, "at": 0.0}
        for who, area in [("a", "it*to*x"), ("b", "it*to*x"), ("c", "it*to*y")]
    ]
    world = CellWorld(schema=schema, original=rows, settings={"count": "plain"}).run()
    last = world.line(2, "area")
    assert (last["outcome"], last["level"]) == ("group", 1)
    report = world.report()
    assert report.verdict == "kept"
    assert "plain rule" in report[Z].detail
    assert world.broken(count="residual") == {Z}
    world.settings = {}
    assert world.run().line(2, "area")["outcome"] == "suppressed"
    assert world.report().verdict == "kept"


# -- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ({"count": "most"}, "count"),
        ({"rotate": 5.0}, "rotate"),
        ({"pseudonym": True, "rotate": 0.0}, "rotate"),
        ({"time": -1.0}, "time"),
        ({"time": float("nan")}, "time"),
    ],
)
def test_settings_that_make_no_sense(world: CellWorld, given: dict[str, Any], key: str) -> None:
    with pytest.raises(ParameterError, match=key):
        world.report(**given)


def test_a_trace_of_rows_is_refused(world: CellWorld) -> None:
    lines = world.lines().drop_columns(["attribute", "level"])
    with pytest.raises(ParameterError, match=r"lacks the columns attribute, level of a trace"):
        audit(world.schema, world.policy, world.table(), trace=lines)


def test_pseudonyms_and_times_are_for_z_alone() -> None:
    schema = Schema(subject="who", quasi=[SCHEMA.quasi[2]])
    table = pa.table({"food": ["*"]})
    for given in ({"pseudonym": True}, {"time": 5.0}):
        with pytest.raises(ParameterError, match="under z-anonymity alone"):
            audit(schema, Policy(KAnonymity(2)), table, **given)  # type: ignore[arg-type]


def test_one_open_column_of_numbers() -> None:
    """Figure 1 of the paper in short: the third person makes the value public."""
    schema = Schema(subject="who", quasi=[Quasi("item", Open())], time="at")
    rows = [{"who": who, "item": 7.0, "at": float(i)} for i, who in enumerate("abcb")]
    world = CellWorld(schema=schema, policy=policy(3), original=rows).run()
    for row in world.published:
        row["item"] = "7"
    assert [line["outcome"] for line in world.trace] == ["suppressed"] * 2 + ["group"] * 2
    assert world.report().verdict == "kept"
