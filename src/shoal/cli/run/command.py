"""``shoal run``: the main job."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from shoal.cli.logs import configure_logs, is_logging, say_or_log
from shoal.cli.run.endpoints import (
    BadRowsOutlet,
    input_of,
    open_input,
    outlet_of,
    output_of,
    trace_outlet,
)
from shoal.cli.run.monitor import Monitor
from shoal.cli.signals import ended_by_signals
from shoal.cli.terminal import Progress, say, tell
from shoal.engine.cache import is_cold
from shoal.errors import JobError, Problem, ShoalError
from shoal.events import event, sentence
from shoal.io.files.durable import is_folder
from shoal.job import Job
from shoal.job.endpoints import Input, Output
from shoal.run.pipeline import Run
from shoal.run.recovery import Recovery
from shoal.run.state.seal import Seal

__all__ = ["RunOptions", "refuse_overwriting", "run", "warn_of"]

log = logging.getLogger("shoal.run")


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What the command line says beside the job; None where it says nothing."""

    source: str | None = None
    sink: str | None = None
    trace: str | None = None
    from_format: str | None = None
    to_format: str | None = None
    follow: bool = False
    drain: bool = False
    fall_back: bool = False
    undo_pseudonyms: bool = False
    metrics: str | None = None
    log: str | None = None
    as_json: bool = False
    quiet: bool = False


def run(job_path: Path, ask: RunOptions) -> int:
    """Anonymize a stream; give the exit code."""
    configure_logs(ask.log)
    job = Job.load(job_path)
    source_spec = input_of(job, ask.source, ask.from_format, follow=ask.follow)
    sink_spec = output_of(job, ask.sink, ask.to_format)
    refuse_overwriting(job, job_path, source_spec, sink_spec, ask.trace)
    _refuse_foreign(source_spec, sink_spec)
    _refuse_forgetting(job, source_spec, sink_spec, ask)
    _refuse_endless_tables(job, source_spec, ask)
    _refuse_undoing(job, ask)
    if source_spec.path == "-" and source_spec.kafka is None and sys.stdin.isatty():
        raise JobError(Problem("input", "is the terminal", None, "Give a file with -i, or a pipe"))
    if not ask.quiet:
        for warning in job.warnings:
            warn_of(warning)
    recovery = _recovery(job, source_spec, sink_spec, ask)
    with contextlib.ExitStack() as stack:
        source = open_input(job, source_spec)
        stack.callback(source.close)
        bad_rows = BadRowsOutlet(job, source)
        stack.callback(bad_rows.close)
        # Lines for programs and a line that is drawn anew don't go together.
        progress = stack.enter_context(Progress(quiet=ask.quiet or ask.log is not None))
        eyes = Monitor(job, progress, ask.metrics, stack, quiet=ask.quiet)
        if is_cold(type(job.anonymizer).__module__):
            progress.note("compiling, once for this version …")
        running = job.pipeline.run(
            source,
            outlet_of(job, sink_spec),
            on_bad=bad_rows,
            open_trace=None if ask.trace is None else trace_outlet(job, ask.trace),
            watch=eyes.show,
            warn=None if ask.quiet else lambda text: warn_of(text, progress),
            recovery=recovery,
            drain=ask.drain,
            undo_pseudonyms=ask.undo_pseudonyms,
        )
        eyes.look_at(running)
        with ended_by_signals(running.stop) as caught:
            begin = time.perf_counter()
            try:
                running.go()
            except ShoalError as error:
                eyes.fail(error)
                progress.clear()
                if not ask.quiet:
                    say_or_log(logging.WARNING, "run failed", _fate(running))
                raise
        seconds = time.perf_counter() - begin
    return _finish(job, running, caught, seconds, sink_spec, ask)


def _recovery(job: Job, source: Input, sink: Output, ask: RunOptions) -> Recovery | None:
    if job.checkpoints is None:
        if ask.fall_back:
            what = "goes back to a checkpoint, and the job takes none"
            raise JobError(Problem("--fall-back", what, None, "Set run.checkpoint in the job"))
        return None
    seal = job.checkpoints.seal
    return Recovery(
        job.checkpoints.folder,
        {
            **job.digests,
            "input": _digest(*_identity(source)),
            "output": _digest(*_identity(sink)),
            "trace": _digest(ask.trace is not None),
            # By its name a broker knows what a job has published.
            **({} if sink.kafka is None else {"run.name": _digest(job.name)}),
        },
        every=job.checkpoints.every,
        seal=None if seal is None else Seal.from_spec(seal),
        fall_back=ask.fall_back,
    )


def _identity(end: Input | Output) -> tuple[object, ...]:
    """What makes positions and marks mean the same rows: not who serves them, or how safely."""
    if end.kafka is not None:
        return end.kafka.topic, end.kafka.format, end.kafka.partitions, end.kafka.columns
    path = end.path if end.path == "-" else str(Path(end.path).resolve())
    return path, end.format


def _digest(*parts: object) -> str:
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()


def warn_of(text: str, progress: Progress | None = None) -> None:
    """Warn on stderr, or in the log."""
    if is_logging():
        sentence(log, logging.WARNING, "warning", text)
    else:
        (say if progress is None else progress.say)(f"warning: {text}")


