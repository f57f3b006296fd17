"""Build the report of a release: all parts as figures, and the page made of them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

from shoal.attacks import AttackReport
from shoal.errors import check_choice
from shoal.report.page import Section, document, fragment, paragraph, write_page
from shoal.report.parts import attacks as attacks_part
from shoal.report.parts import limits, promise, risk, utility, vocabulary, what
from shoal.report.release import Audience, Release

__all__ = ["ReleaseReport", "build"]

_LEAD = {
    "internal": "Internal report. Some figures come from the original and the private trace. "
    "Don't publish this page: publish the public report instead.",
    "public": "Public report. Every figure here is computed from the published rows and the job "
    "alone, so this page reveals nothing beyond the release.",
}


class ReleaseReport:
    """The report of a release: figures, which `html` and a notebook show.

    >>> report = ReleaseReport({"audience": "public"})
    >>> report.as_dict()
    {'audience': 'public'}
    """

    def __init__(self, figures: Mapping[str, Any]) -> None:
        self._figures = dict(figures)

    def as_dict(self) -> dict[str, Any]:
        """Return all figures as plain values, for JSON."""
        return dict(self._figures)

    @property
    def verdict(self) -> str:
        """The audit's verdict: kept, broken or unverifiable."""
        return str(self._figures["promise"]["verdict"])

    @property
    def exit_code(self) -> int:
        """1 if a promise is broken, or an attack exceeded its bound; else 0."""
        attacks = self._figures["attacks"]
        exceeded = attacks["applies"] and attacks["verdict"] == "exceeded"
        return 1 if self.verdict == "broken" or exceeded else 0

    @property
    def broken(self) -> tuple[str, ...]:
        """Each promise that is broken, with what was found; then attacks that exceed their bound.

        Columns and counts, never a value of a person.
        """
        found = [
            f"{each['name']}: broken; {each['detail']}"
            for each in self._figures["promise"]["verdicts"]
            if each["verdict"] == "broken"
        ]
        attacks = self._figures["attacks"]
        found += [
            f"{each['attack']} ({each['knowledge']}): exceeds its bound"
            for each in (attacks["attacks"] if attacks["applies"] else ())
            if each["verdict"] == "exceeded"
        ]
        return tuple(found)

    def json(self) -> str:
        """Return all figures as one line of JSON."""
        return json.dumps(self._figures, allow_nan=False)

    def html(self) -> str:
        """Return the report as one offline HTML file."""
        return document(*self._parts())

    def write(self, path: str | Path) -> None:
        """Write the report as one HTML file; only its owner can read an internal one."""
        write_page(Path(path), self.html(), private=self._figures["audience"] != "public")

    def __repr__(self) -> str:
        what = self._figures["what"]
        return f"ReleaseReport({what['rows']:,} rows, {self.verdict}, {self._figures['audience']})"

    def _repr_html_(self) -> str:
        return fragment(*self._parts())

    def _parts(self) -> tuple[str, list[Any], list[Section]]:
        figures = self._figures
        public = figures["audience"] == "public"
        sections = [
            what.show(figures["what"]),
            promise.show(figures["promise"], public=public),
            risk.show(figures["risk"], public=public),
            attacks_part.show(figures["attacks"]),
            utility.show(figures["utility"]),
            limits.show(figures["limits"]),
            vocabulary.show(figures["vocabulary"]),
        ]
        return "Report of a release", [paragraph(_LEAD[figures["audience"]])], sections


def build(
    release: Release, *, attacks: AttackReport | None = None, audience: Audience = "internal"
) -> ReleaseReport:
    """Measure all parts of a report.

    Parameters
    ----------
    release
        What was published, and what is known beside.
    attacks
        What attacks on the release achieved; None: none were made.
    audience
        ``internal``: everything that is known. ``public``: only what follows from the published
        rows and the job; attacks are left out.
    """
    check_choice("audience", audience, get_args(Audience))
    seen = release.as_seen_by(audience)
    public = audience == "public"
    made = attacks_part.measure(
        None if public else attacks,
        why=attacks_part.NOT_PUBLIC if public else attacks_part.NOT_MADE,
    )
    figures = {
        "audience": audience,
        "what": what.measure(seen),
        "promise": promise.measure(seen),
        "risk": risk.measure(seen),
        "attacks": made,
        "utility": utility.measure(seen),
        "limits": limits.measure(seen),
        "vocabulary": vocabulary.measure(seen),
    }
    return ReleaseReport(_finite(figures))


def _finite(value: Any) -> Any:
    """Return plain values, with None for what has no finite value: JSON has no infinity."""
    if isinstance(value, Mapping):
        return {str(key): _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
