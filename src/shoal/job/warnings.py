"""Warn about choices of a job that are allowed but weaken something."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.arrow.release import Publish
from shoal.engine.base import Anonymizer
from shoal.spec.policy import Closeness, EuclideanCloseness, KAnonymity, Policy, Window
from shoal.spec.schema import Schema

__all__ = ["SEED_SET", "warnings_of"]

#: Only for internal reports: readers of a release must not learn that its seed can be guessed.
SEED_SET = "run.seed makes every random choice predictable: for tests only"


def warnings_of(
    schema: Schema, policy: Policy, anonymizer: Anonymizer, publish: Publish, seed: int | None
) -> Iterator[str]:
    """Yield warnings about a job, as sentences."""
    if policy.per_value:
        yield from _of_values(schema, policy, anonymizer, publish)
    elif _has_groups_of_one(policy):
        yield (
            "policy.k = 1 doesn't hide whose row it is: a person may be a group of their "
            "own, with exact values"
            if any(isinstance(criterion, KAnonymity) for criterion in policy.criteria)
            else "policy.k is missing, which means k = 1: a person may be a group of their own"
        )
    if schema.keep and not policy.per_value and not _promises_nothing(policy):
        yield _of_kept_columns(schema)
    if schema.each_row:
        yield (
            "each row counts as another person: if people have several rows, groups may have "
            "fewer people than rows (schema.subject)"
        )
    if policy.missing == "maybe" and not policy.per_value:
        yield (
            'policy.missing = "maybe" leaves missing values missing: an attacker who knows which '
            'values of a person are missing can find them in their group; "extended" '
            "prevents that"
        )
        if not anonymizer.minds_gaps:
            yield (
                f"'{anonymizer.name}' may group a complete row with rows that lack nearly "
                "everything, and so publish it exactly; 'idea' groups rows that lack the same "
                "values"
            )
    for criterion in policy.measured:
        if isinstance(criterion, EuclideanCloseness):
            if criterion.t**2 >= 2:
                yield "policy.t.euclid promises nothing from √2 on: no group is farther than that"
        elif isinstance(criterion, Closeness) and criterion.t >= 1:
            yield "policy.t promises nothing from 1 on: no group is farther than that (20 % is 0.2)"
    if seed is not None:
        yield SEED_SET
    if publish.order == "arrival":
        yield (
            'publish.order = "arrival" lets an attacker who knows when a person came find their '
            "row, and a group leaves row by row: before its last row it shows fewer than k people"
        )
    yield from anonymizer.notes(policy)
    if getattr(anonymizer, "kept", 0):
        yield from _of_reuse(anonymizer)


def _has_groups_of_one(policy: Policy) -> bool:
    return policy.k == 1 and all(criterion.l < 2 for criterion in policy.diversity)


def _promises_nothing(policy: Policy) -> bool:
    return _has_groups_of_one(policy) and not policy.measured


def _of_kept_columns(schema: Schema) -> str:
    """Warn about columns that tell the people of a group apart."""
    return (
        f"schema.keep publishes {', '.join(schema.keep)} unchanged, and no promise covers that: "
        "whoever knows this of a person looks only at the rows of a group that have the same "
        "value. These may be of fewer than k people, or agree on a sensitive value. Name such a "
        "column under schema.quasi, or leave it out; `shoal attack` measures what it reveals"
    )


def _of_reuse(anonymizer: Anonymizer) -> Iterator[str]:
    """Warn about rows that join groups which were published before."""
    cost = (
        "an attacker who knows when somebody came can tell which published row is theirs, for "
        "every row that leaves alone into a kept group"
    )
    if getattr(anonymizer, "joins", "together") == "alone":
        yield (
            f'algorithm.joins = "alone" lets every row that reuses a group leave alone: {cost}; '
            "kept = 0 prevents it"
        )
    else:
        yield (
            f"algorithm.kept lets rows join groups that were published before: {cost}. They wait "
            "for other rows, and those that leave alone are counted; but anyone who also knows a "
            "person's values may find the row among these others. kept = 0 prevents both"
        )
    if getattr(anonymizer, "reuse", "random") == "best":
        yield 'algorithm.reuse = "best" reveals more about reused rows; "random" doesn\'t'


def _of_values(
    schema: Schema, policy: Policy, anonymizer: Anonymizer, publish: Publish
) -> Iterator[str]:
    if policy.z == 1:
        yield "policy.z = 1 promises nothing: every value is published"
    if schema.keep:
        yield (
            f"schema.keep publishes {', '.join(schema.keep)} as it is: under "
            "z-anonymity no group protects it. Name it under schema.quasi to protect it"
        )
    if getattr(anonymizer, "count", "residual") == "plain":
        yield (
            'algorithm.count = "plain" publishes a general value that is popular because of one '
            'finer value also for another that is rare, and reveals it; "residual" doesn\'t'
        )
    length = policy.window.seconds or policy.window.rows if isinstance(policy.window, Window) else 0
    if publish.pseudonym is not None and publish.pseudonym.rotate > length:
        yield (
            "publish.pseudonym.rotate is longer than policy.window: all that is published about "
            "a person in one period can be combined, and is shared with fewer others"
        )
