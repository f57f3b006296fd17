"""Draft a job from the schema of a topic alone: it tells names and types, and no values.

What a schema doesn't tell is written as a comment, to be completed: a job that is refused until
then is better than one with a range that nobody has thought about.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from shoal.cli.init import words as w
from shoal.cli.init.domains import symbols_domain
from shoal.cli.init.draft import Draft, delay_of
from shoal.cli.init.meaning import contact_by_name, id_score
from shoal.cli.init.render import algorithm_lines, missing_lines, tail_lines
from shoal.cli.init.roles import UNKNOWN, Asked, rank_by_name, sensitive_by_name
from shoal.cli.init.toml import line, listed
from shoal.cli.init.topic import Topic
from shoal.io.kafka.schemas.columns import Leaf
from shoal.job.toml import quote, quote_key

__all__ = ["draft_from_schema"]

#: Kinds of values whose domain is a range of numbers, and what it looks like.
RANGES = {"integer": "range = [0, 100], step = 1", "number": "range = [0, 1]"}
#: Kinds that can't be generalized.
NEVER = ("bytes", "time")


@dataclass
class _Parts:
    """The columns by role."""

    subject: str | None = None
    subject_reason: str = ""
    time: str | None = None
    quasi: list[str] = field(default_factory=list)
    sensitive: list[str] = field(default_factory=list)
    keep: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)


def draft_from_schema(topic: Topic, *, job_name: str, asked: Asked, k: int) -> Draft:
    """Draft a job from the schema of a topic without messages.

    Parameters
    ----------
    topic
        The topic and its schema.
    job_name
        The name of the job file without its ending.
    asked
        The roles that the caller asks for; all others are guessed by name and type.
    k
        The least number of people in a group.
    """
    assert topic.subject is not None
    leaves = topic.described.leaves
    asked.check(list(leaves))
    parts = _parts(topic, asked)
    written = {name: _quasi_line(name, leaves[name], asked) for name in parts.quasi}
    n_open = sum(text.startswith("#") for text in written.values())
    text = "\n".join(
        [
            f"# Drafted from the schema of subject {quote(topic.subject)} alone: topic "
            f"{quote(topic.name)} had no",
            "# messages that could be read. A schema tells names and types, and no values:",
            "# complete the lines that are comments, and check every other one.",
            "",
            *_schema(parts, asked, list(written.values())),
            *_policy(parts, leaves, k),
            *algorithm_lines(None),
            *tail_lines(job_name, topic),
        ]
    )
    warnings = [f"Left out: {quote(name)}: {why}." for name, why in parts.left_out.items()]
    warnings.append(
        f"Drafted from the schema alone, since topic {quote(topic.name)} has no messages that can "
        f"be read: {n_open} of {len(written)} quasi attributes are comments, because the schema "
        "doesn't tell their values. The job is refused until it names a subject and a quasi "
        "attribute."
    )
    return Draft(text, {}, warnings)


def _parts(topic: Topic, asked: Asked) -> _Parts:
    leaves, parts = topic.described.leaves, _Parts(asked.subject, "as asked by --subject")
    free = [name for name in leaves if asked.role_of(name) is None]
    if parts.subject is None:
        ids = [name for name in free if leaves[name].kind in ("integer", "text")]
        best = max(ids, key=id_score, default=None)
        # A bare "id" may be that of a row.
        if best is not None and id_score(best) >= 1.5 and not w.EVENT.match(best):
            parts.subject, parts.subject_reason = best, "its name is that of an id of people"
    times = [name for name in free if "timestamp" in leaves[name].kind and not w.BIRTH.match(name)]
    parts.time = asked.time or max(times, key=w.INSTANT.match, default=None)
    for name, leaf in leaves.items():
        if name not in (parts.subject, parts.time):
            _place(name, leaf, asked.role_of(name), parts, is_asked=bool(asked.quasi))
    return parts


def _place(name: str, leaf: Leaf, role: str | None, parts: _Parts, *, is_asked: bool) -> None:
    if role == "drop":
        parts.left_out[name] = "as asked by --drop"
    elif role in ("quasi", "sensitive", "keep"):
        {"quasi": parts.quasi, "sensitive": parts.sensitive, "keep": parts.keep}[role].append(name)
    elif leaf.kind in NEVER or "timestamp" in leaf.kind:
        is_bytes = leaf.kind == "bytes"
        parts.left_out[name] = (
            "bytes can't be generalized" if is_bytes else "exact times identify people"
        )
    elif id_score(name) > 0:
        parts.left_out[name] = "its name is that of an id of people"
    elif (contact := contact_by_name(name)) is not None:
        parts.left_out[name] = contact.reason
    elif sensitive_by_name(name):
        parts.sensitive.append(name)
    elif not is_asked:
        parts.quasi.append(name)


def _schema(parts: _Parts, asked: Asked, quasi: Sequence[str]) -> Iterator[str]:
    yield "[schema]"
    if parts.subject is not None:
        yield line(f"subject = {quote(parts.subject)}", parts.subject_reason)
    else:
        what = "no name is that of an id of people: name the column, or say this"
        yield line("# subject = { each_row = true }", what)
    if parts.time is not None:
        yield line(f"time = {quote(parts.time)}", "when a row arrived; never published")
    yield ""
    yield line("[schema.quasi]", "what an outsider may know: published coarser")
    yield from quasi
    yield ""
    yield line("[schema.sensitive]", "what nobody should learn: published as it is")
    for name in parts.sensitive:
        is_asked = name in asked.sensitive
        remark = "" if is_asked else "by its name it is sensitive; is it coarse enough?"
        yield line(f"{'' if is_asked else '# '}{quote_key(name)} = {{}}", remark)
    yield ""
    yield "[schema.keep]"
    kept = f"columns = [{listed(parts.keep)}]"
    yield line(kept, "published as they are; all others are dropped")
    yield from (f"# left out: {quote(name)}: {why}" for name, why in parts.left_out.items())
    yield ""


def _quasi_line(name: str, leaf: Leaf, asked: Asked) -> str:
    symbols = ("false", "true") if leaf.kind == "boolean" else leaf.symbols
    key, domain = quote_key(name), symbols_domain(symbols)
    if domain is not None:
        if rank_by_name(name) < UNKNOWN or name in asked.quasi:
            return line(f"{key} = {domain.table}", domain.remark)
        return line(f"# {key} = {domain.table}", "does an outsider know it? Its name doesn't say")
    kind = "number" if leaf.kind.startswith("decimal") else leaf.kind
    if kind in RANGES:
        what = "a whole number" if kind == "integer" else "a number"
        return line(f"# {key} = {{ {RANGES[kind]} }}", f"{what}: write its least and most")
    file = quote(f"{name}.csv")
    what = f"{leaf.kind}: write a file that groups its values, or list them with values"
    return line(f"# {key} = {{ hierarchy = {file} }}", what)


def _policy(parts: _Parts, leaves: Mapping[str, Leaf], k: int) -> Iterator[str]:
    yield line("[policy]", "what is promised")
    yield line(f"k = {k}", "least number of people in a group")
    if parts.sensitive:
        yield line("# l = 3", "least number of sensitive values in a group")
    yield line(f"delay = {{ rows = {delay_of(None, k)} }}", "how long a row may be held")
    if any(leaves[name].is_optional for name in parts.quasi):
        yield from missing_lines(is_seen=False)
    yield ""
