"""``shoal spark``: anonymize a stream on Apache Spark."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import sys
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.cli.log_file import LogFileOptions
from shoal.cli.logs import configure_logs, is_logging, is_on_stderr, print_or_log
from shoal.cli.run.command import warn_of
from shoal.cli.run.monitor import Monitor
from shoal.cli.run.page import PageOptions
from shoal.cli.signals import stopped_by_signals
from shoal.cli.terminal import Progress, print_message, print_result
from shoal.errors import DataError, JobError, Problem, ResourceError, ShoalError, install_hint
from shoal.events import event
from shoal.io.registry import resolve_input, resolve_output
from shoal.job import Job
from shoal.job.same_files import refuse_overwriting
from shoal.metrics import Summary
from shoal.metrics.bad_rows import listed
from shoal.metrics.unpublished import why_nothing
from shoal.run.bad_row_limit import FIX, is_above, too_many

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


__all__ = ["SparkOptions", "spark"]

log = logging.getLogger("shoal.spark")

#: The seconds between two checks whether to stop.
POLL = 1
#: The default settings of Spark. Its pages and progress bars would show plans, which contain bounds
#: of values; larger batches cost less on the way to Python and back.
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.sql.session.timeZone": "UTC",
    "spark.log.level": "ERROR",
}
LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkOptions:
    """The options of the command line; None where the job decides."""

    source: str | None = None
    sink: str | None = None
    from_format: str | None = None
    to_format: str | None = None
    shards: int | None = None
    follow: bool = False
    master: str | None = None
    settings: tuple[str, ...] = ()
    sample: str | None = None
    trace: str | None = None
    migrate: bool = False
    drain: bool = False
    metrics: str | None = None
    page: PageOptions | None = None
    log: str | None = None
    log_file: LogFileOptions | None = None
    as_json: bool = False
    quiet: bool = False


def spark(job_path: Path, options: SparkOptions) -> int:
    """Anonymize a stream on Spark; return the exit code."""
    configure_logs(options.log, options.log_file)
    job = Job.load(job_path)
    source = resolve_input(job.input, options.source, options.from_format, follow=options.follow)
    sink = resolve_output(job.output, options.sink, options.to_format)
    log_path = None if options.log_file is None else options.log_file.path
    refuse_overwriting(job, job_path, source, sink, options.trace, log=log_path)
    _need_spark()
    from shoal.spark.support import check_support

    check_support(job, job.spark.shards if options.shards is None else options.shards)
    if not options.quiet:
        for warning in job.warnings:
            warn_of(warning)
    with contextlib.ExitStack() as stack:
        progress = stack.enter_context(Progress(quiet=options.quiet or is_logging()))
        monitor = Monitor(
            job, progress, options.metrics, stack, quiet=options.quiet, page=options.page,
            ends=(source.noun, sink.noun), checkpoints="with each batch",
        )  # fmt: skip
        progress.note("starting Spark …")
        session = _session(job, options)
        stack.callback(session.stop)
        from shoal.spark import publish
        from shoal.spark.endpoints import read_sample, read_stream

        begin = time.perf_counter()
        caught: list[int] = []
        try:
            running = publish(
                read_stream(session, job, source),
                job,
                shards=options.shards,
                write=sink.spark_writer(),
                until_end=not source.is_endless,
                migrate=options.migrate,
                sample=None
                if options.sample is None
                else read_sample(session, source, options.sample),
                trace=options.trace,
                memory=monitor,
            )
            monitor.observe(running)
            n_before = running.summary.n_in
            # A second signal may cut off a batch; the next run safely repeats it.
            with stopped_by_signals(lambda: None) as caught:
                while not running.wait(POLL):
                    # Without rows there are no batches, and the run is well all the same.
                    monitor.show(running.summary)
                    if caught or _has_too_many_bad(job, running.summary):
                        # Every batch so far is committed: the next run resumes after it.
                        running.stop(drain=bool(caught) and options.drain)
                        break
            if not caught and _has_too_many_bad(job, running.summary):
                summary, where = running.summary, source.path or source.noun
                what = too_many(summary.n_quarantined, summary.n_in, job.bad_rows.limit)
                raise DataError(f"{where}: {what}: {listed(summary.bad_rows.reasons)}. {FIX}")
        except ShoalError as error:
            monitor.fail(error)
            raise
    seconds = time.perf_counter() - begin
    return _finish(job, running.summary, running.summary.n_in - n_before, seconds, caught, options)


def _has_too_many_bad(job: Job, summary: Summary) -> bool:
    if job.bad_rows.action == "stop":
        return False
    return is_above(summary.n_quarantined, summary.n_in, job.bad_rows.limit)


def _need_spark() -> None:
    try:
        import pyspark  # noqa: F401
    except ImportError:
        what, fix = "isn't installed", install_hint("spark")
        raise JobError(Problem("pyspark", what, None, fix)) from None


def _session(job: Job, options: SparkOptions) -> SparkSession:
    """Return the session of `spark-submit`, or a new one."""
    # It warns of versions that work, which a user can't fix.
    warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder: Any = SparkSession.builder.appName(job.name)
    is_submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    master = options.master if options.master is not None or is_submitted else "local[*]"
    settings = dict(_setting(text) for text in options.settings)
    if master is not None:
        builder = builder.master(master)
        if master.startswith("local"):
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
            settings = LOOPBACK | settings
    for name, value in (SETTINGS | settings).items():
        builder = builder.config(name, value)
    try:
        session: SparkSession = builder.getOrCreate()
    except Exception as error:
        raise ResourceError(
            f"Spark doesn't start ({type(error).__name__}). It needs Java 17 or later, found by "
            "JAVA_HOME or on the PATH, and a master that can be reached."
        ) from None
    session.sparkContext.setLogLevel("OFF" if options.quiet else "ERROR")
    return session


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise JobError(Problem("--conf", "must be KEY=VALUE", repr(name)))
    return name, value


def _finish(
    job: Job,
    summary: Summary,
    n_read: int,
    seconds: float,
    caught: list[int],
    options: SparkOptions,
) -> int:
    problem = None if caught else why_nothing(job.policy, summary)
    if options.as_json:
        more = {"seconds": round(seconds, 3), "interrupted": bool(caught), "problem": problem}
        print_result(json.dumps(summary.as_dict() | more))
    if is_logging() and not options.as_json:
        event(
            log, logging.INFO, "run ended", interrupted=bool(caught),
            rows_in=summary.n_in, published=summary.n_published, held=summary.n_held,
        )  # fmt: skip
    if not (options.quiet or options.as_json or is_on_stderr()):
        for line in summary.lines():
            print_message(line)
        print_message(f"{seconds:.1f} s, {n_read / max(seconds, 1e-9):,.0f} rows/s")
    if problem is not None:
        print_or_log(logging.ERROR, "nothing published", f"shoal: {problem}")
        return DataError.exit_code
    if caught and not options.quiet:
        held = (
            "z-anonymity holds no rows, and the next run resumes after the last batch"
            if job.policy.per_value
            else f"{summary.n_held:,} rows are held, and the next run resumes with them"
        )
        print_or_log(logging.INFO, "run interrupted", f"interrupted: {held}")
    return 128 + caught[0] if caught and caught[0] != signal.SIGTERM else 0
