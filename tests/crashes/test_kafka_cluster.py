"""Brokers of a cluster that go away, followers and leaders, and one whose disk is full."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import random
import signal
import socket
import subprocess
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from shoal.testing.broker import Broker, NoBrokerError, create_topics
from tests.crashes.test_kills_kafka import KafkaJob, judge
from tests.crashes.world import crowd, n_taken_in, started, wait_until, wait_until_it_listens
from tests.io.kafka.world import values

#: How long, in seconds, something may take on a busy machine.
PATIENCE = 300.0


class PatientBroker(Broker):
    """One of several that start on a busy machine."""

    START_SECONDS = PATIENCE


class Cluster:
    """Three brokers that keep each row twice at least, and a quorum of two of them as controllers.

    Rows of ``people`` are kept if one of them is there. The leader of ``public`` is the second.
    """

    def __init__(self) -> None:
        with contextlib.ExitStack() as stack:
            free = [stack.enter_context(socket.socket()) for _ in range(6)]
            for each in free:
                each.bind(("127.0.0.1", 0))
            ports = [each.getsockname()[1] for each in free]
        ports, controllers = ports[:3], ports[3:]
        cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        shared = {
            "controller.quorum.voters": ",".join(
                f"{i}@127.0.0.1:{port}" for i, port in enumerate(controllers, start=1)
            ),
            "offsets.topic.replication.factor": 3,
            "transaction.state.log.replication.factor": 3,
            "transaction.state.log.min.isr": 2,
            "min.insync.replicas": 2,
        }
        self.brokers = []
        for i, (port, controller) in enumerate(zip(ports, controllers, strict=True), start=1):
            own = {
                "node.id": i,
                "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
            }
            self.brokers.append(PatientBroker(port=port, cluster=cluster, settings=shared | own))
        self.address = ",".join(each.address for each in self.brokers)
        self.admin = AdminClient({"bootstrap.servers": self.address, "log_level": 0})

    def __enter__(self) -> Cluster:
        # None of them answers before there is a quorum.
        with ThreadPoolExecutor(len(self.brokers)) as pool:
            list(pool.map(Broker.start, self.brokers))
        # Its first broker is the preferred leader of a partition.
        wanted = [
            NewTopic(
                name, 1, replica_assignment=[[2, 3, 1]], config={"min.insync.replicas": str(least)}
            )
            for name, least in (("people", 1), ("public", 2))
        ]
        wait_until(lambda: len(self.admin.list_topics(timeout=60).brokers) == 3, PATIENCE)
        for made in self.admin.create_topics(wanted).values():
            made.result(60)
        return self

    def __exit__(self, *_: object) -> None:
        for each in reversed(self.brokers):
            each.stop()

    def leader(self) -> int:
        """The number of the broker that leads the output."""
        return int(
            self.admin.list_topics("public", timeout=60).topics["public"].partitions[0].leader
        )

    def is_whole(self) -> bool:
        """Whether all brokers have all rows, transactions and offsets."""
        topics = self.admin.list_topics(timeout=60).topics.values()
        return all(len(each.isrs) == 3 for topic in topics for each in topic.partitions.values())


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    try:
        made = Cluster()
        with contextlib.ExitStack() as stack:
            stack.callback(made.__exit__)
            yield made.__enter__()
    except NoBrokerError as error:
        pytest.skip(str(error))


def told_apart(n_rows: int) -> pa.Table:
    """Rows with a column that is published as it is, and different in each."""
    table = crowd(n_rows)
    return table.set_column(4, "ward", [[f"ward {i}" for i in range(n_rows)]])


def has_each_row_once(job: KafkaJob, table: pa.Table) -> None:
    """Nothing is lost, nothing doubled, and the audit agrees."""
    published = [json.loads(line) for line in job.published()]
    lines = job.trace
    assert sorted(lines["row"].to_pylist()) == list(range(len(table)))
    seqs = [seq for seq in lines["seq"].to_pylist() if seq is not None]
    assert sorted(seqs) == list(range(len(published)))
    assert len({row["ward"] for row in published}) == len(published)
    judge(job, table)


def test_nothing_is_lost_with_brokers_of_a_cluster(tmp_path: Path, cluster: Cluster) -> None:
    table, draw = told_apart(300), random.Random(1)
    job = KafkaJob(tmp_path / "cluster", cluster.address, "people", "public")

    def takes_in(begin: int, end: int) -> None:
        job.feed(table.slice(begin, end - begin), draw)
        wait_until(lambda: n_taken_in(job.folder) == end, PATIENCE)

    with started([*job.command, "--drain", "--log", "text"]) as process:
        wait_until_it_listens(process)
        takes_in(0, 60)
        assert cluster.leader() == 2
        # Without a follower two have each row.
        cluster.brokers[2].kill()
        takes_in(60, 120)
        cluster.brokers[2].start()
        wait_until(cluster.is_whole, PATIENCE)
        # Without the leader another one leads.
        cluster.brokers[1].kill()
        takes_in(120, 180)
        assert cluster.leader() in (1, 3)
        # One broker alone is no quorum of controllers, and can't keep a row twice. Nobody can
        # write: the run waits, and publishes nothing.
        before = len(job.published())
        cluster.brokers[2].kill()
        with ThreadPoolExecutor(1) as pool:
            fed = pool.submit(job.feed, table.slice(180, 60), draw)
            with pytest.raises(AssertionError):
                wait_until(
                    lambda: process.poll() is not None or n_taken_in(job.folder) > 180, seconds=15
                )
            assert process.poll() is None
            cluster.brokers[1].start()
            fed.result()
        wait_until(lambda: n_taken_in(job.folder) == 240, PATIENCE)
        cluster.brokers[2].start()
        takes_in(240, 300)
        process.send_signal(signal.SIGTERM)
        assert process.stderr is not None
        said = process.stderr.read().decode()
        assert process.wait(600) == 0, said
    assert len(job.published()) > before
    has_each_row_once(job, table)


# -- a full disk -----------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 64 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(folder)]
    try:
        done = subprocess.run(mount, capture_output=True, text=True, check=False)
    except OSError as error:
        pytest.skip(f"no disk can be mounted here: {error.strerror}")
    if done.returncode:
        pytest.skip(f"no disk can be mounted here: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture
def two_brokers(small_disk: Path) -> Iterator[tuple[Broker, Broker]]:
    """A broker with the input, and one on the small disk with the output."""
    try:
        with PatientBroker() as first, PatientBroker(folder=small_disk / "kafka") as second:
            create_topics(first.client, ["people"])
            create_topics(second.client, ["public"])
            yield first, second
    except NoBrokerError as error:
        pytest.skip(str(error))


class TwoBrokersJob(KafkaJob):
    """A job from a topic of one broker to a topic of another one."""

    def to(self, address: str) -> None:
        self.sink_address = address
        text, _, _ = self.job.read_text().partition("[output]\n")
        self.job.write_text(
            f"{text}[output]\nkafka = '{address}'\ntopic = '{self.sink}'\nrows = 7\n"
        )

    def published(self, isolation: str = "read_committed") -> list[bytes]:
        found = values(self.sink_address, self.sink, isolation)
        return [line for value in found for line in value.splitlines()]


def fill_up(folder: Path) -> Path:
    """Leave no room on a disk."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (1 << 20, 1 << 12, 1):
            with pytest.raises(OSError, match="No space left") as caught:
                while True:
                    file.write(b"x" * size)
            assert caught.value.errno == errno.ENOSPC
    return ballast


