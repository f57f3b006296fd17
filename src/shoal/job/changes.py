"""Which keys of a job can change while it lives, and what a change means for the promise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from shoal.engine.base import Anonymizer
from shoal.job.file import Job
from shoal.job.form import PolicyForm, shortened
from shoal.job.toml import inline
from shoal.spec.strictness import Direction, direction

__all__ = ["RULES", "KeyChange", "Rule", "changes_between"]

#: When a key can change. `promise`: at a restart, and if it promises less, only when asked to.
Rule = Literal["any time", "promise", "restart", "never"]

#: The rule of each key, or of all keys of a section, with the reason. Spark's keys have none: a job
#: on Spark can't change.
RULES: dict[str, tuple[Rule, str]] = {
    "schema": ("never", "held and published rows have these columns"),
    "publish": ("never", "the output looks like this from its first row on"),
    "input": ("never", "but how it is reached (brokers, keys) may change any time"),
    "output": ("never", "but how it is reached (brokers, keys) may change any time"),
    "policy.k": ("promise", "more is stricter"),
    "policy.z": ("promise", "more is stricter; a job can't change from groups to z or back"),
    "policy.l": ("promise", "more is stricter, in the same form"),
    "policy.t": ("promise", "less is stricter, by the same distance"),
    "policy.beta": ("promise", "less is stricter, in the same form"),
    "policy.disclosure": ("promise", "less is stricter"),
    "policy.window": ("promise", "under z a shorter one is stricter, else none is"),
    "policy.delay": ("promise", "less is stricter"),
    "policy.lateness": ("restart", "it decides which rows are accepted"),
    "policy.ahead": ("restart", "it decides which rows are accepted"),
    "policy.missing": ("never", "it decides how the output shows missing values"),
    "algorithm": ("restart", "the name and every knob that decides: `workers` of `tide` don't"),
    "algorithm.count": ("promise", "`residual` is stricter"),
    "algorithm.probability": ("promise", "more is stricter"),
    "algorithm.k": ("promise", "more is stricter, with a `probability`"),
    "run.name": ("never", "if the output is a topic, whose broker stores it, or `bad_rows.file` is "
        "left out; otherwise any time"),
    "run.seed": ("any time", "a run that resumes doesn't use it"),
    "run.checkpoint.folder": ("never", "another folder is another job"),
    "run.checkpoint.every": ("any time", ""),
    "run.checkpoint.seal": ("any time", "where the key is; `shoal checkpoint rekey` changes it"),
    "bad_rows.action": ("any time", "`stop` ends a run at a bad row that is replayed, too"),
    "bad_rows.file": ("never", "it is resumed at a mark; left out, it is named after the job"),
    "bad_rows.limit": ("any time", ""),
    "private.seal": ("never", "files resume at a mark: nor can the section be added or removed"),
    "private.file_megabytes": ("any time", ""),
    "private.file_hours": ("any time", ""),
    "private.keep_megabytes": ("any time", ""),
    "private.keep_days": ("any time", ""),
    "audit.sample": ("any time", "but not from 0 or to 0: held rows carry their subject for it. "
        "Less may leave out a group that has ended a run"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class KeyChange:
    """A key of a job that means something else than before.

    >>> KeyChange("policy.k", "10", "20", "stricter").text
    'policy.k 10 → 20'
    """

    key: str
    before: str
    after: str
    direction: Direction

    @property
    def text(self) -> str:
        """The change in words."""
        return f"{self.key} {self.before} → {self.after}"


def changes_between(former: Job, now: Job) -> list[KeyChange]:
    """Return the keys of promise and algorithm that mean something else, without those in form."""
    return [*_of_policy(former, now), *_of_algorithm(former, now)]


def _of_policy(former: Job, now: Job) -> Iterator[KeyChange]:
    then, there = (job.sections.get("policy", {}) for job in (former, now))
    for key in PolicyForm.model_fields:
        found = direction(key, former.policy, now.policy)
        if found is not None:
            yield KeyChange(f"policy.{key}", _said(then, key), _said(there, key), found)


def _of_algorithm(former: Job, now: Job) -> Iterator[KeyChange]:
    if former.anonymizer == now.anonymizer:
        return
    then, there = (job.sections.get("algorithm", {}) for job in (former, now))
    for key in sorted(then.keys() | there.keys()):
        if then.get(key) != there.get(key):
            found = _direction(key, former.anonymizer, now.anonymizer)
            yield KeyChange(f"algorithm.{key}", _said(then, key), _said(there, key), found)


def _direction(knob: str, former: Anonymizer, now: Anonymizer) -> Direction:
    before, after = (one.promised_by_knobs().get(knob, 0.0) for one in (former, now))
    if before == after:
        return "neutral"
    return "stricter" if after > before else "weaker"


def _said(section: Mapping[str, Any], key: str) -> str:
    return shortened(inline(section[key])) if key in section else "not set"
