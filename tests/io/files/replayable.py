"""What the tests of inputs that are read again share."""

import contextlib
import threading
import time
from unittest import mock

from shoal.io import open_replayable


@contextlib.contextmanager
def small_chunks(chunk_bytes, max_row_bytes=1 << 20):
    """Let text be read in small chunks."""
    with (
        mock.patch("shoal.io.files.text_rows.CHUNK_BYTES", chunk_bytes),
        mock.patch("shoal.io.files.text_rows.MAX_ROW_BYTES", max_row_bytes),
    ):
        yield


def all_chunks(path, columns=None, **options):
    with contextlib.closing(open_replayable(path, columns, **options)) as source:
        return list(source)


def as_tuples(chunk):
    """A chunk as plain values: types, rows, positions, bad rows with what they were."""
    bad = [(row.row, row.reason, row.raw) for row in chunk.bad]
    return str(chunk.batch.schema), chunk.batch.to_pylist(), chunk.rows.tolist(), bad


def rows_of(chunks):
    """The rows and bad rows of chunks, however they were cut."""
    rows = [row for chunk in chunks for row in chunk.batch.to_pylist()]
    places = [place for chunk in chunks for place in chunk.rows.tolist()]
    bad = [(row.row, row.reason, row.raw) for chunk in chunks for row in chunk.bad]
    return rows, places, bad


def interrupted(path, undisturbed, seek_after, replay_to, columns=None, **options):
    """Go on after a stop: from a position, or none, over spans, to the end; give the chunks.

    What is replayed must be, chunk for chunk, what was read.
    """
    with contextlib.closing(open_replayable(path, columns, **options)) as source:
        if seek_after:
            source.seek(undisturbed[seek_after - 1].position)
        given = []
        for chunk in undisturbed[seek_after:replay_to]:
            again = source.replay(chunk.spans)
            assert as_tuples(again) == as_tuples(chunk)
            assert again.spans == chunk.spans
            given.append(again)
        return [*undisturbed[:seek_after], *given, *source]


class Reading:
    """A source that is read in a thread of its own."""

    def __init__(self, source):
        self.source, self.chunks, self.error = source, [], None
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self):
        try:
            for chunk in self.source:
                self.chunks.append(chunk)
        except BaseException as error:
            self.error = error

    def rows(self):
        return rows_of(self.chunks)[0]

    def wait_for(self, n_rows):
        """Wait until this many rows have come, bad ones included; give all."""
        wait_until(lambda: self.error or self.n_rows() >= n_rows)
        if self.error:
            raise self.error
        assert self.n_rows() == n_rows
        return self.rows()

    def n_rows(self):
        return sum(len(chunk.rows) + len(chunk.bad) for chunk in list(self.chunks))

    def fail(self):
        """Wait until reading fails; give why."""
        self._thread.join(20)
        assert not self._thread.is_alive()
        return self.error

    def end(self):
        self.source.stop()
        self._thread.join(20)
        assert not self._thread.is_alive(), "stop doesn't end the iteration"
        self.source.close()


@contextlib.contextmanager
def reading(path, columns=None, *, position=None, spans=(), poll=0.01, **options):
    """Follow something in a thread, maybe after a stop."""
    source = open_replayable(path, columns, follow=True, poll=poll, **options)
    if position is not None:
        source.seek(position)
    replayed = [source.replay(each) for each in spans]
    read = Reading(source)
    read.chunks[:0] = replayed
    try:
        yield read
    finally:
        read.end()


def wait_until(is_so, seconds=20):
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.005)
