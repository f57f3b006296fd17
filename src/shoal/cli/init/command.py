"""``shoal init``: draft a job from a data file, or from a topic."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from shoal.cli.init.columns import is_number_or_date, names_among_values
from shoal.cli.init.draft import Draft, draft
from shoal.cli.init.from_schema import draft_from_schema
from shoal.cli.init.roles import Asked
from shoal.cli.init.topic import SCHEME, Topic, TopicOptions, TopicRows, open_topic
from shoal.cli.terminal import Progress, print_message, print_result
from shoal.errors import JobError, Problem, ResourceError
from shoal.io import Dialect, detect_dialect, open_source
from shoal.io.streams import STDIO, os_reason
from shoal.job.toml import quote

__all__ = ["InitOptions", "init"]


@dataclass(frozen=True, slots=True, kw_only=True)
class InitOptions:
    """The options of the command line."""

    rows: int
    from_format: str | None
    asked: Asked
    k: int
    measured_rows: int
    force: bool
    topic: TopicOptions


def init(data: str, output: Path, options: InitOptions) -> int:
    """Write a job and its hierarchies; return the exit code."""
    if str(output) == STDIO:
        what = "must be a file: hierarchies that the job needs are written next to it"
        raise JobError(Problem("output", what, "-", "Write -o job.toml"))
    is_topic = data.startswith(SCHEME)
    if not is_topic:
        options.topic.check_file()
    is_file = not is_topic and data != STDIO
    dialect = detect_dialect(data, format=options.from_format) if is_file else None
    _refuse_overwriting({output: ""}, data, options, "Choose another name with -o, or another")
    if not output.parent.is_dir():
        reason = f"the folder {output.parent} doesn't exist. Create it first."
        raise ResourceError(f"{output}: can't be written: {reason}")
    topic = None
    if is_topic:
        topic = open_topic(data, options.topic, output.parent, options.from_format)
        rows = topic.sample(options.rows)
        sample, is_whole = rows.table, rows.is_whole
        _say_unreadable(rows)
        _say_nested(topic)
        if topic.subject is None and not sample.num_rows:
            why = "all changes in them are updates or deletes" if not rows.n_bad else rows.reason
            raise ResourceError(f"{data}: none of the first messages is a row: {why}.")
    else:
        sample, is_whole = _sample(data, options, dialect)
        _refuse_without_header(sample, data, options.asked)
    if topic is not None and not sample.num_rows:
        drafted = draft_from_schema(topic, job_name=output.stem, asked=options.asked, k=options.k)
    else:
        drafted = _drafted(sample, data, output, options, dialect, topic, is_whole=is_whole)
    files = {output: drafted.job}
    files |= {output.parent / name: text for name, text in drafted.files.items()}
    try:
        for path, text in files.items():
            # Labels of hierarchies are values of people.
            with open(path, "w", encoding="utf-8", opener=_private) as file:
                file.write(text)
    except OSError as error:
        raise ResourceError(f"{output.parent}: can't be written: {os_reason(error)}.") from None
    for warning in drafted.warnings:
        print_message(f"warning: {warning}")
    for remark in drafted.remarks:
        print_message(remark)
    names, them = ", ".join(str(path) for path in files), "it" if len(files) == 1 else "them"
    print_message(f"wrote {names} from {sample.num_rows:,} rows")
    if topic is not None:
        verb = "Review" if sample.num_rows else "Complete"
        print_message(f"{verb} {them}, then:")
        print_result(shlex.join(["shoal", "run", str(output), "-o", "published.csv"]))
        return 0
    check = shlex.join(["shoal", "check", str(output), "-i", data])
    print_message(f"Review {them}, try {them} with `{check}`, then:")
    print_result(shlex.join(["shoal", "run", str(output), "-i", data, "-o", "published.csv"]))
    return 0


def _drafted(
    sample: pa.Table,
    data: str,
    output: Path,
    options: InitOptions,
    dialect: Dialect | None,
    topic: Topic | None,
    *,
    is_whole: bool,
) -> Draft:
    """Draft a job from rows."""

    def check_files(hierarchies: Mapping[str, str]) -> None:
        beside = {output.parent / name: text for name, text in hierarchies.items()}
        # Their names come from the columns: another name of the job doesn't help.
        _refuse_overwriting(beside, data, options, "Write the job to another")

    # A topic goes on: what is there now isn't the whole stream.
    total_rows = sample.num_rows if is_whole and topic is None else None
    with Progress(quiet=False) as progress:
        return draft(
            sample,
            name=Path(data).name if topic is None else f"topic {topic.name}",
            job_name=output.stem,
            total_rows=total_rows,
            asked=options.asked,
            k=options.k,
            measured_rows=options.measured_rows,
            dialect=dialect,
            topic=topic,
            note=progress.note,
            check_files=check_files,
        )


def _say_unreadable(rows: TopicRows) -> None:
    """Warn of messages that can't be read, mostly by the newest schema."""
    if rows.n_bad:
        n = rows.n_bad + rows.table.num_rows
        print_message(
            f"warning: {rows.n_bad:,} of {n:,} messages of the sample can't be read, mostly "
            f"because: {rows.reason}. Such messages are bad rows."
        )


