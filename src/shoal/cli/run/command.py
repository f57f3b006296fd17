"""``shoal run``: anonymize a stream."""

from __future__ import annotations

import contextlib
import json
import logging
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from shoal.audit.report import BY_ROWS
from shoal.cli.log_file import LogFileOptions
from shoal.cli.logs import configure_logs, is_logging, is_on_stderr, print_or_log
from shoal.cli.run.monitor import Monitor
from shoal.cli.run.page import PageOptions
from shoal.cli.signals import stopped_by_signals
from shoal.cli.terminal import COMPILING, Progress, print_message, print_result
from shoal.engine.compile_watch import CompileWatch
from shoal.errors import DataError, JobError, Problem, ReaderGoneError, ShoalError
from shoal.events import event, sentence
from shoal.io.base import Source
from shoal.io.connector import InputEndpoint, OutputEndpoint
from shoal.io.http.endpoint import HttpInput
from shoal.io.registry import resolve_input, resolve_output
from shoal.io.streams import STDIO
from shoal.job import Job
from shoal.job.changing import follow_changes
from shoal.job.ends import check_ends, recovery_of
from shoal.job.live_audit import live_audit_of
from shoal.job.outputs import check_outputs, output_of, trace_of
from shoal.job.private_outputs import QuarantineSink
from shoal.metrics.unpublished import why_nothing
from shoal.run.pipeline import Run
from shoal.run.recovery import Recovery

if TYPE_CHECKING:
    from shoal.run.observe.listener import Route

__all__ = ["RunOptions", "run", "show_compiling", "stop_and_say", "warn_of"]

log = logging.getLogger("shoal.run")

STOPPING = "stopping after the current compilation; Ctrl-C again ends at once"


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
    accept_weaker: bool = False
    undo_pseudonyms: bool = False
    report: Path | None = None
    force: bool = False
    metrics: str | None = None
    page: PageOptions | None = None
    serves: bool = False
    releases_token: str | None = None
    log: str | None = None
    log_file: LogFileOptions | None = None
    as_json: bool = False
    quiet: bool = False


def run(job_path: Path, options: RunOptions) -> int:
    """Anonymize a stream; return the exit code."""
    configure_logs(options.log, options.log_file)
    job = Job.load(job_path)
    source_spec = _input_of(job, options)
    sink_spec = resolve_output(job.output, options.sink, options.to_format)
    check_ends(
        job, job_path, source_spec, sink_spec, options.trace, report=options.report,
        log=None if options.log_file is None else options.log_file.path,
        drain=options.drain, undo_pseudonyms=options.undo_pseudonyms,
    )  # fmt: skip
    check_outputs(job, sink_spec.path, options.trace, force=options.force)
    if source_spec.path == STDIO and sys.stdin.isatty():
        raise JobError(Problem("input", "is the terminal", None, "Give a file with -i, or a pipe"))
    if not options.quiet:
        for warning in job.warnings:
            warn_of(warning)
    recovery = recovery_of(job, source_spec, sink_spec, options.trace, fall_back=options.fall_back)
    recovery = follow_changes(
        job, recovery, source_spec, sink_spec, options.trace,
        accept_weaker=options.accept_weaker, undo_pseudonyms=options.undo_pseudonyms,
        say=(lambda text: None) if options.quiet else warn_of,
    )  # fmt: skip
    with _reporting(job, source_spec, sink_spec, options) as (trace, write_report):
        code = _run(job, options, source_spec, sink_spec, recovery, trace)
        return write_report(code)


def _input_of(job: Job, options: RunOptions) -> InputEndpoint:
    """Return where rows come from; `shoal serve` takes them in place of an input."""
    if not options.serves:
        return resolve_input(job.input, options.source, options.from_format, follow=options.follow)
    if job.input.path != STDIO:
        what = f"is {job.input.noun}, and shoal serve takes rows by HTTP"
        raise JobError(Problem("input", what, None, "Leave the section out, or use shoal run"))
    return HttpInput()


