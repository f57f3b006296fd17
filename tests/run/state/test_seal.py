"""Seals: what they hide, what they notice, and where keys come from."""

from __future__ import annotations

import base64
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import CheckpointError, JobError
from shoal.run.state.seal import Seal

KEY = bytes(range(32))
SEAL = Seal(KEY)
OTHER = Seal(bytes(32))


@given(st.binary(max_size=200), st.binary(max_size=50))
def test_what_was_closed_is_opened(data: bytes, context: bytes) -> None:
    closed = SEAL.close(data, context)
    assert SEAL.open(closed, context) == data
    assert len(closed) == len(data) + SEAL.n_extra


def test_the_same_twice_looks_different_and_shows_nothing() -> None:
    closed = [SEAL.close(b"canary" * 10, b"") for _ in range(2)]
    # Neither the salt, the nonce nor what is hidden is alike.
    for begin, end in ((0, 16), (16, 28), (28, 44)):
        assert closed[0][begin:end] != closed[1][begin:end]
    assert b"canary" not in closed[0]


def test_every_change_is_noticed() -> None:
    closed = SEAL.close(b"held", b"here")
    for i in range(len(closed)):
        changed = bytearray(closed)
        changed[i] ^= 1
        with pytest.raises(CheckpointError, match="the seal is broken"):
            SEAL.open(bytes(changed), b"here")
        with pytest.raises(CheckpointError, match="the seal is broken"):
            SEAL.open(closed[:i], b"here")


def test_another_place_or_another_key_doesnt_open_it() -> None:
    closed = SEAL.close(b"held", b"here")
    for seal, context in ((SEAL, b"there"), (OTHER, b"here")):
        with pytest.raises(CheckpointError, match="the seal is broken"):
            seal.open(closed, context)


def test_a_fingerprint_names_a_key_and_is_no_part_of_it() -> None:
    assert SEAL.fingerprint == Seal(KEY).fingerprint != OTHER.fingerprint
    assert len(SEAL.fingerprint) == 16
    assert SEAL.fingerprint not in KEY.hex()
    assert repr(SEAL) == f"Seal({SEAL.fingerprint})"


@pytest.mark.parametrize(
    "text",
    [
        KEY.hex(),
        KEY.hex().upper() + "\n",
        base64.b64encode(KEY).decode(),
        base64.b64encode(KEY).decode().rstrip("="),
    ],
)
def test_a_key_in_either_spelling_from_either_place(monkeypatch, tmp_path, text) -> None:
    monkeypatch.setenv("SHOAL_TEST_KEY", text)
    (tmp_path / "key").write_text(text)
    for spec in ("env:SHOAL_TEST_KEY", f"file:{tmp_path / 'key'}"):
        assert Seal.from_spec(spec).fingerprint == SEAL.fingerprint


def test_base64_of_web_addresses() -> None:
    key = b"\xff\xfe\xfb" * 10 + b"\xff\xff"
    spelled = base64.urlsafe_b64encode(key).decode()
    assert "-" in spelled or "_" in spelled
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SHOAL_TEST_KEY", spelled)
        assert Seal.from_spec("env:SHOAL_TEST_KEY").fingerprint == Seal(key).fingerprint


@pytest.mark.parametrize("spec", ["", "env:", "file:", "SHOAL_KEY", "vault:x", KEY.hex()])
def test_a_place_that_is_none(spec: str) -> None:
    with pytest.raises(JobError, match="'env:NAME' or 'file:PATH'") as caught:
        Seal.from_spec(spec)
    assert KEY.hex() not in str(caught.value)
    assert caught.value.exit_code == 2


def test_a_key_that_isnt_there(monkeypatch, tmp_path) -> None:
    monkeypatch.delenv("SHOAL_TEST_KEY", raising=False)
    with pytest.raises(
        CheckpointError, match=r"SHOAL_TEST_KEY: .* isn't set.*openssl rand -hex 32"
    ):
        Seal.from_spec("env:SHOAL_TEST_KEY")
    with pytest.raises(CheckpointError, match=r"doesn't exist.*openssl rand -hex 32"):
        Seal.from_spec(f"file:{tmp_path / 'none'}")


@pytest.mark.parametrize("text", ["", "canary", "ab" * 31, "ab" * 33, "z" * 64, "zz" * 21 + "é"])
def test_a_key_that_is_none_is_refused_and_not_shown(monkeypatch, text) -> None:
    monkeypatch.setenv("SHOAL_TEST_KEY", text)
    with pytest.raises(CheckpointError, match=rf"got {len(text)} characters.*openssl") as caught:
        Seal.from_spec("env:SHOAL_TEST_KEY")
    assert text not in str(caught.value) or not text
    with pytest.raises(ValueError, match="32 bytes"):
        Seal(text.encode())


def test_without_the_package(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers.aead", None)
    with pytest.raises(JobError, match=r"pip install '\.\[seal\]'"):
        Seal(KEY)
