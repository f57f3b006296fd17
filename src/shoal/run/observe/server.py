"""``/metrics`` and ``/health`` over HTTP, on loopback."""

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
from shoal.run.observe.health import Health, Watch

__all__ = ["MetricsServer"]

#: How long a client may take over one request, in seconds, and how many may be served at a time.
CLIENT_SECONDS = 5.0
CLIENTS = 32

_KEY = "--metrics"
_log = logging.getLogger(__name__)


class MetricsServer:
    """Answer ``GET /metrics`` and ``GET /health`` while a run goes on.

    What ``/metrics`` shows of rows changes once an interval, at fixed instants that have nothing
    to do with the stream: it is the last snapshot that was offered *before* the running interval
    began. A figure that followed the run would pair arrivals with releases. That holds for the
    first snapshot too: until the first instant after it, there are no figures at all.

    ``/health`` is always of the moment, and says nothing of rows.

    Parameters
    ----------
    address
        Host and port, ``127.0.0.1:9464``. The host is loopback; port 0 is any that is free.
    interval
        How often figures change, in seconds.
    clock
        Tells seconds, and never goes back.

    Raises
    ------
    ParameterError
        If the address isn't one of loopback.
    JobError
        If `prometheus_client` isn't installed.
    ResourceError
        If nothing can listen there, say because the port is taken.

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
        self._watch = Watch(clock=clock)
        exposition = Exposition(self._show, self._watch.verdict)

        def health() -> tuple[int, str, bytes]:
            verdict = self._watch.verdict()
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
        """Where it listens: host and port, also where port 0 was asked for."""
        host, port = self._server.server_address[:2]
        return f"[{host!s}]:{port}" if ":" in str(host) else f"{host!s}:{port}"

    def offer(self, figures: Figures) -> None:
        """The figures of the run as they are now. May be called as often as the run likes."""
        slot = self._slot()
        with self._lock:
            self._turn_over(slot)
            self._next = (slot, figures)

    def health(self, health: Health) -> None:
        """How the run is; to be called each time its loop turns over, rows or not."""
        self._watch.report(health)

    def fail(self, error: BaseException) -> None:
        """The run has failed: ``/health`` says so until the server is closed."""
        self._watch.fail(error)

    def close(self) -> None:
        """Stop listening and let go of every client. Closing twice does no harm."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()
        self._server.dismiss()

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

    def _turn_over(self, slot: int) -> None:
        """What was offered in an interval that is over may be seen."""
        if self._next is not None and self._next[0] < slot:
            self._shown, self._next = self._next[1], None

    def _show(self) -> Figures | None:
        slot = self._slot()
        with self._lock:
            self._turn_over(slot)
            return self._shown


def _loopback(address: str) -> tuple[str, int]:
    """Host and port of an address, if it is one of loopback."""
    host, colon, port = address.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    number = int(port) if port.isascii() and port.isdigit() and len(port) <= 5 else -1
    if not colon or not host or not 0 <= number <= 65535 or (":" in host and not bracketed):
        raise ParameterError(
            _KEY, "must be a host and a port", got=address, fix="Try 127.0.0.1:9464"
        )
    host = host[1:-1] if bracketed else host
    if host.lower() == "localhost":
        # Not looked up: what a name leads to is another's business.
        return "127.0.0.1", number
    if not _is_loopback(host):
        raise ParameterError(
            _KEY,
            "is on loopback only, because figures tell about people in small numbers",
            got=address,
            fix="Use 127.0.0.1 or [::1], and let a collector on the machine fetch them",
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
            f"{_KEY} {address}: can't listen there: {reason}. Choose another port; 0 is any that "
            "is free."
        ) from None


class _Server(ThreadingHTTPServer):
    """A thread a client, so that a slow one keeps nobody waiting; but not for ever, nor many."""

    daemon_threads = True
    request_queue_size = 2 * CLIENTS

    def __init__(self, where: tuple[str, int], pages: dict[str, _Page]) -> None:
        self.pages = pages
        self.address_family = socket.AF_INET6 if ":" in where[0] else socket.AF_INET
        self._clients: dict[Any, float] = {}
        self._lock = threading.Condition()
        super().__init__(where, _Handler)

    def server_bind(self) -> None:
        """Bind without asking a name server what the host is called."""
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
        """A client has been served, or refused."""
        super().shutdown_request(request)
        with self._lock:
            self._clients.pop(request, None)
            self._lock.notify_all()

    def service_actions(self) -> None:
        """Looked after between requests: clients that take too long."""
        self.hang_up(older_than=CLIENT_SECONDS)

    def hang_up(self, *, older_than: float) -> None:
        """End the connections of clients that have been here for so many seconds."""
        now = time.monotonic()
        with self._lock:
            slow = [client for client, came in self._clients.items() if now - came >= older_than]
        for client in slow:
            # Its thread wakes up, and closes what is left.
            with contextlib.suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)

    def dismiss(self) -> None:
        """End all connections, and wait a moment for their threads."""
        self.hang_up(older_than=0.0)
        with self._lock:
            self._lock.wait_for(lambda: not self._clients, timeout=CLIENT_SECONDS)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news; a fault of ours is."""
        error = sys.exception()
        if not isinstance(error, OSError):
            event(_log, logging.WARNING, "metrics request failed", error=error)


class _Handler(BaseHTTPRequestHandler):
    """One request."""

    server: _Server
    server_version = "shoal"
    sys_version = ""

    def do_GET(self) -> None:
        """Answer with a page, if there is one."""
        page = self.server.pages.get(self.path.partition("?")[0])
        if not self._is_asked_for_loopback():
            # Else a web page whose name leads to this machine could have a browser read it.
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

    def _is_asked_for_loopback(self) -> bool:
        host = self.headers.get("Host", "localhost").strip()
        if host.startswith("["):
            host = host[1:].partition("]")[0]
        elif host.count(":") == 1:
            host = host.partition(":")[0]
        return host.lower() == "localhost" or _is_loopback(host)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Requests aren't logged."""