def _finish(
    job: Job, running: Run, caught: list[int], seconds: float, sink: Output, ask: RunOptions
) -> int:
    summary = running.summary
    if ask.as_json:
        figures = summary.as_dict() | {
            "seconds": round(seconds, 3),
            "interrupted": running.interrupted,
        }
        put = say if sink.path == "-" and sink.kafka is None else tell
        put(json.dumps(figures))
    elif is_logging():
        event(
            log, logging.INFO, "run ended", interrupted=running.interrupted,
            rows_in=summary.n_in, published=summary.n_published,
            suppressed=summary.suppression.count, quarantined=summary.n_quarantined,
            held=summary.n_held, late=summary.n_late,
        )  # fmt: skip
    elif not ask.quiet:
        for line in summary.lines():
            say(line)
        say(f"{seconds:.1f} s, {running.n_read / max(seconds, 1e-9):,.0f} rows/s")
        if summary.n_quarantined:
            say(f"quarantined rows are in {job.bad_rows.file}")
    if not running.interrupted:
        return 0
    if not ask.quiet:
        say_or_log(logging.INFO, "run interrupted", f"interrupted: {_fate(running)}")
    number = caught[0] if caught else signal.SIGINT
    is_clean = running.saved is not None and not (ask.drain and running.is_behind)
    return 0 if number == signal.SIGTERM and is_clean else 128 + number


def _fate(running: Run) -> str:
    held = f"{running.summary.n_held:,}"
    if running.saved is not None:
        return (
            f"{running.n_written:,} rows were published; {held} are held in checkpoint "
            f"{running.saved.number}, and the next run goes on with them"
        )
    return (
        f"{running.n_written:,} rows were published; {held} are still held and were not published"
    )


def _refuse_foreign(source: Input, sink: Output) -> None:
    """Refuse what only Spark can read and write."""
    for name, end in (("input", source), ("output", sink)):
        if end.table is not None:
            raise JobError(Problem(f"{name}.table", "is Spark's", None, "Use `shoal spark`"))
        if "://" in end.path:
            what = "is on another file system than this machine's"
            raise JobError(Problem(f"{name}.path", what, None, "Use `shoal spark`"))


def _refuse_forgetting(job: Job, source: Input, sink: Output, ask: RunOptions) -> None:
    """Refuse what a restart would publish twice."""
    if job.checkpoints is not None:
        if source.path == "-" and source.kafka is None:
            what = "is a pipe, which can't be read again after a crash"
            fix = "Read a file or a topic, or leave run.checkpoint out"
            raise JobError(Problem("input", what, None, fix))
        return
    for name, end in (("input", source), ("output", sink)):
        if end.kafka is not None:
            what = "is a topic, and without checkpoints a restart would publish rows twice"
            fix = 'Set run.checkpoint, for example { folder = "state", every = 10 }'
            raise JobError(Problem(name, what, None, fix))


def _refuse_endless_tables(job: Job, source: Input, ask: RunOptions) -> None:
    """Refuse to publish a table that hasn't ended: it is measured against all of its rows."""
    if job.anonymizer.publishes != "table":
        return
    endless = source.follow or source.kafka is not None
    if not endless and not ask.drain:
        return
    why = "this one has no end" if endless else "not what there is of it so far"
    raise JobError(
        Problem(
            "input" if endless else "--drain",
            f"'{job.anonymizer.name}' publishes a whole table, once, and {why}",
            None,
            "Read a file that is complete, or choose an algorithm for streams",
        )
    )


def _refuse_undoing(job: Job, ask: RunOptions) -> None:
    """Refuse a trace that tells whom each pseudonym stands for, unless that is wanted."""
    if job.publish.pseudonym is not None and ask.trace is not None and not ask.undo_pseudonyms:
        raise JobError(
            Problem(
                "--trace",
                "would undo the pseudonyms: it tells the subject of every published row",
                None,
                "Leave the trace or publish.pseudonym out, or say --undo-pseudonyms",
            )
        )


def refuse_overwriting(
    job: Job, job_path: Path, source: Input, sink: Output, trace: str | None
) -> None:
    """Refuse to write over what is read, or two things to one file."""
    read = {job_path.resolve(): "the job"}
    if source.path != "-" and "://" not in source.path:
        read[Path(source.path).resolve()] = "the input"
    written: dict[Path, str] = {}
    folders = {path: what for path, what in read.items() if path.is_dir()}
    wanted = [("output", sink.path), ("trace", trace), ("bad_rows.file", str(job.bad_rows.file))]
    if job.checkpoints is not None:
        wanted.append(("run.checkpoint.folder", str(job.checkpoints.folder)))
    for name, path in wanted:
        if name != "output" and path is not None and Path(path).name == "-":
            what = "would go to standard output, and holds personal data"
            raise JobError(Problem(name, what, None, "Name a file"))
        if path is None or path in ("-", "/dev/null") or "://" in path:
            continue
        full = Path(path).resolve()
        clash = read.get(full) or written.get(full)
        if clash is not None:
            raise JobError(Problem(name, f"is the same file as {clash}", None, "Choose another"))
        written[full] = f"the {name}"
        inside = next((what for r, what in folders.items() if r in full.parents), None)
        if inside is not None:
            raise JobError(Problem(name, f"lies in the folder of {inside}", None, "Choose another"))
        if name == "output" and is_folder(path):
            # What isn't published has no place among what is.
            folders[full] = "the output"
