"""Cells that aren't accounted for, and rows that waited or came too late."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from shoal.spec.policy import Policy, Window, ZAnonymity
from tests.audit.z.world import CellWorld, stream

Change = Callable[[CellWorld], None]


def policy(z: int = 2, **given: Any) -> Policy:
    return Policy(ZAnonymity(z), **({"window": Window(seconds=10)} | given))


@pytest.fixture
def world() -> CellWorld:
    return CellWorld(original=stream(1)).run()


@pytest.fixture
def gappy() -> CellWorld:
    lenient = policy(missing="maybe", lateness=2.0)
    return CellWorld(policy=lenient, original=stream(2, gaps=0.2, jitter=4)).run()


# -- rows that aren't read yet ---------------------------------------------------------------------


@pytest.mark.parametrize("n_unread", [0, 1, 40])
def test_a_stopped_job_may_not_have_read_the_last_rows(world: CellWorld, n_unread: int) -> None:
    end = len(world.original) - n_unread
    world.trace = [line for line in world.trace if line["row"] < end]
    n_shown = len({line["seq"] for line in world.trace if line["seq"] is not None})
    world.published = world.published[:n_shown]
    assert ("conservation" in world.broken()) == (n_unread > 0)
    found = world.report(may_hold=True)["conservation"]
    assert found.verdict == ("unverifiable" if n_unread else "kept")
    assert (f"{n_unread:,} rows of the input come after all lines" in found.detail) == (
        n_unread > 0
    )
    # Of a row before them, no line may be missing.
    world.trace = [line for line in world.trace if line["row"] != 5]
    assert "conservation" in world.broken(may_hold=True)


# -- delay and lateness ----------------------------------------------------------------------------


def decided_later(world: CellWorld) -> None:
    world.trace[3]["published"] += 1


def decided_at_another_time(world: CellWorld) -> None:
    world.trace[3]["published_s"] += 0.5


def arrived_at_another_time(world: CellWorld) -> None:
    for line in world.trace:
        line["arrived_s"] = line["published_s"] = 0.0


def arrived_at_no_time(world: CellWorld) -> None:
    world.trace[3]["arrived_s"] = world.trace[3]["published_s"] = None


@pytest.mark.parametrize(
    "change",
    [decided_later, decided_at_another_time, arrived_at_another_time, arrived_at_no_time],
)
def test_what_waited(world: CellWorld, change: Change) -> None:
    change(world)
    assert world.broken() == {"delay"}


def test_times_of_arrival_may_be_rounded(world: CellWorld) -> None:
    for line in world.trace:
        line["arrived_s"] = line["published_s"] = line["arrived_s"] + 5e-7
    assert world.report().verdict == "kept"
    arrived_at_another_time(world)
    assert world.report()["delay"].figures["n_mistimed"] == len(world.trace) - 5


def test_rows_that_changed_places(world: CellWorld) -> None:
    places = {0: 1, 1: 0}
    for line in world.trace:
        line["seq"] = places.get(line["seq"], line["seq"])
    world.published[:2] = world.published[1::-1]
    assert world.broken() == {"delay"}


def test_rows_that_came_too_late(gappy: CellWorld) -> None:
    assert gappy.report()["lateness"].verdict == "kept"
    gappy.policy = policy(missing="maybe", lateness=0.25)
    assert gappy.broken() == {"lateness"}
    gappy.policy = policy(missing="maybe", lateness=2.0)
    gappy.original[20]["at"] = None
    assert "lateness" in gappy.broken()


# -- conservation ----------------------------------------------------------------------------------


def unknown_outcome(world: CellWorld) -> None:
    world.cells("suppressed")[0]["outcome"] = "reuse"


def no_row(world: CellWorld) -> None:
    world.cells("quarantined")[0]["row"] = None


def no_attribute(world: CellWorld) -> None:
    world.cells("suppressed")[0]["attribute"] = "CANARY"


def bad_with_attribute(world: CellWorld) -> None:
    world.cells("quarantined")[0]["attribute"] = "page"


def bad_twice(world: CellWorld) -> None:
    world.trace.append(dict(world.cells("quarantined")[0]))


def cell_twice(world: CellWorld) -> None:
    world.trace.append(dict(world.cells("suppressed")[0]))


def bad_and_decided(world: CellWorld) -> None:
    world.trace.append(world.cells("quarantined")[0] | {"row": world.cells("group")[0]["row"]})


def row_without_line(world: CellWorld) -> None:
    world.trace.remove(world.cells("quarantined")[0])


def bad_has_arrived(world: CellWorld) -> None:
    world.cells("quarantined")[0]["arrived"] = 5


def bad_has_a_place(world: CellWorld) -> None:
    world.cells("quarantined")[0]["seq"] = 0


def lines_disagree(world: CellWorld) -> None:
    last = [line for line in world.trace if line["seq"] is not None][-1]
    last["seq"] = 0


def hidden_is_shown(world: CellWorld) -> None:
    cell = next(line for line in world.cells("suppressed") if line["attribute"] == "page"
                and line["seq"] is not None)  # fmt: skip
    world.published[cell["seq"]]["page"] = "x"


def published_shows_nothing(world: CellWorld) -> None:
    cell = next(line for line in world.cells("group") if line["attribute"] == "page")
    world.published[cell["seq"]]["page"] = None


def hidden_has_a_level(world: CellWorld) -> None:
    world.cells("suppressed")[0]["level"] = 0


def value_is_called_missing(world: CellWorld) -> None:
    world.cells("suppressed")[0]["outcome"] = "missing"


def gap_is_called_hidden(world: CellWorld) -> None:
    world.cells("missing")[0]["outcome"] = "suppressed"


def row_beyond_the_input(world: CellWorld) -> None:
    world.original.pop()


def row_is_not_told_of(world: CellWorld) -> None:
    world.original.append(dict(world.original[-1]))


@pytest.mark.parametrize(
    "change",
    [
        unknown_outcome, no_row, no_attribute, bad_with_attribute, bad_twice, cell_twice,
        bad_and_decided, row_without_line, bad_has_arrived, bad_has_a_place, lines_disagree,
        hidden_is_shown, published_shows_nothing, hidden_has_a_level, value_is_called_missing,
        gap_is_called_hidden, row_beyond_the_input, row_is_not_told_of,
    ],
)  # fmt: skip
def test_what_is_not_accounted_for(gappy: CellWorld, change: Change) -> None:
    assert gappy.report().verdict == "kept"
    change(gappy)
    assert "conservation" in gappy.broken()
    assert "CANARY" not in str(gappy.report())


def test_places_in_the_output(world: CellWorld) -> None:
    row = world.published[0]
    world.published.append(dict(row))
    assert "conservation" in world.broken()
    world.published.pop()
    seen = next(line["row"] for line in world.trace if line["seq"] == 1)
    for line in world.trace:
        if line["row"] == seen:
            line["seq"] = 0
    assert "places in the output are those of several rows" in str(world.report()["conservation"])
    for line in world.trace:
        if line["row"] == seen:
            line["seq"] = None
    assert "have no place in the output" in str(world.report()["conservation"])


def test_suppressed_rows_leave_nothing_or_an_empty_row() -> None:
    world = CellWorld(policy=policy(4, window=Window(seconds=5)), original=stream(3)).run()
    assert any(line["seq"] is None for line in world.trace)
    assert world.report().verdict == "kept"
    assert world.broken(suppressed="root") == {"conservation"}
    world.settings = {"suppressed": "root"}
    world.run()
    assert world.broken(suppressed="drop") == {"conservation"}
    empty = next(row for row in world.published if row["note"] is None)
    empty["note"] = "CANARY"
    assert world.broken() == {"conservation"}


def test_rows_that_lack_something_are_to_be_quarantined(gappy: CellWorld) -> None:
    gappy.policy = policy(lateness=2.0)
    assert gappy.broken() == {"conservation"}
    gappy.original[gappy.cells("group")[0]["row"]]["who"] = None
    assert "without a subject" in gappy.report()["conservation"].detail


def test_the_quarantine_is_counted(gappy: CellWorld) -> None:
    n = len(gappy.cells("quarantined"))
    assert gappy.report(n_quarantined=n).verdict == "kept"
    assert gappy.broken(n_quarantined=n + 1) == {"conservation"}


def test_rows_that_could_not_be_read_are_not_in_the_original(world: CellWorld) -> None:
    """The third row of the input is broken: it has a line, and the others their positions."""
    for line in world.trace:
        line["row"] += line["row"] >= 3
    world.trace.append(dict.fromkeys(world.trace[0]) | {"row": 3, "outcome": "quarantined"})
    rows = np.delete(np.arange(61), 3)
    assert world.report(original_rows=rows).verdict == "kept"
    rows[-1] = 99
    assert "conservation" in world.broken(original_rows=rows)
