import ssl
import sys

import pytest

from shoal.errors import ResourceError
from shoal.testing.certificates import Authority


def handshake(authority, issued, host):
    """Let a client that trusts the authority shake hands with a server, in memory."""
    server_side, client_side = ssl.MemoryBIO(), ssl.MemoryBIO()
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(issued.certificate, issued.key)
    trusting = ssl.create_default_context(cafile=authority.ca)
    server = serving.wrap_bio(server_side, client_side, server_side=True)
    client = trusting.wrap_bio(client_side, server_side, server_hostname=host)
    for side in (client, server, client, server):
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue


def test_a_client_that_trusts_the_authority_trusts_its_servers(tmp_path):
    pytest.importorskip("cryptography")
    authority, strangers = Authority(tmp_path / "mine"), Authority(tmp_path / "theirs")
    issued = authority.issue("server", hosts=["127.0.0.1", "broker.test"])
    for host in ("127.0.0.1", "broker.test"):
        handshake(authority, issued, host)
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        handshake(authority, issued, "another.test")
    with pytest.raises(ssl.SSLCertVerificationError, match="verify failed"):
        handshake(strangers, issued, "broker.test")
    with pytest.raises(ssl.SSLCertVerificationError, match="expired"):
        handshake(authority, authority.issue("old", hosts=["a.test"], days=-1), "a.test")


def test_keys_are_for_their_owner_alone(tmp_path):
    pytest.importorskip("cryptography")
    issued = Authority(tmp_path / "mine").issue("server", password="a word")
    assert issued.key.stat().st_mode & 0o777 == 0o600
    assert issued.both.stat().st_mode & 0o777 == 0o600
    assert b"ENCRYPTED" in issued.key.read_bytes()
    assert issued.both.read_bytes() == issued.key.read_bytes() + issued.certificate.read_bytes()


def test_without_the_package_the_extra_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.asymmetric", None)
    with pytest.raises(ResourceError, match=r"pip install '\.\[seal\]'"):
        Authority(tmp_path)
