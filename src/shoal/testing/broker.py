"""A real Kafka broker for tests and for trying things out: one node, on this machine only.

The broker's jars come from Maven Central, once, into the user's cache folder; Java 17 or later runs
them. Everything else (data, settings) is in a temporary folder, and the process ends with the one
that started it, however that ends.

By hand::

    python -m shoal.testing.broker --port 9092 --topics people,public
"""

from __future__ import annotations

import argparse
import importlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from shoal.errors import ResourceError, install_hint
from shoal.testing._broker_jars import NoBrokerError, java, kafka_jars
from shoal.testing._broker_security import PLAIN, SCRAM, Security
from shoal.testing._server import JAVA_OPTIONS, Server, tail
from shoal.testing.certificates import Authority

__all__ = ["Broker", "NoBrokerError", "create_topics", "find_broker", "main"]

#: The environment variable that names a broker to test with, instead of one of our own.
ENVIRONMENT = "SHOAL_TEST_KAFKA"
#: The environment variable with the password of ``--user``.
PASSWORD = "KAFKA_PASSWORD"
LOG_OPTION = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"


class Broker(Server):
    """A Kafka broker of one node on the loopback interface.

    Parameters
    ----------
    port
        Where it listens; by default some free port.
    folder
        Where its data is kept; by default a temporary folder that is removed at the end.
    users
        Names and passwords, if clients must log in (SASL).
    mechanism
        How they log in: ``PLAIN`` or ``SCRAM-SHA-512``.
    tls
        Who signs the broker's certificate, for 127.0.0.1, if clients must use TLS.
    mutual
        Whether clients need a certificate, too.
    settings
        Further settings of the broker, as its ``server.properties`` names them.
    cluster
        The id of the cluster that it is a node of, if that isn't one of its own.

    Raises
    ------
    NoBrokerError
        If it can't be started here; the message says why.

    Examples
    --------
    ::

        with Broker() as broker:
            create_topics(broker.client, ["people"])
            ...  # bootstrap servers: broker.address
    """

    WHAT = "Kafka broker"
    #: Mostly it takes three.
    START_SECONDS = 180.0

    def __init__(
        self,
        *,
        port: int | None = None,
        folder: Path | None = None,
        users: Mapping[str, str] | None = None,
        mechanism: str = PLAIN,
        tls: Authority | None = None,
        mutual: bool = False,
        settings: Mapping[str, object] | None = None,
        cluster: str | None = None,
    ) -> None:
        super().__init__()
        self._java = java()
        self._jars = kafka_jars()
        self._security = Security(users or {}, mechanism, tls, mutual=mutual)
        self._more = dict(settings or {})
        self._cluster = cluster or urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        self._ports = _free_ports(port)
        self._is_ours = folder is None
        self._folder = Path(tempfile.mkdtemp(prefix="shoal-kafka-")) if folder is None else folder
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    @property
    def address(self) -> str:
        """The bootstrap server, as ``host:port``."""
        return f"127.0.0.1:{self._ports[0]}"

    @property
    def client(self) -> dict[str, Any]:
        """The settings that a client needs to connect, as librdkafka names them."""
        return {"bootstrap.servers": self.address, **self._security.client}

    def start(self) -> None:
        """Start it, and wait until it answers; after `kill`, on the same port and data."""
        if self._process is not None:
            return
        settings = self._folder / "server.properties"
        settings.touch(mode=0o600)
        settings.write_text("".join(f"{key}={value}\n" for key, value in self._settings().items()))
        data = self._folder / "data"
        if not (data / "meta.properties").exists():
            self._format(settings)
        self._run(self._command("kafka.Kafka", settings), self._folder / "broker.log")

    def stop(self) -> None:
        """Stop it, cleanly if possible; remove its data, unless the folder was given."""
        super().stop()
        if self._is_ours:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _settings(self) -> dict[str, object]:
        protocol = self._security.protocol
        port, controller = self._ports
        settings: dict[str, object] = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "listeners": f"{protocol}://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"{protocol}://127.0.0.1:{port}",
            "inter.broker.listener.name": protocol,
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": f"{protocol}:{protocol},CONTROLLER:PLAINTEXT",
            "log.dirs": self._folder / "data",
            "auto.create.topics.enable": "false",
            "offsets.topic.replication.factor": 1,
            "offsets.topic.num.partitions": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "transaction.state.log.num.partitions": 1,
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": 1000,
            "group.initial.rebalance.delay.ms": 0,
            # A killed broker is back in two seconds, not in nine.
            "broker.session.timeout.ms": 2000,
            "broker.heartbeat.interval.ms": 500,
            # There is no other broker to hand partitions over to.
            "controlled.shutdown.enable": "false",
        }
        return settings | self._security.broker | self._more

    def _command(self, main: str, *words: object) -> list[str]:
        return [
            self._java, *JAVA_OPTIONS, LOG_OPTION, "-cp", f"{self._jars}/*", main,
            *(str(word) for word in words),
        ]  # fmt: skip

    def _format(self, settings: Path) -> None:
        command = self._command(
            "kafka.tools.StorageTool", "format", f"--cluster-id={self._cluster}", "-c", settings,
            *self._security.format_words,
        )  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise NoBrokerError(f"no Kafka broker: its folder can't be made: {tail(done.stderr)}")

    def _answers(self, seconds: float) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self._ports[0]), 1).close()
        except OSError:
            return False
        # The rest of the time is for its first answer.
        with _raised_as(NoBrokerError, "no Kafka broker: it doesn't answer"):
            _admin(self.client).list_topics(timeout=max(1.0, seconds))
        return True


