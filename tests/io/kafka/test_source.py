import itertools
import json
import random
import threading
import time

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions

from shoal.errors import CheckpointError, JobError, ResourceError
from shoal.io.base import Span
from shoal.io.kafka import reader as kafka_reader
from shoal.io.kafka import source as kafka_source
from shoal.io.kafka.settings import KafkaSettings
from shoal.io.kafka.sink import KafkaSink
from shoal.io.kafka.source import KafkaSource
from tests.io.kafka.world import SCHEMA, as_tuples, fill, read, rows


def lines(begin, end):
    return b"\n".join(json.dumps({"n": n}).encode() for n in range(begin, end))


@pytest.fixture
def source(kafka):
    """Opens sources, and closes them."""
    opened = []

    def make(topic, asked=("n",), batch_rows=65536, **keys):
        opened.append(
            KafkaSource(KafkaSettings(kafka, topic, **keys), asked, batch_rows=batch_rows)
        )
        return opened[-1]

    yield make
    for one in opened:
        one.close()
        one.close()


def delete_before(kafka, topic, offset, partition=0):
    place = TopicPartition(topic, partition, offset)
    admin = AdminClient({"bootstrap.servers": kafka})
    for future in admin.delete_records([place]).values():
        future.result()


def test_rows_and_bad_rows_of_one_partition(kafka, topic, source):
    name = topic()
    fill(kafka, name, [lines(0, 3), b"", b"nonsense", None, lines(3, 5)])
    chunks = read(source(name), 8)
    good, bad = as_tuples(chunks)
    assert good == [(n + 3 * (n > 2), {"n": n}) for n in range(5)]
    assert [(row, reason) for row, reason, _ in bad] == [
        (3, "an empty message"), (4, "not a JSON object"), (5, "an empty message"),
    ]  # fmt: skip
    position = dict(chunks[-1].position)
    # The id of the topic: 16 bytes.
    assert len(position.pop("topic")) == 22
    assert position == {"streams": {"0": 5}, "rows": 8, "kinds": {"n": ["int"]}}
    assert json.loads(json.dumps(position)) == position


@pytest.mark.parametrize("kind", ["json", "csv", "arrow"])
@pytest.mark.parametrize("per_message", [1, 1000])
def test_what_the_sink_writes_the_source_reads(kafka, topic, source, kind, per_message):
    name = topic(2)
    settings = KafkaSettings(kafka, name, format=kind, rows=per_message)
    sink = KafkaSink(settings, SCHEMA, None, job=name)
    sink.write(rows(0, 1500))
    sink.write(rows(1500, 2500))
    sink.close()
    good, bad = as_tuples(read(source(name, ("word", "n"), format=kind), 2500))
    assert bad == []
    assert sorted(int(row["n"]) for _, row in good) == list(range(2500))
    assert {row["word"] for _, row in good} == {f"word {n}" for n in range(7)}
    assert [number for number, _ in good] == list(range(2500))


def test_csv_without_headers(kafka, topic, source):
    name = topic()
    settings = KafkaSettings(kafka, name, format="csv", columns=("n", "word"), rows=2)
    sink = KafkaSink(settings, SCHEMA, None, job=name)
    sink.write(rows(0, 5))
    sink.close()
    good, _ = as_tuples(read(source(name, ("n",), format="csv", columns=("n", "word")), 5))
    assert [row["n"] for _, row in good] == ["0", "1", "2", "3", "4"]


def test_spans_tell_where_the_rows_lie(kafka, topic, source):
    name = topic(3)
    fill(kafka, name, [lines(n, n + 1) for n in range(30)], [n % 3 for n in range(30)])
    chunks = read(source(name, batch_rows=7), 30)
    assert len(chunks) > 1
    ends = {}
    for chunk in chunks:
        assert list(chunk.spans) == sorted(chunk.spans)
        for stream, begin, end in chunk.spans:
            assert begin == ends.get(stream, 0)
            ends[stream] = end
        assert chunk.position["streams"].items() >= ends.items()
    assert ends == {"0": 10, "1": 10, "2": 10}


