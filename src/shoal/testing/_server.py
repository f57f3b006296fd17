"""A server on this machine, for tests: it ends with the process that started it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import ClassVar, Self

from shoal.testing._broker_jars import NoBrokerError

__all__ = ["JAVA_OPTIONS", "Server", "tail"]

#: A small, quick Java: these servers serve one machine for a short while.
JAVA_OPTIONS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
#: A guard reads the process id from its pipe, and kills the process when the pipe is closed.
GUARD = ("sh", "-c", 'read -r pid && { read -r _; kill -9 "$pid"; } 2>/dev/null')


class Server(ABC):
    """A process that can be started, stopped, killed and suspended, one after the other.

    It ends with the process that started it, however that ends.
    """

    #: What it is, in messages.
    WHAT: ClassVar[str]
    #: How long, in seconds, it may take to start and to stop.
    START_SECONDS: ClassVar[float]
    STOP_SECONDS: ClassVar[float] = 20.0

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None
        self._log: Path | None = None

    @property
    def pid(self) -> int | None:
        """The process id while it runs, else None."""
        return None if self._process is None else self._process.pid

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @abstractmethod
    def start(self) -> None:
        """Start it, and wait until it answers; after a stop, on the same port."""

    def stop(self) -> None:
        """Stop it, cleanly if possible."""
        if self._process is not None:
            self.resume()
            self._process.terminate()
            try:
                self._process.wait(self.STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
            self._reap()

    def kill(self) -> None:
        """Kill it, as a crash would. `start` starts it again."""
        if self._process is not None:
            self._process.kill()
            self._reap()

    def pause(self) -> None:
        """Suspend it: it keeps its connections and doesn't answer."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Resume it after `pause`."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def serve(self, then: Callable[[], None]) -> None:
        """Start it, call ``then``, and stop it at Ctrl-C or SIGTERM."""
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            with suppress(KeyboardInterrupt), self:
                then()
                while True:
                    signal.pause()
        finally:
            signal.signal(signal.SIGTERM, before)

    # -- for subclasses --------------------------------------------------------------------------

    @abstractmethod
    def _answers(self, seconds: float) -> bool:
        """Return whether it answers; there are so many seconds left."""

    def _run(
        self, command: Sequence[str], log: Path = Path(os.devnull), folder: str | None = None
    ) -> None:
        """Run a command in a folder, with a log of what it says, and wait until it answers."""
        # Both in sessions of their own: a signal to our process group, such as that of Ctrl-C at
        # the terminal, is for this process, which stops the server.
        self._guard = subprocess.Popen(GUARD, stdin=subprocess.PIPE, start_new_session=True)
        self._log = log
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                start_new_session=True, cwd=folder,
            )  # fmt: skip
        assert self._guard.stdin is not None
        self._guard.stdin.write(f"{self._process.pid}\n".encode())
        self._guard.stdin.flush()
        self._wait_until_ready()

    def _wait_until_ready(self) -> None:
        assert self._process is not None
        assert self._log is not None
        end = time.monotonic() + self.START_SECONDS
        while (left := end - time.monotonic()) > 0:
            if self._process.poll() is not None:
                self._reap()
                why = tail(self._log.read_text(errors="replace"))
                raise NoBrokerError(f"no {self.WHAT}: it ended while starting: {why}")
            if self._answers(left):
                return
            time.sleep(0.05)
        self.kill()
        raise NoBrokerError(f"no {self.WHAT}: none answers after {self.START_SECONDS:.0f} seconds")

    def _reap(self) -> None:
        assert self._process is not None
        assert self._guard is not None
        # The guard is killed first: once the process is reaped, its id may be reused.
        self._guard.kill()
        self._guard.wait()
        assert self._guard.stdin is not None
        self._guard.stdin.close()
        self._process.wait()
        self._process = self._guard = None


def tail(text: str) -> str:
    """Return the last lines of a log, as one."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " / ".join(lines[-3:]) or "it didn't say why"
