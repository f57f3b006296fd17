"""Draft a job from a sample of the data, for ``shoal init``.

A draft is a safe starting point; its comments and warnings say what to check.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from shoal.cli.init.columns import Column, describe
from shoal.cli.init.domains import DomainDraft, draft_domain, quote, quote_key
from shoal.cli.init.roles import Roles, guess
from shoal.errors import JobError, ParameterError, Problem

__all__ = ["Draft", "draft"]

K = 10
L = 3
DELAY_ROWS = 10_000
LEAST_DELAY_ROWS = 10 * K


@dataclass(frozen=True, slots=True)
class Draft:
    """A drafted job."""

    job: str = field(repr=False)
    """The job file, as commented TOML."""
    files: dict[str, str] = field(repr=False)
    """The hierarchy files beside it: names and contents."""
    warnings: list[str]
    """What to check. They name columns and counts, no values."""


def draft(sample: pa.Table, *, name: str, total_rows: int | None = None) -> Draft:
    """Draft a job from a sample of the data.

    Parameters
    ----------
    sample
        Rows with all columns.
    name
        The name of the data, for the comment at the top.
    total_rows
        The total number of rows, if known; a short stream gets a short delay.

    >>> sample = pa.table({"customer_id": list(range(50)), "age": [20 + n for n in range(50)]})
    >>> result = draft(sample, name="customers.csv", total_rows=50)
    >>> [line for line in result.job.splitlines() if line.startswith(("subject", "age"))]
    ['subject = "customer_id"', 'age = { range = [20, 70], step = 1 }']
    """
    _check(sample)
    columns = [describe(column, sample[column]) for column in sample.column_names]
    roles = guess(columns)
    if not roles.quasi:
        raise JobError(
            Problem(
                "schema.quasi",
                f"none of the {len(columns)} columns looks like one an outsider may know",
                None,
                "Write the job by hand",
            )
        )
    partial = total_rows is None or total_rows > sample.num_rows
    domains = {column.name: draft_domain(column, partial=partial) for column in roles.quasi}
    names = _file_names([name for name, domain in domains.items() if domain.rows])
    job = "\n".join(
        [
            f"# Drafted from {sample.num_rows} rows of {quote(name)}.",
            "# Check every line: a sample shows what a column looks like, not what it means.",
            "",
            *_schema(roles, domains, names),
            *_policy(roles, total_rows),
            TAIL,
        ]
    )
    files = {names[column]: domains[column].text for column in names}
    return Draft(job, files, list(_warnings(roles, sample.num_rows)))


def _check(sample: pa.Table) -> None:
    if sample.num_rows == 0:
        raise ParameterError("sample", "has no rows", fix="Give a file with data")
    names = sample.column_names
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ParameterError(
            "sample", f"has columns of the same name: {_list(twice)}", fix="Rename them"
        )


def _line(text: str, remark: str) -> str:
    return f"{text:<38} # {remark}" if remark else text


def _schema(roles: Roles, domains: dict[str, DomainDraft], names: dict[str, str]) -> Iterator[str]:
    yield "[schema]"
    if roles.subject is not None:
        yield f"subject = {quote(roles.subject.name)}"
    else:
        yield _line("subject = { each_row = true }", "each row is taken for another person")
        for column in roles.candidates:
            yield _line(f"# subject = {quote(column.name)}", "or this, if it identifies people")
    if roles.time is not None:
        yield f"time = {quote(roles.time.name)}"
    yield ""
    yield _line("[schema.quasi]", "what an outsider may know: published coarser")
    if names:
        yield "# Hierarchy files hold values that were seen in the sample; a row with another value"
        yield "# is a bad row and goes to quarantine. Complete them, and limit who may read them."
    if any(domain.lists_values for domain in domains.values()):
        yield "# Lists hold values that were seen in the sample; others are quarantined, too."
    for column in roles.quasi:
        domain = domains[column.name]
        file = names.get(column.name)
        table = domain.table if file is None else f"{{ hierarchy = {quote(file)} }}"
        yield _line(f"{quote_key(column.name)} = {table}", domain.remark)
    yield ""
    if roles.sensitive:
        yield _line("[schema.sensitive]", "what nobody should learn: published as it is")
        for column in roles.sensitive:
            remark = f"open; {column.n_distinct} different values in the sample"
            yield _line(f"{quote_key(column.name)} = {{}}", remark)
        yield ""
    yield "[schema.keep]"
    yield _line("columns = []", "published as they are; all others are dropped")
    for name, reason in roles.left_out.items():
        yield f"# left out: {quote(name)}: {reason}"
    yield ""


def _policy(roles: Roles, total_rows: int | None) -> Iterator[str]:
    yield _line("[policy]", "what is promised")
    yield _line(f"k = {K}", "least number of people in a group")
    diverse = [column for column in roles.sensitive if column.n_distinct >= L]
    if diverse:
        parts = ", ".join(f"{quote_key(column.name)} = {L}" for column in diverse)
        each = str(L) if len(diverse) == len(roles.sensitive) else f"{{ {parts} }}"
        yield _line(f"l = {each}", "least number of sensitive values in a group")
    yield _line(f"delay = {{ rows = {_delay(total_rows)} }}", "how long a row may be held")
    if any(_n_gaps(column) for column in roles.quasi):
        yield GAPS
        yield _line('missing = "extended"', "extended | maybe | quarantine")
    yield ""


GAPS = """\
# Some quasi values are missing. "extended": each counts as any value, for its whole group; no row
# is lost, and gaps identify nobody. "maybe": it stays missing; less detail is lost, but an attacker
# who knows which values of a person are missing may find their row. "quarantine": the row is left
# out.\
"""

TAIL = """\
[algorithm]                            # how
name = "castle"
# clusters = 50                        # open at once
# recent = 100                         # groups the threshold averages over
# kept = 0                             # groups kept for reuse; with any, an attacker who knows when
                                       # somebody came reads off which published row is theirs, for
                                       # every row that leaves alone into a kept group
