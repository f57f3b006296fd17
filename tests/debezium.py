"""Databases, and Debezium in Kafka Connect, for tests: on loopback, ended by their process ids."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from shoal.testing._broker_jars import connect_jars, java, mariadb_jars
from shoal.testing._server import JAVA_OPTIONS
from shoal.testing.broker import LOG_OPTION

#: How long, in seconds, something may take to start; Connect mostly takes ten.
START_SECONDS = 180.0


class NoDatabaseError(Exception):
    """There can't be a database here, and why."""


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


class Postgres:
    """A server with logical decoding, whose data is gone with it."""

    def __init__(self) -> None:
        found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
        here = shutil.which("postgres")
        if not found and here is None:
            raise NoDatabaseError("Postgres isn't installed: apt-get install postgresql")
        self._programs = Path(here).resolve().parent if not found else found[-1].parent
        # The server refuses to run as root.
        self._user = "postgres" if os.geteuid() == 0 else None
        self.port = free_port()
        # Not in a folder of the test: pytest closes those to other users.
        self._folder = Path(tempfile.mkdtemp(prefix="postgres-"))
        if self._user:
            shutil.chown(self._folder, self._user)
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Postgres:
        data = str(self._folder / "data")
        words = ["-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync"]
        self._run("initdb", *words, user=self._user)
        settings = {
            "listen_addresses": "127.0.0.1", "port": str(self.port), "wal_level": "logical",
            "unix_socket_directories": "", "fsync": "off", "shared_buffers": "16MB",
        }  # fmt: skip
        words = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        with (self._folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [self._programs / "postgres", "-D", data, *words],
                user=self._user, cwd=self._folder, stdout=log, stderr=log,
            )  # fmt: skip
        end = time.monotonic() + START_SECONDS
        while True:
            try:
                self.run("SELECT 1")
                return self
            except subprocess.CalledProcessError:
                assert self._process.poll() is None and time.monotonic() < end
                time.sleep(0.1)

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            # SIGINT: connections are ended.
            self._process.send_signal(2)
            self._process.wait(60)
        shutil.rmtree(self._folder)

    def run(self, *statements: str) -> str:
        """Run statements, each in a transaction of its own; return what they say."""
        words = [word for text in statements for word in ("-c", text)]
        return self._run(
            "psql", "-X", "-q", "-t", "-A", "-h", "127.0.0.1", "-p", str(self.port),
            "-U", "postgres", "-v", "ON_ERROR_STOP=1", *words,
        )  # fmt: skip

    def _run(self, program: str, *words: str, user: str | None = None) -> str:
        done = subprocess.run(
            [self._programs / program, *words], user=user, cwd=self._folder,
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        return done.stdout

    def connector(self, tables: str) -> dict[str, str]:
        """Settings of a connector that captures tables; topics begin with ``shop``."""
        return {
            "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
            "plugin.name": "pgoutput", "database.hostname": "127.0.0.1",
            "database.port": str(self.port), "database.user": "postgres",
            "database.dbname": "postgres", "table.include.list": tables, "topic.prefix": "shop",
            "topic.creation.default.replication.factor": "1",
            "topic.creation.default.partitions": "1", "slot.name": "shop",
            "publication.autocreate.mode": "filtered",
        }  # fmt: skip


class MySql:
    """A MySQL or a MariaDB with a binary log of rows, whose data is gone with it.

    Parameters
    ----------
    kind
        ``mysql`` or ``mariadb``. Debian 12 has MariaDB only; ``SHOAL_TEST_MYSQLD`` may name the
        ``mysqld`` of a real MySQL, with its ``mysql`` beside it.
    """

    USER = "shoal"

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._server = _program(kind)
        self._client = self._server.with_name("mysql")
        if not self._client.exists():
            self._client = Path(shutil.which("mysql") or "mysql")
        self.port = free_port()
        self._folder = Path(tempfile.mkdtemp(prefix=f"{kind}-"))
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> MySql:
        data = self._folder / "data"
        own = ["--no-defaults", f"--datadir={data}", *(["--user=root"] if not os.geteuid() else [])]
        if self.kind == "mysql":
            first = [self._server, *own, "--initialize-insecure"]
        else:
            method = "--auth-root-authentication-method=normal"
            first = ["mariadb-install-db", *own, method, "--skip-test-db"]
        with (self._folder / "log").open("wb") as log:
            subprocess.run(first, check=True, stdout=log, stderr=log)
            words = [
                "--bind-address=127.0.0.1", f"--port={self.port}", f"--socket={self._folder}/s",
                f"--pid-file={self._folder}/pid", "--server-id=1", "--log-bin=binlog",
                "--binlog-format=ROW", "--binlog-row-image=FULL", "--innodb-buffer-pool-size=16M",
                "--innodb-flush-log-at-trx-commit=2", "--default-time-zone=+00:00",
                *(["--mysqlx=OFF", "--secure-file-priv=NULL"] if self.kind == "mysql" else []),
            ]  # fmt: skip
            self._process = subprocess.Popen([self._server, *own, *words], stdout=log, stderr=log)
        end = time.monotonic() + START_SECONDS
        while True:
            try:
                self.run("SELECT 1")
                break
            except subprocess.CalledProcessError:
                log = (self._folder / "log").read_text()
                assert self._process.poll() is None and time.monotonic() < end, log[-2000:]
                time.sleep(0.2)
        self.run(
            f"CREATE USER '{self.USER}'@'%' IDENTIFIED BY '{self.USER}'",
            f"GRANT ALL ON *.* TO '{self.USER}'@'%'", "CREATE DATABASE shop",
        )  # fmt: skip
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(60)
        shutil.rmtree(self._folder)

    @property
    def version(self) -> str:
        """What the server says about itself."""
        return self.run("SELECT version()").strip()

    def run(self, *statements: str) -> str:
        """Run statements, each in a transaction of its own; return what they say."""
        done = subprocess.run(
            [
                self._client, "--no-defaults", f"--socket={self._folder}/s", "-u", "root", "-N",
                *(["-D", "shop"] if (self._folder / "data" / "shop").exists() else []),
            ],
            input="".join(f"{text};\n" for text in statements),
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        return done.stdout

    def connector(self, tables: str, folder: Path) -> dict[str, str]:
        """Settings of a connector that captures tables; topics begin with ``shop``."""
        names = {"mysql": "mysql.MySqlConnector", "mariadb": "mariadb.MariaDbConnector"}
        history = "io.debezium.storage.file.history.FileSchemaHistory"
        return {
            "connector.class": f"io.debezium.connector.{names[self.kind]}",
            "database.hostname": "127.0.0.1", "database.port": str(self.port),
            "database.user": self.USER, "database.password": self.USER,
            "database.server.id": "5401", "database.include.list": "shop",
            "table.include.list": tables, "topic.prefix": "shop",
            "topic.creation.default.replication.factor": "1",
            "topic.creation.default.partitions": "1", "include.schema.changes": "true",
            "schema.history.internal": history,
            "schema.history.internal.file.filename": str(folder / "history"),
        }  # fmt: skip


def _program(kind: str) -> Path:
    """Return the server of a kind: MariaDB installs its own as ``mysqld``, too."""
    named = [os.environ.get("SHOAL_TEST_MYSQLD")] if kind == "mysql" else []
    for name in (*named, "mysqld", "mariadbd"):
        found = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin") if name else None
        if found is not None:
            said = subprocess.run([found, "--version"], capture_output=True, text=True, check=True)
            if ("MariaDB" in said.stdout) == (kind == "mariadb"):
                return Path(found)
    what = {"mysql": "MySQL isn't installed: SHOAL_TEST_MYSQLD may name its mysqld"}
    raise NoDatabaseError(what.get(kind, "MariaDB isn't installed: apt-get install mariadb-server"))


class Connect:
    """Kafka Connect with one connector, which writes to a broker."""

    def __init__(
        self, folder: Path, kafka: str, connector: Mapping[str, str], worker: Mapping[str, str]
    ) -> None:
        is_mariadb = "mariadb" in connector["connector.class"]
        self._jars = mariadb_jars() if is_mariadb else connect_jars()
        self._java, self._folder = java(), folder
        folder.mkdir()
        address = f"http://127.0.0.1:{free_port()}"
        self._write(
            "worker",
            {
                "bootstrap.servers": kafka, "listeners": address,
                "offset.flush.interval.ms": "1000",
                "offset.storage.file.filename": str(folder / "offsets"),
            } | dict(worker),
        )  # fmt: skip
        self._write("connector", {"name": "shop", "tasks.max": "1"} | dict(connector))
        self._process: subprocess.Popen[bytes] | None = None

    def _write(self, name: str, settings: Mapping[str, str]) -> None:
        lines = [f"{key}={value}\n" for key, value in settings.items()]
        (self._folder / f"{name}.properties").write_text("".join(lines))

    @property
    def log(self) -> str:
        """What it has said."""
        return (self._folder / "log").read_text()

    def __enter__(self) -> Connect:
        with (self._folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [
                    self._java, *JAVA_OPTIONS, LOG_OPTION, "-cp", f"{self._jars}/*",
                    "org.apache.kafka.connect.cli.ConnectStandalone",
                    "worker.properties", "connector.properties",
                ],
                cwd=self._folder, stdout=log, stderr=log,
            )  # fmt: skip
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()


#: Envelopes in JSON: without a schema, and with one in each.
JSON = {
    f"{part}.converter": "org.apache.kafka.connect.json.JsonConverter" for part in ("key", "value")
} | {f"{part}.converter.schemas.enable": "false" for part in ("key", "value")}
JSON_WITH_SCHEMA = JSON | {f"{part}.converter.schemas.enable": "true" for part in ("key", "value")}


def avro(registry: str) -> dict[str, str]:
    """Envelopes in Avro, whose schemas are in a registry with the address of its Confluent API."""
    settings = {
        "": "io.apicurio.registry.utils.converter.AvroConverter",
        ".apicurio.registry.url": registry.replace("/ccompat/v7", "/registry/v2"),
        ".apicurio.registry.auto-register": "true",
        ".apicurio.registry.find-latest": "true",
        ".apicurio.registry.as-confluent": "true",
        ".apicurio.registry.use-id": "contentId",
        ".apicurio.registry.headers.enabled": "false",
    }
    return {
        f"{part}.converter{name}": value
        for part in ("key", "value")
        for name, value in settings.items()
    }
