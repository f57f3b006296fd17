"""A server that speaks TLS, asks for credentials, and passes requests on to a registry."""

from __future__ import annotations

import http.client
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from shoal.testing.certificates import Authority, Certificate


class TlsProxy:
    """Passes on what comes with the right header ``Authorization``, and refuses everything else.

    Parameters
    ----------
    target
        The address of the registry.
    certificate
        Of the server.
    authorization
        The header that a request must have; None: none.
    clients
        The authority that must have signed the certificates of clients; None: they need none.
    """

    def __init__(
        self,
        target: str,
        certificate: Certificate,
        authorization: str | None = None,
        clients: Authority | None = None,
    ) -> None:
        there = urlsplit(target)
        assert there.hostname is not None
        self.n_passed = self.n_refused = 0
        proxy, host, port = self, there.hostname, there.port

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                if self.headers.get("Authorization") != authorization:
                    proxy.n_refused += 1
                    self.answer(401, b"{}", "application/json")
                    return
                proxy.n_passed += 1
                asked = http.client.HTTPConnection(host, port, timeout=60)
                kind = self.headers.get("Content-Type")
                asked.request(self.command, self.path, body, {"Content-Type": kind} if kind else {})
                found = asked.getresponse()
                self.answer(found.status, found.read(), found.headers.get("Content-Type") or "")
                asked.close()

            do_POST = do_GET  # noqa: N815

            def answer(self, status: int, data: bytes, kind: str) -> None:
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                return

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: object) -> None:
                # A client that trusts nobody hangs up.
                return

        self._server = Server(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate.certificate, certificate.key)
        if clients is not None:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(clients.ca)
        # The handshake is part of handling a request, not of accepting a connection.
        self._server.socket = context.wrap_socket(
            self._server.socket, server_side=True, do_handshake_on_connect=False
        )
        self.address = f"https://127.0.0.1:{self._server.server_address[1]}{there.path}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def __enter__(self) -> TlsProxy:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