def read_until(process: subprocess.Popen[bytes], words: str) -> str:
    """Return what a run logs, up to these words at least."""
    assert process.stderr is not None
    said = b""

    def has_words() -> bool:
        nonlocal said
        said += process.stderr.read() or b""
        return words.encode() in said

    os.set_blocking(process.stderr.fileno(), False)
    wait_until(has_words, PATIENCE)
    os.set_blocking(process.stderr.fileno(), True)
    return said.decode()


def test_a_broker_whose_disk_is_full_is_waited_for(
    tmp_path: Path, small_disk: Path, two_brokers: tuple[Broker, Broker]
) -> None:
    first, full_broker = two_brokers
    table, draw = told_apart(240), random.Random(2)
    job = TwoBrokersJob(tmp_path / "full", first.address, "people", "public")
    job.to(full_broker.address)
    with started([*job.command, "--drain", "--log", "text"]) as process:
        wait_until_it_listens(process)
        job.feed(table.slice(0, 120), draw)
        wait_until(lambda: n_taken_in(job.folder) == 120, PATIENCE)
        ballast = fill_up(small_disk)
        job.feed(table.slice(120), draw)
        # It can't write, and ends.
        assert full_broker._process is not None
        full_broker._process.wait(PATIENCE)
        said = read_until(process, "no broker answers; waiting for it to come back")
        with pytest.raises(AssertionError):
            wait_until(lambda: process.poll() is not None, seconds=8)
        assert n_taken_in(job.folder) < 240
        # Somebody makes room.
        ballast.unlink()
        full_broker.kill()
        full_broker.start()
        wait_until(lambda: n_taken_in(job.folder) == 240, PATIENCE)
        process.send_signal(signal.SIGTERM)
        assert process.stderr is not None
        said += process.stderr.read().decode()
        assert process.wait(600) == 0, said
    assert "the broker is back" in said
    has_each_row_once(job, table)
