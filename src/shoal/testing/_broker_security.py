"""What a test broker asks of its clients: TLS, certificates, passwords."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shoal.testing.certificates import Authority

__all__ = ["PLAIN", "SCRAM", "Security"]

PLAIN, SCRAM = "PLAIN", "SCRAM-SHA-512"
_MODULES = {PLAIN: "plain.PlainLoginModule", SCRAM: "scram.ScramLoginModule"}


class Security:
    """The security of a broker, as its own settings and as those of a client.

    Parameters
    ----------
    users
        Names and passwords, if clients must log in. The broker itself logs in as the first one.
    mechanism
        How they log in: ``PLAIN`` or ``SCRAM-SHA-512``.
    tls
        Who signs the broker's certificate; None without TLS.
    mutual
        Whether a client needs a certificate, too.
    """

    def __init__(
        self, users: Mapping[str, str], mechanism: str, tls: Authority | None, *, mutual: bool
    ) -> None:
        self._users = dict(users)
        self._mechanism = mechanism
        self._tls = tls
        self._own = None if tls is None else tls.issue("broker", hosts=["127.0.0.1"])
        self._client = tls.issue("client") if tls is not None and mutual else None

    @property
    def protocol(self) -> str:
        """The protocol, as brokers and clients name it."""
        channel = "PLAINTEXT" if self._tls is None else "SSL"
        return f"SASL_{channel}" if self._users else channel

    @property
    def client(self) -> dict[str, Any]:
        """What a client needs to connect, as librdkafka names it."""
        settings: dict[str, Any] = {}
        if self.protocol != "PLAINTEXT":
            settings["security.protocol"] = self.protocol
        if self._tls is not None:
            settings["ssl.ca.location"] = str(self._tls.ca)
        if self._client is not None:
            settings["ssl.certificate.location"] = str(self._client.certificate)
            settings["ssl.key.location"] = str(self._client.key)
        for name, password in list(self._users.items())[:1]:
            settings["sasl.mechanism"] = self._mechanism
            settings["sasl.username"], settings["sasl.password"] = name, password
        return settings

    @property
    def broker(self) -> dict[str, object]:
        """What the broker needs, as its ``server.properties`` names it."""
        settings: dict[str, object] = {}
        if self._own is not None and self._tls is not None:
            settings |= {
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": self._own.both,
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": self._tls.ca,
                # A broker that also asks for a password heeds it under this name only.
                f"listener.name.{self.protocol.lower()}.ssl.client.auth": (
                    "none" if self._client is None else "required"
                ),
            }
        for name, password in list(self._users.items())[:1]:
            known = " ".join(f'user_{user}="{word}"' for user, word in self._users.items())
            listener = f"listener.name.{self.protocol.lower()}.{self._mechanism.lower()}"
            settings |= {
                "sasl.enabled.mechanisms": self._mechanism,
                "sasl.mechanism.inter.broker.protocol": self._mechanism,
                f"{listener}.sasl.jaas.config": (
                    f"org.apache.kafka.common.security.{_MODULES[self._mechanism]} required "
                    f'username="{name}" password="{password}"'
                    + (f" {known};" if self._mechanism == PLAIN else ";")
                ),
            }
        return settings

    @property
    def format_words(self) -> list[str]:
        """Words for the command that formats the folder: users whose passwords are stored there."""
        if self._mechanism != SCRAM:
            return []
        return [
            f"--add-scram={SCRAM}=[name={name},password={password}]"
            for name, password in self._users.items()
        ]