@contextlib.contextmanager
def _reporting(
    job: Job, source: InputEndpoint, sink: OutputEndpoint, options: RunOptions
) -> Iterator[tuple[str | None, Callable[[int], int]]]:
    """Yield where the trace is written, and what writes the report of the run, if it has one."""
    page = options.report
    if page is None:
        yield options.trace, lambda code: code
        return
    # A run without a report doesn't import what makes one.
    from shoal.cli.report import check_page, private_trace, report_on_run

    # Files of the run were compared with it by `check_ends`.
    check_page(page, [], force=options.force, way="--report")
    with private_trace(
        job, page, source, sink, options.trace,
        follow=options.follow, undo_pseudonyms=options.undo_pseudonyms,
    ) as trace:  # fmt: skip

        def write_report(code: int) -> int:
            # Of a run that was stopped, or published nothing, there is nothing to hand on.
            if code or source.path is None or sink.path is None:
                return code
            return report_on_run(job, page, source.path, sink.path, trace, quiet=options.quiet)

        yield trace, write_report


def _run(
    job: Job,
    options: RunOptions,
    source_spec: InputEndpoint,
    sink_spec: OutputEndpoint,
    recovery: Recovery | None,
    trace: str | None,
) -> int:
    with contextlib.ExitStack() as stack:
        source = source_spec.open(job.schema.columns, replay=job.checkpoints is not None)
        stack.callback(source.close)
        bad_rows = QuarantineSink(job, source, recovery)
        stack.callback(bad_rows.close)
        # A log and a progress line don't go together.
        progress = stack.enter_context(Progress(quiet=options.quiet or is_logging()))
        routes = _routes(source, sink_spec, options) if options.serves else None
        monitor = Monitor(
            job, progress, options.metrics, stack, quiet=options.quiet, page=options.page,
            ends=(source_spec.noun, sink_spec.noun), routes=routes,
        )  # fmt: skip
        if options.serves:
            # Before the server is closed: clients that wait are answered.
            stack.callback(source.close)
        for warning in job.warnings:
            monitor.warn(warning)
        show = show_compiling(progress, quiet=options.quiet)
        compiled = CompileWatch(type(job.anonymizer), show)
        stack.enter_context(compiled.watching())
        audited = live_audit_of(job)
        running = job.pipeline.run(
            source,
            output_of(job, sink_spec, force=options.force),
            on_bad=bad_rows,
            open_trace=trace_of(job, trace, recovery, force=options.force),
            watch=monitor.show,
            memory=monitor,
            warn=None if options.quiet else lambda text: warn_of(text, progress),
            recovery=recovery,
            inspect=audited,
            drain=options.drain,
            undo_pseudonyms=options.undo_pseudonyms,
            bad_limit=1.0 if job.bad_rows.action == "stop" else job.bad_rows.limit,
        )
        monitor.observe(running, compiled, audited)
        stop = stop_and_say(running.stop, compiled, progress, quiet=options.quiet)
        with stopped_by_signals(stop) as caught:
            begin = time.perf_counter()
            try:
                running.execute()
            except ShoalError as error:
                monitor.fail(error)
                progress.clear()
                # Before the first row nothing has happened that needs to be told. What a reader has
                # taken of a pipe isn't known.
                if not options.quiet and running.n_read and not isinstance(error, ReaderGoneError):
                    print_or_log(logging.WARNING, "run failed", _fate(job, running))
                if not options.quiet and isinstance(error, DataError) and bad_rows.is_open:
                    print_or_log(logging.INFO, "bad rows kept", _where_bad_rows_are(job))
                if options.as_json and isinstance(error, DataError):
                    seconds = time.perf_counter() - begin - compiled.seconds
                    _print_json(job, running, seconds, sink_spec, str(error))
                raise
        seconds = time.perf_counter() - begin - compiled.seconds
    return _finish(job, running, caught, seconds, sink_spec, options)


def _routes(source: Source, sink: OutputEndpoint, options: RunOptions) -> dict[str, Route]:
    """Return what is answered beside the page of `shoal serve`."""
    from shoal.io.http.releases import releases_of
    from shoal.io.http.source import HttpSource
    from shoal.run.observe.access import read_token
    from shoal.run.observe.rows import routes_of

    assert isinstance(source, HttpSource)
    spec = options.releases_token
    token = None if spec is None else read_token(spec, "--releases-token")
    return routes_of(source, releases_of(sink), token)


