"""Pseudonyms: one for a subject in a period, another in the next, and no key that stays."""

from __future__ import annotations

import hashlib

import numpy as np
import pyarrow as pa
import pytest

from shoal.arrow.pseudonyms import Pseudonym, Pseudonyms
from shoal.errors import ParameterError

SECRET, OTHER = bytes(range(32)), bytes(range(1, 33))


def give(pseudonyms: Pseudonyms, names, clock, secret: bytes = SECRET) -> list[str]:
    names = names if isinstance(names, pa.Array) else pa.array(names, pa.string())
    found: list[str] = pseudonyms.give(names, np.array(clock, np.float64), secret).to_pylist()
    return found


def test_a_subject_has_one_pseudonym_in_a_period_and_another_in_the_next():
    names, clock = ["ada", "bob", "ada", "ada", "bob", "ada"], [0, 59.9, 59.99, 60, 119, 120]
    found = give(Pseudonyms(60), names, clock)
    assert found[0] == found[2]
    assert len({found[0], found[1], found[3], found[4], found[5]}) == 5
    assert all(len(name) == 32 and int(name, 16) >= 0 for name in found)


def test_it_is_a_keyed_hash_of_the_text_under_the_key_of_the_snapshot():
    pseudonyms = Pseudonyms(60)
    found = give(pseudonyms, ["ada"], [0])
    key = pseudonyms.snapshot()["key"].tobytes()
    assert len(key) == 32
    assert found == [hashlib.blake2b(b"ada", digest_size=16, key=key).hexdigest()]


def test_however_the_stream_is_cut_and_whatever_secret_comes_when_none_is_needed():
    names, clock = ["ada", "bob", "ada", "cem"], [0, 1, 30, 59]
    whole = give(Pseudonyms(60), names, clock)
    pieces, separately = Pseudonyms(60), []
    for name, time in zip(names, clock, strict=True):
        secret = SECRET if pieces.begins(np.array([float(time)])) else b""
        separately += give(pieces, [name], [time], secret)
    assert separately == whole


def test_other_secrets_and_other_periods_have_other_keys():
    keys = set()
    for secret, time in [(SECRET, 0), (SECRET, 60), (OTHER, 0), (SECRET, -60)]:
        pseudonyms = Pseudonyms(60)
        give(pseudonyms, ["ada"], [time], secret)
        keys.add(pseudonyms.snapshot()["key"].tobytes())
    assert len(keys) == 4
    assert not keys & {SECRET, OTHER, bytes(32)}


def test_a_period_begins_once():
    pseudonyms = Pseudonyms(60)
    assert pseudonyms.begins(np.array([0.0]))
    assert not pseudonyms.begins(np.array([]))
    give(pseudonyms, ["ada"], [0])
    assert not pseudonyms.begins(np.array([1.0, 59.0]))
    assert pseudonyms.begins(np.array([1.0, 60.0]))


def test_a_batch_without_rows_gives_none_and_changes_nothing():
    # All rows of a batch may be bad, and the very first batch too.
    for pseudonyms in (Pseudonyms(60), Pseudonyms(60)):
        assert give(pseudonyms, [], [], b"") == []
        first = give(pseudonyms, ["ada"], [0])
        assert give(pseudonyms, [], [], b"") == []
        assert give(pseudonyms, ["ada"], [1], b"") == first


@pytest.mark.parametrize("time", [1e300, -1e300, 1e18])
def test_a_clock_that_is_out_of_its_mind_ends_nothing(time):
    pseudonyms = Pseudonyms(0.5)
    first = give(pseudonyms, ["ada"], [time])
    assert not pseudonyms.begins(np.array([time]))
    assert give(pseudonyms, ["ada"], [time], b"") == first


@pytest.mark.parametrize(
    "names",
    [
        pa.array(["ada", "bob", "ada"]),
        pa.array(["ada", "bob", "ada"]).dictionary_encode(),
        pa.array([b"ada", b"bob", b"ada"]),
        pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), pa.array(["ada", "bob", "ada"])),
    ],
)
def test_the_kind_of_the_column_changes_nothing(names):
    assert give(Pseudonyms(60), names, [0, 1, 2]) == give(
        Pseudonyms(60), ["ada", "bob", "ada"], [0, 1, 2]
    )


def test_a_snapshot_continues_and_the_last_key_is_gone():
    pseudonyms = Pseudonyms(60)
    before = give(pseudonyms, ["ada"], [0])
    snapshot = pseudonyms.snapshot()
    old = snapshot["key"].tobytes()
    give(pseudonyms, ["ada"], [60], OTHER)
    assert old not in pseudonyms.snapshot()["key"].tobytes()
    # A snapshot is a copy: what comes later doesn't change it.
    again = Pseudonyms(60)
    again.restore(snapshot)
    assert give(again, ["ada"], [30], b"") == before
    give(again, ["ada"], [60], OTHER)
    assert snapshot["key"].tobytes() == old


def test_nothing_is_shown():
    pseudonyms = Pseudonyms(60)
    give(pseudonyms, ["canary"], [0])
    assert repr(pseudonyms) == "Pseudonyms(rotate=60)"


@pytest.mark.parametrize("rotate", [0, -1, float("inf"), float("nan"), True, "60", None])
def test_a_period_is_a_number_above_0(rotate):
    with pytest.raises(ParameterError, match=r"Pseudonym\.rotate: must be a number above 0"):
        Pseudonym(rotate)


def test_only_the_names_of_a_period_are_hashed(monkeypatch):
    hashed = []
    monkeypatch.setattr(
        "shoal.arrow.pseudonyms._bytes_of", lambda name: hashed.append(name) or b"x"
    )
    names = pa.array([f"p{i}" for i in range(100)]).dictionary_encode()
    Pseudonyms(rotate=1).give(names, np.arange(100.0), bytes(32))
    assert len(hashed) == 100


def test_no_period_begins_without_a_secret():
    pseudonyms = Pseudonyms(60)
    give(pseudonyms, ["ada"], [6000])
    # A clock of another kind begins again: that is another period, too.
    assert pseudonyms.begins(np.array([0.0]))
    with pytest.raises(ValueError, match="without a secret"):
        give(pseudonyms, ["ada"], [0], b"")
