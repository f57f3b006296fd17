"""Answer HTTP requests in threads, with limits on clients, a check of the host, and no logs."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import socketserver
import ssl
import sys
import threading
import time
from collections.abc import Callable, Mapping
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, TypeAlias

from shoal.errors import ResourceError
from shoal.events import event
from shoal.run.observe.access import Access

__all__ = ["Answer", "Limits", "Listener", "Reply", "Request", "Route"]

#: The most seconds for one request, and the most clients at a time, unless a server has others.
CLIENT_SECONDS = 5.0
CLIENTS = 32
#: How long an answer may take that is under way when the server ends.
LAST_ANSWER_SECONDS = 0.5
#: The most bytes that are read of a body that is refused: a client that still sends when the
#: connection is closed doesn't see the answer.
MOST_REFUSED = 32 << 20
_LAST_CHUNK = b"0\r\n\r\n"

#: Sent with every answer: nothing is kept, framed, sniffed, or fetched from elsewhere. There are no
#: headers of CORS, so that no other web page can read an answer.
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}

_log = logging.getLogger(__name__)

#: Returns the status, the type and the body of an answer.
Answer: TypeAlias = Callable[[], tuple[int, str, bytes]]


class Limits(NamedTuple):
    """The most seconds for one request, and the most clients at a time."""

    seconds: float
    clients: int


class Request(NamedTuple):
    """What a route is asked.

    Parameters
    ----------
    query
        What is after the question mark.
    headers
        The headers, by name in any case.
    body
        Reads the given number of bytes; raises `ConnectionError` if the client goes away.
    """

    query: str
    headers: Message
    body: Callable[[int], bytes]


class Reply(NamedTuple):
    """What a route answers."""

    status: int
    kind: str
    body: bytes
    headers: Mapping[str, str] = {}


class Route(NamedTuple):
    """A method and a path with what answers them.

    ``token`` is a further one that is accepted there, and nowhere else.
    """

    method: str
    answer: Callable[[Request], Reply]
    token: str | None = None


class Listener:
    """Listen on an address, and answer requests for some paths until it is closed.

    Parameters
    ----------
    key
        The option that the address was given by, for messages.
    where
        Host and port; port 0 is any free one.
    answers
        What ``GET`` is answered, by path.
    access
        Who may ask.
    tls
        Encrypts; None: plain HTTP.
    routes
        What else is answered, by path.
    limits
        How many clients are served, and for how long.

    Raises
    ------
    ResourceError
        If it can't listen there, for example because the port is taken.
    """

    def __init__(
        self,
        key: str,
        where: tuple[str, int],
        answers: Mapping[str, Answer],
        access: Access,
        tls: ssl.SSLContext | None = None,
        *,
        routes: Mapping[str, Route] | None = None,
        limits: Limits | None = None,
    ) -> None:
        every = {path: _route(answer) for path, answer in answers.items()} | dict(routes or {})
        try:
            self._server = _Server(
                where, every, access, tls, limits or Limits(CLIENT_SECONDS, CLIENTS)
            )
        except OSError as error:
            reason = os.strerror(error.errno).lower() if error.errno else "unknown reason"
            host = f"[{where[0]}]" if ":" in where[0] else where[0]
            raise ResourceError(
                f"{key} {host}:{where[1]}: can't listen there: {reason}. Choose another port; 0 is "
                "any free one."
            ) from None
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.1},
            name=f"shoal-{key.strip('-')}", daemon=True,
        )  # fmt: skip
        self._thread.start()

    @property
    def address(self) -> str:
        """The host and the port where it listens."""
        host, port = self._server.server_address[:2]
        return f"[{host!s}]:{port}" if ":" in str(host) else f"{host!s}:{port}"

    def close(self) -> None:
        """Stop listening and disconnect all clients. May be called twice."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()
        self._server.disconnect_all()


