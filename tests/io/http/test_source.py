"""Rows that are posted: when they are answered, and how a post that comes again is recognized."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence

import pytest

from shoal.errors import CheckpointError
from shoal.io.base import Chunk, JournaledSource, Position
from shoal.io.http import keys as keys_module
from shoal.io.http import source as module
from shoal.io.http.endpoint import HttpInput
from shoal.io.http.source import (
    BadBodyError,
    FullError,
    HttpSource,
    KeyReusedError,
    NotStoredError,
    Receipt,
)
from tests.io.http.running import running


def opened() -> HttpSource:
    return HttpInput().open(["age", "town"], replay=True)


def lines(*ages: object) -> list[bytes]:
    return [json.dumps({"age": age}).encode() for age in ages]


def resumed(begin: Position, chunks: Sequence[Chunk], n_saved: int) -> HttpSource:
    """What a new process has: the position of a checkpoint, and the journal after it."""
    other = opened()
    position = begin if not n_saved else chunks[n_saved - 1].position
    other.seek(json.loads(json.dumps(position)))
    for chunk in chunks[n_saved:]:
        again = other.replay_data(chunk.data)
        assert again.batch.equals(chunk.batch)
        assert again.rows.tolist() == chunk.rows.tolist()
        assert (again.spans, again.position) == (chunk.spans, chunk.position)
    return other


def test_it_is_a_source_whose_rows_are_kept_in_the_journal():
    assert isinstance(opened(), JournaledSource)
    with pytest.raises(CheckpointError, match="can't be read again"):
        opened().replay(())


def test_rows_are_answered_when_they_are_on_the_disk():
    source, gate = opened(), threading.Event()
    answers: list[Receipt] = []
    with running(source, lambda chunk: gate.wait(60) and None) as chunks:
        thread = threading.Thread(target=lambda: answers.append(source.put(lines(1, 2), None)))
        thread.start()
        thread.join(0.2)
        assert answers == []
        gate.set()
        thread.join(60)
        assert answers == [Receipt(2, False)]
        source.put(lines(3), None)
    assert [chunk.batch["age"].to_pylist() for chunk in chunks] == [[1, 2], [3]]
    assert [chunk.rows.tolist() for chunk in chunks] == [[0, 1], [2]]


def test_a_chunk_that_was_stored_answers_no_post_of_the_next_one(monkeypatch):
    """The next one is parsed meanwhile: its rows have no numbers yet, and aren't on the disk."""
    source = opened()
    parsing, go_on = threading.Event(), threading.Event()
    parse = type(source._parser).parse

    def slowly(parser, data, first):
        if parser is source._parser:
            parsing.set()
            assert go_on.wait(60)
        return parse(parser, data, first)

    monkeypatch.setattr(type(source._parser), "parse", slowly)
    answers: list[Receipt] = []
    with running(source):
        client = threading.Thread(target=lambda: answers.append(source.put(lines(1), "a")))
        client.start()
        assert parsing.wait(60)
        source.acknowledge(source.begins_at())
        client.join(0.2)
        assert not answers
        go_on.set()
        client.join(60)
    assert answers == [Receipt(1, is_repeated=False)]


def test_posts_that_wait_together_are_one_chunk_and_stay_apart():
    source, first = opened(), threading.Event()
    begin = source.begins_at()
    release = threading.Event()

    def hold(chunk: Chunk) -> None:
        first.set()
        release.wait(60)

    with running(source, hold) as chunks:
        threads = [threading.Thread(target=source.put, args=(lines(0), "first"))]
        threads[0].start()
        assert first.wait(60)
        threads += [
            threading.Thread(target=source.put, args=(lines(i, i), f"key {i}")) for i in range(1, 5)
        ]
        for thread in threads[1:]:
            thread.start()
        while source.lag() < 8:
            pass
        release.set()
        for thread in threads:
            thread.join(60)
    assert [len(chunk.rows) for chunk in chunks] == [1, 8]
    other = resumed(begin, chunks, 0)
    with running(other) as more:
        assert other.put(lines(3, 3), "key 3") == Receipt(2, True)
    assert more == []


@pytest.mark.parametrize("n_saved", [0, 1, 2])
def test_a_key_is_recognized_before_and_after_a_restart(n_saved):
    source = opened()
    begin = source.begins_at()
    with running(source) as chunks:
        assert source.put(lines(1, 2), "a") == Receipt(2, False)
        assert source.put(lines(1, 2), "a") == Receipt(2, True)
        assert source.put(lines(1, 2), "b") == Receipt(2, False)
        # Without a key equal rows are rows of their own.
        assert source.put(lines(1, 2), None) == Receipt(2, False)
    other = resumed(begin, chunks, n_saved)
    with running(other) as more:
        assert other.put(lines(1, 2), "a") == Receipt(2, True)
        assert other.put(lines(1, 2), "b") == Receipt(2, True)
        with pytest.raises(KeyReusedError, match="already used with other rows"):
            other.put(lines(1, 3), "a")
        assert other.put(lines(1, 2), "c") == Receipt(2, False)
    assert [chunk.rows.tolist() for chunk in more] == [[6, 7]]


