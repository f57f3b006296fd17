"""Write a drafted job as commented TOML."""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import get_args, get_type_hints

from shoal.algorithms.registry import DEFAULT
from shoal.cli.init.columns import Column
from shoal.cli.init.domains import DomainDraft
from shoal.cli.init.measure import PROMISES, Measured, Plan, anonymizer_of
from shoal.cli.init.roles import Roles
from shoal.cli.init.toml import comment, line, listed
from shoal.cli.init.topic import Topic
from shoal.engine.base import Anonymizer
from shoal.io import Dialect
from shoal.job.endpoints import plain_name
from shoal.job.toml import quote, quote_key

__all__ = ["Drafted", "algorithm_lines", "job_text", "missing_lines", "tail_lines"]


@dataclass(frozen=True, slots=True)
class Drafted:
    """All that a job file says."""

    name: str
    job_name: str
    n_rows: int
    roles: Roles
    domains: dict[str, DomainDraft]
    files: dict[str, str]
    plan: Plan
    measured: Measured | None
    dialect: Dialect
    topic: Topic | None = None


def job_text(drafted: Drafted) -> str:
    """Return the job file."""
    return "\n".join(
        [
            f"# Drafted from {drafted.n_rows} rows of {quote(drafted.name)}.",
            "# Check every line: a sample shows what a column looks like, not what it means.",
            "",
            *_schema(drafted),
            *_policy(drafted),
            *algorithm_lines(drafted.measured),
            *_input(drafted.dialect),
            *tail_lines(drafted.job_name, drafted.topic),
        ]
    )


# -- schema -------------------------------------------------------------------------------------


def _schema(drafted: Drafted) -> Iterator[str]:
    roles = drafted.roles
    yield "[schema]"
    if roles.subject is not None:
        yield line(f"subject = {quote(roles.subject.name)}", roles.subject_reason)
    else:
        yield line("subject = { each_row = true }", "each row counts as another person")
    for column in roles.candidates:
        reason = roles.meanings[column.name].reason
        yield line(f"# subject = {quote(column.name)}", f"or this? {reason}")
    if roles.time is not None:
        yield line(f"time = {quote(roles.time.name)}", "when a row arrived; never published")
    for column in roles.times:
        yield line(f"# time = {quote(column.name)}", _why_no_time(column))
    yield ""
    yield line("[schema.quasi]", "what an outsider may know: published coarser")
    shown = [drafted.domains[column.name] for column in roles.quasi]
    if any(domain.rows for domain in shown):
        yield "# Hierarchy files hold values that were seen in the sample; a row with another value"
        yield "# is a bad row and goes to quarantine. Complete them, and limit who may read them."
    if any(domain.lists_values for domain in shown):
        yield "# Lists hold values that were seen in the sample; other values are quarantined, too."
    for column in roles.quasi:
        yield line(_domain(column, drafted), _reason(column, drafted))
    yield from _rest(drafted)
    yield ""
    if roles.sensitive:
        yield line("[schema.sensitive]", "what nobody should learn: published as it is")
        for column in roles.sensitive:
            remark = f"open; {column.n_distinct} different values in the sample"
            yield line(f"{quote_key(column.name)} = {{}}", remark)
        yield ""
    yield "[schema.keep]"
    kept = listed(column.name for column in roles.keep)
    unprotected = ", without protection" if roles.keep else ""
    yield line(f"columns = [{kept}]", f"published as they are{unprotected}; all others are dropped")
    for name, reason in roles.left_out.items():
        yield f"# left out: {quote(name)}: {reason}"
    yield ""


def _why_no_time(column: Column) -> str:
    if column.n_missing or column.n_marks:
        return "time stamps, but some are missing: such rows would go to quarantine"
    return "time stamps, but not in order: is this when a row arrives?"


def _domain(column: Column, drafted: Drafted) -> str:
    domain, file = drafted.domains[column.name], drafted.files.get(column.name)
    table = domain.table if file is None else f"{{ hierarchy = {quote(file)} }}"
    return f"{quote_key(column.name)} = {table}"


def _reason(column: Column, drafted: Drafted) -> str:
    meaning, remark = drafted.roles.meanings[column.name], drafted.domains[column.name].remark
    known = f"{meaning.sense}: {meaning.reason}"
    return f"{known}; {remark}" if remark else known


def _rest(drafted: Drafted) -> Iterator[str]:
    """List the columns that aren't proposed, with what each would add."""
    rest, measured = drafted.roles.rest, drafted.measured
    if not rest:
        return
    yield "# Not proposed, so not published. Uncomment what an outsider may know, too."
    if measured is not None:
        n_quasi, loss = len(drafted.plan.quasi), _figure(measured.loss)
        yield from comment(
            f"Measured on {measured.n_rows:,} rows: each of the {n_quasi} columns above loses "
            f"{loss} of 1 on average, and {_percent(measured.unique)} of the people are unique on "
            "them. Beside each further column: what it adds to the sum of these losses, and how "
            "many are unique with it."
        )
    for column in rest:
        added = "" if measured is None else _added(measured, column.name, len(drafted.plan.quasi))
        yield line(f"# {_domain(column, drafted)}", f"{added}{_reason(column, drafted)}")