class _Server(ThreadingHTTPServer):
    """Serve each client in a thread, with limits on their number and their time."""

    daemon_threads = True

    def __init__(
        self,
        where: tuple[str, int],
        routes: Mapping[str, Route],
        access: Access,
        tls: ssl.SSLContext | None,
        limits: Limits,
    ) -> None:
        self.routes, self.access, self._tls = routes, access, tls
        self._limits = limits
        self.request_queue_size = 2 * limits.clients
        self.address_family = socket.AF_INET6 if ":" in where[0] else socket.AF_INET
        self._clients: dict[Any, float] = {}
        self._lock = threading.Condition()
        super().__init__(where, _Handler)

    def server_bind(self) -> None:
        """Bind without looking up the name of the host."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = "localhost", self.server_address[1]

    def get_request(self) -> tuple[Any, Any]:
        """Accept a client; with TLS its thread shakes hands, so that a slow one stops nobody."""
        client, address = super().get_request()
        if self._tls is not None:
            client = self._tls.wrap_socket(client, server_side=True, do_handshake_on_connect=False)
        return client, address

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Refuse a client if too many are being served."""
        with self._lock:
            if len(self._clients) >= self._limits.clients:
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
        self.disconnect(older_than=self._limits.seconds)

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
        """Disconnect all clients, and wait for their threads; what is being answered may end."""
        with self._lock:
            self._lock.wait_for(lambda: not self._clients, timeout=LAST_ANSWER_SECONDS)
        self.disconnect(older_than=0.0)
        with self._lock:
            self._lock.wait_for(lambda: not self._clients, timeout=self._limits.seconds)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log errors other than a client that went away, or that can't speak TLS."""
        error = sys.exception()
        if not isinstance(error, OSError):
            event(_log, logging.WARNING, "metrics request failed", error=error)


def _route(answer: Answer) -> Route:
    return Route("GET", lambda request: Reply(*answer()))


class _Handler(BaseHTTPRequestHandler):
    """Answer one request."""

    server: _Server
    server_version = "shoal"
    sys_version = ""
    # A client that asks before it sends a large body is told to go on.
    protocol_version = "HTTP/1.1"
    _n_unread = 0

    def do_GET(self) -> None:
        """Answer with what the path has, or an error."""
        self._answer("GET")

    def do_POST(self) -> None:
        """Give the body to what the path has, or answer with an error."""
        length = self.headers.get("Content-Length", "")
        is_number = length.isascii() and length.isdigit() and len(length) < 20
        self._n_unread = int(length) if is_number else 0
        self._answer("POST")
        self._discard()

    def _answer(self, method: str) -> None:
        path, _, query = self.path.partition("?")
        route = self.server.routes.get(path)
        if not self._is_allowed(route):
            return
        if route is None:
            self.send_error(404, f"there are {' and '.join(sorted(self.server.routes))}")
        elif route.method != method:
            self._send(
                405, "text/plain; charset=utf-8", f"only {route.method}\n".encode(),
                {"Allow": route.method},
            )  # fmt: skip
        else:
            self._send(*route.answer(Request(query, self.headers, self._read)))

    def _is_allowed(self, route: Route | None) -> bool:
        """Return whether a request may be answered; if not, it is answered that."""
        access = self.server.access
        if not access.knows_host(self.headers.get("Host", "localhost")):
            # The names of the machine are told to nobody.
            known = "only as localhost, 127.0.0.1 or [::1]"
            self.send_error(403, known if access.token is None else "not under this name")
            return False
        given = self.headers.get("Authorization")
        if access.allows(given):
            return True
        if route is not None and route.token is not None and Access(route.token).allows(given):
            return True
        self._ask_for_token()
        return False

    def handle_expect_100(self) -> bool:
        """Let a client send its body only if it may."""
        if not self._is_allowed(self.server.routes.get(self.path.partition("?")[0])):
            return False
        self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        return True

    def _read(self, n_bytes: int) -> bytes:
        body = self.rfile.read(min(n_bytes, self._n_unread))
        self._n_unread -= len(body)
        if len(body) < n_bytes:
            raise ConnectionError("the client sent less than its Content-Length")
        return body

    def _discard(self) -> None:
        """Read what a client still sends, so that it gets to reading the answer."""
        left = min(self._n_unread, MOST_REFUSED)
        while left > 0 and (data := self.rfile.read(min(left, 1 << 16))):
            left -= len(data)
        if "Transfer-Encoding" in self.headers and "Content-Length" not in self.headers:
            self._discard_chunks()

    def _discard_chunks(self) -> None:
        """Read a chunked body, which is always refused, up to its last chunk."""
        left, end = MOST_REFUSED, b""
        while left > 0 and end != _LAST_CHUNK and (data := self.rfile.read1(1 << 16)):
            left -= len(data)
            end = (end + data)[-len(_LAST_CHUNK) :]

    def _ask_for_token(self) -> None:
        body = b"The token is missing or wrong: give it as the password, with any user.\n"
        challenge = {"WWW-Authenticate": 'Basic realm="shoal", charset="UTF-8"'}
        self._send(401, "text/plain; charset=utf-8", body, challenge)

    def _send(
        self, status: int, kind: str, body: bytes, more: Mapping[str, str] | None = None
    ) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        for name, value in (more or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def end_headers(self) -> None:
        """End the headers, after those that every answer has."""
        for name, value in HEADERS.items():
            self.send_header(name, value)
        if not self.close_connection:
            # One request for each connection, so that no client keeps others out.
            self.send_header("Connection", "close")
        super().end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Don't log requests."""
