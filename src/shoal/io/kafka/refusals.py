"""Say in plain words why a broker refuses a connection, and what to do about it."""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["CERTIFICATE_KEYS", "KEY_KEYS", "is_refusal", "reason_of", "without_timing"]

#: Settings of librdkafka that give the certificate of a client, and its key; a keystore has both.
CERTIFICATE_KEYS = ("ssl.certificate.location", "ssl.certificate.pem", "ssl.keystore.location")
KEY_KEYS = ("ssl.key.location", "ssl.key.pem", "ssl.keystore.location")

#: TLS alerts by which a broker refuses a client, and that no waiting changes: of the handshake, of
#: certificates (42 to 46, 48, 49, 116) and of versions.
_ALERT = re.compile(r"SSL alert number (40|4[2-689]|70|71|116)\b")
_PLACE = re.compile(r"\w+://(?P<host>.+):(?P<port>\d+)/")
_KNOWN = re.compile(r"supported mechanisms: ([\w, -]*\w)")
#: How long, in seconds, to look at a certificate that isn't trusted.
_LOOK_SECONDS = 5.0
#: Codes of OpenSSL: the name or address isn't in the certificate.
_OTHER_HOST = (62, 64)
_NOT_YET, _EXPIRED = 9, 10


def is_refusal(text: str) -> bool:
    """Return whether a lost connection was refused by the broker, for the certificate of a client.

    >>> is_refusal("Receive failed: ssl/tls alert bad certificate: SSL alert number 42 (after 9ms")
    True
    >>> is_refusal("Connect to ipv4#127.0.0.1:9092 failed: Connection refused")
    False
    """
    return _ALERT.search(text) is not None


def reason_of(text: str, values: Mapping[str, Any]) -> str:
    """Return why a broker refuses a connection, and how to fix it, in sentences.

    Parameters
    ----------
    text
        What the client says.
    values
        The settings of the client.
    """
    if _ALERT.search(text):
        return _certificate_of_the_job(values)
    if "certificate verify failed" in text:
        return _certificate_of_the_broker(text, values)
    if "Unsupported SASL mechanism" in text:
        known = _KNOWN.search(text)
        offered = f"; it offers {known[1]}" if known else ""
        chosen = values.get("sasl.mechanism") or values.get("sasl.mechanisms") or "GSSAPI"
        return f"it doesn't offer sasl.mechanism {chosen}{offered}. Choose one that it offers."
    if "not valid in current SASL state" in text:
        return (
            "it has no authentication at this address. Use an address that has it, or leave out "
            "the sasl settings and write SSL or PLAINTEXT as security.protocol."
        )
    if "uthentication failed" in text or "invalid credentials" in text:
        return (
            "it doesn't accept the user or the password. Check sasl.username, sasl.mechanism, and "
            "the password that sasl.password refers to."
        )
    return (
        f"{without_timing(text)}. Check security.protocol and the sasl and ssl settings of the job."
    )


def without_timing(text: str) -> str:
    """Return what the client says without how long it took.

    >>> without_timing("127.0.0.1:1/bootstrap: Connection refused (after 0ms in state CONNECT)")
    '127.0.0.1:1/bootstrap: Connection refused'
    """
    return re.sub(r" \(after \d+ms in state \w+.*\)", "", text).strip().rstrip(".")


def _certificate_of_the_job(values: Mapping[str, Any]) -> str:
    if not any(key in values for key in CERTIFICATE_KEYS):
        return (
            "it asks for a certificate of the job. Have one issued, and set "
            "ssl.certificate.location and ssl.key.location."
        )
    return (
        "it doesn't accept the certificate of the job. Has it expired, and is it signed by an "
        "authority that the broker trusts (its ssl.truststore)? Check ssl.certificate.location."
    )


def _certificate_of_the_broker(text: str, values: Mapping[str, Any]) -> str:
    place = _PLACE.search(text)
    host = place["host"].strip("[]") if place else None
    # librdkafka has one message for all of it: look at the certificate again.
    code = _code(host, int(place["port"]), values) if place and host else None
    if code in _OTHER_HOST:
        return (
            f"its certificate isn't for {host}. Write a name that the certificate has under kafka; "
            "or have one issued for this name. The names that brokers advertise count, too."
        )
    if code in (_NOT_YET, _EXPIRED):
        what = "has expired" if code == _EXPIRED else "isn't valid yet"
        return f"its certificate {what}. Have it renewed; check the clock of this machine."
    return (
        "its certificate can't be verified. Set ssl.ca.location to the certificate of the "
        "authority that signed it."
    )


def _code(host: str, port: int, values: Mapping[str, Any]) -> int | None:
    """Return OpenSSL's code for what is wrong with a certificate; None if it can't be had."""
    try:
        context = _context(values)
        with (
            socket.create_connection((host, port), _LOOK_SECONDS) as connection,
            context.wrap_socket(connection, server_hostname=host),
        ):
            return None
    except ssl.SSLCertVerificationError as error:
        return error.verify_code
    except (OSError, ValueError):
        return None


def _context(values: Mapping[str, Any]) -> ssl.SSLContext:
    ca, pem = values.get("ssl.ca.location"), values.get("ssl.ca.pem")
    is_folder = ca is not None and Path(ca).is_dir()
    context = ssl.create_default_context(
        cafile=None if is_folder else ca, capath=ca if is_folder else None, cadata=pem
    )
    context.check_hostname = values.get("ssl.endpoint.identification.algorithm") != "none"
    return context
