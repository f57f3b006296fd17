"""What makes delays grow: when due times are drawn, the bound, or the window that is sampled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from benchmarks.figures.model import Claim, Curve, Figure, Panel, Reading, Verdict, rises
from benchmarks.figures.trees.settings import TreeSizes
from benchmarks.figures.trees.trial import LABELS, TREES, Due, Setting, Trials
from benchmarks.figures.trees.words import LITTLE, alike, joint, stable

__all__ = ["figure_due"]

#: The one method that is run with another window, too. (With fewer rows for each sample the full
#: method looks for more neighbours, and takes many times as long.)
SAMPLED = "tree-density"
#: When due times are drawn, in words.
_WORDS: dict[Due, str] = {"drawn": "drawn once", "current": "drawn at every instant"}


def figure_due(sizes: TreeSizes) -> Figure:
    """Mean delays and costs, with one of the differences from the paper at a time."""
    trials = Trials(sizes.few_seeds)
    usual = [replace(sizes.usual(), rows=rows) for rows in sizes.due_rows]
    variants = _variants(sizes)
    found = {
        name: {
            label: [trials.found(change(setting), name) for setting in usual]
            for label, change in variants.items()
            if name == SAMPLED or "W" not in label
        }
        for name in TREES
    }
    delays = {
        name: {label: [one.delay for one in cells] for label, cells in some.items()}
        for name, some in found.items()
    }
    costs = {
        name: {label: [one.cost for one in cells] for label, cells in some.items()}
        for name, some in found.items()
    }
    panels = [
        Panel(
            LABELS[name], "rows", sizes.due_rows,
            tuple(Curve(label, cells) for label, cells in of[name].items()), what, axis, log_y=True,
        )
        for name in TREES
        for of, what, axis in (
            (delays, "Mean delay in rows", "mean delay, rows"),
            (costs, "Information loss, cost(T)", "cost(T), sum over attributes"),
        )
    ]  # fmt: skip
    return Figure(
        "due", "Which difference from the paper makes delays grow",
        f"SAL(n, {sizes.n_quasi}), k = {sizes.k}, α = {sizes.alpha:g}, {sizes.samples:,} samples "
        f"of the latest W = {sizes.sampled:,} rows. Due times are drawn once for each leaf, as "
        "in the paper, or at every instant; rows are held without a bound, or at most "
        f"{sizes.wide.capacity:,}; W is as said or {sizes.due_sampled:,}. {trials}",
        tuple(panels), tuple(_claims(delays)), page="trees", source="the question",
        one_axis=False, heading="Due times",
    )  # fmt: skip


def _variants(sizes: TreeSizes) -> dict[str, Callable[[Setting], Setting]]:
    """How the usual setting is changed, by label."""

    def free(setting: Setting, due: Due) -> Setting:
        # A delay as long as the stream is never reached.
        return replace(setting, due=due, capacity=0, delay=setting.rows)

    made: dict[str, Callable[[Setting], Setting]] = {}
    for due, words in _WORDS.items():
        made[words] = lambda one, due=due: free(one, due)
        made[f"{words}, {sizes.wide.capacity:,} held"] = lambda one, due=due: replace(one, due=due)
        made[f"{words}, W = {sizes.due_sampled:,}"] = lambda one, due=due: replace(
            free(one, due), sampled=sizes.due_sampled
        )
    return made


def _claims(delays: dict[str, dict[str, list[Reading]]]) -> list[Claim]:
    """What each of the differences does to the delay."""
    claims = []
    for words in _WORDS.values():
        judged: dict[str, Callable[[list[Reading]], tuple[Verdict, str]]] = {
            f"{words}, the delay is stable; here: up to {LITTLE:.0%} apart": stable,
            f"{words}, the delay grows with the stream": rises,
        }
        for sentence, judge in judged.items():
            claims.append(
                Claim(
                    f"{sentence[0].upper()}{sentence[1:]}.",
                    *joint({LABELS[name]: judge(of[words]) for name, of in delays.items()}),
                )
            )
        for label in delays[SAMPLED]:
            if not label.startswith(f"{words}, "):
                continue
            other = label.removeprefix(f"{words}, ")
            claims.append(
                Claim(
                    f"{words.capitalize()}, it is the same with {other}; here: up to "
                    f"{LITTLE:.0%}, or the spreads.",
                    *joint({
                        LABELS[name]: alike(of[label], of[words])
                        for name, of in delays.items() if label in of
                    }),
                )
            )  # fmt: skip
    return claims
