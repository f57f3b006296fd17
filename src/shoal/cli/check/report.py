"""What a check found, for people and for programs. It has columns and counts, never a value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from shoal.cli.check.trial import ColumnCounts, Trial
from shoal.errors import DataError
from shoal.job import Job
from shoal.metrics.bad_rows import hint, listed
from shoal.metrics.shortfall import promise_of, span_of
from shoal.metrics.unpublished import why_nothing
from shoal.metrics.wording import percent
from shoal.run.bad_row_limit import too_many

__all__ = ["Report", "report_of"]

#: The share of suppressed rows from which a check warns.
MANY_SUPPRESSED = 0.1


@dataclass(frozen=True, slots=True)
class Report:
    """The figures of a check as plain values, and its exit code.

    ``problems`` are sentences about why the job can't work on this data; ``warnings`` are those of
    the job and of the data.
    """

    figures: dict[str, Any]
    warnings: tuple[str, ...]
    problems: tuple[str, ...]

    @property
    def exit_code(self) -> int:
        """0 if the job works on this data, 3 if it can't."""
        return DataError.exit_code if self.problems else 0

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON."""
        return self.figures | {
            "warnings": list(self.warnings),
            "problems": list(self.problems),
            "verdict": "fails" if self.problems else "works",
            "exit_code": self.exit_code,
        }

    def lines(self) -> Iterator[str]:
        """Yield everything in words, for a terminal."""
        rows = self.figures["rows"]
        which = "all of the input" if rows["whole"] else "the first of the input (--all reads all)"
        yield f"{rows['read']:,} rows read, {which}; nothing is published"
        yield from _column_lines(self.figures["columns"])
        yield from _row_lines(rows, self.figures["reasons"])
        yield from _people_lines(self.figures["people"])
        yield from _promise_lines(self.figures["promise"])
        for warning in self.warnings:
            yield f"warning: {warning}"
        for problem in self.problems:
            yield f"problem: {problem}"
        yield (
            "The job can't work on these rows." if self.problems else "The job works on these rows."
        )


def report_of(job: Job, trial: Trial, *, is_whole: bool) -> Report:
    """Judge a trial that is finished."""
    summary = trial.summary
    figures: dict[str, Any] = {
        "rows": {
            "read": summary.n_in,
            "whole": is_whole,
            "quarantined": summary.n_quarantined,
            "share": summary.n_quarantined / summary.n_in if summary.n_in else None,
        },
        "reasons": [
            {
                "reason": reason,
                "column": trial.column_of(reason),
                "rows": n,
                "share": n / summary.n_in,
            }
            for reason, n in summary.bad_rows.as_dict().items()
        ],
        "columns": [_column(counts) for counts in trial.columns.values()],
        "people": _people(job, trial),
        "promise": _promise(job, trial),
    }
    warnings = (*job.warnings, *trial.warnings, *_warnings(job, trial, is_whole=is_whole))
    return Report(figures, warnings, tuple(_problems(job, trial)))


def _column(counts: ColumnCounts) -> dict[str, Any]:
    return {
        "name": counts.name,
        "role": counts.role,
        "types": sorted(counts.types),
        "missing": counts.n_missing,
        "problems": dict(counts.problems.most_common()),
    }


def _people(job: Job, trial: Trial) -> dict[str, Any]:
    by_rows = job.schema.each_row
    n_usable = trial.summary.n_in - trial.summary.n_quarantined
    found = trial.uniqueness()
    k = job.policy.z or job.policy.k
    return {
        "by_rows": by_rows,
        "count": n_usable if by_rows else trial.people.n_subjects,
        "most_rows": (1 if n_usable else 0) if by_rows else trial.people.most_rows,
        "n_usable": n_usable,
        "n_compared": trial.n_compared,
        "unique": None if found is None else found.share,
        "k": k,
        "below_k": None if found is None else found.n_below(k) / found.n_subjects,
    }


def _promise(job: Job, trial: Trial) -> dict[str, Any]:
    summary, policy = trial.summary, job.policy
    n_decided = summary.n_published + summary.suppression.count
    return {
        "promise": promise_of(policy),
        "within": None if policy.delay is None and not policy.per_value else span_of(policy),
        "published": summary.n_published,
        "suppressed": summary.suppression.count,
        "share": summary.n_published / n_decided if n_decided else None,
        "groups": None if policy.per_value else summary.groups.as_dict(),
        "loss": summary.loss.published,
    }


def _problems(job: Job, trial: Trial) -> Iterator[str]:
    summary, bad_rows = trial.summary, job.bad_rows
    n_bad = summary.n_quarantined
    if bad_rows.action == "stop" and n_bad:
        yield (
            f"a run would end at the first of {n_bad:,} bad rows, because of "
            'bad_rows.action = "stop".'
        )
    elif trial.too_many is not None and n_bad < summary.n_in:
        what = too_many(*trial.too_many, bad_rows.limit)
        text = f"a run would end at row {trial.too_many[1] - 1:,}: {what}."
        yield " ".join(filter(None, (text, hint(summary.bad_rows.reasons))))
    why = why_nothing(job.policy, summary, trial.shortfall)
    if why is not None:
        yield why.replace("nothing was published", "nothing would be published", 1)


def _warnings(job: Job, trial: Trial, *, is_whole: bool) -> Iterator[str]:
    summary = trial.summary
    if trial.by_wall:
        yield (
            "policy.delay.seconds counts the time that passes while rows arrive, which the data "
            "doesn't show: here no time passed between them"
        )
    n_decided = summary.n_published + summary.suppression.count
    if summary.n_published and summary.suppression.count > MANY_SUPPRESSED * n_decided:
        yield (
            f"{percent(summary.suppression.count / n_decided)} of the rows would be suppressed: a "
            "longer delay, a weaker promise or fewer quasi attributes publish more"
        )
    if not is_whole and job.anonymizer.publishes == "table":
        yield "the whole table decides what is published, and this is a part of it (--all)"
    delay = job.policy.delay
    if not is_whole and delay is not None and summary.n_in <= (delay.rows or 0):
        yield "fewer rows were read than policy.delay holds: the rows after them count, too (--all)"
    if trial.n_compared < summary.n_in - summary.n_quarantined:
        yield f"people are compared over the first {trial.n_compared:,} rows that can be used"


# -- for people ------------------------------------------------------------------------------------


def _column_lines(columns: list[dict[str, Any]]) -> Iterator[str]:
    width = max((len(column["name"]) for column in columns), default=0)
    for column in columns:
        about = [" or ".join(column["types"]) or "no rows"]
        if column["missing"]:
            about.append(f"{column['missing']:,} missing")
        about += [
            f"{n:,} {_short(reason, column['name'])}" for reason, n in column["problems"].items()
        ]
        yield f"  {column['name']:<{width}}  {column['role']:<9}  {', '.join(about)}"


def _short(reason: str, name: str) -> str:
    """Return what is wrong with values of a column, without the name of the column."""
    what = reason.removeprefix(f"{name} ")
    for verb, word in (("isn't ", "not "), ("is ", ""), ("has ", "with ")):
        if what.startswith(verb):
            return word + what.removeprefix(verb)
    return what


def _row_lines(rows: dict[str, Any], reasons: list[dict[str, Any]]) -> Iterator[str]:
    n_bad = rows["quarantined"]
    text = f"quarantine: {n_bad:,} rows, {percent(rows['share'])} of those read"
    if reasons:
        text += f": {listed({reason['reason']: reason['rows'] for reason in reasons})}"
    yield text


def _people_lines(people: dict[str, Any]) -> Iterator[str]:
    if people["by_rows"]:
        yield f"people: each of {people['count']:,} rows counts as another person"
    else:
        mean = people["n_usable"] / max(1, people["count"])
        yield (
            f"people: {people['count']:,} different, with {mean:.1f} rows each on average and "
            f"{people['most_rows']:,} at most"
        )
    if people["unique"] is not None:
        text = f"uniqueness: {percent(people['unique'])} of them are unique by their quasi values"
        if people["k"] > 1:
            text += (
                f", {percent(people['below_k'])} share them with fewer than {people['k']:,} people"
            )
        yield text


def _promise_lines(promise: dict[str, Any]) -> Iterator[str]:
    within = "" if promise["within"] is None else f" within {promise['within']}"
    text = f"promise: {promise['promise']}{within}"
    if promise["share"] is None:
        yield f"{text}: no row to test it on"
        return
    yield (
        f"{text}: {promise['published']:,} rows would be published, "
        f"{promise['suppressed']:,} suppressed ({percent(1 - promise['share'])})"
    )
    groups, loss = promise["groups"], promise["loss"]
    if loss is not None:
        in_groups = f"{groups['count']:,} groups, " if groups is not None else ""
        yield f"loss: {in_groups}{loss:.3f} of published rows on average"
