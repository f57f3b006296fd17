"""Part 6: what the figures rest on, and what no promise covers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from shoal.report.page import Section, bullets, paragraph
from shoal.report.release import Release
from shoal.spec.hierarchy import Range

__all__ = ["measure", "show"]

TITLE = "6. Assumptions, and what isn't covered"


def measure(release: Release) -> dict[str, Any]:
    """Return sentences."""
    return {
        "assumptions": list(_assumptions(release)),
        "not_covered": list(_not_covered(release)),
        "warnings": [*release.warnings, *release.internal_warnings],
    }


def show(figures: dict[str, Any]) -> Section:
    """Return the part as a section."""
    parts: list[Any] = [
        Section("Assumptions", [bullets(figures["assumptions"])]),
        Section("What isn't covered", [bullets(figures["not_covered"])]),
    ]
    if figures["warnings"]:
        said = paragraph("The job makes choices that weaken the promise:")
        parts.append(Section("Warnings of the job", [said, bullets(figures["warnings"])]))
    return Section(TITLE, parts)


def _assumptions(release: Release) -> Iterator[str]:
    schema = release.schema
    yield (
        "The attacker is the recipient, or anyone the release is passed on to. They know the "
        "algorithm and the job without its seed, all that was released and when, the quasi values "
        "of anybody they look for, that this person has a row, and when it came."
    )
    yield (
        f"What an outsider may know is exactly the quasi attributes: "
        f"{', '.join(each.name for each in schema.quasi)}. What the job calls sensitive or keeps "
        "is taken for unknown to the attacker."
    )
    if schema.each_row:
        yield "Nobody has more than one row: the job names no subject."
    else:
        yield (
            f"One value of {schema.subject} is one person, and one person has one value. Somebody "
            "with two ids counts as two people."
        )
    yield "The machine, its input, the trace, the quarantine and the seed are out of reach."
    if release.policy.measured:
        yield (
            "How sensitive values are spread in the whole window may be known: only what a group "
            "adds to that is bounded."
        )


def _not_covered(release: Release) -> Iterator[str]:
    schema, policy = release.schema, release.policy
    if policy.per_value:
        yield (
            "Combinations: each published value is that of at least z people, a row of several "
            "values may be that of one person. Rows, and sets of values of one person, can be "
            "unique."
        )
        yield (
            "Invented people: anyone who can add rows under other names learns whether a value was "
            "exposed by anybody else."
        )
        yield "Time: rows leave at the moment at which they arrive, in their order."
        if release.options.get("pseudonym"):
            yield (
                "Pseudonyms: within one period all that is published about a person can be "
                "combined."
            )
        return
    yield (
        "Linkability over time: a person who returns is in several groups. Whoever knows which "
        "groups these are can intersect their boxes and their sensitive values. Each group keeps "
        "the promise by itself; nothing is promised of them together."
    )
    yield (
        "Other releases: a second release of the same people, under another seed or another job, "
        "can be intersected with this one."
    )
    if not policy.diversity and not policy.measured:
        yield (
            "Inference: people of a group may agree on a sensitive value. The promise is about "
            "who, and not about what is learnt of everybody in a group."
        )
    yield (
        "What is true of a group as a whole, and the choices of the algorithm (minimality): who "
        "knows how groups are formed may exclude some inputs."
    )
    yield "Suppression and quarantine: that a person is missing may tell something about them."
    exact = [q.name for q in schema.quasi if isinstance(q.domain, Range) and q.domain.step is None]
    if exact:
        yield (
            f"Edges of boxes: {', '.join(exact)} has no step, so that each bound is somebody's "
            "exact value."
        )
    if schema.keep:
        yield (
            f"Kept columns ({', '.join(schema.keep)}) are published as they are. If an attacker "
            "knows them, they tell the people of a group apart."
        )
    if len(schema.sensitive) > 1:
        yield "Sensitive attributes in combination: each is judged by itself."
