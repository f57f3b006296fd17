"""An Iceberg REST catalog, and S3-compatible storage, for tests: real servers on loopback."""

from __future__ import annotations

import os
import socket
import urllib.error
import urllib.request
from pathlib import Path

import pyarrow.fs

from shoal.testing._broker_jars import iceberg_rest_jar, java, s3_jar
from shoal.testing._server import JAVA_OPTIONS, Server

#: The bucket, and who may use it.
BUCKET, USER, PASSWORD = "lake", "shoal", "hunter2-of-s3"
#: The environment variable by which a job finds the password.
PASSWORD_NAME = "SHOAL_TEST_S3"


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _answers(address: str, seconds: float) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=min(5.0, seconds)) as answer:
            answer.read()
    except urllib.error.HTTPError:
        # It refuses whoever has no password.
        return True
    except OSError:
        return False
    return True


class Storage(Server):
    """S3Proxy: S3's protocol before a local folder, with signed requests."""

    WHAT = "S3-compatible storage"
    START_SECONDS = 120.0

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._java, self._jar, self._folder = java(), s3_jar(), folder
        self.endpoint = f"http://127.0.0.1:{_free_port()}"
        (folder / "data" / BUCKET).mkdir(parents=True)
        settings = {
            "s3proxy.authorization": "aws-v2-or-v4", "s3proxy.identity": USER,
            "s3proxy.credential": PASSWORD, "s3proxy.endpoint": self.endpoint,
            "jclouds.provider": "filesystem-nio2",
            "jclouds.filesystem.basedir": str(folder / "data"),
        }  # fmt: skip
        lines = [f"{name}={value}\n" for name, value in settings.items()]
        (folder / "s3.properties").write_text("".join(lines))

    def start(self) -> None:
        """Start it, and wait until it answers."""
        words = ["-jar", str(self._jar), "--properties", str(self._folder / "s3.properties")]
        self._run([self._java, *JAVA_OPTIONS, *words], self._folder / "s3.log")

    def _answers(self, seconds: float) -> bool:
        return _answers(self.endpoint, seconds)

    @property
    def keys(self) -> list[str]:
        """What is stored, as another client of S3 lists it."""
        host = self.endpoint.removeprefix("http://")
        client = pyarrow.fs.S3FileSystem(
            access_key=USER, secret_key=PASSWORD, endpoint_override=host, scheme="http",
            region="us-east-1",
        )  # fmt: skip
        selector = pyarrow.fs.FileSelector(BUCKET, recursive=True)
        return [info.path for info in client.get_file_info(selector) if info.is_file]


class RestCatalog(Server):
    """Iceberg's REST catalog, with a database in SQLite, and tables in S3-compatible storage."""

    WHAT = "REST catalog"
    START_SECONDS = 120.0

    def __init__(self, folder: Path, storage: Storage) -> None:
        super().__init__()
        self._java, self._jar, self._folder = java(), iceberg_rest_jar(), folder
        self._port = _free_port()
        self.uri = f"http://127.0.0.1:{self._port}"
        self._storage = storage

    def start(self) -> None:
        """Start it, and wait until it answers."""
        settings = {
            "catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog", "jdbc.schema-version": "V1",
            "uri": f"jdbc:sqlite:{self._folder / 'catalog.db'}",
            "warehouse": f"s3://{BUCKET}/warehouse",
            "io-impl": "org.apache.iceberg.aws.s3.S3FileIO", "client.region": "us-east-1",
            "s3.endpoint": self._storage.endpoint, "s3.path-style-access": "true",
            "s3.access-key-id": USER, "s3.secret-access-key": PASSWORD,
        }  # fmt: skip
        source = str(Path(__file__).with_name("RestCatalog.java"))
        words = [f"{name}={value}" for name, value in settings.items()]
        self._run(
            [self._java, *JAVA_OPTIONS, "-cp", str(self._jar), source, str(self._port), *words],
            self._folder / "rest.log",
        )

    def _answers(self, seconds: float) -> bool:
        return _answers(f"{self.uri}/v1/config", seconds)


class Lake:
    """A catalog and its storage."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.storage = Storage(folder)
        self.catalog = RestCatalog(folder, self.storage)

    def __enter__(self) -> Lake:
        os.environ[PASSWORD_NAME] = PASSWORD
        self.storage.__enter__()
        try:
            self.catalog.__enter__()
        except BaseException:
            self.storage.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.catalog.stop()
        self.storage.stop()
        del os.environ[PASSWORD_NAME]

    @property
    def settings(self) -> dict[str, str]:
        """What a job says in ``[output.settings]``."""
        return {
            "type": "rest", "uri": self.catalog.uri, "s3.endpoint": self.storage.endpoint,
            "s3.access-key-id": USER, "s3.secret-access-key": f"env:{PASSWORD_NAME}",
            "s3.region": "us-east-1",
        }  # fmt: skip
