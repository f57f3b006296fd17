"""Report on releases from Python: ``shoal.report``. ``shoal report`` calls it, too."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from shoal.attacks import AttackReport
from shoal.attacks import attack as make_attacks
from shoal.attacks import names as attack_names
from shoal.attacks.lab import listed
from shoal.errors import ParameterError
from shoal.job.attacking import as_promised, setting_of
from shoal.job.auditing import (
    NO_TRACE,
    Data,
    _options,
    files_behind,
    parts_of,
    read_published,
    read_table,
    read_trace,
)
from shoal.job.file import Job
from shoal.job.running import AnyJob, job_of
from shoal.job.warnings import SEED_SET
from shoal.report.build import ReleaseReport, build
from shoal.report.release import Audience, Release
from shoal.run.result import Result

__all__ = ["release_of", "report"]

#: The most people that each attack is made on.
TARGETS = 500


def report(
    job: AnyJob,
    published: Data,
    /,
    *,
    original: Data = None,
    trace: Data = None,
    population: Data = None,
    audience: Audience = "internal",
    attacks: str | Sequence[str] | None = None,
    control: float | None = None,
    format: str | None = None,  # noqa: A002
    watch: Callable[[str], None] | None = None,
) -> ReleaseReport:
    """Report what was published, the promise, risk, attacks and utility.

    Parameters
    ----------
    job
        A `Job`, the path of a job file, or its sections as a dictionary.
    published
        The output: a file or folder, a DataFrame of pandas or polars, a Table or RecordBatch of
        Arrow, a list of dicts; or a `Result`, which brings its trace.
    original, trace
        The input of the run and its private trace, as frames or files. Without them much is
        unknown, and no attack is made.
    population
        People of whom those in the release are some, with the quasi columns: for the risk of the
        journalist.
    audience
        ``internal``, or ``public``: then nothing but the published rows and the job is looked at.
    attacks
        The names of the attacks, or one of them; None: all, an empty list: none.
    control
        The share of people for the control of the attacks: the job is run again without them, in
        memory. None: no control.
    format
        The format of a published file; None: by its name.
    watch
        Called with what begins, in words.

    Returns
    -------
    ReleaseReport
        Shown in a notebook; ``report.write("report.html")`` writes it as one file.

    >>> job = {
    ...     "schema": {"subject": "name", "quasi": {"age": {"range": [0, 120], "step": 1}}},
    ...     "policy": {"k": 2, "delay": {"rows": 100}},
    ...     "algorithm": {"name": "castle"},
    ... }
    >>> rows = [{"age": "[31, 33]"}, {"age": "[31, 33]"}]
    >>> report(job, rows, audience="public")
    ReleaseReport(2 rows, unverifiable, public)
    """
    job, _ = job_of(job)
    if isinstance(published, Result):
        trace = published.trace if trace is None else trace
        published = published.output if published.frame is None else published.frame
    if control is not None and (audience == "public" or original is None or trace is None):
        raise ParameterError(
            "control",
            "is for the attacks, and none are run: they need the original and the trace, and "
            "a public report has none",
            fix="Give both, or leave it out",
        )
    if audience == "public":
        # What isn't read can't show.
        original = trace = population = None
    if watch is not None:
        watch("reading")
    lines = NO_TRACE if trace is None else read_trace(trace, job)
    release = release_of(job, published, format, lines.changes)
    if original is not None:
        given, rows = read_table("original", original, job.schema.columns, job=job)
        release = dataclasses.replace(release, original=given, original_rows=rows)
    if lines.rows is not None:
        # Figures about the lines that are left would be wrong for all rows.
        key = "trace" if lines.is_whole(release.published) else "incomplete_trace"
        release = dataclasses.replace(release, trace_files=lines.numbers, **{key: lines.rows})
    if population is not None:
        if job.policy.per_value:
            raise ParameterError(
                "population",
                "is for the risk of people in groups, and z-anonymity forms none",
                fix="Leave it out",
            )
        names = tuple(name for quasi in job.schema.quasi for name in quasi.columns)
        people, _ = read_table("population", population, None)
        missing = [name for name in names if name not in people.column_names]
        if missing:
            raise ParameterError(
                "population",
                f"lacks the columns {', '.join(missing)}",
                fix="Give a file with all quasi columns",
            )
        release = dataclasses.replace(release, population=people)
    made = _attacks(job, release, attacks, control, watch)
    if watch is not None:
        watch("measuring")
    return build(release, attacks=made, audience=audience)


def release_of(
    job: Job,
    published: Data,
    form: str | None = None,
    changes: Sequence[Mapping[str, Any]] = (),
) -> Release:
    """Return the release of a job, without the original and the trace.

    ``changes`` are those of the job that its trace tells of.
    """
    publish = {
        field.name: getattr(job.publish, field.name) for field in dataclasses.fields(job.publish)
    }
    publish["pseudonym"] = None if job.publish.pseudonym is None else str(job.publish.pseudonym)
    text = json.dumps(dict(job.digests), sort_keys=True)
    parts, unknown = parts_of(job, changes)
    return Release(
        job.schema,
        job.policy,
        read_published(job, published, form),
        algorithm={"name": job.anonymizer.name} | _plain(dataclasses.asdict(job.anonymizer)),
        publish={name: value for name, value in publish.items() if value is not None},
        options=_options(job),
        digest=hashlib.sha256(text.encode()).hexdigest(),
        warnings=[each for each in job.warnings if each != SEED_SET],
        internal_warnings=[each for each in job.warnings if each == SEED_SET],
        files=files_behind(published),
        made=datetime.now(UTC).date(),
        parts=parts,
        unknown=unknown,
    )


def _attacks(
    job: Job,
    release: Release,
    names: str | Sequence[str] | None,
    control: float | None,
    watch: Callable[[str], None] | None,
) -> AttackReport | None:
    """Attack the release, if there is what an attack is judged by."""
    chosen = attack_names() if names is None else listed(names)
    if release.original is None or release.trace is None or not chosen:
        return None
    setting = setting_of(job, release.published, original=release.original, trace=release.trace)
    setting = dataclasses.replace(setting, original_rows=release.original_rows, n_targets=TARGETS)
    made = make_attacks(setting, chosen, control=control, watch=watch)
    return as_promised(made, job.policy, release.parts, release.unknown)


def _plain(knobs: dict[str, Any]) -> dict[str, Any]:
    """Return knobs as plain values for JSON."""
    return {
        name: value if isinstance(value, str | int | float | bool | None) else str(value)
        for name, value in knobs.items()
    }
