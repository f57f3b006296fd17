"""What an attack achieved, and the report of all attacks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from shoal.attacks.shares import Share

__all__ = ["NO_TRACE", "AttackReport", "AttackResult", "Judgement"]

#: How a success compares with the promise. ``unbounded``: the promise gives no bound for this
#: attack. ``skipped``: there is nothing that it could attack.
Judgement = Literal["within", "exceeded", "unbounded", "unverifiable", "skipped"]

#: Why an attack can't be judged whose successes only the trace tells.
NO_TRACE = "whether it succeeded can't be told without a trace"
#: A bound that is computed from shares is exact up to rounding.
SLACK = 1e-9


@dataclass(frozen=True, slots=True)
class AttackResult:
    """What one attack achieved, by an attacker who knows certain things.

    Parameters
    ----------
    attack
        The name of the attack.
    knowledge
        What the attacker knows, in words.
    success
        Attempts and successes, in people; None if the attack couldn't be made.
    baseline
        The success of guessing from the published marginals, without looking at groups.
    control
        The success of the same attack on the same people, in a release that they aren't in.
    bound
        The success that the promise allows; None: the promise gives no bound.
    bound_from
        Where the bound comes from, in words.
    notes
        What else was found: counts and columns, never a value of a person.
    unverifiable
        Why the attack couldn't be judged, or None.

    >>> AttackResult("linking", "all quasi values", Share(90, 1000), bound=0.05).verdict
    'exceeded'
    """

    attack: str
    knowledge: str
    success: Share | None = None
    baseline: float | None = None
    control: Share | None = None
    bound: float | None = None
    bound_from: str = ""
    notes: tuple[str, ...] = ()
    unverifiable: str | None = None

    @property
    def verdict(self) -> Judgement:
        """``exceeded`` if the whole interval of the success is above the bound.

        Where the success is exact, that is the success itself.
        """
        if self.unverifiable is not None:
            return "unverifiable"
        if self.success is None or not self.success.attempts:
            return "skipped"
        if self.bound is None:
            return "unbounded"
        return "exceeded" if self.success.interval[0] > self.bound + SLACK else "within"

    @property
    def risk(self) -> float | None:
        """(success - control) / (1 - control): what taking part adds; None without a control."""
        if self.success is None or self.control is None:
            return None
        attack, control = self.success.rate, self.control.rate
        if attack is None or control is None or control >= 1:
            return None
        return (attack - control) / (1 - control)

    def as_dict(self) -> dict[str, object]:
        """Return the result as plain values, for JSON."""
        return {
            "attack": self.attack,
            "knowledge": self.knowledge,
            "verdict": self.verdict,
            "success": None if self.success is None else self.success.as_dict(),
            "baseline": self.baseline,
            "control": None if self.control is None else self.control.as_dict(),
            "risk": self.risk,
            "bound": self.bound,
            "bound_from": self.bound_from,
            "notes": list(self.notes),
            "unverifiable": self.unverifiable,
        }


@dataclass(frozen=True, slots=True)
class AttackReport:
    """The results of all attacks on one release.

    >>> AttackReport([AttackResult("linking", "all", Share(9, 10), bound=0.1)], n_rows=7).exit_code
    1
    """

    results: Sequence[AttackResult]
    n_rows: int
    each_row: bool = False
    """Whether each row was counted as a subject of its own."""

    @property
    def verdict(self) -> Judgement:
        """The worst of all: exceeded, else unverifiable, else within or unbounded."""
        found = {result.verdict for result in self.results}
        order: tuple[Judgement, ...] = ("exceeded", "unverifiable", "within", "unbounded")
        return next((each for each in order if each in found), "skipped")

    @property
    def exit_code(self) -> int:
        """1 if a success is above what the policy promises, 6 if that can't be told, else 0."""
        return {"exceeded": 1, "unverifiable": 6, "skipped": 6}.get(self.verdict, 0)

    def of(self, attack: str) -> tuple[AttackResult, ...]:
        """Return the results of one attack, one for each grade of knowledge."""
        return tuple(result for result in self.results if result.attack == attack)

    def as_dict(self) -> dict[str, object]:
        """Return the report as plain values, for JSON."""
        return {
            "verdict": self.verdict,
            "exit_code": self.exit_code,
            "n_rows": self.n_rows,
            "each_row": self.each_row,
            "attacks": [result.as_dict() for result in self.results],
        }

    def __str__(self) -> str:
        lines = [self.headline(), *filter(None, [self.beyond_promise()])]
        return "\n".join([*lines, *table(self.results), *_notes(self.results)])

    def beyond_promise(self) -> str:
        """Return the strongest attack that no promise bounds, in one line; "" if there is none.

        Only what the baseline doesn't explain counts: the whole interval lies above it.
        """
        found = [
            (result.success.interval[0] - (result.baseline or 0.0), result.success, result)
            for result in self.results
            if result.verdict == "unbounded" and result.success is not None
        ]
        excess, success, worst = max(found, key=lambda each: each[0], default=(0.0, None, None))
        if success is None or worst is None or excess <= 0:
            return ""
        return (
            f"no promise bounds {worst.attack} ({worst.knowledge}): it succeeds for "
            f"{percent(success.rate)} of {success.attempts:,} people; "
            f"the baseline is {percent(worst.baseline)}"
        )

    def headline(self) -> str:
        """Return the report in one line."""
        n = sum(result.verdict == self.verdict for result in self.results)
        what = {
            "exceeded": "succeeded more often than the policy promises",
            "unverifiable": "couldn't be judged",
            "within": "stayed within what the policy promises; none exceeded it",
            "unbounded": "were made, and the policy promises nothing about them",
            "skipped": "were skipped: there was nothing to attack",
        }[self.verdict]
        return f"{n} of {len(self.results)} attacks {what}, over {self.n_rows:,} published rows"


#: The columns of the table; the first two and the last are text.
HEAD = ("attack", "knows", "people", "success", "interval", "baseline", "control", "risk", "bound",
        "verdict")  # fmt: skip


def cells(result: AttackResult) -> tuple[str, ...]:
    """Return the cells of a result, in the order of `HEAD`."""
    success = result.success
    measured = success is not None and success.attempts > 0
    low, high = success.interval if success is not None else (0.0, 1.0)
    return (
        result.attack,
        result.knowledge,
        f"{success.attempts:,}" if success is not None and measured else "-",
        percent(success.rate if success is not None else None),
        f"{100 * low:.1f}-{100 * high:.1f} %" if measured else "-",
        percent(result.baseline),
        percent(None if result.control is None else result.control.rate),
        "-" if result.risk is None else f"{result.risk:.3f}",
        percent(result.bound),
        result.verdict,
    )


def percent(share: float | None) -> str:
    """Return a share as text; a dash where there is none."""
    return "-" if share is None else f"{100 * share:.1f} %"


def table(results: Sequence[AttackResult]) -> list[str]:
    """Return the results as lines of a table, in plain text; no columns for a control not made."""
    shown = [
        i
        for i, name in enumerate(HEAD)
        if name not in ("control", "risk") or any(each.control is not None for each in results)
    ]
    lines = [[line[i] for i in shown] for line in (HEAD, *(cells(result) for result in results))]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = {0, 1, len(shown) - 1}
    return [
        "  ".join(
            cell.ljust(width) if i in text else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]


def _notes(results: Sequence[AttackResult]) -> list[str]:
    found = []
    for result in results:
        texts = [*result.notes, *([result.unverifiable] if result.unverifiable else [])]
        found += [f"  {result.attack}: {text}" for text in texts]
    return list(dict.fromkeys(found))
