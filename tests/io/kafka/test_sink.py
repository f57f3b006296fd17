import json
import random
import threading
import time

import pyarrow as pa
import pytest
from confluent_kafka import KafkaError, KafkaException

from shoal.errors import CheckpointError, JobError, ResourceError
from shoal.io.kafka import sink as kafka_sink
from shoal.io.kafka import transactions as kafka_transactions
from shoal.io.kafka.payloads import payloads_for
from shoal.io.kafka.settings import KafkaSettings
from shoal.io.kafka.sink import KafkaSink, refuse_started
from tests.io.kafka.world import SCHEMA, numbers, rows, values


class Crash(BaseException):
    """The process is gone: nothing of it runs any more, not even what cleans up."""


def opened(kafka, topic, mark=None, *, per_message=3, job=None, **keys):
    keys = {"commit_seconds": None} | keys
    settings = KafkaSettings(kafka, topic, rows=per_message)
    return KafkaSink(settings, SCHEMA, mark, job=job or topic, **keys)


@pytest.fixture
def quick(monkeypatch):
    """Nobody waits long to see who has taken over."""
    monkeypatch.setattr(kafka_transactions, "GRACE", 0.01)


# -- messages -----------------------------------------------------------------------------------


def cut(batch, first=0, **keys):
    return list(payloads_for(KafkaSettings("x", "y", **keys), batch.schema).cut(batch, first))


def test_where_a_message_ends_depends_on_the_numbers_of_its_rows():
    got = [(p.first, p.n_rows) for p in cut(rows(0, 10), first=5, rows=4)]
    assert got == [(5, 3), (8, 4), (12, 3)]
    whole = b"\n".join(p.data for p in cut(rows(0, 40), rows=7))
    halves = [*cut(rows(0, 14), rows=7), *cut(rows(14, 40), 14, rows=7)]
    assert b"\n".join(p.data for p in halves) == whole


def test_json_messages():
    first, second = cut(rows(0, 3), rows=2)
    assert first.data == b'{"n": 0, "word": "word 0"}\n{"n": 1, "word": "word 1"}'
    assert second.data == b'{"n": 2, "word": "word 2"}'
    assert "word" not in repr(first)


def test_csv_messages():
    batch = pa.record_batch({"a": pa.array(['x\n"y"', None, "z"]), "b": pa.array([1, 2, 3])})
    assert [p.data for p in cut(batch, format="csv", rows=2)] == [
        b'a,b\n"x\n""y""",1\n,2',
        b"a,b\nz,3",
    ]
    assert [p.data for p in cut(batch, format="csv", columns=("a", "b"), rows=1)] == [
        b'"x\n""y""",1', b",2", b"z,3",
    ]  # fmt: skip
    with pytest.raises(JobError, match="Leave it out, or write a, b"):
        cut(batch, format="csv", columns=("b", "a"))


def test_dictionary_columns_are_decoded_before_sending():
    batch = pa.record_batch({"a": pa.array(["x", "canary"]).dictionary_encode()}).slice(0, 1)
    schema = pa.schema([("a", pa.string())])
    for kind in ("json", "csv", "arrow"):
        made = payloads_for(KafkaSettings("x", "y", format=kind), schema)
        [payload] = made.cut(batch, 0)
        assert b"canary" not in payload.data


@pytest.mark.parametrize("kind", ["json", "csv", "arrow"])
def test_messages_that_would_be_too_long_are_divided(kind):
    settings = {"message.max.bytes": 1500}
    got = cut(rows(0, 200), format=kind, rows=100, settings=settings)
    assert all(len(p.data) < 1000 for p in got)
    assert [p.first for p in got] == [sum(p.n_rows for p in got[:i]) for i in range(len(got))]
    assert len(got) > 2
    with pytest.raises(ResourceError, match=r"a row makes a message of \d+ bytes"):
        cut(rows(0, 2), format=kind, settings={"message.max.bytes": 520})


# -- transactions -------------------------------------------------------------------------------


def test_rows_are_there_when_they_are_committed(kafka, topic):
    name = topic(2)
    sink = opened(kafka, name)
    sink.write(rows(0, 10))
    sink.flush()
    assert numbers(kafka, name, partitions=2) == []
    assert sink.commit()["rows"] == 10
    # Messages of rows 0, 3, 6 and 9 take turns with the partitions.
    assert numbers(kafka, name, partitions=2) == [0, 1, 2, 6, 7, 8, 3, 4, 5, 9]
    assert sink.commit()["rows"] == 10
    sink.close()
    sink.close()
    with pytest.raises(ResourceError, match="is closed"):
        sink.write(rows(0, 1))


