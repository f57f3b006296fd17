"""``shoal run``: anonymize a stream."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from shoal.cli.logs import configure_logs, is_logging, print_or_log
from shoal.cli.run.endpoints import QuarantineSink, trace_factory
from shoal.cli.run.monitor import Monitor
from shoal.cli.run.outputs import Overwriting, check_outputs
from shoal.cli.signals import stopped_by_signals
from shoal.cli.terminal import Progress, print_message, print_result
from shoal.engine.cache import is_cold
from shoal.errors import DataError, JobError, Problem, ReaderGoneError, ShoalError
from shoal.events import event, sentence
from shoal.io.base import Sink, SinkFactory
from shoal.io.connector import InputEndpoint, OutputEndpoint
from shoal.io.files.durable import is_folder
from shoal.io.registry import resolve_input, resolve_output
from shoal.io.streams import STDIO
from shoal.job import Job
from shoal.metrics.unpublished import why_nothing
from shoal.run.pipeline import Run
from shoal.run.recovery import Recovery
from shoal.run.state.seal import Seal

__all__ = [
    "RunOptions",
    "refuse_endless_tables",
    "refuse_overwriting",
    "refuse_unrecoverable",
    "run",
    "warn_of",
]

log = logging.getLogger("shoal.run")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The options of the command line; None where the job decides."""

    source: str | None = None
    sink: str | None = None
    trace: str | None = None
    from_format: str | None = None
    to_format: str | None = None
    follow: bool = False
    drain: bool = False
    fall_back: bool = False
    undo_pseudonyms: bool = False
    force: bool = False
    metrics: str | None = None
    log: str | None = None
    as_json: bool = False
    quiet: bool = False


def run(job_path: Path, options: RunOptions) -> int:
    """Anonymize a stream; return the exit code."""
    configure_logs(options.log)
    job = Job.load(job_path)
    source_spec = resolve_input(
        job.input, options.source, options.from_format, follow=options.follow
    )
    sink_spec = resolve_output(job.output, options.sink, options.to_format)
    refuse_overwriting(job, job_path, source_spec, sink_spec, options.trace)
    check_outputs(job, sink_spec.path, options.trace, force=options.force)
    source_spec.check_run("input")
    sink_spec.check_run("output")
    refuse_unrecoverable(job, source_spec, sink_spec)
    refuse_endless_tables(job, source_spec, drain=options.drain)
    if options.trace is not None:
        job.publish.check_trace(undo_pseudonyms=options.undo_pseudonyms)
    if source_spec.path == STDIO and sys.stdin.isatty():
        raise JobError(Problem("input", "is the terminal", None, "Give a file with -i, or a pipe"))
    if not options.quiet:
        for warning in job.warnings:
            warn_of(warning)
    recovery = _recovery(job, source_spec, sink_spec, options)
    with contextlib.ExitStack() as stack:
        source = source_spec.open(job.schema.columns, replay=job.checkpoints is not None)
        stack.callback(source.close)
        bad_rows = QuarantineSink(job, source)
        stack.callback(bad_rows.close)
        # A log and a progress line don't go together.
        progress = stack.enter_context(Progress(quiet=options.quiet or options.log is not None))
        monitor = Monitor(job, progress, options.metrics, stack, quiet=options.quiet)
        if is_cold(type(job.anonymizer).__module__):
            progress.note("compiling, once for this version …")
        running = job.pipeline.run(
            source,
            _sink_factory(job, sink_spec, options),
            on_bad=bad_rows,
            open_trace=_open_trace(job, options),
            watch=monitor.show,
            warn=None if options.quiet else lambda text: warn_of(text, progress),
            recovery=recovery,
            drain=options.drain,
            undo_pseudonyms=options.undo_pseudonyms,
            bad_limit=1.0 if job.bad_rows.action == "stop" else job.bad_rows.limit,
        )
        monitor.observe(running)
        with stopped_by_signals(running.stop) as caught:
            begin = time.perf_counter()
            try:
                running.execute()
            except ShoalError as error:
                monitor.fail(error)
                progress.clear()
                # Before the first row nothing has happened that needs to be told.
                if not options.quiet and running.n_read and not isinstance(error, ReaderGoneError):
                    print_or_log(logging.WARNING, "run failed", _fate(running))
                if not options.quiet and isinstance(error, DataError) and bad_rows.is_open:
                    print_or_log(logging.INFO, "bad rows kept", _where_bad_rows_are(job))
                if options.as_json and isinstance(error, DataError):
                    seconds = time.perf_counter() - begin
                    _print_json(running, seconds, sink_spec, str(error))
                raise
        seconds = time.perf_counter() - begin
    return _finish(job, running, caught, seconds, sink_spec, options)


def _sink_factory(job: Job, sink: OutputEndpoint, options: RunOptions) -> SinkFactory:
    factory = sink.sink_factory(job.name, durable=job.checkpoints is not None)
    if options.force and sink.path is not None and sink.path != STDIO and is_folder(sink.path):
        return Overwriting(sink.path, factory)
    return factory


def _open_trace(job: Job, options: RunOptions) -> SinkFactory | Callable[[pa.Schema], Sink] | None:
    if options.trace is None:
        return None
    opener = trace_factory(job, options.trace)
    if options.force and isinstance(opener, SinkFactory):
        return Overwriting(options.trace, opener)
    return opener


