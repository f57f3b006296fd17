"""A Mosquitto broker for tests: on loopback, on a free port, ended by its process id."""

from __future__ import annotations

import shutil
import socket
import subprocess
import threading
import time
from pathlib import Path

import paho.mqtt.client as paho
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions

CONFIG = """\
listener {port} 127.0.0.1
persistence true
persistence_location {folder}/
max_queued_messages 0
{more}
"""


class NoMosquittoError(Exception):
    """There can't be a broker here, and why."""


class Mosquitto:
    """A broker that keeps its sessions in a folder; it can be stopped and started again."""

    def __init__(self, folder: Path, more: str = "allow_anonymous true") -> None:
        # Debian has it where only root looks for commands.
        found = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin")
        if found is None:
            raise NoMosquittoError("mosquitto isn't installed: apt-get install mosquitto")
        self._command = found
        folder.mkdir(exist_ok=True)
        # It gives up the rights of root, and must be able to write its sessions.
        folder.chmod(0o777)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        self.address = f"127.0.0.1:{self.port}"
        self._config = folder / "mosquitto.conf"
        more = f"user root\n{more}"
        self._config.write_text(CONFIG.format(port=self.port, folder=folder, more=more))
        self.log = folder / "mosquitto.log"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> Mosquitto:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [self._command, "-c", str(self._config), "-v"], stdout=log, stderr=log
            )
        end = time.monotonic() + 30
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return self
            except OSError:
                assert self.process.poll() is None, self.log.read_text()
                assert time.monotonic() < end, self.log.read_text()
                time.sleep(0.05)

    def stop(self) -> None:
        """End it in good order: it writes its sessions."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait(30)
            self.process = None

    def __enter__(self) -> Mosquitto:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


def publish(port: int, messages: list[tuple[str, bytes]], qos: int = 1) -> None:
    """Publish messages, and wait until the broker has them."""
    client = paho.Client(paho.CallbackAPIVersion.VERSION2, protocol=paho.MQTTv5)
    connected = threading.Event()
    client.on_connect = lambda *_: connected.set()
    client.connect("127.0.0.1", port)
    client.loop_start()
    # What is published before the broker has answered is published again when it has.
    assert connected.wait(60)
    sent = [client.publish(topic, payload, qos) for topic, payload in messages]
    for info in sent:
        info.wait_for_publish(60)
        assert info.is_published()
    client.disconnect()
    client.loop_stop()


class Subscriber:
    """Keeps all messages of a topic, with their user properties."""

    def __init__(self, port: int, topic: str) -> None:
        self.messages: list[tuple[str, bytes, dict[str, str]]] = []
        self._client = paho.Client(
            paho.CallbackAPIVersion.VERSION2, client_id="subscriber", protocol=paho.MQTTv5
        )
        self._client.on_message = self._on_message
        properties = Properties(PacketTypes.CONNECT)
        properties.SessionExpiryInterval = 3600
        self._client.connect("127.0.0.1", port, clean_start=False, properties=properties)
        self._client.subscribe(topic, options=SubscribeOptions(qos=1))
        self._client.loop_start()

    def _on_message(self, _client, _data, message) -> None:
        pairs = getattr(message.properties, "UserProperty", [])
        self.messages.append((message.topic, message.payload, dict(pairs)))

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()