def test_rows_are_committed_in_time_also_in_silence(kafka, topic):
    name = topic()
    sink = opened(kafka, name, commit_seconds=0.05)
    sink.write(rows(0, 4))
    end = time.monotonic() + 30
    while not (got := numbers(kafka, name)):
        assert time.monotonic() < end
    assert got == [0, 1, 2, 3]
    sink.close()


def test_flush_commits_what_is_due(kafka, topic, monkeypatch):
    name = topic()
    monkeypatch.setattr(KafkaSink, "_keep_time", lambda _: None)
    sink = opened(kafka, name, commit_seconds=0.0)
    sink.write(rows(0, 4))
    sink.flush()
    assert numbers(kafka, name) == [0, 1, 2, 3]
    sink.close()


def test_a_long_transaction_is_committed_early(kafka, topic, monkeypatch):
    monkeypatch.setattr(kafka_sink, "OPEN_BYTES", 100)
    name = topic()
    sink = opened(kafka, name)
    sink.write(rows(0, 1))
    assert numbers(kafka, name) == []
    sink.write(rows(1, 9))
    assert numbers(kafka, name) == list(range(9))
    sink.close()


def test_rows_that_the_topic_has_are_dropped(kafka, topic):
    name = topic()
    first = opened(kafka, name)
    first.write(rows(0, 5))
    mark = first.commit()
    first.write(rows(5, 12))
    first.commit()
    second = opened(kafka, name, json.loads(json.dumps(mark)))
    assert second.n_ahead == 7
    second.write(rows(5, 8))
    assert second.n_ahead == 4
    assert second.commit()["rows"] == 8
    second.write(rows(8, 15))
    assert second.n_ahead == 0
    second.close()
    assert numbers(kafka, name) == list(range(15))


def test_a_topic_and_a_mark_that_dont_belong_together(kafka, topic):
    name, job = topic(), "the job"
    with pytest.raises(
        CheckpointError, match=r"7 rows of job the job were .* the broker doesn't know the job"
    ):
        opened(kafka, name, {"rows": 7}, job=job)
    sink = opened(kafka, name, {"rows": 0}, job=job)
    sink.write(rows(0, 5))
    sink.commit()
    with pytest.raises(CheckpointError, match="and 5 are there"):
        opened(kafka, name, {"rows": 7}, job=job)
    with pytest.raises(CheckpointError, match=r"5 rows of job the job already, and there is no"):
        opened(kafka, name, job=job)
    # Nobody was fenced off by those who were refused.
    sink.write(rows(5, 6))
    sink.close()
    assert numbers(kafka, name) == list(range(6))
    # Another job is another output.
    opened(kafka, name, job="another").close()


def test_a_job_that_has_rows_isnt_started_again(kafka, topic):
    name = topic()
    settings = KafkaSettings(kafka, name)
    refuse_started(settings, name)
    sink = opened(kafka, name)
    refuse_started(settings, name)
    sink.write(rows(0, 5))
    sink.commit()
    with pytest.raises(CheckpointError, match="5 rows of job"):
        refuse_started(settings, name)
    sink.write(rows(5, 6))
    sink.close()
    # With an empty mark, all rows are given once more from the beginning.
    again = opened(kafka, name, {})
    assert again.n_ahead == 6
    again.write(rows(0, 8))
    again.close()
    assert numbers(kafka, name) == list(range(8))


def test_what_is_abandoned_is_taken_back(kafka, topic):
    name = topic()
    sink = opened(kafka, name, commit_seconds=60)
    sink.write(rows(0, 5))
    sink.abandon()
    sink.close()
    assert numbers(kafka, name) == []


def test_a_second_process_takes_over(kafka, topic, monkeypatch):
    monkeypatch.setattr(kafka_transactions, "GRACE", 0.1)
    name = topic()
    first = opened(kafka, name)
    first.write(rows(0, 3))
    mark = first.commit()
    first.write(rows(3, 6))
    second = opened(kafka, name, mark)
    with pytest.raises(ResourceError, match=f"another process has taken over job {name}"):
        first.commit()
    with pytest.raises(ResourceError, match="another process"):
        first.write(rows(6, 7))
    first.close()
    second.write(rows(3, 8))
    second.close()
    assert numbers(kafka, name) == list(range(8))


def test_a_failure_of_the_commit_thread_is_raised(kafka, topic, monkeypatch):
    monkeypatch.setattr(kafka_transactions, "GRACE", 0.1)
    name = topic()
    first = opened(kafka, name, commit_seconds=0.05)
    second = opened(kafka, name)
    first.write(rows(0, 1))
    end = time.monotonic() + 30
    while first._failure is None:
        assert time.monotonic() < end
        time.sleep(0.05)
    with pytest.raises(ResourceError, match="another process"):
        first.flush()
    second.close()


