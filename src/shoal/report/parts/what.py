"""Part 1: what was published, how, and by which versions; with digests, without seeds."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from shoal.report.markup import tag
from shoal.report.page import Section, paragraph, table
from shoal.report.release import Release
from shoal.report.words import count
from shoal.spec.hierarchy import Hierarchy, Range
from shoal.spec.ladder import AnyDomain
from shoal.spec.schema import Schema

__all__ = ["files_of", "measure", "show"]

TITLE = "1. What was published"
#: How a time as text begins.
_DAY = r"^\d{4}-\d{2}-\d{2}"
_PACKAGES = ("shoal", "numpy", "numba", "pyarrow")


def measure(release: Release) -> dict[str, Any]:
    """Return what identifies a release and how it was made."""
    return {
        "made": None if release.made is None else release.made.isoformat(),
        "days": _days(release),
        "rows": release.published.num_rows,
        "columns": columns_of(release.schema, public=release.is_public),
        "algorithm": dict(release.algorithm),
        "publish": dict(release.publish),
        "job_sha256": release.digest,
        "output": files_of(release.files),
        "versions": {"python": platform.python_version()} | _versions(_PACKAGES),
    }


def files_of(files: Sequence[Path]) -> list[dict[str, Any]]:
    """Return name, size and digest of files."""
    return [
        {"name": file.name, "bytes": file.stat().st_size, "sha256": _sha256(file)} for file in files
    ]


def _days(release: Release) -> list[str] | None:
    """Return the first and the last day that rows came on, or were published with.

    By the original where it is known, else by the times that are published; None if neither tells.
    """
    name, known = release.schema.time, release.original
    table = release.published if known is None else known
    if name is None or name not in table.column_names:
        return None
    column = table[name]
    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        ends = pc.min_max(column.cast(pa.date32(), safe=False)).as_py()
        days = [None if day is None else day.isoformat() for day in (ends["min"], ends["max"])]
    elif pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        texts = column.filter(pc.match_substring_regex(column, _DAY))
        ends = pc.min_max(pc.utf8_slice_codeunits(texts, 0, 10)).as_py()
        days = [ends["min"], ends["max"]]
    else:
        return None
    return None if None in days else [str(day) for day in days]


def columns_of(schema: Schema, *, public: bool = False) -> list[dict[str, str]]:
    """Return name, role and domain of each column that is published or was used.

    The public isn't told how large a domain is: not every release shows it.
    """
    _domain = _kind_of if public else _size_of
    found = [] if schema.subject is None else [(schema.subject, "subject", "never published")]
    if schema.time is not None:
        found.append((schema.time, "time", "time of arrival"))
    found += [(each.name, "quasi", _domain(each.domain)) for each in schema.quasi]
    found += [
        (each.name, "sensitive", "open" if each.domain is None else _domain(each.domain))
        for each in schema.sensitive
    ]
    found += [(name, "keep", "published as it is") for name in schema.keep]
    return [{"name": name, "role": role, "domain": domain} for name, role, domain in found]


def show(figures: dict[str, Any]) -> Section:
    """Return the part as a section."""
    rows = [[each["name"], each["role"], each["domain"]] for each in figures["columns"]]
    how = [
        *([["date of the report", figures["made"]]] if figures["made"] else ()),
        *([["rows came from", " to ".join(figures["days"])]] if figures["days"] else ()),
        ["rows", count(figures["rows"])],
        ["algorithm", _settings(figures["algorithm"])],
        ["published", _settings(figures["publish"])],
        ["job, SHA-256", tag("code", figures["job_sha256"] or "unknown")],
        *(
            [f"{file['name']}, SHA-256", tag("code", file["sha256"])]
            for file in figures["output"][:20]
        ),
        ["versions", _settings(figures["versions"])],
    ]
    note = paragraph(
        "The digest of the job is over its schema with all hierarchies, its policy, its algorithm "
        "and how it publishes. Seeds, paths and addresses are in neither the digest nor this page."
    )
    return Section(
        TITLE,
        [
            table("The release", ["what", "value"], how),
            note,
            table("Columns of the job", ["column", "role", "domain"], rows),
        ],
    )


def _kind_of(domain: AnyDomain) -> str:
    if isinstance(domain, Range):
        return "numbers"
    return "categories" if isinstance(domain, Hierarchy) else type(domain).__name__.lower()


def _size_of(domain: AnyDomain) -> str:
    if isinstance(domain, Range):
        step = "exact bounds" if domain.step is None else f"bounds at multiples of {domain.step:g}"
        return f"numbers from {domain.lo:g} to {domain.hi:g}, {step}"
    if isinstance(domain, Hierarchy):
        return f"{len(domain):,} categories in a hierarchy of {domain.depth:,} levels"
    return type(domain).__name__.lower()


def _settings(values: dict[str, object]) -> str:
    name = str(values["name"]) if "name" in values else ""
    rest = ", ".join(f"{key} = {value}" for key, value in values.items() if key != "name")
    return ": ".join(part for part in (name, rest) if part) or "unknown"


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _versions(names: Sequence[str]) -> dict[str, str]:
    found = {}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "unknown"
    return found