def test_a_post_that_comes_again_while_it_waits_is_answered_with_it():
    source, gate = opened(), threading.Event()
    answers: list[Receipt] = []

    def post() -> None:
        answers.append(source.put(lines(1), "a"))

    with running(source, lambda chunk: gate.wait(60) and None) as chunks:
        threads = [threading.Thread(target=post) for _ in range(3)]
        for thread in threads:
            thread.start()
        with pytest.raises(KeyReusedError):
            while True:
                # It may come before the others.
                source.put(lines(2), "a")
        gate.set()
        for thread in threads:
            thread.join(60)
    assert sorted(answer.is_repeated for answer in answers) == [False, True, True]
    assert sum(len(chunk.rows) for chunk in chunks) == 1


def test_as_many_keys_are_remembered_as_is_said(monkeypatch):
    monkeypatch.setattr(keys_module, "MOST_KEYS", 3)
    source = opened()
    with running(source) as chunks:
        for key in "abcd":
            source.put(lines(1), key)
        assert source.put(lines(1), "b").is_repeated
        # The oldest one is forgotten.
        assert not source.put(lines(1), "a").is_repeated
    position = chunks[-1].position
    assert position is not None
    assert len(position["keys"].split()) == 3


def test_positions_tell_no_key_and_no_value():
    source = opened()
    with running(source) as chunks:
        source.put(lines("CANARY"), "CANARY-key")
    assert "CANARY" not in json.dumps(chunks[0].position)
    assert "CANARY" not in repr(chunks[0])
    # Digests differ from run to run, so that nobody can try out keys.
    assert opened().position["salt"] != opened().position["salt"]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "no rows"),
        (b"\n \r\n", "no rows"),
        (b'{"age": 1}\n39\n', "line 2: not a JSON object"),
        (b'\n\n{"age": CANARY}', "line 3: not a JSON object"),
        (b'{"age": 1}{"age": 2}', "line 1: not a JSON object"),
        (b'{"age": 1}\r{"age": 2}', "line 1: a carriage return in the middle"),
        (b'{"age": 1}\n{"age": "\xff"}', "line 2: broken UTF-8"),
        (b'{"age": {"CANARY": 1}}', "line 1: column age isn't a plain value"),
        (b'{"age": "' + b"x" * module.MOST_LINE + b'"}', "line 1: more than 1,048,576 bytes"),
        (b"{}\n" * (module.MOST_ROWS + 1), "65,537 rows, more than the maximum of 65,536"),
        (b"[" * 100_000, "line 1: not a JSON object"),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_a_body_that_isnt_rows_is_refused_with_its_line(body, reason):
    with pytest.raises(BadBodyError) as caught:
        opened().read_rows(body)
    assert str(caught.value).startswith(reason)
    assert "CANARY" not in str(caught.value)


def test_types_may_widen_later():
    source = opened()
    begin = source.begins_at()
    with running(source) as chunks:
        for age in (1, 1.5, "x"):
            body = source.read_rows(json.dumps({"age": age}).encode() + b"\r\n")
            assert source.put(body, None).n_rows == 1
    assert [chunk.batch["age"].to_pylist() for chunk in chunks] == [[1], [1.5], ["x"]]
    resumed(begin, chunks, 1)


def test_nothing_is_taken_in_before_the_run_is_at_work_and_after_it_stops():
    source = opened()
    with pytest.raises(NotStoredError, match="the run is starting"), source.reserve(1):
        pass
    with pytest.raises(NotStoredError, match="the run is starting"):
        source.put(lines(1), None)
    with running(source):
        source.stop()
        with pytest.raises(NotStoredError, match="the run is stopping"):
            source.put(lines(1), None)


def test_bodies_are_bounded_together(monkeypatch):
    monkeypatch.setattr(module, "MOST_WAITING", 100)
    source = opened()
    with running(source), source.reserve(60):
        with pytest.raises(FullError), source.reserve(41):
            pass
        with source.reserve(40):
            pass
        with source.reserve(40):
            pass


@pytest.mark.parametrize("key", [None, "a"])
def test_what_isnt_on_the_disk_in_time_is_told(monkeypatch, key):
    monkeypatch.setattr(module, "ANSWER_SECONDS", 0.05)
    source, gate, seen = opened(), threading.Event(), threading.Event()

    def hold(chunk: Chunk) -> None:
        seen.set()
        gate.wait(60)

    with running(source, hold) as chunks:
        with pytest.raises(NotStoredError, match="may be accepted"):
            source.put(lines(1), "first")
        assert seen.wait(60)
        # The next one never gets to a chunk.
        with pytest.raises(NotStoredError, match="were not accepted"):
            source.put(lines(2), key)
        gate.set()
        monkeypatch.setattr(module, "ANSWER_SECONDS", 60)
        assert source.put(lines(1), "first").is_repeated
        source.put(lines(2), key)
    ages = [age for chunk in chunks for age in chunk.batch["age"].to_pylist()]
    assert ages == [1, 2]


def test_who_waits_at_the_end_is_answered():
    source, gate, seen = opened(), threading.Event(), threading.Event()
    told: list[str] = []

    def hold(chunk: Chunk) -> None:
        seen.set()
        gate.wait(60)

    def post(age: int) -> None:
        with pytest.raises(NotStoredError) as caught:
            source.put(lines(age), None)
        told.append(str(caught.value))

    with running(source, hold):
        threads = [threading.Thread(target=post, args=(age,)) for age in range(2)]
        threads[0].start()
        assert seen.wait(60)
        threads[1].start()
        while not source.lag():
            pass
        source.close()
        for thread in threads:
            thread.join(60)
        gate.set()
    assert sorted("may be accepted" in text for text in told) == [False, True]