def test_no_topic_and_no_broker(kafka, monkeypatch):
    with pytest.raises(ResourceError, match="there is no such topic"):
        opened(kafka, "no-such")
    monkeypatch.setattr(kafka_transactions.Connection.partitions, "__defaults__", (0.5,))
    with pytest.raises(ResourceError, match="no broker answers"):
        opened("127.0.0.1:9", "people")


# -- crashes, one by one --------------------------------------------------------------------------


class Producer:
    """A producer that dies at one of its calls, before or after the broker has had it."""

    def __init__(self, inner, call, after, number):
        self._inner, self._call, self._after, self._number = inner, call, after, number

    def __getattr__(self, name):
        method = getattr(self._inner, name)
        if name != self._call:
            return method

        def dying(*arguments, **keys):
            self._number -= 1
            if self._number:
                return method(*arguments, **keys)
            if self._after:
                method(*arguments, **keys)
                if name == "produce":
                    # Into the topic, where a reader of uncommitted data sees it.
                    self._inner.flush(10)
            raise Crash

        return dying


CALLS = ["begin_transaction", "produce", "send_offsets_to_transaction", "commit_transaction"]
POINTS = [(call, after, n) for call in CALLS for after in (False, True) for n in (1, 2)]


def crash_at(sink, call, after, number):
    transactions = sink._transactions
    transactions._producer = Producer(transactions._producer, call, after, number)


@pytest.mark.parametrize(("call", "after", "number"), POINTS)
def test_each_row_is_there_once_wherever_it_crashed(kafka, topic, call, after, number):
    name = topic()
    mark = {"rows": 0}
    first = opened(kafka, name)
    crash_at(first, call, after, number)
    with pytest.raises(Crash):
        for begin in (0, 7):
            first.write(rows(begin, begin + 7))
            if begin == 0:
                mark = first.commit()
        first.commit()
    second = opened(kafka, name, mark)
    second.write(rows(mark["rows"], 14))
    second.close()
    assert numbers(kafka, name) == list(range(14))
    for again in values(kafka, name, "read_uncommitted"):
        for line in again.splitlines():
            row = json.loads(line)
            assert row["word"] == f"word {row['n'] % 7}"


def test_a_crash_between_the_commit_and_the_checkpoint(kafka, topic):
    name = topic()
    first = opened(kafka, name)
    first.write(rows(0, 5))
    first.commit()  # The mark is lost with the process, before it gets into a checkpoint.
    second = opened(kafka, name, {"rows": 0})
    assert second.n_ahead == 5
    second.write(rows(0, 8))
    second.close()
    assert numbers(kafka, name) == list(range(8))


def test_a_crash_while_opening(kafka, topic, monkeypatch):
    name = topic()
    for step in ("open", "claim"):
        with monkeypatch.context() as patched, pytest.raises(Crash):
            patched.setattr(kafka_transactions.Transactions, step, crash)
            opened(kafka, name)
    sink = opened(kafka, name)
    sink.write(rows(0, 2))
    sink.close()
    assert numbers(kafka, name) == [0, 1]


def crash(*_):
    raise Crash


def test_many_crashes_in_a_row(kafka, topic):
    draw = random.Random(7)
    name = topic(2)
    mark, n_rows = {"rows": 0}, 200
    n_crashes = 0
    while mark["rows"] < n_rows:
        sink = opened(kafka, name, mark)
        crash_at(sink, draw.choice(CALLS), draw.random() < 0.5, draw.randrange(1, 4))
        at = mark["rows"]
        try:
            while at < n_rows:
                end = min(n_rows, at + draw.randrange(1, 10))
                sink.write(rows(at, end))
                at = end
                if draw.random() < 0.3:
                    done = sink.commit()
                    # Sometimes the checkpoint isn't written any more.
                    if draw.random() < 0.7:
                        mark = done
            mark = sink.commit()
        except Crash:
            n_crashes += 1
    assert n_crashes > 5
    assert sorted(numbers(kafka, name, partitions=2)) == list(range(n_rows))


# -- failures that are met ------------------------------------------------------------------------


def failing(inner, call, code, after=False, **flags):
    """A producer with a call that fails once, before or after the broker has had it."""

    class Failing:
        def __getattr__(self, name):
            method = getattr(inner, name)
            if name != call:
                return method

            def fail(*arguments, **keys):
                if after:
                    method(*arguments, **keys)
                raise KafkaException(KafkaError(code, "it was made to fail", **flags))

            return fail

    return Failing()


BROKEN = (KafkaError._STATE,)
ABORT = (KafkaError._STATE, {"txn_requires_abort": True})
FENCED = (KafkaError._FENCED, {"fatal": True})


