"""What a test broker asks of its clients: TLS, certificates, passwords."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from shoal.testing.certificates import Authority, Certificate

__all__ = ["PLAIN", "SCRAM", "Security"]

PLAIN, SCRAM = "PLAIN", "SCRAM-SHA-512"
_MODULES = {PLAIN: "plain.PlainLoginModule", SCRAM: "scram.ScramLoginModule"}


@dataclass(frozen=True)
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
    is_mutual
        Whether a client needs a certificate, too.
    """

    users: Mapping[str, str] = field(default_factory=dict, repr=False)
    mechanism: str = PLAIN
    tls: Authority | None = None
    is_mutual: bool = False

    def __post_init__(self) -> None:
        own: Certificate | None = None
        client: Certificate | None = None
        if self.tls is not None:
            own = self.tls.issue("broker", hosts=["127.0.0.1"])
            client = self.tls.issue("client") if self.is_mutual else None
        object.__setattr__(self, "_own", own)
        object.__setattr__(self, "_client", client)

    _own: Certificate | None = field(init=False, default=None)
    _client: Certificate | None = field(init=False, default=None)

    @property
    def protocol(self) -> str:
        """The protocol, as brokers and clients name it."""
        channel = "PLAINTEXT" if self.tls is None else "SSL"
        return f"SASL_{channel}" if self.users else channel

    @property
    def client(self) -> dict[str, Any]:
        """What a client needs to connect, as librdkafka names it."""
        settings: dict[str, Any] = {}
        if self.protocol != "PLAINTEXT":
            settings["security.protocol"] = self.protocol
        if self.tls is not None:
            settings["ssl.ca.location"] = str(self.tls.ca)
        if self._client is not None:
            settings["ssl.certificate.location"] = str(self._client.certificate)
            settings["ssl.key.location"] = str(self._client.key)
        for name, password in list(self.users.items())[:1]:
            settings["sasl.mechanism"] = self.mechanism
            settings["sasl.username"], settings["sasl.password"] = name, password
        return settings

    @property
    def broker(self) -> dict[str, object]:
        """What the broker needs, as its ``server.properties`` names it."""
        settings: dict[str, object] = {}
        if self._own is not None and self.tls is not None:
            settings |= {
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": self._own.both,
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": self.tls.ca,
                # A broker that also asks for a password heeds it under this name only.
                f"listener.name.{self.protocol.lower()}.ssl.client.auth": (
                    "required" if self.is_mutual else "none"
                ),
            }
        for name, password in list(self.users.items())[:1]:
            known = " ".join(f'user_{user}="{word}"' for user, word in self.users.items())
            listener = f"listener.name.{self.protocol.lower()}.{self.mechanism.lower()}"
            settings |= {
                "sasl.enabled.mechanisms": self.mechanism,
                "sasl.mechanism.inter.broker.protocol": self.mechanism,
                f"{listener}.sasl.jaas.config": (
                    f"org.apache.kafka.common.security.{_MODULES[self.mechanism]} required "
                    f'username="{name}" password="{password}"'
                    + (f" {known};" if self.mechanism == PLAIN else ";")
                ),
            }
        return settings

    @property
    def format_words(self) -> list[str]:
        """Words for the command that formats the folder: users whose passwords are stored there."""
        if self.mechanism != SCRAM:
            return []
        return [
            f"--add-scram={SCRAM}=[name={name},password={password}]"
            for name, password in self.users.items()
        ]
