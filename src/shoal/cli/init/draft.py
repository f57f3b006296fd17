"""Draft a job from a sample of the data, for ``shoal init``.

A draft is a safe starting point; its comments and warnings say what to check.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from shoal.cli.init.columns import describe
from shoal.cli.init.domains import draft_domain
from shoal.cli.init.measure import PROMISES, Plan, measure
from shoal.cli.init.messages import markers_of, remarks_of, warnings_of
from shoal.cli.init.render import Drafted, job_text
from shoal.cli.init.roles import Asked, Roles, assign
from shoal.cli.init.toml import listed
from shoal.cli.init.topic import Topic
from shoal.errors import JobError, ParameterError, Problem
from shoal.io import Dialect

__all__ = ["Draft", "delay_of", "draft"]

K = 10
DELAY_ROWS = 10_000
#: A delay has room for at least this many groups of k people.
LEAST_DELAY_GROUPS = 10
#: How many rows a draft is measured on, unless the caller says otherwise.
MEASURED_ROWS = 3000


@dataclass(frozen=True, slots=True)
class Draft:
    """A drafted job."""

    job: str = field(repr=False)
    """The job file, as commented TOML."""
    files: dict[str, str] = field(repr=False)
    """The hierarchy files beside it: names and contents."""
    warnings: list[str]
    """What to check. They name columns and counts, no values."""
    remarks: list[str] = field(default_factory=list)
    """What was decided and measured."""


def draft(
    sample: pa.Table,
    *,
    name: str,
    job_name: str = "job",
    total_rows: int | None = None,
    asked: Asked | None = None,
    k: int = K,
    measured_rows: int = 0,
    dialect: Dialect | None = None,
    topic: Topic | None = None,
    note: Callable[[str], None] = lambda text: None,
    check_files: Callable[[Mapping[str, str]], None] = lambda files: None,
) -> Draft:
    """Draft a job from a sample of the data.

    Parameters
    ----------
    sample
        Rows with all columns.
    name
        The name of the data, for the comment at the top.
    job_name
        The name of the job file without its ending, for that of its quarantine file.
    total_rows
        The total number of rows, if known; a short stream gets a short delay.
    asked
        The roles that the caller asks for; all others are guessed.
    k
        The least number of people in a group.
    measured_rows
        How many rows to measure loss on; 0: nothing is measured.
    dialect
        How the file is written, if it is CSV.
    topic
        Where the rows are, if it isn't a file, and what the schema of its messages says.
    note
        Called with a text about what is going on.
    check_files
        Called with the hierarchy files before anything is measured; what it raises ends the draft.

    >>> sample = pa.table({"customer_id": list(range(50)), "age": [20 + n for n in range(50)]})
    >>> result = draft(sample, name="customers.csv", total_rows=50)
    >>> [line.partition(" # ")[0].strip() for line in result.job.splitlines()
    ...  if line.startswith(("subject", "age"))]
    ['subject = "customer_id"', 'age = { range = [20, 70], step = 1 }']
    """
    _check(sample)
    columns = [describe(column, sample[column]) for column in sample.column_names]
    roles = assign(columns, sample, asked)
    if not roles.quasi:
        raise JobError(
            Problem(
                "schema.quasi",
                f"none of the {len(columns)} columns looks like one an outsider may know",
                None,
                "Name some with --quasi, or write the job by hand",
            )
        )
    partial = total_rows is None or total_rows > sample.num_rows
    domains = {
        column.name: draft_domain(
            column,
            roles.meanings[column.name],
            partial=partial,
            symbols=() if topic is None else topic.described.leaves[column.name].symbols,
        )
        for column in (*roles.quasi, *roles.rest)
    }
    names = _file_names([name for name, domain in domains.items() if domain.rows])
    files = {names[column]: domains[column].text for column in names}
    check_files(files)
    plan = _plan(roles, k, delay_of(total_rows, k), topic)
    measured = None
    if measured_rows > 0:
        built = {column: domain.domain for column, domain in domains.items()}
        measured = measure(sample, plan, built, n_rows=measured_rows, note=note)
    drafted = Drafted(
        name, job_name, sample.num_rows, roles, domains, names, plan, measured,
        dialect or Dialect(), topic,
    )  # fmt: skip
    return Draft(
        job_text(drafted),
        files,
        [*warnings_of(roles, domains, sample.num_rows, k), *markers_of(drafted.dialect)],
        list(remarks_of(roles, measured, is_measured=measured_rows > 0)),
    )


def _plan(roles: Roles, k: int, delay_rows: int, topic: Topic | None) -> Plan:
    leaves = {} if topic is None else topic.described.leaves
    may_miss = {name for name, leaf in leaves.items() if leaf.is_optional}
    least = min(promise.kind(promise.l).needed for promise in PROMISES[:1])
    return Plan(
        subject=None if roles.subject is None else roles.subject.name,
        time=None if roles.time is None else roles.time.name,
        quasi=[column.name for column in roles.quasi],
        rest=[column.name for column in roles.rest],
        sensitive=[column.name for column in roles.sensitive],
        diverse=[column.name for column in roles.sensitive if column.n_real >= least],
        k=k,
        delay_rows=delay_rows,
        has_gaps=any(column.n_gaps or column.name in may_miss for column in roles.quasi),
    )


def _check(sample: pa.Table) -> None:
    if sample.num_rows == 0:
        raise ParameterError("sample", "has no rows", fix="Give a file with data")
    names = sample.column_names
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ParameterError(
            "sample", f"has columns of the same name: {listed(twice)}", fix="Rename them"
        )


def delay_of(total_rows: int | None, k: int) -> int:
    """Return a delay: a tenth of a short stream, rounded, but enough for groups to form."""
    least = LEAST_DELAY_GROUPS * k
    if total_rows is None or total_rows >= 10 * DELAY_ROWS:
        return max(least, DELAY_ROWS)
    tenth = str(total_rows // 10)
    return max(least, int(tenth[0] + "0" * (len(tenth) - 1)))


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