def _say_nested(topic: Topic) -> None:
    """Warn of fields of JSON messages that can't be columns."""
    for name in topic.nested:
        print_message(f"warning: Left out: {quote(name)}: it has objects or arrays as values.")


def _private(path: str, flags: int) -> int:
    """Open a file that only its owner may read, if it is new."""
    return os.open(path, flags, 0o600)


def _refuse_overwriting(
    files: Mapping[Path, str], data: str, options: InitOptions, advice: str
) -> None:
    """Raise if a file exists; one with the same text, such as a hierarchy of two drafts, may.

    Files of the data aren't overwritten, not even with --force. The advice ends before "folder".
    """
    read = [] if data == STDIO else [Path(data)]
    read += [file for folder in read if folder.is_dir() for file in folder.iterdir()]
    for path in files:
        if path.exists() and any(file.exists() and path.samefile(file) for file in read):
            fix = "Give a path in another folder as the output: hierarchies are written next to it"
            raise JobError(Problem("output", f"{path} is an input file", None, fix))
    there = [str(path) for path, text in files.items() if path.exists() and not _has(path, text)]
    if there and not options.force:
        verb = "exists" if len(there) == 1 else "exist"
        what = f"{', '.join(there)} {verb} already, and would be overwritten"
        fix = f"{advice} folder, or overwrite with --force"
        raise JobError(Problem("output", what, None, fix))


def _has(path: Path, text: str) -> bool:
    try:
        return path.is_file() and path.read_text(encoding="utf-8") == text
    except (OSError, UnicodeError):
        return False


def _sample(data: str, options: InitOptions, dialect: Dialect | None) -> tuple[pa.Table, bool]:
    """Read the first rows of a file; return them, and whether there are no more."""
    source = open_source(data, format=options.from_format, dialect=dialect)
    try:
        tables, n = [], 0
        for chunk in source:
            tables.append(pa.Table.from_batches([chunk.batch]))
            n += chunk.batch.num_rows
            if n >= options.rows:
                break
        if n == 0:
            raise ResourceError(f"{data}: has no rows to draft a job from. Give a file with data.")
        table = pa.concat_tables(tables, promote_options="permissive")
        if dialect is not None and dialect.decimal == ",":
            table = _with_points(table)
        return table.slice(0, options.rows), n < options.rows
    finally:
        source.close()


def _refuse_without_header(sample: pa.Table, data: str, asked: Asked) -> None:
    """Raise if the names of columns look like values; that a role names one says they don't."""
    names: list[str] = sample.column_names
    if any(asked.role_of(name) for name in names):
        return
    recurring = names_among_values(sample)
    alike = {name for name in names if is_number_or_date(name)} | set(recurring)
    # One may be so by chance, and a table of years has numbers as names.
    if len(recurring) < min(2, len(names)) and len(alike) <= len(names) / 2:
        return
    raise JobError(
        Problem(
            "columns",
            f"{len(alike)} of {len(names)} names look like values of a row",
            None,
            "Check the file: does it have a header? If it has, name one of its columns, such as "
            "with --subject",
        ),
        where=data,
    )


def _with_points(table: pa.Table) -> pa.Table:
    """Return numbers that have a comma before their decimals with a point instead.

    Which columns are numbers isn't known before they are read.
    """
    for i, name in enumerate(table.column_names):
        column: Any = table[name]
        if not pa.types.is_string(column.type):
            continue
        values = [value.strip() for value in column.unique().to_pylist() if value]
        if values and all(re.fullmatch(r"[+-]?\d+(,\d+)?", value) for value in values):
            table = table.set_column(i, name, pc.replace_substring(column, ",", "."))
    return table
