"""Segments of the journal: torn ends are passed over, everything else that is broken refused."""

from __future__ import annotations

import pytest

from shoal.errors import CheckpointError
from shoal.io.base import Span
from shoal.run.state.heading import make_heading
from shoal.run.state.journal import Journal, Read
from shoal.run.state.seal import Seal
from shoal.run.state.segment import (
    FORMAT,
    MAGIC,
    Segment,
    closing_record,
    new_heading,
    record,
    resealed,
)
from tests.run.state.world import ENTRIES, SEAL, SEALS, read, segment_path, write


@pytest.mark.nightly
@SEALS
def test_no_flipped_bit_gives_other_entries(tmp_path, seal) -> None:
    write(tmp_path, ENTRIES[:2], ENTRIES[2:4], seal=seal)
    last = [end for _, end in Segment(segment_path(tmp_path, 1), 1).records()][-2]
    for number in (0, 1):
        path = segment_path(tmp_path, number)
        whole = path.read_bytes()
        for i in range(len(whole)):
            for bit in (1, 0x80) if seal else (1, 2, 4, 8, 16, 32, 64, 128):
                data = bytearray(whole)
                data[i] ^= bit
                path.write_bytes(data)
                if number == 1 and i >= last:
                    # As a crash would leave it.
                    assert read(tmp_path, seal) == ENTRIES[:3]
                else:
                    with pytest.raises(CheckpointError, match=path.name):
                        read(tmp_path, seal)
        path.write_bytes(whole)
    assert read(tmp_path, seal) == ENTRIES[:4]


@SEALS
def test_a_broken_record_is_damage_only_if_a_whole_one_follows(tmp_path, seal) -> None:
    write(tmp_path, ENTRIES, seal=seal)
    path = segment_path(tmp_path, 0)
    whole = path.read_bytes()
    ends = [len(Segment(path, 0).heading.raw), *(end for _, end in Segment(path, 0).records())]
    for i in range(len(ENTRIES)):
        data = bytearray(whole)
        data[ends[i + 1] - 1] ^= 1
        path.write_bytes(data)
        if i + 1 == len(ENTRIES):
            assert read(tmp_path, seal) == ENTRIES[:i]
        else:
            with pytest.raises(CheckpointError, match=f"record {i} is broken, and others follow"):
                read(tmp_path, seal)
    # What a crash has left may look like the beginning of another record. What lacks one byte of
    # its seal would be whole whenever the next one happens to be that byte.
    torn = whole[ends[0] : ends[1] - 8]
    path.write_bytes(whole + torn + torn)
    assert read(tmp_path, seal) == ENTRIES
    segment = Segment(path, 0)
    assert list(segment.entries(seal)) == ENTRIES
    assert (segment.n_torn, segment.end) == (2 * len(torn), len(whole))


@SEALS
def test_a_record_whose_head_is_wrong_is_broken(tmp_path, seal) -> None:
    """Also its number and its length: a crash may have written the end of it, and not this."""
    write(tmp_path, ENTRIES, seal=seal)
    path = segment_path(tmp_path, 0)
    whole = path.read_bytes()
    ends = [len(Segment(path, 0).heading.raw), *(end for _, end in Segment(path, 0).records())]
    n_bytes = len(record(Segment(path, 0).heading, 0, [], None)) - len("[]")
    for i in range(n_bytes):
        data = bytearray(whole)
        data[ends[-2] + i] ^= 1
        path.write_bytes(data)
        assert read(tmp_path, seal) == ENTRIES[:-1]
        data[ends[1] + i] ^= 1
        path.write_bytes(data)
        with pytest.raises(CheckpointError, match="record 1 is broken, and others follow it"):
            read(tmp_path, seal)


@SEALS
@pytest.mark.parametrize("stray", [b"\0", b"\xf5", b"\xf5\xfa", b"\xf5\xfa\xf5", bytes(50)])
def test_bytes_between_two_records_are_damage(tmp_path, seal, stray) -> None:
    """However few they are: without the record behind them, its rows would be decided anew."""
    write(tmp_path, ENTRIES, seal=seal)
    path = segment_path(tmp_path, 0)
    whole = path.read_bytes()
    *_, begin, _ = (end for _, end in Segment(path, 0).records())
    path.write_bytes(whole[:begin] + stray + whole[begin:])
    with pytest.raises(CheckpointError, match="record 4 is broken, and others follow it"):
        read(tmp_path, seal)


