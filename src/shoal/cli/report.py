"""``shoal report``: risk, attacks and utility of a release in one offline file."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from shoal.attacks import find
from shoal.cli.logs import print_or_log
from shoal.cli.private_folder import TRACE, private_folder, remove_stale
from shoal.cli.terminal import Progress, print_message, print_result
from shoal.errors import JobError, Problem, ResourceError
from shoal.io.connector import InputEndpoint, OutputEndpoint
from shoal.io.streams import STDIO, os_reason
from shoal.job import Job
from shoal.job.reporting import report as build
from shoal.job.same_files import refuse_page
from shoal.report.release import Audience

__all__ = [
    "ReportOptions",
    "check_file",
    "check_page",
    "files_of",
    "private_trace",
    "report",
    "report_on_run",
]

#: Where a report is written if nothing is said.
DEFAULT = Path("report.html")
#: How a page begins, in small letters.
_HTML = b"<!doctype html"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions:
    """The options of the command line."""

    original: str | None = None
    trace: str | None = None
    population: str | None = None
    audience: Audience = "internal"
    attacks: str | None = None
    control: float | None = None
    output: Path | None = None
    from_format: str | None = None
    force: bool = False
    as_json: bool = False


def report(job_path: Path, published: str, options: ReportOptions) -> int:
    """Write the report of a release; return the exit code."""
    # With --json the figures are the result, and a page is written if one is named.
    page = options.output or (None if options.as_json else DEFAULT)
    job = Job.load(job_path)
    if page is not None:
        read = [
            *files_of(job_path, published, options.original, options.trace),
            ("population", options.population),
        ]
        check_page(page, read, job=job, force=options.force)
    names = None if options.attacks is None else _names(options.attacks)
    with Progress(quiet=options.as_json) as progress:
        made = build(
            job,
            published,
            original=options.original,
            trace=options.trace,
            population=options.population,
            audience=options.audience,
            attacks=names,
            control=options.control,
            format=options.from_format,
            watch=lambda what: progress.note(f"{what} …"),
        )
    if page is not None:
        made.write(page)
    if options.as_json:
        print_result(made.json())
    else:
        print_result(f"{made.verdict}: the {options.audience} report is in {page}")
        for line in made.broken:
            print_result(f"  {line}")
    return made.exit_code


def files_of(
    job_path: Path,
    published: str,
    original: str | None,
    trace: Path | str | None,
) -> list[tuple[str, Path | str | None]]:
    """Return the files that a release is judged by, and what messages call them."""
    return [
        ("job", job_path),
        ("published data", published),
        ("original", original),
        ("trace", trace),
    ]


def check_page(
    page: Path,
    read: Sequence[tuple[str, Path | str | None]],
    *,
    force: bool,
    way: str = "-o",
    job: Job | None = None,
) -> None:
    """Raise if a page can't be written, or would overwrite a file.

    One of the files that are ``read``, or of those of the ``job``, is never overwritten, whatever
    ``force`` says, and neither is a file that isn't HTML.
    """
    refuse_page(way, page, read, job=job)
    check_file(page, "an HTML file", _is_html, force=force, way=way)


def check_file(
    path: Path, kind: str, is_kind: Callable[[Path], bool], *, force: bool, way: str = "-o"
) -> None:
    """Raise if a file can't be written, or would overwrite one without ``force``, or another kind.

    ``is_kind`` says whether a file that exists is one that the command may have written.
    """
    if path.is_dir():
        raise JobError(Problem(way, f"{path} is a folder", None, "Name a file"))
    if not path.parent.is_dir():
        raise JobError(Problem(way, f"the folder of {path} doesn't exist", None, "Create it first"))
    if not path.is_file():
        return
    try:
        is_own = is_kind(path)
    except OSError as error:
        raise ResourceError(f"{path}: can't be read: {os_reason(error)}.") from None
    if not is_own:
        what = f"{path} exists already, and isn't {kind}: it is never overwritten"
        raise JobError(Problem(way, what, None, f"Choose another with {way}, or move it away"))
    if not force and path.stat().st_size:
        what = f"{path} exists already, and would be overwritten"
        fix = f"Choose another with {way}, move it away, or overwrite it with --force"
        raise JobError(Problem(way, what, None, fix))


def _is_html(path: Path) -> bool:
    """Return whether a file is empty, or begins as a page does."""
    with path.open("rb") as file:
        return file.read(len(_HTML)).lower() in (b"", _HTML)


def _names(text: str) -> list[str]:
    """Return the attacks of a list, which must all exist; "none" is an empty list."""
    names = [] if text == "none" else [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        find(name)
    return names


# -- the report of a run -------------------------------------------------------------------------


@contextmanager
def private_trace(
    job: Job,
    page: Path,
    source: InputEndpoint,
    sink: OutputEndpoint,
    trace: str | None,
    *,
    follow: bool,
    undo_pseudonyms: bool,
) -> Iterator[str | None]:
    """Yield where a run that ends with a report writes its trace, and remove it if it is ours.

    Without a trace of the user's it is a file in a private folder beside the report. A job with
    pseudonyms gets none unless they may be undone: its report says what can't be verified then.

    Raises
    ------
    JobError
        If what the run reads or writes can't be read again for a report.
    """
    for name, end in (("input", source), ("output", sink)):
        if end.path is None or end.path == STDIO or (name == "input" and follow):
            what = "reads the input and the output again, and the"
            fix = "Run without it, and give files to `shoal report` afterwards"
            raise JobError(Problem("--report", f"{what} {name} isn't a file that ends", None, fix))
    if trace is not None or (job.publish.pseudonym is not None and not undo_pseudonyms):
        yield trace
        return
    if job.checkpoints is not None:
        what = "needs a trace that lasts as long as the checkpoints"
        raise JobError(Problem("--report", what, None, "Name one with --trace"))
    beside = page.absolute().parent
    for stale in remove_stale(beside):
        said = f"removed {stale}: a run that was killed left its private trace in it"
        print_or_log(logging.WARNING, "stale trace removed", said)
    with private_folder(beside) as folder:
        yield str(folder / TRACE)


def report_on_run(
    job: Job, page: Path, source: str, sink: str, trace: str | None, *, quiet: bool
) -> int:
    """Write the internal report of a run that has ended; return its exit code."""
    made = build(job, sink, original=source, trace=trace)
    made.write(page)
    if not quiet:
        said = f"{made.verdict}: the internal report is in {page}"
        print_or_log(logging.INFO, "report written", said)
        for line in made.broken:
            print_or_log(logging.WARNING, "promise broken", f"  {line}")
    elif made.exit_code:
        print_message(f"shoal: a promise is broken, or an attack exceeds it: see {page}")
    return made.exit_code
