"""Attack releases from Python: ``shoal.attack``. ``shoal attack`` calls it, too."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import pyarrow as pa

from shoal.arrow.release import Publish
from shoal.attacks import AttackReport, AttackResult, Run, Setting
from shoal.attacks import attack as make_attacks
from shoal.attacks.lab import listed
from shoal.attacks.setting import Rerun
from shoal.audit import Part, Verdict
from shoal.audit.evidence import Order, Suppressed
from shoal.audit.labels import Numeric
from shoal.engine.base import Anonymizer
from shoal.io.base import BadRow
from shoal.job.auditing import NO_TRACE, Data, parts_of, read_published, read_table, read_trace
from shoal.job.file import Job
from shoal.job.running import AnyJob, job_of
from shoal.run.frame import ChunkSource, Gathered, refuse_wall_clock, seed_bytes
from shoal.run.frame_kinds import chunks_of
from shoal.run.pipeline import Pipeline
from shoal.run.result import Result
from shoal.spec.policy import Policy
from shoal.spec.schema import Schema

__all__ = ["attack", "rerun_of", "rerun_with", "setting_of"]


def attack(
    job: AnyJob,
    published: Data,
    /,
    *,
    original: Data,
    trace: Data = None,
    attacks: str | Sequence[str] | None = None,
    known: str | Sequence[str] | None = None,
    control: float | None = None,
    targets: int = 1000,
    seed: int = 0,
    format: str | None = None,  # noqa: A002
    watch: Callable[[str], None] | None = None,
) -> AttackReport:
    """Attack a release on purpose, and report what was achieved.

    Parameters
    ----------
    job
        A `Job`, the path of a job file, or its sections as a dictionary.
    published
        The output: a file or folder, a DataFrame of pandas or polars, a Table or RecordBatch of
        Arrow, a list of dicts; or a `Result`, which brings its trace.
    original, trace
        The input of the run and its private trace, as frames or files. Without the trace some
        attacks can't be judged.
    attacks
        The names of the attacks, or one of them; None: all. See `shoal.attacks.names`.
    known
        The quasi attributes that the attacker knows, as a further grade of knowledge.
    control
        The share of people for the control: the job is run again without them, in memory.
    targets
        The most people that each attack is made on.
    seed
        For the choice of people, and for the run without the control.
    format
        The format of a published file; None: by its name.
    watch
        Called with the name of each attack before it begins.

    Returns
    -------
    AttackReport
        One result for each attack and grade of knowledge; ``print`` it.

    >>> job = {
    ...     "schema": {"subject": "name", "quasi": {"age": {"range": [0, 120], "step": 1}}},
    ...     "policy": {"k": 2, "delay": {"rows": 100}},
    ...     "algorithm": {"name": "castle"},
    ... }
    >>> people = pa.table({"name": ["Ann", "Bob", "Cem", "Dan"], "age": [31, 33, 64, 68]})
    >>> rows = rerun_of(Job.from_dict(job))(people, 1)
    >>> report = attack(
    ...     job, rows.published, original=people, trace=rows.trace, attacks=["linking"]
    ... )
    >>> report.of("linking")[0].success
    Share(successes=2.0, attempts=4)
    """
    job, _ = job_of(job)
    if trace is None and isinstance(published, Result):
        trace = published.trace
    lines = NO_TRACE if trace is None else read_trace(trace, job)
    setting = setting_of(job, published, original=original, trace=lines.rows, format=format)
    setting = dataclasses.replace(
        setting, known=None if known is None else listed(known), n_targets=targets, seed=seed
    )
    report = make_attacks(setting, attacks, control=control, watch=watch)
    if lines.rows is not None and not lines.is_whole(setting.published):
        why = "the trace lacks lines of published rows, and only people with lines were attacked"
        return dataclasses.replace(
            report, results=[_unjudged(each, why) for each in report.results]
        )
    parts, unknown = parts_of(job, lines.changes)
    return as_promised(report, job.policy, parts, unknown)


def as_promised(
    report: AttackReport, policy: Policy, parts: Sequence[Part], unknown: Sequence[Verdict]
) -> AttackReport:
    """Judge no attack by a promise under which not all rows were published.

    The bounds are those of ``policy``, the present promise. ``parts`` and ``unknown`` are what is
    known about former ones.
    """
    if not unknown and all(part.policy == policy for part in parts):
        return report
    why = (
        "the promise of the job has changed, and the bound is that of the present one, under "
        "which not all rows were published"
    )
    return dataclasses.replace(report, results=[_unjudged(each, why) for each in report.results])


def _unjudged(result: AttackResult, why: str) -> AttackResult:
    if result.bound is None or result.unverifiable is not None:
        return result
    return dataclasses.replace(result, unverifiable=why)


def setting_of(
    job: AnyJob,
    published: Data,
    *,
    original: Data,
    trace: Data = None,
    format: str | None = None,  # noqa: A002
) -> Setting:
    """Read what an attack needs, from files or frames."""
    job, _ = job_of(job)
    if isinstance(published, Result):
        trace = published.trace if trace is None else trace
        published = published.output if published.frame is None else published.frame
    output = read_published(job, published, format)
    given, rows = read_table("original", original, job.schema.columns, job=job)
    lines = None if trace is None else read_trace(trace, job).rows
    numeric: Numeric = job.publish.numeric
    suppressed: Suppressed = job.publish.suppressed
    order: Order = job.publish.order
    return Setting(
        job.schema,
        job.policy,
        output,
        given,
        lines,
        original_rows=rows,
        numeric=numeric,
        suppressed=suppressed,
        order=order,
        algorithm=job.anonymizer.name,
        knobs=dataclasses.asdict(job.anonymizer),
        pseudonym=job.publish.pseudonym is not None,
        rotate=None if job.publish.pseudonym is None else job.publish.pseudonym.rotate,
        rerun=rerun_of(job),
    )


def rerun_of(job: Job) -> Rerun:
    """Return a function that runs a job in memory, over other rows and under a seed.

    Nothing is written: neither the output of the job nor its quarantine file.
    """

    return rerun_with(job.schema, job.policy, job.anonymizer, job.publish)


def rerun_with(schema: Schema, policy: Policy, anonymizer: Anonymizer, publish: Publish) -> Rerun:
    """Return the same for the parts of a job."""

    def rerun(rows: pa.Table, seed: int) -> Run:
        refuse_wall_clock(schema, policy)
        pipeline = Pipeline(schema, policy, anonymizer, publish, seed_bytes(seed))
        _, chunks = chunks_of(rows, schema.columns, schema.payload, key="original")
        published, lines = Gathered(), Gathered()
        pipeline.run(
            ChunkSource(chunks, schema.columns),
            published.open,
            on_bad=_ignored,
            open_trace=lines.open,
            undo_pseudonyms=True,
        ).execute()
        return Run(published.table(), lines.table())

    return rerun


def _ignored(bad: list[BadRow]) -> None:
    """Leave bad rows out: the trace has them."""
