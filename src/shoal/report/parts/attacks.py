"""Part 4: what the attacks of the laboratory achieved."""

from __future__ import annotations

from typing import Any

from shoal.attacks import AttackReport
from shoal.report.charts import Axis, Bar, bars
from shoal.report.markup import Markup, tag
from shoal.report.page import Section, bullets, note, paragraph, side, table
from shoal.report.words import count, percent

__all__ = ["measure", "show"]

TITLE = "4. Attacks on the release"
_KINDS = {"within": "kept", "exceeded": "broken", "unverifiable": "unverifiable"}
#: The most bars below each other.
_COLUMN = 6
NOT_PUBLIC = (
    "The success of an attack is counted with the original, so a public report doesn't have it."
)
NOT_MADE = "No attacks were run on this release."
_CONTROL = (
    "The control is the same attack on the same people in a second run that they aren't in: what "
    "it achieves is what the release teaches about everybody. Risk is (success - control) / (1 - "
    "control): what somebody risks by being in the stream. Attacks that make no sense on somebody "
    "who isn't there have none."
)
_NO_CONTROL = (
    "No control was made, so that what a release reveals about its own people isn't separated "
    "from what it teaches about everybody. It takes a second run of the job without some of them: "
    "shoal report --control 0.2."
)


def measure(report: AttackReport | None, *, why: str = NOT_MADE) -> dict[str, Any]:
    """Return the results, or why there are none."""
    if report is None:
        return {"applies": False, "why": why}
    return {"applies": True} | report.as_dict()


def show(figures: dict[str, Any]) -> Section:
    """Return the part as a section."""
    if not figures["applies"]:
        return Section(TITLE, [note(figures["why"])])
    found = figures["attacks"]
    made = [each for each in found if each["success"] is not None and each["success"]["attempts"]]
    parts = [
        paragraph(
            "Each attack was made on people of the original, as an attacker with the stated "
            "knowledge would. Success is the share of people for whom it was right, with a Wilson "
            "interval of 95 %, or exact where everybody was attacked and probabilities were "
            "counted; the baseline guesses from what is published of everybody; the bound is what "
            "the promise allows."
        )
    ]
    parts.append(paragraph(_CONTROL if _has_control(made) else _NO_CONTROL))
    if figures["verdict"] == "exceeded":
        said = "An attack succeeded more often than the promise allows."
        parts.append(note(tag("span", "exceeded", class_="broken"), f": {said}", kind="warning"))
    if made:
        parts.append(_table(made))
        parts.append(_charts(made))
    others = [
        f"{each['attack']}: {why}"
        for each in found
        if each not in made and (why := each["unverifiable"] or "; ".join(each["notes"]))
    ]
    if others:
        parts += [
            paragraph("Not run, or impossible to judge:"),
            bullets(list(dict.fromkeys(others))),
        ]
    notes = [f"{each['attack']}: {text}" for each in made for text in each["notes"]]
    if notes:
        parts += [paragraph("Other findings:"), bullets(list(dict.fromkeys(notes)))]
    return Section(TITLE, parts)


def _charts(made: list[dict[str, Any]]) -> Markup:
    """Return the most successful grade of each attack, in two columns if there are many."""
    best: dict[str, dict[str, Any]] = {}
    for each in made:
        known = best.get(each["attack"])
        if known is None or each["success"]["rate"] > known["success"]["rate"]:
            best[each["attack"]] = each
    values = [
        Bar(
            f"{each['attack']}: {each['knowledge']}",
            [each["success"]["rate"], each["baseline"], each["bound"]],
        )
        for each in best.values()
    ]
    half = len(values) if len(values) <= _COLUMN else -(-len(values) // 2)
    names = ["success", "baseline", "bound of the promise"]
    axis = Axis("share of people", "%", lo=0, hi=1)
    title = "Success of each attack by its best knowledge"
    columns = [values[:half], values[half:]] if values[half:] else [values]
    return side(
        *(
            bars(title if i == 0 else f"{title}, continued", column, axis, names=names)
            for i, column in enumerate(columns)
        )
    )


def _has_control(made: list[dict[str, Any]]) -> bool:
    return any(each["control"] is not None for each in made)


def _table(made: list[dict[str, Any]]) -> Any:
    """Return the results as a table; without a control it has no columns for it."""
    has_control = _has_control(made)
    rows = []
    for each in made:
        success, control = each["success"], each["control"]
        low, high = success["low"], success["high"]
        controlled = [
            "none" if control is None else percent(control["rate"]),
            "none" if each["risk"] is None else f"{each['risk']:.3f}",
        ]
        rows.append(
            [
                each["attack"], each["knowledge"], count(success["attempts"]),
                percent(success["rate"]),
                "exact" if success["exact"] else f"{100 * low:.1f} to {100 * high:.1f} %",
                _or_none(each["baseline"]), *(controlled if has_control else ()),
                _or_none(each["bound"]),
                tag("span", each["verdict"], class_=_KINDS.get(each["verdict"])),
            ]
        )  # fmt: skip
    heads = ["attack", "the attacker knows", "people", "success", "interval", "baseline",
             *(["control", "risk"] if has_control else ()), "bound", "verdict"]  # fmt: skip
    return table("Success of attacks, in people", heads, rows, numbers=range(2, len(heads) - 1))


def _or_none(share: float | None) -> str:
    return "none" if share is None else percent(share)
