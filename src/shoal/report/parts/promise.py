"""Part 2: what was promised, and the audit's verdict about each criterion."""

from __future__ import annotations

import dataclasses
from typing import Any

from shoal.audit import Report
from shoal.audit.report import BY_ROWS
from shoal.report.page import Section, document, note, paragraph, table
from shoal.report.release import Release
from shoal.report.words import count, judged
from shoal.spec.policy import Policy

__all__ = ["audit_page", "measure", "show"]

TITLE = "2. What was promised, and whether it is kept"
_MEANS = {
    "kept": "Everything that was promised is kept, as far as the audit checks it.",
    "broken": "A promise is broken. Don't hand on this release; withdraw it if you have.",
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
    verdict = str(figures["verdict"])
    parts = [
        note(
            judged(verdict),
            ": ",
            _MEANS[verdict],
            kind="warning" if verdict == "broken" else "note",
        )
    ]
    if public:
        parts.append(
            paragraph(
                "These are the verdicts that anybody can reach with the published rows and the "
                "job. Whose rows they are is known to the house alone, so that most promises "
                "can't be verified from outside. The house verifies them by its private trace."
            )
        )
    if figures.get("each_row"):
        parts.append(note(BY_ROWS[:1].upper() + BY_ROWS[1:] + ".", kind="warning"))
    promised = [[each["name"], each["parameters"]] for each in figures["promises"]]
    if promised:
        parts.append(table("The promise", ["criterion", "parameters"], promised))
    parts.append(_verdicts(figures))
    return Section(TITLE, parts)


def audit_page(report: Report) -> str:
    """Return the verdicts of an audit alone, as one HTML file."""
    verdict = report.verdict
    n_rows = count(report.n_rows)
    lead = [
        paragraph(f"An independent check of {n_rows} published rows against their policy."),
        note(
            judged(verdict),
            ": ",
            _MEANS[verdict],
            kind="warning" if verdict == "broken" else "note",
        ),
    ]
    if report.each_row:
        lead.append(note(BY_ROWS[:1].upper() + BY_ROWS[1:] + ".", kind="warning"))
    return document(
        "Audit of a release", lead, [Section("Verdicts", [_verdicts(report.as_dict())])]
    )


def _verdicts(figures: dict[str, Any]) -> Any:
    rows = [[each["name"], judged(each["verdict"]), each["detail"]] for each in figures["verdicts"]]
    caption = f"The audit's verdicts, over {count(figures['n_rows'])} published rows"
    return table(caption, ["promise", "verdict", "why"], rows)
