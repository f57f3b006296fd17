"""Losses in the trace, and boxes that are wider than their rows need."""

from __future__ import annotations

import pytest

from shoal.errors import ParameterError
from tests.audit.world import World

#: A tenth of the ages, by their length, and half of the leaves or of the steps between them.
GLM = {"[20, 30]": (10 / 99 + 1 / 2) / 2, "[40, 50]": 10 / 99 / 2}
LM = {"[20, 30]": (10 / 99 + 1 / 3) / 2, "[40, 50]": 10 / 99 / 2}


def with_losses(world: World, losses: dict[str, float]) -> World:
    for line in world.trace:
        if line["seq"] is not None:
            line["loss"] = losses[world.published[line["seq"]]["age"]]
        elif line["outcome"] == "suppressed":
            line["loss"] = 1.0
    return world


@pytest.mark.parametrize(
    ("measure", "losses", "kept"),
    [
        ("glm", GLM, True), ("lm", LM, True), ("uncertainty", LM, True), (None, GLM, True),
        (None, LM, True), ("glm", LM, False), ("lm", GLM, False),
    ],
)  # fmt: skip
def test_losses_are_those_of_the_measure(
    world: World, measure: str | None, losses: dict[str, float], kept: bool
) -> None:
    world.options["loss"] = measure
    verdict = with_losses(world, losses).report()["loss"]
    assert (verdict.verdict == "kept") == kept
    assert verdict.figures["n_false"] == (0 if kept else 4)


@pytest.mark.parametrize(("row", "loss"), [(0, 0.2), (6, 0.9), (8, 0.0), (7, 1.0), (3, None)])
def test_one_false_loss_is_found(world: World, row: int, loss: float | None) -> None:
    with_losses(world, GLM).line(row)["loss"] = loss
    assert world.broken() == {"loss"}
    assert world.report()["loss"].detail == "1 rows have a false loss in the trace"


def test_a_midpoint_bounds_the_loss(world: World) -> None:
    """The middle of 20 and 30 may be that of 0 and 50."""
    with_losses(world, GLM)
    for row in world.published:
        row["age"] = {"[20, 30]": 25.0, "[40, 50]": 45.0}[row["age"]]
    world.options["numeric"] = "midpoint"
    assert world.report()["loss"].verdict == "kept"
    world.line(0)["loss"] = (50 / 99 + 1 / 2) / 2 + 0.001
    assert world.report()["loss"].verdict == "broken"


def test_boxes_that_are_wider_than_needed_are_reported(world: World) -> None:
    """Who is 41 to 49 in Rome needs [40, 50] and Rome; the other group [40, 45]."""
    verdict = with_losses(world, GLM).report()["loss"]
    assert (verdict.verdict, verdict.figures["n_wider_groups"]) == ("kept", 1)
    assert "1 of 3 groups have a wider box than their rows need" in verdict.detail
    # Two of the seven rows that left in groups lose five years too much.
    assert verdict.figures["unneeded_loss"] == pytest.approx(5 / 99 / 2 * 2 / 7)


def test_an_unknown_measure_or_order_is_refused(world: World) -> None:
    for name in ("loss", "order"):
        world.options = {name: "none"}
        with pytest.raises(ParameterError, match=f"{name}: must be one of"):
            world.report()
