"""What ``shoal init`` says about a draft: warnings, and what was decided. No value of a person."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from shoal.cli.init.columns import Column
from shoal.cli.init.domains import DomainDraft
from shoal.cli.init.meaning import Meaning
from shoal.cli.init.measure import PROMISES, Measured
from shoal.cli.init.roles import Roles
from shoal.cli.init.toml import listed
from shoal.io import Dialect
from shoal.io.text.detect import is_known_null
from shoal.job.toml import quote

__all__ = ["markers_of", "remarks_of", "warnings_of"]


def warnings_of(
    roles: Roles, domains: Mapping[str, DomainDraft], n_rows: int, k: int
) -> Iterator[str]:
    """Yield what to check."""
    yield from _of_subject(roles, k)
    for column in roles.forced:
        yield (
            f"{quote(column.name)} is published as asked, but {roles.meanings[column.name].reason}."
        )
    for name, reason in roles.left_out.items():
        yield f"Left out: {quote(name)}: {reason}."
    if roles.unknown:
        yield (
            "Used as quasi attributes, although their names say nothing: "
            f"{listed(c.name for c in roles.unknown)}. Fewer quasi attributes lose less."
        )
    yield from _of_sensitive(roles)
    for column in roles.quasi:
        if n_outliers := domains[column.name].n_outliers:
            yield (
                f"{quote(column.name)} has outliers in {n_outliers} of {n_rows} rows of the "
                "sample: these are outside of its range and go to quarantine."
            )
    if roles.subject is not None:
        yield from _gaps(roles.subject, n_rows, "go to quarantine")
    for column in roles.quasi:
        yield from _gaps(column, n_rows, "count as any value, by policy.missing")


def _of_subject(roles: Roles, k: int) -> Iterator[str]:
    if roles.subject is None:
        yield (
            "No column names the subject of a row, so each row counts as another person. If "
            "people have several rows, name the subject column; otherwise k counts rows, not "
            "people."
        )
        if roles.candidates:
            yield f"May be the subject: {listed(c.name for c in roles.candidates)}."
    elif not roles.subject_reason.startswith("as asked"):
        yield from _of_chosen(roles.subject, roles.meanings[roles.subject.name], roles)
    if roles.subject is not None and roles.subject.n_distinct < k:
        yield (
            f"The subject {quote(roles.subject.name)} has {roles.subject.n_distinct} different "
            f"values in the sample: too few for k = {k}."
        )


def _of_chosen(subject: Column, meaning: Meaning, roles: Roles) -> Iterator[str]:
    if meaning.by_name and meaning.sense == "contact":
        yield (
            f"{quote(subject.name)} is used as the subject, since no column is the id of a "
            "person: people who share a value count as one, a person with several counts as "
            "several. Name a better column if there is one."
        )
    elif not meaning.by_name:
        yield (
            f"{quote(subject.name)} is used as the subject, although its name doesn't say "
            f"so: {roles.subject_reason}. Is it the id of a person?"
        )


def _of_sensitive(roles: Roles) -> Iterator[str]:
    least = PROMISES[0].l
    if not roles.sensitive:
        yield "No column is drafted as sensitive. Name one under [schema.sensitive] to ask for l."
    for column in roles.sensitive:
        if column.n_real < least:
            yield (
                f"The sensitive {quote(column.name)} has {column.n_real} different values in "
                f"the sample: too few for l = {least}."
            )
        if column.nearly_unique:
            yield (
                f"The sensitive {quote(column.name)} is published as it is, and nearly every row "
                "has a different value. Anyone who knows a value finds the row: make it coarser."
            )


def _gaps(column: Column, n_rows: int, fate: str) -> Iterator[str]:
    name = quote(column.name)
    if n_gaps := column.n_gaps:
        yield f"{name} has no value in {n_gaps} of {n_rows} rows of the sample: these {fate}."
    if column.n_marks:
        taken = "go to quarantine" if column.kind == "number" else "count as a value"
        yield (
            f"{name} has a text for missing in {column.n_marks} of {n_rows} rows of the "
            f"sample: these {taken}."
        )
    if column.padded:
        yield f"{name} has values with spaces at their ends, which the draft has removed."


def markers_of(dialect: Dialect) -> Iterator[str]:
    """Yield which texts are taken for missing values without being known as such."""
    n_guesses = sum(not is_known_null(text) for text in dialect.null)
    if n_guesses:
        yield (
            f"Texts for missing values in input.null: {len(dialect.null)}, of which guessed: "
            f"{n_guesses}. These repeat in columns that have only numbers or dates otherwise. "
            "Remove from the list what is a value."
        )


def remarks_of(roles: Roles, measured: Measured | None, *, is_measured: bool) -> Iterator[str]:
    """Yield what was decided and measured."""
    if roles.rest:
        yield (
            f"quasi attributes proposed: {len(roles.quasi)}; further columns that are listed as "
            f"comments, and not published: {len(roles.rest)}"
        )
    if measured is not None and measured.loss is not None and measured.unique is not None:
        yield (
            f"measured on {measured.n_rows:,} rows: '{measured.algorithm}' loses least, "
            f"{measured.loss:.3f}; {100 * measured.unique:.1f} % of the people are unique on the "
            "quasi attributes of the input"
        )
    elif is_measured:
        yield "too few rows to measure loss on: the algorithm is the usual one"