@pytest.mark.parametrize("seed", range(3))
def test_replay_gives_what_iteration_gave(kafka, topic, source, monkeypatch, seed):
    # With so small a stash, partitions are paused and resumed all the time.
    monkeypatch.setattr(kafka_reader, "STASH", 3)
    monkeypatch.setattr(kafka_reader, "AT_ONCE", 5)
    draw = random.Random(seed)
    name = topic(3)
    n_messages, n_rows, messages = 150, 0, []
    for _ in range(n_messages):
        n = draw.randrange(1, 5)
        broken = draw.random() < 0.1
        messages.append(b"nonsense" if broken else lines(n_rows, n_rows + n))
        n_rows += 1 if broken else n
    fill(kafka, name, messages, [min(draw.randrange(5), 2) for _ in messages])
    chunks = read(source(name, batch_rows=draw.randrange(5, 60)), n_rows)
    begin = draw.randrange(len(chunks) - 1)
    end = draw.randrange(begin, len(chunks))
    again = source(name)
    if begin:
        again.seek(json.loads(json.dumps(chunks[begin - 1].position)))
    for chunk in chunks[begin:end]:
        replayed = again.replay(chunk.spans)
        assert replayed.batch.equals(chunk.batch)
        assert replayed.rows.tolist() == chunk.rows.tolist()
        assert [(r.row, r.reason, r.raw) for r in replayed.bad] == [
            (r.row, r.reason, r.raw) for r in chunk.bad
        ]
        assert (replayed.spans, replayed.position) == (chunk.spans, chunk.position)
    # Iteration goes on behind what was replayed.
    n_left = sum(len(chunk.rows) + len(chunk.bad) for chunk in chunks[end:])
    good, _ = as_tuples(read(again, n_left)) if n_left else ([], [])
    expected, _ = as_tuples(chunks[end:])
    assert sorted(row["n"] for _, row in good) == sorted(row["n"] for _, row in expected)


def test_partitions_that_arent_needed_wait(kafka, topic, source, monkeypatch):
    monkeypatch.setattr(kafka_reader, "STASH", 3)
    monkeypatch.setattr(kafka_reader, "AT_ONCE", 5)
    name = topic(2)
    fill(kafka, name, [lines(n, n + 1) for n in range(100)])
    replaying = source(name)
    reader = replaying._reader
    reader._assign()
    while len(reader._stash[0]) <= 3:
        reader._fetch(1)
    fill(kafka, name, [lines(n, n + 1) for n in range(100, 150)], 1)
    assert replaying.replay([Span("1", 0, 40)]).batch["n"].to_pylist() == list(range(100, 140))
    assert reader._paused == {0}
    assert len(reader._stash[0]) < 50
    chunk = replaying.replay([Span("0", 0, 50), Span("1", 40, 41)])
    assert chunk.batch["n"].to_pylist() == [*range(50), 140]
    assert 0 not in reader._paused
    reader._pause({0, 1})
    good, _ = as_tuples(read(replaying, 59))
    assert sorted(row["n"] for _, row in good) == [*range(50, 100), *range(141, 150)]


def test_spans_behind_the_position_are_read_again(kafka, topic, source):
    name = topic()
    fill(kafka, name, [lines(n, n + 1) for n in range(10)])
    latest = source(name, start="latest")
    assert latest.begins_at()["streams"] == {"0": 10}
    chunk = latest.replay([Span("0", 2, 5)])
    assert chunk.batch["n"].to_pylist() == [2, 3, 4]
    good, _ = as_tuples(read(latest, 5))
    assert [row["n"] for _, row in good] == [5, 6, 7, 8, 9]


def test_aborted_rows_are_never_seen_and_marks_of_transactions_are_no_lag(kafka, topic, source):
    name = topic()
    settings = KafkaSettings(kafka, name, rows=2)
    first = KafkaSink(settings, SCHEMA, None, job=name, commit_seconds=None)
    first.write(rows(0, 4))
    first._transactions.close()
    second = KafkaSink(settings, SCHEMA, None, job=name)
    second.write(rows(100, 104))
    second.commit()
    reader = source(name)
    [chunk] = read(reader, 4)
    assert chunk.batch["n"].to_pylist() == [100, 101, 102, 103]
    for _ in range(20):
        reader._reader.take(1)
    assert reader.lag() == 0
    second.write(rows(104, 110))
    second.close()
    for _ in range(100):
        if reader.lag():
            break
        reader._reader._fetch(1)
    assert reader.lag() > 0
    again = source(name)
    assert again.replay(chunk.spans).batch.equals(chunk.batch)


def test_start_at_the_end(kafka, topic, source):
    name = topic()
    fill(kafka, name, [lines(0, 5)])
    latest = source(name, start="latest")
    fill(kafka, name, [lines(5, 6)])
    good, _ = as_tuples(read(latest, 1))
    assert good == [(0, {"n": 5})]


