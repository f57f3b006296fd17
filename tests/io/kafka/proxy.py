"""A TCP proxy that passes no more bytes than it is told to: a slow network, or a slow broker."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress

#: How many bytes are passed at once, at most.
PIECE = 2048


class ThrottlingProxy:
    """Passes connections on to ``target``, each way at ``rate`` bytes a second; 0 stops it."""

    def __init__(self) -> None:
        self.rate = 10_000_000
        self.target = ""
        #: The number of bytes that were passed.
        self.n_bytes = 0
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"127.0.0.1:{self._listening.getsockname()[1]}"

    def __enter__(self) -> ThrottlingProxy:
        return self

    def __exit__(self, *_: object) -> None:
        for one in (self._listening, *self._open):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listening.accept()
                host, _, port = self.target.rpartition(":")
                try:
                    far = socket.create_connection((host, int(port)), 5)
                except OSError:
                    near.close()
                    continue
                far.settimeout(None)
                self._open += [near, far]
                for ends in ((near, far), (far, near)):
                    threading.Thread(target=self._pass, args=ends, daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while piece := source.recv(PIECE):
                while not self.rate:
                    time.sleep(0.05)
                time.sleep(len(piece) / self.rate)
                sink.sendall(piece)
                self.n_bytes += len(piece)
        for one in (source, sink):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