@pytest.mark.parametrize(
    ("call", "after", "code", "flags"),
    [
        *((call, after, *ABORT) for call in CALLS for after in (False, True)),
        *(("commit_transaction", after, *FENCED) for after in (False, True)),
    ],
)
def test_a_failed_transaction_is_made_again(
    kafka, topic, caplog, monkeypatch, call, after, code, flags
):
    monkeypatch.setattr(kafka_transactions, "GRACE", 0.01)
    name = topic()
    sink = opened(kafka, name)
    sink.write(rows(0, 5))
    sink.commit()
    transactions = sink._transactions
    transactions._producer = failing(transactions._producer, call, code, after, **flags)
    sink.write(rows(5, 9))
    sink.write(rows(9, 12))
    assert sink.commit()["rows"] == 12
    sink.close()
    assert "a transaction failed and was repeated" in caplog.text
    assert numbers(kafka, name) == list(range(12))


def test_a_failure_that_lasts_is_an_error(kafka, topic, monkeypatch):
    name = topic()
    sink = opened(kafka, name)
    transactions = sink._transactions
    make = transactions._connection.producer
    code = KafkaError._STATE
    monkeypatch.setattr(
        transactions._connection, "producer",
        lambda **keys: failing(make(**keys), "produce", code, txn_requires_abort=True),
    )  # fmt: skip
    transactions._producer = failing(transactions._producer, "produce", code)
    with pytest.raises(ResourceError, match="it was made to fail"):
        sink.write(rows(0, 5))
    sink.close()
    assert numbers(kafka, name) == []


def test_a_failure_without_hope_is_an_error_at_once(kafka, topic):
    sink = opened(kafka, topic())
    transactions = sink._transactions
    code = KafkaError.TOPIC_AUTHORIZATION_FAILED
    transactions._producer = failing(transactions._producer, "commit_transaction", code)
    sink.write(rows(0, 5))
    with pytest.raises(ResourceError, match="isn't allowed"):
        sink.commit()
    sink.close()


def test_impossible_row_counts_are_refused(kafka, topic):
    sink = opened(kafka, topic())
    transactions = sink._transactions
    sink.write(rows(0, 5))
    sink.commit()
    sink.write(rows(5, 9))
    transactions.n_rows = 3
    transactions._producer = failing(
        transactions._producer, "commit_transaction", KafkaError._STATE
    )
    with pytest.raises(ResourceError, match=r"5 rows of job .* are there where 3 or 7 should be"):
        sink.commit()
    sink.close()


def test_an_error_of_the_offset_itself(kafka, topic):
    class Consumer:
        def committed(self, places, timeout):
            return [Answer]

    class Answer:
        error = KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED, "not you")

    sink = opened(kafka, topic())
    with pytest.raises(ResourceError, match="isn't allowed: not you"):
        sink._transactions._committed(Consumer())
    sink.close()


def test_a_full_queue_is_waited_for(kafka, topic):
    name = topic()
    keys = {"settings": {"queue.buffering.max.messages": 10}}
    sink = KafkaSink(KafkaSettings(kafka, name, rows=1, **keys), SCHEMA, None, job=name)
    sink.write(rows(0, 100))
    sink.close()
    assert numbers(kafka, name) == list(range(100))


def test_a_call_that_never_returns_is_left_behind(kafka, topic, caplog, monkeypatch):
    monkeypatch.setattr(kafka_transactions, "HUNG_SECONDS", 2.0)
    name = topic()
    sink = opened(kafka, name)
    sink.write(rows(0, 5))
    transactions, for_ever = sink._transactions, threading.Event()

    class Hanging:
        def __init__(self, inner):
            self._inner = inner

        def __getattr__(self, call):
            return getattr(self._inner, call)

        def commit_transaction(self, _):
            for_ever.wait()

    transactions._producer = Hanging(transactions._producer)
    assert sink.commit()["rows"] == 5
    for_ever.set()
    sink.close()
    assert "a transaction failed and was repeated" in caplog.text
    assert numbers(kafka, name) == list(range(5))


def test_a_commit_that_fails_again_and_again_is_an_error(kafka, topic, monkeypatch):
    sink = opened(kafka, topic())
    connection = sink._transactions._connection
    make = connection.producer
    monkeypatch.setattr(
        connection, "producer", lambda **keys: failing(make(**keys), "commit_transaction", *BROKEN)
    )
    sink._transactions._producer = failing(sink._transactions._producer, "produce", *BROKEN)
    sink.write(rows(0, 5))
    with pytest.raises(ResourceError, match="it was made to fail"):
        sink.commit()
    sink.close()
