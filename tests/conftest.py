"""What all tests share: logs as they were, and a Kafka broker, started when first asked for."""

from __future__ import annotations

import fcntl
import itertools
import logging
import os
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO

import pytest

from shoal.testing.broker import NoBrokerError, create_topics, find_broker

#: Folders whose tests use compiled code and run both ways; all others run once, in plain Python.
BOTH_WAYS = ("algorithms", "engine")
#: Tests of algorithms and kernels whose compiled code is compared with twins elsewhere.
COMPARED = (
    "test_tree_basic", "test_tree_density", "test_tree_full", "test_min_delay", "test_rtree",
    "test_halves", "test_queue", "test_reuse_is_of_what_is_seen",
)  # fmt: skip


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needn't run twice, compiled and not."""
    here = Path(__file__).parent
    for item in items:
        inside = (
            item.path.is_relative_to(here) and item.path.relative_to(here).parts[0] not in BOTH_WAYS
        )
        uses_broker = "kafka" in item.name or "broker" in item.path.name
        # Twins are slow Python by themselves; beside their kernels they run both ways.
        of_twins = "_twin" in item.path.stem and "equals" not in item.path.stem
        of_twins = of_twins or item.path.stem in COMPARED
        if inside or uses_broker or of_twins or "kafka" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.plain)
        # Benchmarks and figures have a target of their own.
        if item.path.parent.name == "benchmarks":
            item.add_marker(pytest.mark.long)
        if item.path.stem == "test_contract":
            item.add_marker(pytest.mark.compiled)
        item.add_marker(pytest.mark.xdist_group(_together(item)))


def _together(item: pytest.Item) -> str:
    """What one worker runs, so that no two compile the same: a file; of the contract, a recipe.

    The R-tree family is one engine, which takes minutes to compile.
    """
    params = getattr(getattr(item, "callspec", None), "params", {})
    recipe = params.get("name", "") if item.path.stem == "test_contract" else ""
    if str(recipe).startswith("tree-") or item.path.stem == "test_tree_equals_twin":
        return "trees"
    if "spark" in getattr(item, "fixturenames", ()):
        # One worker runs all that needs a cluster, so that there is one.
        return "spark"
    return f"{item.path.stem}-{recipe}"


@pytest.fixture(autouse=True)
def logs_as_they_were() -> Iterator[None]:
    """Undo what a command does to the logger of this process."""
    logger = logging.getLogger("shoal")
    before = logger.handlers[:], logger.level, logger.propagate
    yield
    logger.handlers[:], logger.level, logger.propagate = before


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a broker. Where there can't be one, the test is skipped with the reason."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    with (folder / "kafka.users").open("w") as users, ExitStack() as stack:
        address, is_mine = _shared(stack, folder, users)
        if address.startswith("!"):
            pytest.skip(address[1:])
        yield address
        # Whoever has started it waits for the others, so that it ends after its last use.
        while is_mine and not _is_mine_alone(folder, users):
            time.sleep(0.2)


def _shared(stack: ExitStack, folder: Path, users: IO[str]) -> tuple[str, bool]:
    """Give the address, or ``!`` and why there is none; the first who asks starts the broker."""
    with (folder / "kafka.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        told, is_mine = folder / "kafka.address", False
        if not told.exists():
            is_mine = True
            try:
                told.write_text(stack.enter_context(find_broker()))
            except NoBrokerError as error:
                told.write_text(f"!{error}")
        fcntl.flock(users, fcntl.LOCK_SH)
        return told.read_text(), is_mine


def _is_mine_alone(folder: Path, users: IO[str]) -> bool:
    """Whether nobody else uses the broker; then nobody else will: they start one of their own."""
    with (folder / "kafka.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        (folder / "kafka.address").unlink()
        return True


@pytest.fixture
def topic(kafka: str) -> Callable[..., str]:
    """Makes topics with new names; asked for as many partitions as are wanted."""
    stem, numbers = uuid.uuid4().hex[:12], itertools.count()

    def make(partitions: int = 1) -> str:
        name = f"test-{stem}-{next(numbers)}"
        create_topics({"bootstrap.servers": kafka}, [name], partitions=partitions)
        return name

    return make
