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
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from shoal.errors import ResourceError
from shoal.testing._broker_jars import NoBrokerError, java, registry_app
from shoal.testing.broker import GUARD, JAVA_OPTIONS

__all__ = ["SchemaRegistry", "find_registry", "main"]

#: The environment variable that names a registry to test with, instead of one of our own.
ENVIRONMENT = "SHOAL_TEST_REGISTRY"
#: How long, in seconds, a registry may take to start and to stop. Mostly it takes twelve.
START_SECONDS, STOP_SECONDS = 180.0, 20.0


class SchemaRegistry:
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

    def __init__(self, port: int | None = None) -> None:
        self._java, self._jar = java(), registry_app()
        with socket.socket() as free:
            free.bind(("127.0.0.1", port or 0))
            self._port = int(free.getsockname()[1])
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """Where it answers."""
        return f"http://127.0.0.1:{self._port}/apis/ccompat/v7"

    def __enter__(self) -> SchemaRegistry:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start it, empty, and wait until it answers; after `stop`, on the same port."""
        # In a session of its own, so that a signal to our process group doesn't reach it.
        self._guard = subprocess.Popen(GUARD, stdin=subprocess.PIPE, start_new_session=True)
        command = [
            self._java, *JAVA_OPTIONS, "-Dquarkus.http.host=127.0.0.1",
            f"-Dquarkus.http.port={self._port}", "-Dquarkus.log.level=WARN",
            "-jar", str(self._jar),
        ]  # fmt: skip
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True, cwd=tempfile.gettempdir(),
        )  # fmt: skip
        assert self._guard.stdin is not None
        self._guard.stdin.write(f"{self._process.pid}\n".encode())
        self._guard.stdin.flush()
        try:
            self._wait_until_ready()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop it; what was registered is gone."""
        if self._process is None or self._guard is None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
        # The guard is killed first: once the process is reaped, its id may be reused.
        self._guard.kill()
        self._guard.wait()
        assert self._guard.stdin is not None
        self._guard.stdin.close()
        self._process.wait()
        self._process = self._guard = None

    def pause(self) -> None:
        """Suspend it: it keeps its connections and doesn't answer."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Resume it after `pause`."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def _wait_until_ready(self) -> None:
        assert self._process is not None
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            if self._process.poll() is not None:
                raise NoBrokerError("no schema registry: it ended while starting")
            with suppress(OSError, urllib.error.URLError):
                with urllib.request.urlopen(f"{self.address}/subjects", timeout=5) as answer:
                    answer.read()
                body = b'{"compatibility": "BACKWARD"}'
                request = urllib.request.Request(f"{self.address}/config", body, method="PUT")
                request.add_header("Content-Type", "application/vnd.schemaregistry.v1+json")
                with urllib.request.urlopen(request, timeout=5) as answer:
                    answer.read()
                return
            time.sleep(0.1)
        raise NoBrokerError(f"no schema registry: none answers after {START_SECONDS:.0f} seconds")


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
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with SchemaRegistry(options.port) as registry, suppress(KeyboardInterrupt):
            print(f"A schema registry is ready at {registry.address}. Ctrl-C ends it.", flush=True)
            while True:
                signal.pause()
        return 0
    except (ResourceError, OSError) as error:
        print(error, file=sys.stderr)
        return error.exit_code if isinstance(error, ResourceError) else 4
    finally:
        signal.signal(signal.SIGTERM, before)


if __name__ == "__main__":
    sys.exit(main())
