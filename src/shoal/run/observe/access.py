"""Who may ask a server of a run: the address, the names of the host, the token, and TLS."""

from __future__ import annotations

import base64
import binascii
import hmac
import ipaddress
import os
import socket
import ssl
from dataclasses import dataclass, field
from pathlib import Path

from shoal.errors import JobError, ParameterError, Problem, ResourceError
from shoal.io.streams import os_reason

__all__ = [
    "Access",
    "certificates",
    "is_loopback",
    "own_names",
    "read_address",
    "read_token",
]

#: The least length of a token, and the most bytes of its file that are read.
LEAST_TOKEN, MOST_TOKEN = 16, 4096
_MAKE = "To make one: openssl rand -hex 32"


@dataclass(frozen=True, slots=True)
class Access:
    """Who may ask, by what a request says.

    On loopback a browser on the same machine is the only risk: a web page whose name resolves to
    this machine (DNS rebinding). So only the names of loopback are answered to. Elsewhere a token
    is needed, and a name must be this machine's or one that was given; an address without a name
    can't be rebound.

    Parameters
    ----------
    token
        What a request must present; None: nothing, on loopback only.
    hosts
        The names, beside loopback's, under which the server answers.
    """

    token: str | None = field(default=None, repr=False)
    hosts: frozenset[str] = frozenset()

    def knows_host(self, header: str) -> bool:
        """Return whether the server answers to the name in a ``Host`` header.

        >>> Access().knows_host("localhost:8800"), Access().knows_host("evil.example")
        (True, False)
        """
        host = header.strip()
        if host.startswith("["):
            host = host[1:].partition("]")[0]
        elif host.count(":") == 1:
            host = host.partition(":")[0]
        host = host.lower()
        if host == "localhost" or is_loopback(host):
            return True
        return self.token is not None and (_is_address(host) or host in self.hosts)

    def allows(self, authorization: str | None) -> bool:
        """Return whether an ``Authorization`` header has the token.

        Browsers send it as the password of Basic (any user), programs as Bearer. The comparison
        takes the same time wherever the two differ.
        """
        if self.token is None:
            return True
        kind, _, given = (authorization or "").strip().partition(" ")
        found = b""
        if kind.lower() == "bearer":
            found = given.strip().encode("utf-8", "replace")
        elif kind.lower() == "basic":
            try:
                found = base64.b64decode(given.strip(), validate=True).partition(b":")[2]
            except (binascii.Error, ValueError):
                found = b""
        return hmac.compare_digest(found, self.token.encode())


def read_address(key: str, address: str, example: str) -> tuple[str, int]:
    """Return the host and the port of an address, for example ``127.0.0.1:9464``.

    Raises
    ------
    ParameterError
        If it isn't one; ``key`` is the option that it was given by.
    """
    host, colon, port = address.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    number = int(port) if port.isascii() and port.isdigit() and len(port) <= 5 else -1
    if not colon or not host or not 0 <= number <= 65535 or (":" in host and not bracketed):
        raise ParameterError(
            key,
            "must be a host and a port from 0 to 65535",
            got=address,
            fix=f"Try 127.0.0.1:{example}",
        )
    host = host[1:-1] if bracketed else host
    # Not resolved: a resolver may map the name to another address.
    return ("127.0.0.1" if host.lower() == "localhost" else host), number


def is_loopback(host: str) -> bool:
    """Return whether this is an address of loopback."""
    return _is_address(host) and ipaddress.ip_address(host).is_loopback


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def own_names() -> frozenset[str]:
    """Return the names of this machine, without asking a resolver."""
    name = socket.gethostname().lower()
    return frozenset({name, name.partition(".")[0]})


def read_token(spec: str, key: str = "--page-token") -> str:
    """Return the token from where an option says it is: ``file:PATH`` or ``env:NAME``.

    Raises
    ------
    JobError
        If the place is neither, or what is there is too short to be secret.
    ResourceError
        If the file can't be read.
    """
    kind, _, place = spec.partition(":")
    if kind not in ("file", "env") or not place:
        # Not shown: it may be the token itself.
        what = "must say where the token is: 'file:PATH' or 'env:NAME'"
        fix = "The token itself must not be on a command line, where others can read it"
        raise JobError(Problem(key, what, None, fix))
    if kind == "env":
        text = os.environ.get(place, "")
    else:
        try:
            with Path(place).open("rb") as file:
                text = file.read(MOST_TOKEN).decode("utf-8", "replace")
        except OSError as error:
            raise ResourceError(
                f"{place}: should hold the token of {key}; can't be read: {os_reason(error)}. "
                f"{_MAKE}"
            ) from None
    token = text.strip()
    if len(token) < LEAST_TOKEN:
        what = f"must hold at least {LEAST_TOKEN} characters"
        raise JobError(Problem(key, what, f"{len(token)}", _MAKE))
    return token


def certificates(certificate: Path, key: Path | None) -> ssl.SSLContext:
    """Return what a server needs for TLS, from files of PEM; the key may be in the first.

    Raises
    ------
    ResourceError
        If they can't be read, aren't PEM, or don't belong to each other.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        # A key under a passphrase is refused: nobody could type it in.
        context.load_cert_chain(certificate, key, password=lambda: b"")
    except (OSError, ValueError) as error:
        # The errors of TLS are errors of the system, too, with numbers of their own.
        why = "the file has no certificate, or the key is another one's"
        if isinstance(error, OSError) and not isinstance(error, ssl.SSLError):
            why = os_reason(error)
        raise ResourceError(
            f"{certificate}: should hold a certificate, with its key or with --page-key, as PEM; "
            f"{why}. To make one: openssl req -x509 -newkey rsa:3072 -nodes -keyout page.key "
            "-out page.crt -subj /CN=localhost -days 365"
        ) from None
    return context
