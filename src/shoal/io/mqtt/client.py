"""The connection to a broker: it is made again whenever it is lost, until it is closed."""

from __future__ import annotations

import logging
import ssl
import sys
import time
from collections.abc import Callable
from typing import Any

from shoal.errors import JobError, Problem, ResourceError, install_hint
from shoal.events import sentence
from shoal.io.mqtt.settings import MqttSettings

__all__ = ["LOG", "OPEN_SECONDS", "Link", "paho"]

LOG = logging.getLogger("shoal.mqtt")

#: The time, in seconds, that a broker has to answer when a job starts.
OPEN_SECONDS = 15.0
#: How often, in seconds, the broker is shown that the connection is alive, unless the job says.
KEEPALIVE = 30
#: The longest time, in seconds, between two attempts to connect.
RECONNECT_SECONDS = 2
#: A session never expires on our part: the broker may set an end.
FOREVER = 0xFFFFFFFF
#: Reasons for which the broker refuses or ends a connection, where waiting doesn't help.
_REFUSED = {
    "Bad user name or password",
    "Not authorized",
    "Bad authentication method",
    "Client identifier not valid",
    "Unsupported protocol version",
    "Banned",
    "Use another server",
    "Server moved",
}
_TAKEN_OVER = "Session taken over"


def paho() -> Any:
    """Return the client library.

    Raises
    ------
    JobError
        If it isn't installed.
    """
    try:
        import paho.mqtt.client
        import paho.mqtt.packettypes
        import paho.mqtt.properties
        import paho.mqtt.subscribeoptions
    except ImportError:
        what = "needs paho-mqtt, which isn't installed"
        raise JobError(Problem("mqtt", what, None, install_hint("mqtt"))) from None
    return paho.mqtt


class Link:
    """A session at a broker, in MQTT 5, under a name that is always the same.

    Parameters
    ----------
    settings
        The broker. Secrets are looked up here, and nowhere else.
    name
        The client identifier.
    on_up
        Called when a connection is made, with the client and whether the broker still has the
        session. Its callbacks run in a thread of the client.
    window
        The maximum number of messages that the broker sends before they are acknowledged.
    keep
        Whether the broker keeps the session while this client isn't connected.
    """

    def __init__(
        self,
        settings: MqttSettings,
        name: str,
        on_up: Callable[[Any, bool], None],
        *,
        window: int = 1,
        keep: bool = True,
    ) -> None:
        library = paho()
        self._settings, self._name, self._on_up = settings, name, on_up
        self._resolved = settings.resolved()
        self._failure: ResourceError | None = None
        self._closing = False
        self._began = time.monotonic()
        self._why = "no answer"
        self._was_up = False
        #: Counts the connections that were lost.
        self.epoch = 0
        self.is_up = False
        #: Whether no broker answered last.
        self.away = False
        self.client = library.client.Client(
            library.client.CallbackAPIVersion.VERSION2,
            client_id=name,
            protocol=library.client.MQTTv5,
            manual_ack=True,
        )
        self.client.on_connect = self._on_connect
        self.client.on_connect_fail = self._on_connect_fail
        self.client.on_disconnect = self._on_disconnect
        self.client.reconnect_delay_set(1, RECONNECT_SECONDS)
        self._secure()
        self._properties = library.properties.Properties(library.packettypes.PacketTypes.CONNECT)
        self._properties.SessionExpiryInterval = FOREVER if keep else 0
        self._keep = keep
        self._properties.ReceiveMaximum = window

    def _secure(self) -> None:
        given = self._resolved
        if "username" in given:
            self.client.username_pw_set(given["username"], given.get("password"))
        if self._settings.has_tls:
            try:
                self.client.tls_set(given.get("ca"), given.get("cert"), given.get("key"))
            except (OSError, ValueError):
                # The message of the TLS library names no file.
                named = ", ".join(f"settings.{name}" for name in ("ca", "cert", "key"))
                raise ResourceError(
                    f"{self._settings.where}: the certificates can't be used. Check that the files "
                    f"of {named} are there, in PEM format, and that the key isn't encrypted."
                ) from None

    def start(self) -> None:
        """Connect, and keep connected, in a thread of the client."""
        host, port = self._settings.address
        keepalive = int(self._resolved.get("keepalive", KEEPALIVE))
        self._began = time.monotonic()
        self.client.connect_async(
            host, port, keepalive, clean_start=not self._keep, properties=self._properties
        )
        self.client.loop_start()

    def check(self) -> None:
        """Raise what ended the connection for good, or that no broker has answered at the start.

        Raises
        ------
        ResourceError
            If waiting doesn't help.
        """
        if self._failure is not None:
            raise self._failure
        if not self._was_up and time.monotonic() > self._began + OPEN_SECONDS:
            raise ResourceError(
                f"{self._settings.where}: no broker answers ({self._why}). Is it running, and is "
                "the address right?"
            )

    def fail(self, what: str) -> None:
        """End for good: `check` raises this."""
        if self._failure is None:
            self._failure = ResourceError(f"{self._settings.where}: {what}")

    def close(self) -> None:
        """End the connection; the broker keeps the session. Closing twice does no harm."""
        self._closing = True
        self.client.disconnect()
        self.client.loop_stop()
        # Without these circles the client and its sockets are freed with the last reference.
        for name in ("connect", "connect_fail", "disconnect", "message", "publish", "subscribe"):
            setattr(self.client, f"on_{name}", None)

    # -- callbacks of the client -------------------------------------------------------------------

    def _on_connect(self, client: Any, _data: Any, flags: Any, reason: Any, _more: Any) -> None:
        if reason.is_failure:
            self._refuse(str(reason))
            return
        self.is_up = self._was_up = True
        if self.away:
            self.away = False
            sentence(
                LOG, logging.WARNING, "broker back", f"{self._settings.where}: the broker is back"
            )
        self._on_up(client, bool(flags.session_present))

    def _refuse(self, reason: str) -> None:
        self._why = reason
        if reason in _REFUSED:
            self.fail(
                f"the broker refuses the connection: {reason}. Check the username, password and "
                "TLS settings of the job."
            )
        elif self._was_up:
            self._lost()

    def _on_connect_fail(self, _client: Any, _data: Any) -> None:
        error = sys.exc_info()[1]
        if isinstance(error, ssl.SSLError):
            reason = getattr(error, "verify_message", "") or error.reason or "TLS failed"
            self.fail(
                f"the broker refuses the connection, or isn't trusted: {reason}. Check the TLS "
                "settings of the job."
            )
        if isinstance(error, OSError) and error.strerror:
            self._why = error.strerror
        if self._was_up:
            self._lost()

    def _on_disconnect(
        self, _client: Any, _data: Any, _flags: Any, reason: Any, _more: Any
    ) -> None:
        self.is_up = False
        self.epoch += 1
        if self._closing:
            return
        if str(reason) == _TAKEN_OVER:
            self.fail(
                f"another client has connected as {self._name}: another process runs this job, or "
                "one of the same name. Nothing more is read by this one."
            )
        elif str(reason) in _REFUSED:
            self._refuse(str(reason))
        elif self._was_up:
            self._lost()

    def _lost(self) -> None:
        if not self.away and not self._closing:
            self.away = True
            text = f"{self._settings.where}: no broker answers; waiting for it to come back"
            sentence(LOG, logging.WARNING, "broker away", text)