def test_only_the_partitions_that_are_named(kafka, topic, source):
    name = topic(3)
    fill(kafka, name, [lines(n, n + 1) for n in range(9)], [n % 3 for n in range(9)])
    some = source(name, partitions=(2, 0))
    assert "2 of 3 partitions" in some.describe()
    good, _ = as_tuples(read(some, 6))
    assert {row["n"] % 3 for _, row in good} == {0, 2}
    with pytest.raises(JobError, match=r"partitions: topic .* has 3, from 0 to 2; got 3, 7"):
        source(name, partitions=(0, 3, 7))


def test_a_topic_that_isnt_there(kafka, source):
    with pytest.raises(
        ResourceError, match=r"no-such: there is no such topic.*--topics no-such|no-such at"
    ):
        source("no-such")


def test_no_broker(monkeypatch):
    monkeypatch.setattr(kafka_source.PartitionReader.partitions, "__defaults__", (0.5,))
    with pytest.raises(ResourceError, match="no broker answers"):
        KafkaSource(KafkaSettings("127.0.0.1:9", "people"), ["a"])


def test_rows_that_retention_has_removed(kafka, topic, source):
    name = topic()
    fill(kafka, name, [lines(n, n + 1) for n in range(10)])
    [chunk] = read(source(name), 10)
    behind = source(name)
    delete_before(kafka, name, 5)
    position = {"streams": {"0": 3}, "rows": 3, "kinds": {}}
    with pytest.raises(
        CheckpointError, match="resumes from offset 3 of partition 0, which has offsets 5 to 10"
    ):
        source(name).seek(position)
    with pytest.raises(CheckpointError, match="no longer has"):
        source(name).replay(chunk.spans)
    with pytest.raises(CheckpointError, match="no longer has offset 0"):
        read(behind, 10)
    assert source(name).position["streams"] == {"0": 5}


def test_another_topic_of_the_same_name(kafka, topic, source, monkeypatch):
    monkeypatch.setattr(kafka_reader, "GONE_SECONDS", 0.3)
    name = topic(2)
    fill(kafka, name, [lines(n, n + 1) for n in range(10)])
    with pytest.raises(CheckpointError, match="which has offsets 0 to 10"):
        source(name).seek({"streams": {"0": 11}, "rows": 3, "kinds": {}})
    with pytest.raises(CheckpointError, match="no longer has the messages from offset 8"):
        shorter = source(name)
        shorter.seek({"streams": {"0": 8}, "rows": 8, "kinds": {}})
        shorter.replay([Span("0", 8, 12)])
    for partitions in ((0,), (1,)):
        narrow = source(name, partitions=partitions)
        with pytest.raises(CheckpointError, match="this job doesn't own"):
            narrow.seek({"streams": {"0": 0, "1": 0}, "rows": 0, "kinds": {}})
    with pytest.raises(CheckpointError, match="partition 0, which this job doesn't own"):
        narrow.replay([Span("0", 0, 1)])


def test_messages_missing_from_the_middle(kafka, topic, source):
    name = topic()
    sink = KafkaSink(KafkaSettings(kafka, name, rows=1), SCHEMA, None, job=name)
    for n in range(3):
        sink.write(rows(n, n + 1))
        sink.commit()
    sink.close()
    # Offsets 1, 3 and 5 are marks of transactions, where a message can't have been.
    with pytest.raises(CheckpointError, match="no longer has the messages"):
        source(name).replay([Span("0", 0, 2)])


def test_a_new_partition_is_reported_and_read_after_a_restart(
    kafka, topic, source, caplog, monkeypatch
):
    monkeypatch.setattr(kafka_source, "LOOK_SECONDS", 0.0)
    name = topic()
    fill(kafka, name, [lines(0, 1)])
    running = source(name)
    [chunk] = read(running, 1)
    admin = AdminClient({"bootstrap.servers": kafka})
    for future in admin.create_partitions([NewPartitions(name, 2)]).values():
        future.result()
    fill(kafka, name, [lines(1, 2)], 1)
    end = time.monotonic() + 30
    while "partitions now" not in caplog.text:
        assert time.monotonic() < end
        running._look()
    running._look()
    assert caplog.text.count("has 2 partitions now, and had 1") == 1
    running.stop()
    assert list(running) == []
    again = source(name)
    again.seek(chunk.position)
    [chunk] = read(again, 1)
    assert chunk.spans == (Span("1", 0, 1),)


