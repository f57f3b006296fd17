"""One text file as an output that survives the end of its process, continued byte by byte."""

from __future__ import annotations

import fcntl
import io
import os
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa

from shoal.errors import CheckpointError, JobError, Problem, ResourceError
from shoal.io.base import Mark
from shoal.io.files.atomic import sync_folder
from shoal.io.formats.csv import CsvSink
from shoal.io.formats.jsonl import JsonSink
from shoal.io.formats.text import TextSink
from shoal.io.streams import Output, why

__all__ = ["AppendOutput", "AppendSink", "has_rows_already", "not_of_this_output"]

#: So many bytes before a mark tell whether the file is the same.
KNOWN_BYTES = 4096
_COMPARE_BYTES = 1 << 20


def has_rows_already(name: str) -> JobError:
    """Say that a job which starts anew would write after the rows of another."""
    return JobError(
        Problem(
            name,
            "has rows already, and the job starts anew",
            None,
            "Choose another output, or take this one away; to go on with it, keep the checkpoint "
            "folder that belongs to it",
        )
    )


def not_of_this_output(name: str, what: str) -> CheckpointError:
    """Say that an output isn't what a checkpoint knows."""
    return CheckpointError(
        f"{name}: {what}. Bring back the output as it was, or start anew with an empty checkpoint "
        "folder and another output."
    )


class AppendOutput(Output):
    """A file that is written on, and that may have more than its mark says.

    What it has is compared with what is written again, and only what comes after is added: in the
    middle of a line, if a line was torn.

    Parameters
    ----------
    path
        The file, made if it isn't there.
    private
        Whether only its owner may read it.
    """

    def __init__(self, path: str | os.PathLike[str], *, private: bool = False) -> None:
        name = os.fspath(path)
        try:
            number = os.open(path, os.O_RDWR | os.O_CREAT, 0o600 if private else 0o666)
            if private:
                os.fchmod(number, 0o600)
        except OSError as error:
            raise ResourceError(f"{name}: can't be written: {why(error)}.") from None
        super().__init__(io.FileIO(number, "r+b"), name)
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.drop()
            raise ResourceError(
                f"{name}: another process writes to it. Give each job an output of its own."
            ) from None
        self._number = number
        # Synced once, also if the file was there: who made it may have been killed before.
        self._folder: Path | None = Path(path).parent
        self._n_there: int = self._raw.seek(0, os.SEEK_END)
        self._at = self._n_synced = 0
        self._differs: CheckpointError | None = None

    @property
    def at(self) -> int:
        """How many bytes it has been given, those that it had already included."""
        return self._at

    @property
    def n_ahead(self) -> int:
        """How many bytes it has that haven't been given again."""
        return max(0, self._n_there - self._at)

    def expect(self, n_bytes: int) -> None:
        """Check that so many bytes are there, and cut off zeros beyond them.

        After a loss of power a file may be longer than its content. Whatever the zeros stood for
        is written again, the same.
        """
        if self._n_there < n_bytes:
            raise not_of_this_output(
                self.name,
                f"has {self._n_there:,} bytes, and the checkpoint knows of {n_bytes:,}: it was "
                "cut off or replaced",
            )
        self._n_synced = n_bytes
        end = self._n_there
        while end > n_bytes:
            begin = max(n_bytes, end - _COMPARE_BYTES)
            n_full = len(os.pread(self._number, end - begin, begin).rstrip(b"\0"))
            end = begin + n_full
            if n_full:
                break
        if end < self._n_there:
            self._raw.truncate(end)
            self._n_there = self._raw.seek(end)

    def go_to(self, at: int) -> None:
        """Take the bytes up to there as given; what is beyond them will be compared."""
        self._at = at

    def before(self, at: int) -> int:
        """Give a checksum of the bytes before a place."""
        begin = max(0, at - KNOWN_BYTES)
        return zlib.crc32(os.pread(self._number, at - begin, begin))

    def write(self, data: Any) -> int:
        """Take bytes: compare what is there already, add the rest."""
        if self._differs is not None:
            raise self._differs
        view = memoryview(data).cast("B")
        n_bytes = view.nbytes
        known = min(n_bytes, self.n_ahead)
        for start in range(0, known, _COMPARE_BYTES):
            there = os.pread(self._number, min(_COMPARE_BYTES, known - start), self._at + start)
            given = view[start : start + len(there)]
            if there != given:
                pairs = enumerate(zip(there, given, strict=True))
                known = start + next(i for i, (a, b) in pairs if a != b)
                self._cut_off_at(known)
                break
        if known < n_bytes:
            super().write(view[known:])
        self._at += n_bytes
        return n_bytes

    def _cut_off_at(self, known: int) -> None:
        """Drop what comes after so many bytes that are as given, if a loss of power explains it.

        Pages that weren't synced reach the disk in any order: one that didn't, before one that
        did, is a hole of zeros. All of it is written again, the same.
        """
        end = self._at + known
        if end < self._n_synced or os.pread(self._number, 1, end) != b"\0":
            self._differs = not_of_this_output(
                self.name,
                "differs from what was decided; somebody else wrote to it, or the input or "
                "the job is another one",
            )
            raise self._differs
        self._raw.truncate(end)
        self._n_there = self._raw.seek(end)

    def sync(self) -> None:
        """Have the disk keep everything so far, and that the file is there."""
        super().sync()
        if self._folder is not None:
            sync_folder(self._folder)
            self._folder = None


