"""``shoal run``: the main job."""

from __future__ import annotations

import contextlib
import json
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import pyarrow as pa

from shoal._jit import is_cold
from shoal.cli.terminal import Progress, say, tell
from shoal.errors import DataError, JobError, Problem, ShoalError
from shoal.io import BadRow, QuarantineWriter, Sink, Source, open_sink, open_source
from shoal.io.files import make_sink
from shoal.io.formats import tell_format
from shoal.io.private import open_private
from shoal.job import Job
from shoal.pipeline import Run

__all__ = ["run"]


def run(
    job_path: Path,
    source_path: str,
    sink_path: str,
    *,
    trace: Path | None,
    from_format: str | None,
    to_format: str | None,
    as_json: bool,
    quiet: bool,
) -> int:
    """Anonymize a stream; give the exit code."""
    job = Job.load(job_path)
    _refuse_overwriting(job, job_path, source_path, sink_path, trace)
    if source_path == "-" and sys.stdin.isatty():
        raise JobError(Problem("input", "is the terminal", None, "Give a file with -i, or a pipe"))
    if not quiet:
        for warning in job.warnings:
            say(f"warning: {warning}")
    with contextlib.ExitStack() as stack:
        source = open_source(source_path, job.schema.columns, format=from_format)
        stack.callback(source.close)
        quarantine = _Quarantine(job, source)
        stack.callback(quarantine.close)
        progress = stack.enter_context(Progress(quiet=quiet))
        if is_cold():
            progress.note("compiling, once for this version …")
        running = job.pipeline.run(
            source,
            lambda schema: open_sink(sink_path, schema, format=to_format),
            on_bad=quarantine.take,
            open_trace=None if trace is None else _private_sink(trace),
            watch=progress.show,
            warn=lambda text: None if quiet else progress.say(f"warning: {text}"),
        )
        with _signals(running) as caught:
            begin = time.perf_counter()
            try:
                running.go()
            except ShoalError:
                progress.clear()
                if not quiet:
                    say(_fate(running))
                raise
        seconds = time.perf_counter() - begin
    return _finish(job, running, caught, seconds, sink_path, as_json=as_json, quiet=quiet)


def _finish(
    job: Job, running: Run, caught: list[int], seconds: float, sink_path: str,
    *, as_json: bool, quiet: bool,
) -> int:  # fmt: skip
    summary = running.summary
    if as_json:
        figures = summary.as_dict() | {
            "seconds": round(seconds, 3),
            "interrupted": running.interrupted,
        }
        put = say if sink_path == "-" else tell
        put(json.dumps(figures))
    elif not quiet:
        for line in summary.lines():
            say(line)
        say(f"{seconds:.1f} s, {summary.n_in / max(seconds, 1e-9):,.0f} rows/s")
        if summary.n_quarantined:
            say(f"quarantined rows are in {job.bad_rows.file}")
    if running.interrupted:
        if not quiet:
            say(f"interrupted: {_fate(running)}")
        return 128 + (caught[0] if caught else signal.SIGINT)
    return 0


def _fate(running: Run) -> str:
    return (
        f"{running.n_written:,} rows were published; {running.summary.n_held:,} are still held "
        "and were not published"
    )


@contextlib.contextmanager
def _signals(running: Run) -> Iterator[list[int]]:
    """Let Ctrl-C and SIGTERM end the run in good order; a second one ends it at once."""
    caught: list[int] = []

    def handle(number: int, frame: FrameType | None) -> None:
        if caught:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        caught.append(number)
        running.stop()

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield caught
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Quarantine:
    """Where bad rows go; the file is made when the first one comes."""

    def __init__(self, job: Job, source: Source) -> None:
        self._job, self._source = job, source
        self._writer: QuarantineWriter | None = None

    def take(self, bad: list[BadRow]) -> None:
        """Write bad rows to the quarantine file, or stop the run."""
        if self._job.bad_rows.action == "stop":
            first = bad[0]
            raise DataError(
                f"{self._source.describe()}: row {first.row}: {first.reason}. The job says to "
                'stop at a bad row; bad_rows.action = "quarantine" sets them apart and goes on.'
            )
        if self._writer is None:
            self._writer = QuarantineWriter(self._job.bad_rows.file)
        self._writer.write(bad)

    def close(self) -> None:
        """Finish the file, if there is one."""
        if self._writer is not None:
            self._writer.close()


def _private_sink(path: Path) -> Callable[[pa.Schema], Sink]:
    return lambda schema: make_sink(open_private(path), schema, tell_format(path))


def _refuse_overwriting(
    job: Job, job_path: Path, source: str, sink: str, trace: Path | None
) -> None:
    """Refuse to write over what is read, or two things to one file."""
    read = {job_path.resolve(): "the job"}
    if source != "-":
        read[Path(source).resolve()] = "the input"
    written: dict[Path, str] = {}
    wanted = [("output", sink), ("trace", trace), ("bad_rows.file", job.bad_rows.file)]
    for name, path in wanted:
        if name != "output" and path is not None and Path(path).name == "-":
            what = "would go to standard output, and holds personal data"
            raise JobError(Problem(name, what, None, "Name a file"))
        if path is None or str(path) in ("-", "/dev/null"):
            continue
        full = Path(path).resolve()
        clash = read.get(full) or written.get(full)
        if clash is not None:
            raise JobError(Problem(name, f"is the same file as {clash}", None, "Choose another"))
        written[full] = f"the {name}"