def show_compiling(progress: Progress, *, quiet: bool) -> Callable[[CompileWatch], None]:
    """Return what shows that kernels are compiled: the progress line, or else one message."""
    said: list[str] = []

    def show(watch: CompileWatch) -> None:
        progress.compiling(watch)
        if not (quiet or said or progress.is_shown):
            said.append(f"{COMPILING} ({watch.n_expected} of them)")
            print_or_log(logging.INFO, "compiling kernels", said[0])

    return show


def stop_and_say(
    stop: Callable[[], None], compiled: CompileWatch, progress: Progress, *, quiet: bool
) -> Callable[[], None]:
    """Return what stops a run, and says so if it can take long: the compiler isn't stopped."""

    def say() -> None:
        if is_logging():
            sentence(log, logging.INFO, "stopping", STOPPING)
        if not is_on_stderr():
            progress.print_message(STOPPING)

    def stop_then_say() -> None:
        stop()
        if compiled.is_compiling and not quiet:
            # Not in the signal handler, which may have interrupted another message.
            threading.Thread(target=say).start()

    return stop_then_say


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
        _print_json(job, running, seconds, sink, problem)
    if is_logging() and not options.as_json:
        event(
            log, logging.INFO, "run ended", interrupted=running.interrupted,
            rows_in=summary.n_in, published=summary.n_published,
            suppressed=summary.suppression.count, quarantined=summary.n_quarantined,
            held=summary.n_held, late=summary.n_late, skipped=summary.skipped.total(),
        )  # fmt: skip
    if not (options.quiet or options.as_json or is_on_stderr()):
        for line in summary.lines():
            print_message(line)
        print_message(f"{seconds:.1f} s, {running.n_read / max(seconds, 1e-9):,.0f} rows/s")
        if job.schema.each_row:
            print_message(BY_ROWS)
        if summary.n_quarantined:
            print_message(_where_bad_rows_are(job))
    if problem is not None:
        print_or_log(logging.ERROR, "nothing published", f"shoal: {problem}")
        return DataError.exit_code
    if not running.interrupted:
        return 0
    if not options.quiet:
        print_or_log(logging.INFO, "run interrupted", f"interrupted: {_fate(job, running)}")
    number = caught[0] if caught else signal.SIGINT
    is_clean = running.saved is not None and not (options.drain and running.is_behind)
    return 0 if number == signal.SIGTERM and is_clean else 128 + number


def _where_bad_rows_are(job: Job) -> str:
    return f"quarantined rows are in {job.bad_rows.file}"


def _print_json(
    job: Job, running: Run, seconds: float, sink: OutputEndpoint, problem: str | None
) -> None:
    """Print the figures, and why the run failed or published nothing."""
    figures = running.summary.as_dict() | {
        "seconds": round(seconds, 3),
        "interrupted": running.interrupted,
        "each_row": job.schema.each_row,
        "problem": problem,
    }
    put = print_message if sink.path == STDIO else print_result
    put(json.dumps(figures))


def _fate(job: Job, running: Run) -> str:
    """Return a sentence about the rows of a run that ended early."""
    if running.is_behind and running.saved is not None:
        # How many rows the output has is known when all of the journal is repeated.
        return (
            "the journal wasn't repeated to its end; all rows that were published stay so, and the "
            f"next run resumes from checkpoint {running.saved.number}"
        )
    if job.policy.per_value:
        text = f"{running.n_written:,} rows were published; z-anonymity holds no rows"
        if running.saved is not None:
            text += f", and the next run resumes from checkpoint {running.saved.number}"
        return text
    held = f"{running.summary.n_held:,}"
    if running.saved is not None:
        return (
            f"{running.n_written:,} rows were published; {held} are held in checkpoint "
            f"{running.saved.number}, and the next run resumes with them"
        )
    return (
        f"{running.n_written:,} rows were published; {held} are still held and were not published"
    )