class AppendSink:
    """Rows as CSV, TSV or JSON lines at the end of one file.

    Guarantee: after `flush` rows have been handed to the operating system; after `commit` no loss
    of power takes them back. After a crash the file has every row up to the last commit, maybe
    more, and maybe a part of a line; whoever goes on adds what is missing, and nothing twice.

    Parameters
    ----------
    path
        The file.
    schema
        The columns.
    form
        ``csv``, ``tsv`` or ``jsonl``.
    mark
        What `commit` gave; empty: from the beginning, where rows may be already; None: anew.
    private
        Whether only its owner may read it.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        schema: pa.Schema,
        form: str,
        mark: Mark | None,
        *,
        private: bool = False,
    ) -> None:
        name = os.fspath(path)
        if mark and "n_bytes" not in mark:
            raise not_of_this_output(name, "isn't the kind of output that the checkpoint knows")
        self._output = output = AppendOutput(path, private=private)
        try:
            if mark is None and output.n_ahead:
                raise has_rows_already(name)
            n_bytes = mark["n_bytes"] if mark else 0
            output.expect(n_bytes)
            # The header is written, or compared with the one that is there.
            self._sink: TextSink = (
                JsonSink(output, schema)
                if form == "jsonl"
                else CsvSink(output, schema, delimiter="\t" if form == "tsv" else ",")
            )
            if mark:
                output.go_to(n_bytes)
                if output.before(n_bytes) != mark["before"]:
                    raise not_of_this_output(name, "isn't the file that the checkpoint knows")
        except BaseException:
            output.close()
            raise

    def write(self, batch: pa.RecordBatch) -> None:
        """Take some rows."""
        self._sink.write(batch)

    def flush(self) -> None:
        """Hand all rows so far to the operating system."""
        self._sink.flush()

    def commit(self) -> Mark:
        """Have the disk keep all rows so far; give the mark to go on from."""
        self._output.sync()
        return {"n_bytes": self._output.at, "before": self._output.before(self._output.at)}

    @property
    def n_ahead(self) -> int:
        """How many bytes the file has that haven't been given again."""
        return self._output.n_ahead

    def abandon(self) -> None:
        """Let go of the file as it is."""
        self._output.drop()

    def close(self) -> None:
        """Hand over the rest and let go of the file."""
        self._sink.close()
