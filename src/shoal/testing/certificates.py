"""Certificates for tests of TLS: an authority of one's own, and what it signs. Never for more."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from shoal.errors import ResourceError, install_hint

if TYPE_CHECKING:
    from cryptography import x509

__all__ = ["Authority", "Certificate"]

#: How many days a certificate is valid, unless one says otherwise.
DAYS = 30


class Certificate(NamedTuple):
    """The files of a certificate, in PEM.

    Parameters
    ----------
    certificate, key
        The certificate, and its private key.
    both
        A file with both, as a Kafka broker takes them.
    """

    certificate: Path
    key: Path
    both: Path


class Authority:
    """A certificate authority in a folder; ``ca.pem`` is its own certificate.

    Its key is in memory only: another process can use the certificates, and can't sign more.

    Parameters
    ----------
    folder
        Where the files go; created if it doesn't exist. Files of an earlier authority are replaced.

    Raises
    ------
    ResourceError
        If the package cryptography isn't installed.
    """

    def __init__(self, folder: Path) -> None:
        try:
            from cryptography.hazmat.primitives.asymmetric import ec
        except ImportError:
            raise ResourceError(
                f"certificates need the package cryptography. {install_hint('seal')}."
            ) from None
        self._folder = folder
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._certificate = self._sign(_name("Shoal test authority"), self._key.public_key(), DAYS)
        #: The certificate of the authority, which a client is to trust.
        self.ca = folder / "ca.pem"
        self.ca.write_bytes(_pem(self._certificate))

    def issue(
        self,
        name: str,
        *,
        hosts: Sequence[str] = (),
        days: float = DAYS,
        password: str | None = None,
    ) -> Certificate:
        """Sign a new certificate.

        Parameters
        ----------
        name
            Its common name, and the name of its files.
        hosts
            The addresses or host names of the server that it is for.
        days
            How long it is valid; below 0 it has expired.
        password
            What its key is encrypted with, if at all.
        """
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ec

        key = ec.generate_private_key(ec.SECP256R1())
        signed = self._sign(_name(name), key.public_key(), days, hosts)
        locked: serialization.KeySerializationEncryption = serialization.NoEncryption()
        if password is not None:
            locked = serialization.BestAvailableEncryption(password.encode())
        files = Certificate(*(self._folder / f"{name}.{end}" for end in ("pem", "key", "both")))
        form = serialization.PrivateFormat.PKCS8
        secret = key.private_bytes(serialization.Encoding.PEM, form, locked)
        for path, content in zip(files, (_pem(signed), secret, secret + _pem(signed)), strict=True):
            path.touch(mode=0o600)
            path.write_bytes(content)
        return files

    def _sign(
        self, subject: x509.Name, key: object, days: float, hosts: Sequence[str] | None = None
    ) -> x509.Certificate:
        """Sign a key; without ``hosts``, that of the authority itself."""
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes

        now = datetime.now(UTC)
        is_ca = hosts is None
        end = now + timedelta(days=days)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(subject if is_ca else self._certificate.subject)
            .public_key(key)  # type: ignore[arg-type]
            .serial_number(x509.random_serial_number())
            .not_valid_before(min(now, end) - timedelta(days=1))
            .not_valid_after(end)
            .add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
        )
        if hosts:
            names = x509.SubjectAlternativeName([_host(host) for host in hosts])
            builder = builder.add_extension(names, critical=False)
        return builder.sign(self._key, hashes.SHA256())


def _name(name: str) -> x509.Name:
    from cryptography import x509

    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])


def _host(host: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(certificate: x509.Certificate) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.PEM)