@contextmanager
def _raised_as(kind: type[ResourceError], what: str) -> Iterator[None]:
    """Raise a failure of the client as an error of Shoal."""
    library = importlib.import_module("confluent_kafka")
    try:
        yield
    except library.KafkaException as error:
        raise kind(f"{what}: {error.args[0].str()}") from None


@contextmanager
def find_broker() -> Iterator[str]:
    """Yield the address of a broker to test with: `SHOAL_TEST_KAFKA`, or that of a new one.

    Raises
    ------
    NoBrokerError
        If there is none; the message says why.
    """
    if address := os.environ.get(ENVIRONMENT):
        yield address
        return
    with Broker() as broker:
        yield broker.address


def create_topics(
    client: Mapping[str, Any], names: Sequence[str], *, partitions: int = 1
) -> list[str]:
    """Create the topics that don't exist yet; return the names of the new ones.

    Parameters
    ----------
    client
        The settings of a client: at least ``bootstrap.servers``.
    names
        The topics; ``name:3`` is one with three partitions.
    partitions
        How many partitions a topic has where its name doesn't say.
    """
    admin = _admin(client)
    new_topic = importlib.import_module("confluent_kafka.admin").NewTopic
    with _raised_as(ResourceError, "the topics can't be created"):
        there = admin.list_topics(timeout=10).topics
        wanted = []
        for word in names:
            name, _, number = word.partition(":")
            if name not in there:
                wanted.append(new_topic(name, int(number or partitions), 1))
        for future in admin.create_topics(wanted).values() if wanted else ():
            future.result()
    return [topic.topic for topic in wanted]


def main(words: Sequence[str] | None = None) -> int:
    """Run a broker in the foreground until Ctrl-C."""
    parser = argparse.ArgumentParser(
        prog="python -m shoal.testing.broker",
        description="A Kafka broker on this machine, to try things out. Ctrl-C ends it.",
    )
    parser.add_argument("--port", type=int, default=9092, help="where it listens (9092)")
    parser.add_argument(
        "--folder", type=Path, help="where its data stays; by default it is forgotten at the end"
    )
    parser.add_argument(
        "--topics", default="", help="topics to create if missing: people,public:2 (partitions)"
    )
    parser.add_argument(
        "--at", metavar="HOST:PORT", help="create the topics at this broker, and start none"
    )
    parser.add_argument(
        "--tls", type=Path, metavar="FOLDER", help="ask for TLS; put the certificates there"
    )
    parser.add_argument(
        "--mutual", action="store_true", help="with --tls: ask clients for a certificate, too"
    )
    parser.add_argument(
        "--user", help=f"ask for a log-in of this user by SCRAM; the password is in ${PASSWORD}"
    )
    options = parser.parse_args(words)
    if options.mutual and not options.tls:
        parser.error("--mutual needs --tls")
    if options.user and not os.environ.get(PASSWORD):
        parser.error(f"--user needs a password in the environment variable {PASSWORD}")
    topics = [name for name in options.topics.split(",") if name]
    try:
        if options.at:
            _say_topics(create_topics({"bootstrap.servers": options.at}, topics))
            return 0
        broker = _asked_for(options)
        broker.serve(lambda: _say_ready(broker, topics))
    except ResourceError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


def _asked_for(options: argparse.Namespace) -> Broker:
    """Return the broker that the command line asks for."""
    return Broker(
        port=options.port,
        folder=options.folder,
        users={options.user: os.environ[PASSWORD]} if options.user else None,
        mechanism=SCRAM,
        tls=None if options.tls is None else Authority(options.tls),
        mutual=options.mutual,
    )


def _say_ready(broker: Broker, topics: Sequence[str]) -> None:
    _say_topics(create_topics(broker.client, topics))
    print(f"Kafka is ready at {broker.address}. Ctrl-C ends it.", flush=True)


def _say_topics(names: Sequence[str]) -> None:
    for name in names:
        print(f"Created topic {name}.", flush=True)


def _admin(client: Mapping[str, Any]) -> Any:
    try:
        from confluent_kafka.admin import AdminClient
    except ImportError:
        raise NoBrokerError(
            f"no Kafka broker: confluent-kafka isn't installed. {install_hint('kafka')}"
        ) from None
    # Its log lines about a broker that isn't up yet would confuse.
    return AdminClient({**client, "log_level": 0})


def _free_ports(port: int | None) -> tuple[int, int]:
    """Return two free ports: the wanted one, if any, and another."""
    with socket.socket() as first, socket.socket() as second:
        if port is None:
            first.bind(("127.0.0.1", 0))
        second.bind(("127.0.0.1", 0))
        return port or first.getsockname()[1], second.getsockname()[1]


if __name__ == "__main__":
    sys.exit(main())
