"""What a job allows and is warned about."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.arrow.release import Publish
from shoal.engine.base import Anonymizer
from shoal.spec.policy import Policy, TCloseness, Window
from shoal.spec.schema import Schema

__all__ = ["warnings_of"]


def warnings_of(
    schema: Schema, policy: Policy, anonymizer: Anonymizer, publish: Publish, seed: int | None
) -> Iterator[str]:
    """What whoever runs a job should know, sentence by sentence."""
    if policy.per_value:
        yield from _of_values(schema, policy, anonymizer, publish)
    if schema.each_row:
        yield (
            "each row is taken for a person of its own: if people come back, groups may have "
            "fewer people than rows (schema.subject)"
        )
    if policy.missing == "maybe" and not policy.per_value:
        yield (
            'policy.missing = "maybe" leaves missing values missing: whoever knows which values of '
            'somebody are missing can tell them apart from others of their group; "extended" '
            "prevents that"
        )
        if not anonymizer.minds_gaps:
            yield (
                f"'{anonymizer.name}' may group a complete row with rows that lack nearly "
                "everything, and so publish it exactly; 'idea' puts those together who lack the "
                "same"
            )
    for criterion in policy.measured:
        if isinstance(criterion, TCloseness) and criterion.t >= 1:
            yield "policy.t promises nothing from 1 on: no group is farther than that (20 % is 0.2)"
    if seed is not None:
        yield "run.seed makes every random choice predictable: for tests only"
    if publish.order == "arrival":
        yield (
            'publish.order = "arrival" lets whoever knows when somebody came find their row, and '
            "a group leaves row by row: until its last one has, it shows fewer than k people"
        )
    if getattr(anonymizer, "reuse", "random") == "best":
        yield 'algorithm.reuse = "best" narrows reused rows down; "random" doesn\'t'


def _of_values(
    schema: Schema, policy: Policy, anonymizer: Anonymizer, publish: Publish
) -> Iterator[str]:
    if policy.z == 1:
        yield "policy.z = 1 promises nothing: every value is published"
    if schema.keep:
        yield (
            f"schema.keep publishes {', '.join(schema.keep)} as it is, whoever has it: under "
            "z-anonymity no group protects it. Name it under schema.quasi to have it decided"
        )
    if getattr(anonymizer, "count", "residual") == "plain":
        yield (
            'algorithm.count = "plain" publishes a general value that is popular because of one '
            'finer value for another that is rare, and betrays it; "residual" doesn\'t'
        )
    length = policy.window.seconds or policy.window.rows if isinstance(policy.window, Window) else 0
    if publish.pseudonym is not None and publish.pseudonym.rotate > length:
        yield (
            "publish.pseudonym.rotate is longer than policy.window: what is published about "
            "somebody in one period can be put together, and shared with fewer others"
        )
