"""What all tests share: logs as they were, and a Kafka broker, started when first asked for."""

from __future__ import annotations

import fcntl
import functools
import itertools
import logging
import os
import signal
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO

import pytest
from hypothesis import settings

from shoal.testing.broker import NoBrokerError, create_topics, find_broker
from shoal.testing.schema_registry import find_registry
from tests.debezium import MySql, NoDatabaseError, Postgres
from tests.examples import examples
from tests.lake import Lake
from tests.mosquitto import Mosquitto, NoMosquittoError

# A shell ignores interrupts for what it runs in the background; tests send them.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# A busy machine is no reason to fail: nothing is judged by the time that it takes.
settings.register_profile("shoal", deadline=None, max_examples=examples(100))
settings.load_profile("shoal")

#: How the tests of a folder run in `make test`, the longest prefix first; all others run in plain
#: Python with coverage. Nightly tests run in `make nightly` only, which runs everything.
FOLDERS = {
    "algorithms": pytest.mark.compiled,
    "engine": pytest.mark.compiled,
    "identity": pytest.mark.compiled,
    "engine/kernels": None,
    "naive": pytest.mark.nightly,
    "naive/papers": None,
    "benchmarks": pytest.mark.nightly,
    "crashes": pytest.mark.nightly,
}
#: The parts of `make test`, and the marks of which a file must have one to be in it.
PARTS = {
    "compiled and not nightly": ("compiled",),
    "not compiled and not nightly": ("plain", "story"),
}
#: Tests that use one of these take seconds each; one story of each is part of `make test`.
SERVERS = {
    "kafka", "broker", "own_broker", "schema_registry", "mosquitto", "postgres", "mysql", "lake",
    "spark",
}  # fmt: skip
#: Whether kernels are compiled in this run.
IS_JIT = os.environ.get("NUMBA_DISABLE_JIT") != "1"
#: Groups of tests that take longest: a minute of Spark, minutes of compiling.
LONG = {"spark", "trees"}


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files of which a part of `make test` runs nothing: importing all takes a minute."""
    marks = PARTS.get(config.option.markexpr)
    if marks is None or not collection_path.match("test_*.py"):
        return None
    of_folder = getattr(_folder_mark(collection_path.parent), "name", "plain")
    text = collection_path.read_text(encoding="utf-8")
    return None if of_folder in marks or any(f"mark.{mark}" in text for mark in marks) else True


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by folder and by what they start, and say which ones share a worker."""
    for item in items:
        _mark(item, _folder_mark(item.path.parent))
        if SERVERS & set(getattr(item, "fixturenames", ())):
            _mark(item, pytest.mark.nightly)
        item.add_marker(pytest.mark.xdist_group(_worker_group(item)))
    _longest_first(items)


def _longest_first(items: list[pytest.Item]) -> None:
    """Put the groups that take longest first, so that no worker waits for the other at the end.

    Tests of other folders that run compiled come last: they use kernels that others compiled.
    """
    sizes = Counter(map(_worker_group, items))

    def rank(item: pytest.Item) -> tuple[bool, bool, int]:
        group = _worker_group(item)
        is_compiled = item.get_closest_marker("compiled") is not None
        is_guest = is_compiled and _folder_mark(item.path.parent) != pytest.mark.compiled
        is_long = group in LONG or item.get_closest_marker("story") is not None
        return is_guest, not is_long, -sizes[group]

    items.sort(key=rank)


@functools.cache
def _folder_mark(folder: Path) -> pytest.MarkDecorator | None:
    """Return the mark of a folder, or None."""
    here = Path(__file__).parent
    folder = folder.relative_to(here) if folder.is_relative_to(here) else Path()
    return next(
        (FOLDERS[str(one)] for one in (folder, *folder.parents) if str(one) in FOLDERS), None
    )


def _mark(item: pytest.Item, mark: pytest.MarkDecorator | None) -> None:
    """Mark a test, unless it says by itself how it runs."""
    if mark is not None and not any(map(item.get_closest_marker, ("story", "plain"))):
        item.add_marker(mark)


def _worker_group(item: pytest.Item) -> str:
    """Name the tests that one worker runs: those that share a server or a file.

    The contract is spread by anonymizer: it is the longest file by far.
    """
    if "spark" in getattr(item, "fixturenames", ()):
        return "spark"
    if IS_JIT and "tree" in item.nodeid and item.get_closest_marker("compiled"):
        # One engine, which takes long to compile: another worker would wait for it.
        return "trees"
    params = getattr(getattr(item, "callspec", None), "params", {})
    return f"{item.path}-{params.get('name', '') if item.path.stem == 'test_contract' else ''}"


@pytest.fixture(autouse=True)
def logs_as_they_were() -> Iterator[None]:
    """Undo what a command of a test does to the logger of this process."""
    yield from _logs_as_they_were()


@pytest.fixture(autouse=True, scope="module")
def logs_as_they_were_before_the_module() -> Iterator[None]:
    """Undo what a command of a fixture for a whole module does to the logger."""
    yield from _logs_as_they_were()


def _logs_as_they_were() -> Iterator[None]:
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
        address_file, is_mine = folder / "kafka.address", False
        if not address_file.exists():
            is_mine = True
            try:
                address_file.write_text(stack.enter_context(find_broker()))
            except NoBrokerError as error:
                address_file.write_text(f"!{error}")
        fcntl.flock(users, fcntl.LOCK_SH)
        return address_file.read_text(), is_mine


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


@pytest.fixture(scope="session")
def schema_registry() -> Iterator[str]:
    """The address of a schema registry. Where there can't be one, the test is skipped."""
    with ExitStack() as stack:
        try:
            address = stack.enter_context(find_registry())
        except NoBrokerError as error:
            pytest.skip(str(error))
        yield address


@pytest.fixture
def postgres() -> Iterator[Postgres]:
    """A database of the test's own. Without one installed, the test is skipped."""
    try:
        server = Postgres()
    except NoDatabaseError as error:
        pytest.skip(str(error))
    with server:
        yield server


@pytest.fixture(params=["mysql", "mariadb"])
def mysql(request: pytest.FixtureRequest) -> Iterator[MySql]:
    """A MySQL, and then a MariaDB, of the test's own; skipped where it isn't installed."""
    try:
        server = MySql(request.param)
    except NoDatabaseError as error:
        pytest.skip(str(error))
    with server:
        yield server


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    """A REST catalog and S3-compatible storage of the test's own, or the test is skipped."""
    pytest.importorskip("pyiceberg")
    try:
        servers = Lake(tmp_path / "servers")
    except NoBrokerError as error:
        pytest.skip(str(error))
    with servers:
        yield servers


@pytest.fixture
def mosquitto(tmp_path: Path) -> Iterator[Mosquitto]:
    """An MQTT broker of the test's own. Without one installed, the test is skipped."""
    try:
        broker = Mosquitto(tmp_path / "mosquitto")
    except NoMosquittoError as error:
        pytest.skip(str(error))
    with broker:
        yield broker