def test_stop_ends_the_waiting(kafka, topic, source):
    waiting = source(topic())
    threading.Timer(0.2, waiting.stop).start()
    assert list(waiting) == []
    with pytest.raises(ResourceError, match="stopped while reading again"):
        waiting.replay([Span("0", 0, 1)])


def test_lag_before_anything_is_known_and_after_all_is_over(kafka, topic):
    closed = KafkaSource(KafkaSettings(kafka, topic()), ["n"])
    assert closed.lag() is None
    closed.close()
    assert closed.lag() is None
    assert closed._reader.lag() is None


def test_chunks_grow_to_what_is_wanted(kafka, topic, source):
    name = topic()
    fill(kafka, name, [lines(n, n + 1) for n in range(300)])
    sizes = [len(chunk.rows) for chunk in read(source(name, batch_rows=100), 300)]
    assert sizes[0] <= kafka_source.FIRST_MESSAGES
    assert max(sizes) <= 100
    big = [chunk.batch.num_rows for chunk in itertools.islice(source(name, batch_rows=1), 5)]
    assert big[1:] == [1, 1, 1, 1]


def test_bounds_of_a_partition_that_isnt_there(kafka, topic, source):
    with pytest.raises(ResourceError, match="Kafka topic"):
        source(topic())._reader.bounds(7)


def test_events_are_judged(kafka, topic, source):
    """What a message can carry instead of a value, and what is made of it."""
    from confluent_kafka import KafkaError

    class Event:
        partition = staticmethod(lambda: 0)

    reader = source(topic())._reader
    reader._note(Event, KafkaError(KafkaError._TRANSPORT))
    with pytest.raises(ResourceError, match="there is no such topic"):
        reader._note(Event, KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))
    with pytest.raises(ResourceError, match="isn't allowed"):
        reader._note(Event, KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))
    with pytest.raises(ResourceError, match="CRC"):
        reader._note(Event, KafkaError(KafkaError._BAD_MSG, "CRC is wrong"))


class Compacted:
    """A consumer of a topic from which messages are gone, though not the first or the last."""

    def __init__(self, consumer, gone):
        self._consumer, self._gone = consumer, gone

    def __getattr__(self, name):
        return getattr(self._consumer, name)

    def consume(self, *words):
        found = self._consumer.consume(*words)
        return [m for m in found if m.error() is not None or m.offset() not in self._gone]


@pytest.mark.parametrize("before", [(), (3,)])
def test_a_message_that_is_gone_from_the_middle_is_missed(kafka, topic, source, before):
    def without(*gone):
        opened = source(name)
        opened._reader._consumer = Compacted(opened._reader._consumer, gone)
        return opened

    name = topic()
    fill(kafka, name, [lines(n, n + 1) for n in range(6)])
    chunks = read(without(*before), 6 - len(before))
    again = without(*before)
    assert as_tuples([again.replay(chunk.spans) for chunk in chunks]) == as_tuples(chunks)
    later = without(*before, 2)
    with pytest.raises(CheckpointError, match="compaction"):
        for chunk in chunks:
            later.replay(chunk.spans)


def test_messages_without_a_row_wait_for_the_first_row(kafka, topic):
    """A topic of changes may begin with deletes; its first row decides about types."""
    name = topic()
    settings = KafkaSettings(kafka, name, changes="inserts")
    delete, insert = b'{"op": "d", "after": null}', b'{"op": "c", "after": {"n": %d}}'
    fill(kafka, name, [delete] * 15 + [insert % 1, delete, insert % 2])
    source = KafkaSource(settings, ["n"])
    chunks = read(source, 2)
    assert chunks[0].batch.schema.field("n").type == "int64"
    assert sum(chunk.skipped["delete"] for chunk in chunks if chunk.skipped) >= 15
    assert chunks[0].spans[0].begin == 0 and chunks[0].skipped["delete"] >= 15
    begin = {"streams": {"0": 0}, "rows": 0, "kinds": {}}
    again = KafkaSource(settings, ["n"])
    again.seek(begin)
    replayed = [again.replay(chunk.spans) for chunk in chunks]
    assert as_tuples(replayed) == as_tuples(chunks)
    assert [chunk.skipped for chunk in replayed] == [chunk.skipped for chunk in chunks]
    source.close()
    again.close()
