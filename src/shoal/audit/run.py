"""Gather the evidence, run every check, and report."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.audit import (
    arrival,
    conservation,
    cover,
    delay,
    grouping,
    missing,
    secrecy,
    shape,
    suppression,
)
from shoal.audit import loss as losses
from shoal.audit import order as orders
from shoal.audit.criteria import checker_of
from shoal.audit.evidence import Evidence, Loss, Order, Suppressed
from shoal.audit.labels import Numeric
from shoal.audit.report import Report, Verdict
from shoal.audit.trace import read_trace
from shoal.audit.z import Count, ZEvidence, judge, read_cell_trace
from shoal.errors import ParameterError, check_choice
from shoal.spec.policy import Policy, ZAnonymity
from shoal.spec.schema import Schema

__all__ = ["audit"]

_BEFORE: tuple[Callable[[Evidence], Verdict], ...] = (shape.check, secrecy.check)
_AFTER: tuple[Callable[[Evidence], Verdict | None], ...] = (
    grouping.check,
    orders.check,
    suppression.check,
    arrival.check,
    delay.check,
    conservation.check,
    cover.check,
    missing.check,
    losses.check,
)

#: Why the verdict about a criterion is open.
NO_CHECK = "the audit has no check of this criterion"


def audit(
    schema: Schema,
    policy: Policy,
    published: pa.Table,
    *,
    numeric: Numeric = "range",
    suppressed: Suppressed = "drop",
    order: Order | None = None,
    loss: Loss | None = None,
    reuse: bool | None = None,
    trace: pa.Table | None = None,
    original: pa.Table | None = None,
    original_rows: NDArray[np.int64] | None = None,
    n_quarantined: int | None = None,
    n_unreadable: int = 0,
    files: Sequence[Path] = (),
    count: Count = "residual",
    pseudonym: bool = False,
    rotate: float | None = None,
    time: float | None = None,
    since: float = math.nan,
    may_hold: bool = False,
) -> Report:
    """Judge whether an output keeps what was promised.

    Parameters
    ----------
    schema, policy
        What the columns are, and what was promised.
    published
        The output, as it was published.
    numeric
        How numbers are published: ``range``, ``bounds`` or ``midpoint``.
    suppressed
        What became of suppressed rows: ``drop`` or ``root``.
    order
        In which order rows leave: ``released``, ``shuffled`` or ``arrival``. None: any of them.
    loss
        How boxes lose: ``glm``, ``lm`` or ``uncertainty``. None: any of them.
    reuse
        Whether rows may join groups that were published before. None: that isn't known.
    trace
        The private trace of the run. Without it much can't be verified.
    original
        The input of the run; its values may be text.
    original_rows
        The position in the input of each row of ``original``, where rows that couldn't be read are
        missing from it; None if it has them all.
    n_quarantined
        How many rows there are in the quarantine, if that is known.
    n_unreadable
        How many lines of the output aren't rows, so that nobody knows what they hold.
    files
        The files that ``published`` was read from. They may hold what a table doesn't show.
    count
        Under z-anonymity, which subjects count for a parent: ``residual``, those whose finer value
        is neither public nor one subject short of it, or ``plain``, all who exposed one under it.
    pseudonym, rotate
        Under z-anonymity, whether pseudonyms are published, and the length of the period that each
        lives for, in the unit of the window.
    time
        Under z-anonymity, to how many seconds published times are rounded down; 0: not at all,
        None: none are published.
    since
        The latest time of the rows before, if these are a part of a stream; see `audit_parts`.
    may_hold
        Whether the job goes on later: rows without a line in the trace may be held, or not be read.

    >>> from shoal.spec.hierarchy import Range
    >>> from shoal.spec.policy import KAnonymity
    >>> from shoal.spec.schema import Quasi
    >>> schema = Schema(subject=None, quasi=[Quasi("age", Range(17, 90, step=1))])
    >>> table = pa.table({"age": ["[20, 30]", "[20, 30]", "[31, 40]"]})
    >>> report = audit(schema, Policy(KAnonymity(2)), table)
    >>> report["k-anonymity"].verdict
    'broken'
    """
    check_choice("numeric", numeric, get_args(Numeric))
    check_choice("suppressed", suppressed, get_args(Suppressed))
    if order is not None:
        check_choice("order", order, get_args(Order))
    if loss is not None:
        check_choice("loss", loss, get_args(Loss))
    policy.check(schema)
    if original is not None:
        _check_original(schema, original, original_rows)
    _check_cells(policy, count, pseudonym, rotate, time)
    if policy.per_value:
        names = [attribute.name for attribute in schema.quasi]
        report = judge(
            ZEvidence(
                schema,
                policy,
                published,
                suppressed=suppressed,
                trace=None if trace is None else read_cell_trace(trace, names),
                original=original,
                original_rows=original_rows,
                n_quarantined=n_quarantined,
                n_unreadable=n_unreadable,
                files=files,
                count=count,
                pseudonym=pseudonym,
                rotate=rotate,
                time=time,
                since=since,
                may_hold=may_hold,
            )
        )
        # A stricter class of one's own has no check here, whatever the one of z says.
        others = [each for each in policy.criteria if type(each) is not ZAnonymity]
        unknown = [Verdict(each.name, "unverifiable", NO_CHECK) for each in others]
        return Report((*report.verdicts, *unknown), report.n_rows)
    evidence = Evidence(
        schema,
        policy,
        published,
        numeric=numeric,
        suppressed=suppressed,
        trace=None if trace is None else read_trace(trace),
        original=original,
        original_rows=original_rows,
        n_quarantined=n_quarantined,
        order=order,
        loss=loss,
        reuse=reuse,
        n_unreadable=n_unreadable,
        files=files,
        since=since,
        may_hold=may_hold,
    )
    verdicts = [check(evidence) for check in _BEFORE]
    for criterion in policy.criteria:
        checker = checker_of(criterion)
        if checker is None:
            verdicts.append(Verdict(criterion.name, "unverifiable", NO_CHECK))
        else:
            # A promise that nothing is said about isn't kept.
            nothing = Verdict(criterion.name, "unverifiable", "its check has no result")
            verdicts.extend(checker(evidence, criterion) or [nothing])
    found = (check(evidence) for check in _AFTER)
    verdicts.extend(verdict for verdict in found if verdict is not None)
    return Report(tuple(verdicts), evidence.n_rows, each_row=schema.each_row)


def _check_cells(
    policy: Policy, count: Count, pseudonym: bool, rotate: float | None, time: float | None
) -> None:
    """Refuse parameters that contradict each other, or a policy without z."""
    check_choice("count", count, get_args(Count))
    if not policy.per_value and (pseudonym or time is not None):
        raise ParameterError(
            "pseudonym" if pseudonym else "time",
            "can be published under z-anonymity alone",
            fix="Leave it out, or give a policy that promises z",
        )
    if rotate is not None and not (pseudonym and math.isfinite(rotate) and rotate > 0):
        what = "must be above 0, for pseudonyms that are published"
        raise ParameterError("rotate", what, got=repr(rotate))
    if time is not None and not (math.isfinite(time) and time >= 0):
        what = "must be a finite number of seconds, of at least 0"
        raise ParameterError("time", what, got=repr(time))


def _check_original(
    schema: Schema, original: pa.Table, original_rows: NDArray[np.int64] | None
) -> None:
    missing = [name for name in schema.columns if name not in original.schema.names]
    if missing:
        raise ParameterError(
            "original",
            f"lacks the columns {', '.join(missing)}",
            fix="Give the input that the run has read",
        )
    if original_rows is not None and len(original_rows) != original.num_rows:
        raise ParameterError(
            "original_rows",
            f"must have one position for each of {original.num_rows:,} rows",
            got=f"{len(original_rows):,}",
        )
