"""Serve ``/metrics`` and ``/health`` over HTTP, on loopback."""

from __future__ import annotations

import contextlib
import ipaddress
import json
import logging
import math
import os
import socket
import socketserver
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from shoal.errors import JobError, ParameterError, Problem, ResourceError
from shoal.events import event
from shoal.run.observe.figures import Figures
from shoal.run.observe.health import Health, HealthMonitor

__all__ = ["MetricsServer"]

#: The most seconds for one request, and the most clients at a time.
CLIENT_SECONDS = 5.0
CLIENTS = 32

_KEY = "--metrics"
_log = logging.getLogger(__name__)


class MetricsServer:
    """Answer ``GET /metrics`` and ``GET /health`` during a run.

    The figures about rows in ``/metrics`` change once per interval, at fixed instants that don't
    depend on the stream: they are the last snapshot offered *before* the current interval began.
    Live figures would pair arrivals with releases. The same holds for the first snapshot: until the
    first instant after it, there are no figures at all.

    ``/health`` is always current, and says nothing about rows.

    Parameters
    ----------
    address
        Host and port, for example ``127.0.0.1:9464``. The host is loopback; port 0 is any free one.
    interval
        The seconds between two changes of the figures.
    clock
        Returns seconds; monotonic.

    Raises
    ------
    ParameterError
        If the address isn't loopback.
    JobError
        If `prometheus_client` isn't installed.
    ResourceError
        If it can't listen there, for example because the port is taken.

    >>> from shoal.metrics import Summary
    >>> with MetricsServer("127.0.0.1:0") as server:
    ...     server.offer(Figures.of(Summary(), algorithm="castle", k=10))
    ...     server.health(Health(n_written=0))
    ...     server.address.startswith("127.0.0.1:")
    True
    """

    def __init__(
        self,
        address: str,
        *,
        interval: float = 10.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        host, port = _loopback(address)
        if not (math.isfinite(interval) and interval > 0):
            raise ParameterError(
                "MetricsServer.interval", "must be a number of seconds above 0", got=interval
            )
        try:
            from shoal.run.observe.exposition import CONTENT_TYPE, Exposition
        except ModuleNotFoundError as error:
            if error.name is None or not error.name.startswith("prometheus_client"):
                raise
            what, fix = "needs prometheus_client", "pip install 'shoal[metrics]'"
            raise JobError(Problem(_KEY, what, None, fix)) from None
        self._interval, self._clock = interval, clock
        self._lock = threading.Lock()
        self._shown: Figures | None = None
        self._next: tuple[int, Figures] | None = None
        self._health = HealthMonitor(clock=clock)
        exposition = Exposition(self._show, self._health.verdict)

        def health() -> tuple[int, str, bytes]:
            verdict = self._health.verdict()
            body = json.dumps(verdict.as_dict()).encode() + b"\n"
            return (200 if verdict.ok else 503), "application/json", body

        self._server = _listen(
            address,
            (host, port),
            {"/metrics": lambda: (200, CONTENT_TYPE, exposition.text()), "/health": health},
        )
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.1},
            name="shoal-metrics", daemon=True,
        )  # fmt: skip
        self._thread.start()

    @property
    def address(self) -> str:
        """The host and the port where it listens."""
        host, port = self._server.server_address[:2]
        return f"[{host!s}]:{port}" if ":" in str(host) else f"{host!s}:{port}"

    def offer(self, figures: Figures) -> None:
        """Offer the current figures; may be called at any rate."""
        slot = self._slot()
        with self._lock:
            self._advance(slot)
            self._next = (slot, figures)

    def health(self, health: Health) -> None:
        """Report the health; to be called in each round of the loop, with rows or without."""
        self._health.report(health)

    def fail(self, error: BaseException) -> None:
        """Record that the run failed; ``/health`` says so until the server is closed."""
        self._health.fail(error)

    def close(self) -> None:
        """Stop listening and disconnect all clients. May be called twice."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()
        self._server.disconnect_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _slot(self) -> int:
        return math.floor(self._clock() / self._interval)

    def _advance(self, slot: int) -> None:
        """Show what was offered in an interval that is over."""
        if self._next is not None and self._next[0] < slot:
            self._shown, self._next = self._next[1], None

    def _show(self) -> Figures | None:
        slot = self._slot()
        with self._lock:
            self._advance(slot)
            return self._shown


def _loopback(address: str) -> tuple[str, int]:
    """Return host and port of a loopback address; raise for others."""
    host, colon, port = address.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    number = int(port) if port.isascii() and port.isdigit() and len(port) <= 5 else -1
    if not colon or not host or not 0 <= number <= 65535 or (":" in host and not bracketed):
        raise ParameterError(
            _KEY, "must be a host and a port", got=address, fix="Try 127.0.0.1:9464"
        )
    host = host[1:-1] if bracketed else host
    if host.lower() == "localhost":
        # Not resolved: a resolver may map the name to another address.
        return "127.0.0.1", number
    if not _is_loopback(host):
        raise ParameterError(
            _KEY,
            "must be on loopback, because figures reveal small numbers of people",
            got=address,
            fix="Use 127.0.0.1 or [::1], with a collector on the same machine",
        )
    return host, number


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


_Page = Callable[[], tuple[int, str, bytes]]


def _listen(address: str, where: tuple[str, int], pages: dict[str, _Page]) -> _Server:
    try:
        return _Server(where, pages)
    except OSError as error:
        reason = os.strerror(error.errno).lower() if error.errno else "unknown reason"
        raise ResourceError(
            f"{_KEY} {address}: can't listen there: {reason}. Choose another port; 0 is any free "
            "one."
        ) from None


class _Server(ThreadingHTTPServer):
    """Serve each client in a thread, with limits on their number and their time."""

    daemon_threads = True
    request_queue_size = 2 * CLIENTS

    def __init__(self, where: tuple[str, int], pages: dict[str, _Page]) -> None:
        self.pages = pages
        self.address_family = socket.AF_INET6 if ":" in where[0] else socket.AF_INET
        self._clients: dict[Any, float] = {}
        self._lock = threading.Condition()
        super().__init__(where, _Handler)

    def server_bind(self) -> None:
        """Bind without looking up the name of the host."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = "localhost", self.server_address[1]

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Refuse a client if too many are being served."""
        with self._lock:
            if len(self._clients) >= CLIENTS:
                return False
            self._clients[request] = time.monotonic()
            return True

    def shutdown_request(self, request: Any) -> None:
        """Forget a client that was served or refused."""
        super().shutdown_request(request)
        with self._lock:
            self._clients.pop(request, None)
            self._lock.notify_all()

    def service_actions(self) -> None:
        """Disconnect slow clients between requests."""
        self.disconnect(older_than=CLIENT_SECONDS)

    def disconnect(self, *, older_than: float) -> None:
        """Disconnect clients that were connected for this many seconds."""
        now = time.monotonic()
        with self._lock:
            slow = [client for client, came in self._clients.items() if now - came >= older_than]
        for client in slow:
            # Its thread wakes up, and closes the socket.
            with contextlib.suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)

    def disconnect_all(self) -> None:
        """Disconnect all clients, and wait for their threads."""
        self.disconnect(older_than=0.0)
        with self._lock:
            self._lock.wait_for(lambda: not self._clients, timeout=CLIENT_SECONDS)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log errors other than a client that went away."""
        error = sys.exception()
        if not isinstance(error, OSError):
            event(_log, logging.WARNING, "metrics request failed", error=error)


class _Handler(BaseHTTPRequestHandler):
    """Answer one request."""

    server: _Server
    server_version = "shoal"
    sys_version = ""

    def do_GET(self) -> None:
        """Answer with a page, or an error."""
        page = self.server.pages.get(self.path.partition("?")[0])
        if not self._is_host_loopback():
            # Against DNS rebinding: a web page whose name resolves to this machine.
            self.send_error(403, "only as localhost, 127.0.0.1 or [::1]")
            return
        if page is None:
            self.send_error(404, "there are /metrics and /health")
            return
        status, kind, body = page()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(body)

    def _is_host_loopback(self) -> bool:
        host = self.headers.get("Host", "localhost").strip()
        if host.startswith("["):
            host = host[1:].partition("]")[0]
        elif host.count(":") == 1:
            host = host.partition(":")[0]
        return host.lower() == "localhost" or _is_loopback(host)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Don't log requests."""