# reuse = "random"                     # random | best (leaks)
# joins = "together"                   # together | alone (leaks)
# loss = "glm"                         # glm | lm | uncertainty

[publish]
# numeric = "range"                    # range | bounds | midpoint
# order = "released"                   # released | arrival (warned about) | shuffled
# suppressed = "drop"                  # drop | root

[run]
# seed = 7                             # tests only: else from the operating system

[bad_rows]
action = "quarantine"                  # quarantine | stop
file = "quarantine.jsonl"              # holds personal data: keep it safe
"""


def _delay(total_rows: int | None) -> int:
    """Return a delay: a tenth of a short stream, rounded, but enough for groups to form."""
    if total_rows is None or total_rows >= 10 * DELAY_ROWS:
        return DELAY_ROWS
    tenth = str(total_rows // 10)
    return max(LEAST_DELAY_ROWS, int(tenth[0] + "0" * (len(tenth) - 1)))


def _file_names(columns: Sequence[str]) -> dict[str, str]:
    """Return a file name for each column, of letters that every file system accepts."""
    names: dict[str, str] = {}
    for column in columns:
        stem = re.sub(r"[^a-z0-9]+", "_", column.lower()).strip("_") or "column"
        name, number = f"{stem}.csv", 2
        while name in names.values():
            name, number = f"{stem}_{number}.csv", number + 1
        names[column] = name
    return names


def _warnings(roles: Roles, n_rows: int) -> Iterator[str]:
    if roles.subject is None:
        yield (
            "No column names the subject of a row, so each row is taken for another person. If "
            "people have several rows, name the subject column: else k counts rows, not people."
        )
        if roles.candidates:
            yield f"May be the subject: {_list(c.name for c in roles.candidates)}."
    elif roles.subject.n_distinct < K:
        yield (
            f"The subject {quote(roles.subject.name)} has {roles.subject.n_distinct} different "
            f"values in the sample: too few for k = {K}."
        )
    for name, reason in roles.left_out.items():
        yield f"Left out: {quote(name)}: {reason}."
    if roles.unknown:
        yield (
            "Taken for quasi attributes, although their names say nothing: "
            f"{_list(c.name for c in roles.unknown)}. Fewer quasi attributes lose less."
        )
    if not roles.sensitive:
        yield "No column looks sensitive. Name one under [schema.sensitive] to ask for l."
    for column in roles.sensitive:
        if column.n_distinct < L:
            yield (
                f"The sensitive {quote(column.name)} has {column.n_distinct} different values in "
                f"the sample: too few for l = {L}."
            )
        if column.nearly_unique:
            yield (
                f"The sensitive {quote(column.name)} is published as it is, and nearly every row "
                "has a different value. Anyone who knows a value finds the row: make it coarser."
            )
    if roles.subject is not None:
        yield from _gaps(roles.subject, n_rows, "go to quarantine")
    for column in roles.quasi:
        yield from _gaps(column, n_rows, "count as any value, by policy.missing")


def _n_gaps(column: Column) -> int:
    """Return the number of empty values, without those that stand for missing."""
    return column.n_missing - (column.n_marks if column.kind == "number" else 0)


def _gaps(column: Column, n_rows: int, fate: str) -> Iterator[str]:
    name = quote(column.name)
    if n_gaps := _n_gaps(column):
        yield f"{name} has no value in {n_gaps} of {n_rows} rows of the sample: these {fate}."
    if column.n_marks:
        taken = "go to quarantine" if column.kind == "number" else "are taken for a value"
        yield (
            f"{name} has a text for missing in {column.n_marks} of {n_rows} rows of the "
            f"sample: these {taken}."
        )
    if column.padded:
        yield f"{name} has values with spaces at their ends, which the draft has removed."


def _list(names: Iterator[str] | Sequence[str]) -> str:
    return ", ".join(quote(name) for name in names)