def _added(measured: Measured, name: str, n_quasi: int) -> str:
    loss, unique = measured.added.get(name, (None, None))
    if loss is None or measured.loss is None:
        return "not measured; "
    more = loss * (n_quasi + 1) - measured.loss * n_quasi
    return f"loss {more:+.2f}, unique {_percent(unique)}; "


def _figure(loss: float | None) -> str:
    return "unknown" if loss is None else f"{loss:.3f}"


def _percent(share: float | None) -> str:
    return "unknown" if share is None else f"{100 * share:.1f} %"


# -- policy and algorithm -----------------------------------------------------------------------


def _policy(drafted: Drafted) -> Iterator[str]:
    plan, measured = drafted.plan, drafted.measured
    yield line("[policy]", "what is promised")
    yield line(f"k = {plan.k}", "least number of people in a group")
    if plan.diverse:
        promise = PROMISES[0] if measured is None else measured.promise
        parts = ", ".join(f"{quote_key(name)} = {promise.table}" for name in plan.diverse)
        is_all = len(plan.diverse) == len(plan.sensitive)
        yield line(f"l = {promise.table if is_all else f'{{ {parts} }}'}", promise.remark)
    yield line(f"delay = {{ rows = {plan.delay_rows} }}", "how long a row may be held")
    if plan.has_gaps:
        yield from missing_lines(is_seen=any(column.n_gaps for column in drafted.roles.quasi))
    yield ""


def missing_lines(*, is_seen: bool) -> Iterator[str]:
    """Write what happens to rows with a missing value."""
    yield f"# Some quasi values {'are' if is_seen else 'may be'} missing. {GAPS}"
    yield line('missing = "extended"', "extended | maybe | quarantine")


GAPS = """\
"extended": each counts as any value, for its whole group; no row
# is lost, and gaps identify nobody. "maybe": it stays missing; less detail is lost, but an attacker
# who knows which values of a person are missing may find their row. "quarantine": the row is left
# out.\
"""


def algorithm_lines(measured: Measured | None) -> Iterator[str]:
    """Write the algorithm: the one that loses least if it was measured, else the usual one."""
    yield line("[algorithm]", "how")
    if measured is not None:
        yield f"# The one that loses least on {measured.n_rows:,} rows of the sample, of:"
        for name, loss in sorted(measured.tried.items(), key=lambda pair: pair[1]):
            yield f"#   {name}: loss {loss:.3f}"
    name = DEFAULT if measured is None else measured.algorithm
    yield f"name = {quote(name)}"
    yield from _knobs(anonymizer_of(name))
    yield ""


def _knobs(anonymizer: Anonymizer) -> Iterator[str]:
    """Write the knobs with their defaults, as comments; reuse is always said."""
    texts = _documented(type(anonymizer))
    kinds = get_type_hints(type(anonymizer))
    for knob in dataclasses.fields(anonymizer):
        value = getattr(anonymizer, knob.name)
        if knob.name == "kept":
            yield line("kept = 0", "no reuse. With kept groups, an attacker who knows when")
            yield line("", "somebody came can tell which published row is theirs,")
            yield line("", "for every row that leaves alone into a kept group")
        elif value is not None:
            choices = " | ".join(map(str, get_args(kinds[knob.name])))
            remark = choices if isinstance(value, str) else texts.get(knob.name, "")
            yield line(f"# {knob.name} = {json.dumps(value)}", remark)


def _documented(kind: type[Anonymizer]) -> dict[str, str]:
    """Return the first sentence about each knob, from the docstring of an anonymizer."""
    text = inspect.getdoc(kind) or ""
    _, _, parameters = text.partition("Parameters\n----------\n")
    found = re.findall(r"^(\w+)\n((?:    .*\n?|\n(?=    ))+)", parameters, flags=re.MULTILINE)
    sentences = {}
    for name, body in found:
        plain = re.split(r"[.;:,(]", " ".join(body.replace("``", "").split()))[0].strip()
        sentences[name] = plain[:1].lower() + plain[1:]
    return sentences


# -- the rest -----------------------------------------------------------------------------------


def _input(dialect: Dialect) -> Iterator[str]:
    keys = dialect.as_keys()
    if not keys:
        return
    yield line("[input]", "how the file is written")
    for key, value in keys.items():
        texts = f"[{listed(value)}]" if isinstance(value, list) else quote(value)
        remark = "marks a missing value, in all columns" if key == "null" else ""
        yield line(f"{key} = {texts}", remark)
    yield ""


PUBLISH = """\
[publish]
# numeric = "range"                    # range | bounds | midpoint
# order = "released"                   # released | arrival (warned about) | shuffled
# suppressed = "drop"                  # drop | root
"""


def tail_lines(job_name: str, topic: Topic | None) -> Iterator[str]:
    """Write what comes after the algorithm: the topic if there is one, and how the job runs."""
    if topic is not None:
        yield from topic.lines()
    yield PUBLISH
    yield "[run]"
    if topic is not None:
        yield line(f"name = {quote(plain_name(job_name))}", "what the broker knows the job by")
        yield 'checkpoint = { folder = "state", every = 10 }'
    yield line("# seed = 7", "tests only: without it, from the operating system")
    yield ""
    yield "[bad_rows]"
    yield line('action = "quarantine"', "quarantine | stop")
    yield line(f"# file = {quote(job_name + '.quarantine.jsonl')}", "personal data")
    yield ""
