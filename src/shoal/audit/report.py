"""The report of the audit: one verdict for each promise, in words and in figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Literal

__all__ = ["BY_ROWS", "Figure", "Judgement", "Report", "Verdict", "decide"]

Judgement = Literal["kept", "broken", "unverifiable"]
Figure = int | float | None

#: What a verdict about subjects is worth where the job names none.
BY_ROWS = (
    "subjects are counted by rows (schema.subject = { each_row = true }): if people have several "
    "rows, groups have fewer people than that"
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The audit's judgement of one promise.

    Parameters
    ----------
    name
        The promise.
    verdict
        ``kept``, ``broken`` or ``unverifiable``.
    detail
        Why, in words: columns, counts and numbers of groups, never a value of a person.
    figures
        The same for programs. None stands for what isn't known or has no finite value.

    >>> Verdict("delay", "kept", "no row waited for more than 10 rows").line()
    'delay: kept; no row waited for more than 10 rows'
    """

    name: str
    verdict: Judgement
    detail: str
    figures: Mapping[str, Figure] = field(default_factory=dict)

    def line(self) -> str:
        """Return the verdict as one line of text."""
        return f"{self.name}: {self.verdict}; {self.detail}"

    def as_dict(self) -> dict[str, object]:
        """Return the verdict as plain values, for JSON."""
        return {
            "name": self.name,
            "verdict": self.verdict,
            "detail": self.detail,
            "figures": dict(self.figures),
        }


@dataclass(frozen=True, slots=True, repr=False)
class Report:
    """All verdicts about one output.

    >>> report = Report([Verdict("k-anonymity", "broken", "1 of 2 boxes is too small")], n_rows=7)
    >>> report.exit_code
    1
    >>> print(report)
    broken: 1 of 1 promises, over 7 published rows
      k-anonymity: broken; 1 of 2 boxes is too small
    """

    verdicts: Sequence[Verdict]
    n_rows: int
    each_row: bool = False
    """Whether each row was counted as a subject of its own."""

    @property
    def verdict(self) -> Judgement:
        """The worst of the verdicts: broken, else unverifiable, else kept."""
        found = {verdict.verdict for verdict in self.verdicts}
        if "broken" in found:
            return "broken"
        return "unverifiable" if "unverifiable" in found else "kept"

    @property
    def exit_code(self) -> int:
        """The exit code: 1 if a promise is broken, 6 if one can't be judged, else 0."""
        return {"broken": 1, "unverifiable": 6, "kept": 0}[self.verdict]

    def __getitem__(self, name: str) -> Verdict:
        for verdict in self.verdicts:
            if verdict.name == name:
                return verdict
        raise KeyError(name)

    def as_dict(self) -> dict[str, object]:
        """Return the report as plain values, for JSON."""
        return {
            "verdict": self.verdict,
            "exit_code": self.exit_code,
            "n_rows": self.n_rows,
            **({"each_row": True, "note": BY_ROWS} if self.each_row else {}),
            "verdicts": [verdict.as_dict() for verdict in self.verdicts],
        }

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        head, *_ = str(self).splitlines()
        rows = "".join(
            f"<tr><th>{escape(each.name)}</th><td>{each.verdict}</td>"
            f"<td>{escape(each.detail)}</td></tr>"
            for each in self.verdicts
        )
        return f"<table><caption>{escape(head)}</caption>{rows}</table>"

    def __str__(self) -> str:
        n = sum(verdict.verdict == self.verdict for verdict in self.verdicts)
        head = (
            f"{self.verdict}: {n} of {len(self.verdicts)} promises, "
            f"over {self.n_rows:,} published rows"
        )
        notes = [f"  note: {BY_ROWS}"] if self.each_row else []
        return "\n".join([head, *notes, *(f"  {verdict.line()}" for verdict in self.verdicts)])


def decide(
    name: str,
    flaws: Sequence[str],
    *,
    kept: str,
    doubt: str | None = None,
    figures: Mapping[str, Figure] | None = None,
) -> Verdict:
    """Return a verdict: a flaw breaks the promise, a doubt leaves it unverifiable.

    >>> decide("k", [], kept="all fine", doubt="no trace was given").verdict
    'unverifiable'
    """
    if flaws:
        return Verdict(name, "broken", "; ".join(flaws), figures or {})
    if doubt is not None:
        return Verdict(name, "unverifiable", doubt, figures or {})
    return Verdict(name, "kept", kept, figures or {})
