"""Part 1: what was published, how, and by which versions; with digests, without seeds."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from shoal.report.markup import tag
from shoal.report.page import Section, paragraph, table
from shoal.report.release import Release
from shoal.report.words import count
from shoal.spec.hierarchy import Hierarchy, Range
from shoal.spec.ladder import AnyDomain
from shoal.spec.schema import Schema

__all__ = ["measure", "show"]

TITLE = "1. What was published"
_PACKAGES = ("shoal", "numpy", "numba", "pyarrow")


def measure(release: Release) -> dict[str, Any]:
    """Return what identifies a release and how it was made."""
    return {
        "rows": release.published.num_rows,
        "columns": columns_of(release.schema),
        "algorithm": dict(release.algorithm),
        "publish": dict(release.publish),
        "job_sha256": release.digest,
        "output": [
            {"name": file.name, "bytes": file.stat().st_size, "sha256": _sha256(file)}
            for file in release.files
        ],
        "versions": {"python": platform.python_version()} | _versions(_PACKAGES),
    }


def columns_of(schema: Schema) -> list[dict[str, str]]:
    """Return name, role and domain of each column that is published or was used."""
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


def _domain(domain: AnyDomain) -> str:
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