def _recovery(
    job: Job, source: InputEndpoint, sink: OutputEndpoint, options: RunOptions
) -> Recovery | None:
    if job.checkpoints is None:
        if options.fall_back:
            what = "resumes from a checkpoint, and the job has none"
            raise JobError(Problem("--fall-back", what, None, "Set run.checkpoint in the job"))
        return None
    seal = job.checkpoints.seal
    return Recovery(
        job.checkpoints.folder,
        {
            **job.digests,
            "input": _digest(*source.identity),
            "output": _digest(*sink.identity),
            "trace": _digest(options.trace is not None),
            **({"run.name": _digest(job.name)} if sink.stores_job_name else {}),
        },
        every=job.checkpoints.every,
        seal=None if seal is None else Seal.from_spec(seal),
        fall_back=options.fall_back,
    )


def _digest(*parts: object) -> str:
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()


def warn_of(text: str, progress: Progress | None = None) -> None:
    """Print a warning, or log it."""
    if is_logging():
        sentence(log, logging.WARNING, "warning", text)
    else:
        (print_message if progress is None else progress.print_message)(f"warning: {text}")


def _finish(
    job: Job,
    running: Run,
    caught: list[int],
    seconds: float,
    sink: OutputEndpoint,
    options: RunOptions,
) -> int:
    summary = running.summary
    problem = why_nothing(job.policy, summary, running.shortfall)
    problem = None if running.interrupted else problem
    if options.as_json:
        _print_json(running, seconds, sink, problem)
    elif is_logging():
        event(
            log, logging.INFO, "run ended", interrupted=running.interrupted,
            rows_in=summary.n_in, published=summary.n_published,
            suppressed=summary.suppression.count, quarantined=summary.n_quarantined,
            held=summary.n_held, late=summary.n_late,
        )  # fmt: skip
    elif not options.quiet:
        for line in summary.lines():
            print_message(line)
        print_message(f"{seconds:.1f} s, {running.n_read / max(seconds, 1e-9):,.0f} rows/s")
        if summary.n_quarantined:
            print_message(_where_bad_rows_are(job))
    if problem is not None:
        print_or_log(logging.ERROR, "nothing published", f"shoal: {problem}")
        return DataError.exit_code
    if not running.interrupted:
        return 0
    if not options.quiet:
        print_or_log(logging.INFO, "run interrupted", f"interrupted: {_fate(running)}")
    number = caught[0] if caught else signal.SIGINT
    is_clean = running.saved is not None and not (options.drain and running.is_behind)
    return 0 if number == signal.SIGTERM and is_clean else 128 + number


def _where_bad_rows_are(job: Job) -> str:
    return f"quarantined rows are in {job.bad_rows.file}"


def _print_json(running: Run, seconds: float, sink: OutputEndpoint, problem: str | None) -> None:
    """Print the figures, and why the run failed or published nothing."""
    figures = running.summary.as_dict() | {
        "seconds": round(seconds, 3),
        "interrupted": running.interrupted,
        "problem": problem,
    }
    put = print_message if sink.path == STDIO else print_result
    put(json.dumps(figures))


def _fate(running: Run) -> str:
    """Return a sentence about the rows of a run that ended early."""
    held = f"{running.summary.n_held:,}"
    if running.saved is not None:
        return (
            f"{running.n_written:,} rows were published; {held} are held in checkpoint "
            f"{running.saved.number}, and the next run resumes with them"
        )
    return (
        f"{running.n_written:,} rows were published; {held} are still held and were not published"
    )


def refuse_unrecoverable(job: Job, source: InputEndpoint, sink: OutputEndpoint) -> None:
    """Raise if a restart would publish rows twice."""
    if job.checkpoints is not None:
        if not source.is_replayable:
            what = f"is {source.noun}, which can't be read again after a crash"
            fix = "Read a file or a topic, or leave run.checkpoint out"
            raise JobError(Problem("input", what, None, fix))
        return
    for name, end in (("input", source), ("output", sink)):
        if end.needs_checkpoints:
            what = f"is {end.noun}, and without checkpoints a restart would publish rows twice"
            fix = 'Set run.checkpoint, for example { folder = "state", every = 10 }'
            raise JobError(Problem(name, what, None, fix))


def refuse_endless_tables(job: Job, source: InputEndpoint, *, drain: bool) -> None:
    """Raise for a table algorithm on a stream: it needs all rows before it publishes."""
    if job.anonymizer.publishes != "table":
        return
    endless = source.is_endless
    if not endless and not drain:
        return
    why = "this input has no end" if endless else "a part of it can't be published"
    raise JobError(
        Problem(
            "input" if endless else "--drain",
            f"'{job.anonymizer.name}' publishes a whole table at once, and {why}",
            None,
            "Read a file that is complete, or choose an algorithm for streams",
        )
    )


def refuse_overwriting(
    job: Job, job_path: Path, source: InputEndpoint, sink: OutputEndpoint, trace: str | None
) -> None:
    """Raise if an output would overwrite an input or another output."""
    read = {job_path.resolve(): "the job"}
    if source.path not in (None, STDIO) and "://" not in source.path:
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
            # Private files must not be in the folder of published ones.
            folders[full] = "the output"
