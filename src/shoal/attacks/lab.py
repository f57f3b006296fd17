"""Make attacks on a release, with their control, and report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.attacks.base import Attack
from shoal.attacks.registry import find, names
from shoal.attacks.result import NO_TRACE, AttackReport, AttackResult
from shoal.attacks.setting import Setting
from shoal.errors import ParameterError

__all__ = ["attack", "control_of", "listed"]


def attack(
    setting: Setting,
    attacks: str | Sequence[str] | None = None,
    *,
    control: float | None = None,
    watch: Callable[[str], None] | None = None,
) -> AttackReport:
    """Make attacks on a release; return what they achieved.

    Parameters
    ----------
    setting
        The release, and what is known.
    attacks
        The names of the attacks, or one of them; None: all.
    control
        The share of people for the control: the attacks are made on them alone, in the release that
        they are in, and again in one that is made without them. None: no control.
    watch
        Called with the name of each attack before it begins.
    """
    chosen = [find(name)() for name in (names() if attacks is None else listed(attacks))]
    without = None
    if control is not None:
        if watch is not None:
            watch("the run without the control")
        setting, without = control_of(setting, control)
    results: list[AttackResult] = []
    for each in chosen:
        if watch is not None:
            watch(each.name)
        found = _made(each, setting)
        if without is not None and each.has_control:
            found = _with_control(found, _made(each, without))
        results += found
    return AttackReport(tuple(results), setting.published.num_rows, setting.schema.each_row)


def listed(names: str | Sequence[str]) -> tuple[str, ...]:
    """Return names as a tuple; a text is one name.

    >>> listed("linking"), listed(["edges", "linking"])
    (('linking',), ('edges', 'linking'))
    """
    return (names,) if isinstance(names, str) else tuple(names)


def control_of(setting: Setting, share: float) -> tuple[Setting, Setting]:
    """Return the setting with a share of the people as targets, and one that they aren't in."""
    if not 0 < share < 1:
        raise ParameterError("control", "must be a share between 0 and 1", got=f"{share:g}")
    if setting.rerun is None:
        raise ParameterError(
            "control", "needs a job that can be run again", fix="Give a job, or leave it out"
        )
    random = setting.random("control")
    people = np.unique(setting.subjects)
    n = min(max(1, round(share * len(people))), len(people))
    out = np.isin(setting.subjects, random.choice(people, n, replace=False))
    kept = np.flatnonzero(~out)
    rest = setting.original.take(pa.array(kept))
    run = setting.rerun(rest, int(random.integers(2**31)))
    without = replace(
        setting,
        published=run.published,
        trace=_renumbered(run.trace, kept, setting.original_rows),
        among=out,
    )
    return replace(setting, among=out), without


def _renumbered(
    trace: pa.Table, kept: NDArray[np.int64], original_rows: NDArray[np.int64] | None
) -> pa.Table:
    """Return a trace with the positions of the whole input, instead of those of the rows kept."""
    rows = kept if original_rows is None else original_rows[kept]
    at = trace.schema.names.index("row")
    moved = rows[trace.column(at).to_numpy()]
    return trace.set_column(at, "row", pa.array(moved))


def _made(each: Attack, setting: Setting) -> list[AttackResult]:
    if (reason := each.misfit(setting)) is not None:
        return [AttackResult(each.name, "-", notes=(reason,))]
    if each.needs_trace and setting.trace is None:
        return [AttackResult(each.name, "-", unverifiable=NO_TRACE)]
    return list(each.run(setting))


def _with_control(
    found: Sequence[AttackResult], without: Sequence[AttackResult]
) -> list[AttackResult]:
    control = {result.knowledge: result.success for result in without}
    return [replace(result, control=control.get(result.knowledge)) for result in found]
