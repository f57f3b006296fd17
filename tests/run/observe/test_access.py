"""Who may ask: names of the host, the token, addresses, and files for TLS."""

from __future__ import annotations

import base64

import pytest

from shoal.errors import JobError, ParameterError, ResourceError
from shoal.run.observe import PageServer
from shoal.run.observe.access import Access, certificates, read_token

TOKEN = "a-token-of-sixteen-or-more"
OPEN, CLOSED = Access(), Access(TOKEN, frozenset({"shoal.internal"}))


@pytest.mark.parametrize(
    ("host", "on_loopback", "elsewhere"),
    [
        ("localhost:8800", True, True), ("127.0.0.1", True, True), ("[::1]:80", True, True),
        ("10.1.2.3:8800", False, True), ("[2001:db8::1]", False, True),
        ("shoal.internal", False, True), ("SHOAL.internal:443", False, True),
        ("evil.example", False, False), ("", False, False),
        ("localhost.evil.example", False, False),
    ],
)  # fmt: skip
def test_a_name_that_an_attacker_chooses_is_not_answered_to(host, on_loopback, elsewhere):
    """An address can't be rebound: only names are resolved."""
    assert OPEN.knows_host(host) is on_loopback
    assert CLOSED.knows_host(host) is elsewhere


def basic(password: str, user: str = "any") -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


@pytest.mark.parametrize("header", [f"Bearer {TOKEN}", f"bearer  {TOKEN} ", basic(TOKEN)])
def test_the_token_is_let_in(header):
    assert CLOSED.allows(header)


@pytest.mark.parametrize(
    "header",
    [None, "", TOKEN, "Bearer", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", "Basic !!!",
     basic(TOKEN + "x"), basic(""), "Basic " + base64.b64encode(TOKEN.encode()).decode(),
     f"Digest {TOKEN}", "Bearer \udcff"],
)  # fmt: skip
def test_anything_else_is_not(header):
    assert not CLOSED.allows(header)
    assert OPEN.allows(header)


def test_the_token_is_in_no_repr():
    assert TOKEN not in repr(CLOSED)


def test_a_token_is_in_a_file_or_in_the_environment(tmp_path, monkeypatch):
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    assert read_token(f"file:{file}") == TOKEN
    monkeypatch.setenv("PAGE_TOKEN", TOKEN)
    assert read_token("env:PAGE_TOKEN") == TOKEN
    with pytest.raises(JobError, match="'file:PATH' or 'env:NAME'") as raised:
        read_token(TOKEN)
    assert TOKEN not in str(raised.value)
    file.write_text("short")
    with pytest.raises(JobError, match=r"at least 16 characters.*5") as raised:
        read_token(f"file:{file}")
    assert "short" not in str(raised.value)
    with pytest.raises(ResourceError, match="it doesn't exist"):
        read_token(f"file:{tmp_path / 'nothing'}")


def test_certificates_that_cant_be_read(tmp_path):
    with pytest.raises(ResourceError, match="should hold a certificate"):
        certificates(tmp_path / "nothing.pem", None)
    (tmp_path / "bad.pem").write_text("no certificate")
    with pytest.raises(ResourceError, match="the file has no certificate"):
        certificates(tmp_path / "bad.pem", None)


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]", "10.1.2.3", "example.org"])
def test_another_host_needs_a_token(host):
    with pytest.raises(ParameterError, match=r"unless there is a token.*--page-token"):
        PageServer(f"{host}:0", job={})