@SEALS
def test_a_segment_is_empty_until_something_is_written_to_it(tmp_path, seal) -> None:
    path = segment_path(tmp_path, 0)
    write(tmp_path, [], seal=seal)
    assert Segment(path, 0).is_empty
    write(tmp_path, ENTRIES[:1], seal=seal)
    assert not Segment(path, 0).is_empty
    assert Segment(path, 0).n_bytes == path.stat().st_size


@SEALS
def test_a_rolled_segment_that_is_cut_off_is_refused(tmp_path, seal) -> None:
    write(tmp_path, ENTRIES[:3], ENTRIES[3:], seal=seal)
    path = segment_path(tmp_path, 0)
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(CheckpointError, match="journal-0000000000"):
            read(tmp_path, seal)


@SEALS
def test_records_cant_be_dropped_moved_or_doubled(tmp_path, seal) -> None:
    write(tmp_path, ENTRIES, seal=seal)
    path = segment_path(tmp_path, 0)
    whole = path.read_bytes()
    ends = [len(Segment(path, 0).heading.raw), *(end for _, end in Segment(path, 0).records())]
    head, *parts = [whole[a:b] for a, b in zip([0, *ends], ends, strict=False)]
    for order in ([0, 2, 3, 4], [1, 0, 2, 3, 4], [0, 0, 1, 2, 3, 4], [0, 1, 2, 3, 4, 4], [1]):
        path.write_bytes(head + b"".join(parts[i] for i in order))
        with pytest.raises(CheckpointError, match="is in the place of"):
            read(tmp_path, seal)
        with pytest.raises(CheckpointError, match="is in the place of"):
            Journal(tmp_path, 0, seal)


@SEALS
def test_a_segment_under_another_key_has_the_same_entries(tmp_path, seal) -> None:
    write(tmp_path, ENTRIES[:2], ENTRIES[2:], seal=seal)
    last = segment_path(tmp_path, 1)
    # A crash has left a torn record behind the others.
    heading = Segment(last, 1).heading
    torn = record(heading, len(list(Segment(last, 1).records())), ['["flush",1.0]'], seal)
    last.write_bytes(last.read_bytes() + torn[:-1])
    other = Seal(b"other key".ljust(32, b"."))
    for number in (0, 1):
        path = segment_path(tmp_path, number)
        whole = len(path.read_bytes()) - (len(torn) - 1 if number else 0)
        data = resealed(path, number, seal, other)
        # Sealing adds the same to each record.
        assert seal is None or len(data) == whole
        path.write_bytes(data)
    assert read(tmp_path, other) == ENTRIES
    with pytest.raises(CheckpointError, match="sealed with"):
        read(tmp_path, seal)


def test_a_segment_of_another_journal_is_refused(tmp_path) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    for folder in (ours, theirs):
        folder.mkdir()
        write(folder, ENTRIES[:2], ENTRIES[2:])
    segment_path(theirs, 1).replace(segment_path(ours, 1))
    with pytest.raises(CheckpointError, match="doesn't follow segment 0"):
        read(ours)


def test_a_gap_is_refused(tmp_path) -> None:
    write(tmp_path, ENTRIES[:1], ENTRIES[1:2], ENTRIES[2:])
    segment_path(tmp_path, 1).unlink()
    with pytest.raises(CheckpointError, match="segment 1, which should come before, is missing"):
        read(tmp_path)
    with pytest.raises(CheckpointError, match=r"journal-0000000001: .* missing, and others follow"):
        read(tmp_path, first=1)


def test_a_renamed_segment_is_refused(tmp_path) -> None:
    write(tmp_path, ENTRIES)
    segment_path(tmp_path, 0).rename(segment_path(tmp_path, 4))
    with pytest.raises(CheckpointError, match="written under the number 0"):
        read(tmp_path, first=4)


def test_only_the_last_segment_is_written_to(tmp_path) -> None:
    write(tmp_path, ENTRIES[:1], ENTRIES[1:])
    for number in (0, 2):
        with pytest.raises(CheckpointError, match="ends with segment 1"):
            Journal(tmp_path, number, None)


