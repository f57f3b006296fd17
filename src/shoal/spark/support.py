"""Check what a job on Spark can promise, and with how many shards."""

from __future__ import annotations

from shoal.errors import JobError, Problem
from shoal.job import Job
from shoal.spark.partition_map import MOST_SHARDS

__all__ = ["check_support"]


def check_support(job: Job, n_shards: int) -> None:
    """Refuse promises that several shards, or any cluster, can't keep.

    Raises
    ------
    JobError
        With all problems found.
    """
    problems = []
    if not isinstance(n_shards, int) or isinstance(n_shards, bool) or not (
        1 <= n_shards <= MOST_SHARDS
    ):  # fmt: skip
        what = f"must be a whole number from 1 to {MOST_SHARDS:,}"
        problems.append(Problem("spark.shards", what, repr(n_shards)))
    if job.checkpoints is None:
        fix = 'Set run.checkpoint, for example { folder = "/shared/state" }'
        what = "is missing: shards keep their state in a folder that all machines reach"
        problems.append(Problem("run.checkpoint", what, None, fix))
    if job.audit_sample:
        what = "judges groups in the writing thread, which there is none of on Spark"
        fix = "Leave it out, and use `shoal audit`"
        problems.append(Problem("audit.sample", what, None, fix))
    if job.private is not None:
        what = "isn't for Spark, where a trace and a quarantine are folders of their own"
        problems.append(Problem("private", what, None, "Leave the section out"))
    if job.anonymizer.publishes == "table":
        problems.append(
            Problem(
                "algorithm.name",
                f"'{job.anonymizer.name}' publishes a whole table, once, and a stream has no end",
                None,
                "Choose an algorithm for streams, or use `shoal run`",
            )
        )
    elif n_shards != 1:
        problems += _of_several(job)
    if problems:
        raise JobError(problems)


def _of_several(job: Job) -> list[Problem]:
    """The promises that one shard keeps and several don't."""
    problems = []
    if job.policy.measured:
        names = ", ".join(sorted({criterion.name for criterion in job.policy.measured}))
        problems.append(
            Problem(
                "policy",
                f"{names}: is measured against all rows, and a shard sees only its own part, "
                "whose values are distributed differently",
                None,
                "Set spark.shards = 1, or promise k and l alone",
            )
        )
    if job.publish.order == "arrival":
        problems.append(
            Problem(
                "publish.order",
                "several shards don't wait for each other",
                "'arrival'",
                "Set spark.shards = 1, or leave it out",
            )
        )
    return problems
