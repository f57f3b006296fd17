"""Start a job again that was changed: finish what it holds under the former promise, then go over.

The former job decides all held rows, so that each leaves under the promise that it was taken in
under. Then a checkpoint of the changed job is written, whose engine is new. So no group, box or
count of the former promise is used under the new one, and every row of input and output belongs to
one promise.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from shoal.errors import CheckpointError, ResourceError
from shoal.events import event
from shoal.io.connector import InputEndpoint, OutputEndpoint
from shoal.job.changes import KeyChange, changes_between
from shoal.job.file import Job
from shoal.job.live_audit import live_audit_of
from shoal.job.outputs import output_of, trace_of
from shoal.job.private_outputs import QuarantineSink
from shoal.run.recovery import Recovery
from shoal.run.runner import change_job
from shoal.run.state.checkpoint import Checkpoint, job_of, read_body, read_checkpoint_heading
from shoal.run.state.folder import CHECKPOINT, numbers_of, path_of
from shoal.run.state.heading import DamagedError, Heading
from shoal.run.state.seal import Seal
from shoal.run.state.store import CHANGEABLE, read_file
from shoal.spec.policy import Window

__all__ = ["follow_changes", "n_changes", "newest_checkpoint"]

log = logging.getLogger("shoal.run.change")


class Found(NamedTuple):
    """A checkpoint, and its heading."""

    heading: Heading
    checkpoint: Checkpoint


def newest_checkpoint(folder: Path, seal: Seal | None, *, fall_back: bool = False) -> Found | None:
    """Return the newest checkpoint of a folder, of whatever job; None if there is none to read.

    Raises
    ------
    CheckpointError
        If it isn't sealed as it should be.
    """
    if not folder.is_dir():
        return None
    for number in list(reversed(numbers_of(folder, CHECKPOINT)))[: 2 if fall_back else 1]:
        path = path_of(folder, CHECKPOINT, number)
        try:
            data = read_file(path)
            heading = read_checkpoint_heading(path, data, number)
            return Found(heading, read_body(path, data, heading, seal))
        except (DamagedError, ResourceError):
            # Whoever resumes from it says what is wrong.
            continue
    return None


def n_changes(folder: Path) -> int | None:
    """Return how often a job has changed, by what its newest checkpoint says in clear.

    None: there is none, or its heading can't be read.
    """
    try:
        number = numbers_of(folder, CHECKPOINT)[-1]
        path = path_of(folder, CHECKPOINT, number)
        heading = read_checkpoint_heading(path, read_file(path), number)
    except (CheckpointError, ResourceError, IndexError):
        return None
    return int(heading.more.get("changes", 0))


def follow_changes(
    job: Job,
    recovery: Recovery | None,
    source: InputEndpoint,
    sink: OutputEndpoint,
    trace: str | None,
    *,
    accept_weaker: bool = False,
    undo_pseudonyms: bool = False,
    say: Callable[[str], None] = lambda text: None,
) -> Recovery | None:
    """Go over to a job that was changed since its last run; return what it resumes from.

    Parameters
    ----------
    job, recovery
        The job as it is now, and where it keeps its state.
    source, sink, trace
        Where rows come from, where they go to, and the file of the trace.
    accept_weaker
        Whether it may promise less than before.
    undo_pseudonyms
        Whether a trace may be written although it links pseudonyms to subjects.
    say
        Called with a sentence about what has changed.

    Raises
    ------
    CheckpointError
        If what has changed can't, or the job promises less and that isn't accepted. Nothing was
        published or changed then.
    """
    if recovery is None:
        return None
    former = _former(job, recovery)
    if former is None:
        return recovery
    before = dataclasses.replace(
        recovery,
        job={**recovery.job, **{name: former.digests[name] for name in CHANGEABLE}},
        sections=former.sections,
        followed_by=recovery.job_digest,
    )
    changes = changes_between(former, job)
    if not changes:
        # The same in other words: it keeps the name that it has.
        return dataclasses.replace(before, followed_by=None)
    _refuse(job, former, changes, recovery.folder, accept_weaker=accept_weaker)
    text = ", ".join(change.text for change in changes)
    with contextlib.ExitStack() as stack:
        rows = source.open(job.schema.columns, replay=True)
        stack.callback(rows.close)
        bad_rows = QuarantineSink(job, rows, before)
        stack.callback(bad_rows.close)
        inspect = live_audit_of(former)
        last = former.pipeline.run(
            rows,
            output_of(former, sink, force=False),
            on_bad=bad_rows,
            open_trace=trace_of(former, trace, before, force=False),
            recovery=before,
            inspect=inspect,
            finish=True,
            undo_pseudonyms=undo_pseudonyms,
        )
        last.execute()
        change_job(
            job.pipeline, rows, before.job, recovery, _noted(former, changes),
            with_subject=trace is not None or inspect is not None,
        )  # fmt: skip
    event(log, logging.INFO, "job changed", keys=len(changes), weaker=_weaker(changes) != [])
    left = (
        "No row was held: all that came had left under the former promise"
        if former.policy.per_value
        else "Its held rows have left under the former promise"
    )
    say(f"the job was changed: {text}. {left}")
    return recovery


def _former(job: Job, recovery: Recovery) -> Job | None:
    """Return the job that the state is of, if it is another one that this can go over from."""
    found = newest_checkpoint(recovery.folder, recovery.seal, fall_back=recovery.fall_back)
    if found is None:
        return None
    then = job_of(found.heading)
    changed = {n for n in then.keys() | recovery.job.keys() if then.get(n) != recovery.job.get(n)}
    sections = found.checkpoint.facts.get("sections")
    if not changed or changed - CHANGEABLE or not sections:
        # Nothing to do; or the run says what isn't as it was.
        return None
    return job.under(sections, {**job.digests, **{name: then[name] for name in CHANGEABLE}})


def _refuse(
    job: Job, former: Job, changes: Sequence[KeyChange], folder: Path, *, accept_weaker: bool
) -> None:
    never = [change.text for change in changes if change.direction == "never"]
    if never:
        raise CheckpointError(
            f"{folder}: {', '.join(never)} can't change in a job that resumes. Restore the former "
            "job, or drain with it and start again with another folder and another output: "
            "docs/checkpoints.md says from where."
        )
    if "table" in (job.anonymizer.publishes, former.anonymizer.publishes):
        table = former if former.anonymizer.publishes == "table" else job
        raise CheckpointError(
            f"{folder}: {changes[0].text} can't change in a job that resumes: "
            f"'{table.anonymizer.name}' publishes a whole table at once. Restore the former job, "
            "or start again with another folder and another output: docs/checkpoints.md says from "
            "where."
        )
    counts_rows = any(
        isinstance(window, Window) and window.seconds is None
        for window in (former.policy.window, job.policy.window)
    )
    if job.publish.pseudonym is not None and counts_rows:
        raise CheckpointError(
            f"{folder}: {changes[0].text} can't change in a job that resumes: its pseudonyms "
            "change after a number of rows, which would begin again. Drain with the former "
            "job, and start again with another folder and another output: docs/checkpoints.md says "
            "from where."
        )
    weaker = _weaker(changes)
    if weaker and not accept_weaker:
        raise CheckpointError(
            f"{folder}: the job promises less than before, or what can't be compared: "
            f"{', '.join(weaker)}. Restore the former job; or start with --accept-weaker: what was "
            "taken in until now leaves under the former promise, and what comes under the new one."
        )


def _weaker(changes: Sequence[KeyChange]) -> list[str]:
    return [change.text for change in changes if change.direction == "weaker"]


def _noted(former: Job, changes: Sequence[KeyChange]) -> dict[str, Any]:
    return {
        "time": time.time(),
        "what": [change.text for change in changes],
        "weaker": _weaker(changes) != [],
        "sections": dict(former.sections),
    }