def test_a_journal_is_sealed_as_it_should_be_or_refused(tmp_path) -> None:
    sealed, plain = tmp_path / "sealed", tmp_path / "plain"
    for folder, seal in ((sealed, SEAL), (plain, None)):
        folder.mkdir()
        write(folder, ENTRIES, seal=seal)
    for call in (read, lambda folder, seal: Journal(folder, 0, seal)):
        with pytest.raises(CheckpointError, match="no key was given"):
            call(sealed, None)
        with pytest.raises(CheckpointError, match="with another key"):
            call(sealed, Seal(bytes(32)))
        with pytest.raises(CheckpointError, match="isn't sealed"):
            call(plain, SEAL)


@SEALS
@pytest.mark.parametrize(
    "text",
    [
        "1",
        '["tick",1.0]',
        '["jump",1.0]',
        '["read",[[1,2,3]],1.0,1.0]',
        "{",
        "[" * 5000,
        "é",
        '["read",[],1.0,1.0,"","Y?Q=="]',
        '["read",[],1.0,1.0,"","YQ="]',
    ],
)
def test_whole_records_without_sense_are_refused(tmp_path, seal, text) -> None:
    heading = new_heading(0, 1.0, seal, "name", "")
    segment_path(tmp_path, 0).write_bytes(heading.raw + record(heading, 0, [text], seal))
    with pytest.raises(CheckpointError, match="record 0 has no entries"):
        read(tmp_path, seal)


@SEALS
def test_nothing_follows_a_closing_record(tmp_path, seal) -> None:
    heading = new_heading(0, 1.0, seal, "name", "")
    closed = heading.raw + closing_record(heading, 0, seal)
    for more in (b"torn", record(heading, 1, [], seal)):
        segment_path(tmp_path, 0).write_bytes(closed + more)
        with pytest.raises(CheckpointError, match="something follows its closing record"):
            read(tmp_path, seal)


def test_a_record_sealed_by_somebody_else_is_refused(tmp_path) -> None:
    """The checksum of a record needs no key; the seal does."""
    heading = new_heading(0, 1.0, SEAL, "name", "")
    data = heading.raw + record(heading, 0, ["[]"], Seal(bytes(32)))
    segment_path(tmp_path, 0).write_bytes(data)
    with pytest.raises(CheckpointError, match="the seal of record 0 is broken"):
        read(tmp_path, SEAL)


def test_a_newer_format_is_refused(tmp_path) -> None:
    heading = make_heading(MAGIC, FORMAT + 1, 0, 1.0, None, {})
    segment_path(tmp_path, 0).write_bytes(heading.raw)
    with pytest.raises(CheckpointError, match=r"has format 3, of Shoal .* Use that version or"):
        read(tmp_path)


@SEALS
def test_a_secret_of_pseudonyms_comes_back_and_is_in_no_message(tmp_path, seal) -> None:
    secret = bytes(range(200, 232))
    entries = [Read((Span("a.csv", 0, 5),), 1.0, 2.0, secret), Read((), 3.0, 4.0)]
    write(tmp_path, entries, seal=seal)
    again = read(tmp_path, seal)
    assert again == entries
    assert [entry.secret for entry in again] == [secret, b""]
    assert secret.hex() not in repr(again)
    assert repr(secret)[2:-1] not in repr(again)
    stored = segment_path(tmp_path, 0).read_bytes()
    assert (secret.hex().encode() in stored) == (seal is None)
    assert secret not in stored


@SEALS
@pytest.mark.parametrize("secret", [b"", bytes(range(32))])
def test_what_was_received_comes_back(tmp_path, seal, secret) -> None:
    data = b"\xff\x00" + b'{"person": "canary"}\n' * 3
    entry = Read((Span("http", 0, 3),), 1.0, 2.0, secret, data)
    write(tmp_path, [entry], seal=seal)
    assert read(tmp_path, seal) == [entry]
    assert "canary" not in repr(entry)


@pytest.mark.parametrize("secret", ['"xyz"', "7", "null", '"00", "00"'])
def test_a_secret_that_is_none_is_damage(tmp_path, secret) -> None:
    heading = new_heading(0, 0.0, None, "name", "")
    entry = f'["read",[],1.0,2.0,{secret}]'
    segment_path(tmp_path, 0).write_bytes(heading.raw + record(heading, 0, [entry], None))
    with pytest.raises(CheckpointError, match="record 0 has no entries in it"):
        read(tmp_path)
