"""Part 2: what was promised, and the audit's verdict about each criterion."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

from shoal.audit import Report
from shoal.audit.report import BY_ROWS
from shoal.report.markup import Markup, tag
from shoal.report.page import Section, document, note, paragraph, table
from shoal.report.parts.what import files_of
from shoal.report.release import Release
from shoal.report.words import count, judged
from shoal.spec.policy import Policy

__all__ = ["audit_page", "measure", "show"]

TITLE = "2. What was promised, and whether it is kept"
_MEANS = {
    "kept": "Everything that was promised is kept, as far as the audit checks it.",
    "broken": "A promise is broken. Don't pass on this release; withdraw it if you have.",
    "unverifiable": "Nothing was found to be broken, but not every promise can be verified with "
    "what the audit was given.",
}


def measure(release: Release) -> dict[str, Any]:
    """Return the promise in words, and the verdicts."""
    return {"promises": promises(release.policy)} | release.audit.as_dict()


def promises(policy: Policy) -> list[dict[str, str]]:
    """Return each promise with its parameters in words."""
    found = []
    for criterion in policy.criteria:
        fields = dataclasses.fields(criterion) if dataclasses.is_dataclass(criterion) else ()
        given = ((field.name, getattr(criterion, field.name)) for field in fields)
        said = ", ".join(f"{name} = {value}" for name, value in given if value is not None)
        found.append({"name": criterion.name, "parameters": said})
    if policy.delay is not None:
        spans = [("rows", policy.delay.rows), ("seconds", policy.delay.seconds)]
        said = " or ".join(f"{span:,g} {unit}" for unit, span in spans if span is not None)
        found.append({"name": "delay", "parameters": f"at most {said}"})
    if policy.window is not None:
        window = policy.window
        said = (
            "the whole table"
            if window == "all"
            else f"{window.rows:,} rows"
            if window.seconds is None
            else f"{window.seconds:g} seconds"
        )
        found.append({"name": "window", "parameters": said})
    return found


def show(figures: dict[str, Any], *, public: bool = False) -> Section:
    """Return the part as a section."""
    parts = _summary(str(figures["verdict"]), each_row=bool(figures.get("each_row")))
    if public:
        parts.insert(
            1,
            paragraph(
                "These are the verdicts that anybody can reach from the published rows and the "
                "job. Only the publisher knows whose rows they are, so most promises "
                "can't be verified from outside. The publisher verifies them with its "
                "private trace."
            ),
        )
    promised = [[each["name"], each["parameters"]] for each in figures["promises"]]
    if promised:
        parts.append(table("The promise", ["criterion", "parameters"], promised))
    parts.append(_verdicts(figures))
    return Section(TITLE, parts)


def audit_page(
    report: Report, *, job: str = "", files: Sequence[Path] = (), made: date | None = None
) -> str:
    """Return the verdicts of an audit alone, as one HTML file.

    Parameters
    ----------
    report
        The verdicts.
    job
        The name of the job file.
    files
        The published files, which are told by name and digest.
    made
        The day of the audit.
    """
    lead = [
        paragraph(
            f"An independent check of {count(report.n_rows)} published rows against their policy."
        ),
        *_summary(report.verdict, each_row=report.each_row),
    ]
    what = [
        *([["audited on", made.isoformat()]] if made else ()),
        *([["job", job]] if job else ()),
        *([f"{file['name']}, SHA-256", tag("code", file["sha256"])] for file in files_of(files)),
    ]
    sections = [Section("Verdicts", [_verdicts(report.as_dict())])]
    if what:
        sections.insert(
            0, Section("What was audited", [table("The audit", ["what", "value"], what)])
        )
    return document("Audit of a release", lead, sections)


def _summary(verdict: str, *, each_row: bool) -> list[Markup]:
    """Return the verdict in a sentence, and a warning where people are counted by rows."""
    kind = "warning" if verdict == "broken" else "note"
    found = [note(judged(verdict), ": ", _MEANS[verdict], kind=kind)]
    if each_row:
        found.append(note(BY_ROWS[:1].upper() + BY_ROWS[1:] + ".", kind="warning"))
    return found


def _verdicts(figures: dict[str, Any]) -> Any:
    rows = [[each["name"], judged(each["verdict"]), each["detail"]] for each in figures["verdicts"]]
    caption = f"The audit's verdicts, over {count(figures['n_rows'])} published rows"
    return table(caption, ["promise", "verdict", "why"], rows)
