"""A small web service that takes events about people, and publishes them in groups.

    POST /events      an event as JSON, or a list of them
    GET  /published   all that was published so far, as JSON lines
    GET  /figures     how many rows came in, were published, are held

No event waits for more than two seconds, and each leaves in a group of at least five riders.

It needs the standard library only: the threads of `http.server` hand events to an `AsyncStream` in
an event loop. In an asynchronous web framework a handler awaits `stream.push(event)` by itself. Run
it with `python examples/serve_events.py`, and send it something:

    curl 127.0.0.1:8080/events -d '{"rider": "r1", "age": 31, "zone": "1010", "bike": "cargo"}'
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from shoal import (
    AsyncStream,
    Delay,
    Hierarchy,
    KAnonymity,
    Policy,
    Quasi,
    Range,
    Schema,
    ShoalError,
)

SCHEMA = Schema(
    subject="rider",
    quasi=[Quasi("age", Range(14, 100, step=1)), Quasi("zone", Hierarchy.digits(4))],
    keep=["bike"],
)
POLICY = Policy(KAnonymity(5), delay=Delay(seconds=2))
#: The most bytes of a request.
MOST_BYTES = 1 << 20


class Service:
    """The stream, the server, and the file of what is published."""

    def __init__(self, published: Path, port: int = 8080) -> None:
        self.published = published
        self.server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.service = self  # type: ignore[attr-defined]
        # A bad event is the sender's fault: they are told, and nothing of it is taken in.
        self.stream = AsyncStream(SCHEMA, POLICY, bad_rows="stop")
        self.loop: asyncio.AbstractEventLoop | None = None
        self._stop = asyncio.Event()

    @property
    def port(self) -> int:
        return int(self.server.server_address[1])

    async def run(self) -> None:
        """Serve until `stop` is called; then publish what is held, under the policy."""
        self.loop = asyncio.get_running_loop()
        self.published.touch()
        async with self.stream:
            writing = asyncio.create_task(self._write())
            serving = asyncio.create_task(asyncio.to_thread(self.server.serve_forever, 0.05))
            try:
                await self._stop.wait()
            finally:
                self.server.shutdown()
                await serving
                self.server.server_close()
        await writing

    def stop(self) -> None:
        """End `run`, from any thread."""
        assert self.loop is not None
        self.loop.call_soon_threadsafe(self._stop.set)

    def wait_for(self, call: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine in the event loop; called in the thread of a request."""
        assert self.loop is not None
        asyncio.run_coroutine_threadsafe(call, self.loop).result()

    async def _write(self) -> None:
        """Write releases as they leave, also those whose deadline has come."""
        with self.published.open("a", encoding="utf-8") as file:
            async for release in self.stream:
                file.write(json.dumps(release) + "\n")
                file.flush()


class Handler(BaseHTTPRequestHandler):
    """Answers one request, in a thread of its own."""

    @property
    def service(self) -> Service:
        found: Service = self.server.service  # type: ignore[attr-defined]
        return found

    def do_POST(self) -> None:
        n_bytes = int(self.headers.get("Content-Length", 0))
        if self.path != "/events" or n_bytes > MOST_BYTES:
            self._answer(404 if n_bytes <= MOST_BYTES else 413)
            return
        try:
            events = json.loads(self.rfile.read(n_bytes))
        except ValueError:
            self._answer(400, {"error": "the body isn't JSON"})
            return
        try:
            self.service.wait_for(self.service.stream.push(events))
        except ShoalError as error:
            # The message names columns and counts, never a value.
            self._answer(422, {"error": str(error)})
            return
        self._answer(202)

    def do_GET(self) -> None:
        if self.path == "/published":
            self._send(200, self.service.published.read_bytes(), "application/jsonl")
        elif self.path == "/figures":
            self._answer(200, self.service.stream.summary.as_dict()["rows"])
        else:
            self._answer(404)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Log nothing: who asked when tells who came."""

    def _answer(self, status: int, body: object = None) -> None:
        text = b"" if body is None else json.dumps(body).encode()
        self._send(status, text, "application/json")

    def _send(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    service = Service(Path("published.jsonl"))
    print(f"listening on http://127.0.0.1:{service.port}; Ctrl-C ends it")
    try:
        asyncio.run(service.run())
    except KeyboardInterrupt:
        print(service.stream)
