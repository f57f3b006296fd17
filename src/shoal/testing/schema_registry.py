"""A real schema registry for tests and for trying things out: Apicurio, on this machine only.

It answers in Confluent's protocol. Its jars come from Maven Central, once, into the user's cache
folder; Java 17 or later runs them. What is registered is in its memory, and gone with it. The
process ends with the one that started it, however that ends.

By hand::

    python -m shoal.testing.schema_registry --port 8081
"""

from __future__ import annotations

import argparse
import os
import socket
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from shoal.errors import ResourceError
from shoal.testing._broker_jars import java, registry_app
from shoal.testing._server import JAVA_OPTIONS, Server

__all__ = ["SchemaRegistry", "find_registry", "main"]

#: The environment variable that names a registry to test with, instead of one of our own.
ENVIRONMENT = "SHOAL_TEST_REGISTRY"


class SchemaRegistry(Server):
    """A schema registry on the loopback interface, that refuses incompatible schemas.

    Parameters
    ----------
    port
        Where it listens; by default some free port.

    Raises
    ------
    NoBrokerError
        If it can't be started here; the message says why.

    Examples
    --------
    ::

        with SchemaRegistry() as registry:
            ...  # input.registry: registry.address
    """

    WHAT = "schema registry"
    #: Mostly it takes twelve.
    START_SECONDS = 180.0

    def __init__(self, port: int | None = None) -> None:
        super().__init__()
        self._java, self._jar = java(), registry_app()
        with socket.socket() as free:
            free.bind(("127.0.0.1", port or 0))
            self._port = int(free.getsockname()[1])

    @property
    def address(self) -> str:
        """Where it answers."""
        return f"http://127.0.0.1:{self._port}/apis/ccompat/v7"

    def start(self) -> None:
        """Start it, empty, and wait until it answers; after `stop`, on the same port."""
        if self._process is not None:
            return
        command = [
            self._java, *JAVA_OPTIONS, "-Dquarkus.http.host=127.0.0.1",
            f"-Dquarkus.http.port={self._port}", "-Dquarkus.log.level=WARN",
            "-jar", str(self._jar),
        ]  # fmt: skip
        self._run(command, folder=tempfile.gettempdir())

    def _answers(self, seconds: float) -> bool:
        body = b'{"compatibility": "BACKWARD"}'
        request = urllib.request.Request(f"{self.address}/config", body, method="PUT")
        request.add_header("Content-Type", "application/vnd.schemaregistry.v1+json")
        try:
            for what in (f"{self.address}/subjects", request):
                with urllib.request.urlopen(what, timeout=min(5.0, seconds)) as answer:
                    answer.read()
        except (OSError, urllib.error.URLError):
            return False
        return True


@contextmanager
def find_registry() -> Iterator[str]:
    """Yield the address of a registry to test with: `SHOAL_TEST_REGISTRY`, or that of a new one.

    Raises
    ------
    NoBrokerError
        If there is none; the message says why.
    """
    if address := os.environ.get(ENVIRONMENT):
        yield address
        return
    with SchemaRegistry() as registry:
        yield registry.address


def main(words: Sequence[str] | None = None) -> int:
    """Run a registry in the foreground until Ctrl-C."""
    parser = argparse.ArgumentParser(
        prog="python -m shoal.testing.schema_registry",
        description="A schema registry on this machine, to try things out. Ctrl-C ends it.",
    )
    parser.add_argument("--port", type=int, default=8081, help="where it listens (8081)")
    options = parser.parse_args(words)
    try:
        registry = SchemaRegistry(options.port)
        text = f"A schema registry is ready at {registry.address}. Ctrl-C ends it."
        registry.serve(lambda: print(text, flush=True))
    except (ResourceError, OSError) as error:
        print(error, file=sys.stderr)
        return error.exit_code if isinstance(error, ResourceError) else 4
    return 0


if __name__ == "__main__":
    sys.exit(main())
