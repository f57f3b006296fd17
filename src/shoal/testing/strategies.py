"""Hypothesis strategies: instances of an anonymizer, and streams whose policy it can enforce.

Streams are small and adversarial: few and many subjects, constant and skewed columns, equal and
decreasing times, k above the number of people, delays beyond the end, columns with gaps and columns
of gaps. Everything shrinks towards fewer rows, fewer columns and an easier policy.
"""

from __future__ import annotations

import contextlib
import dataclasses
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from shoal.engine.base import Anonymizer
from shoal.engine.space import Codes
from shoal.errors import ParameterError, UnsupportedError
from shoal.spec.criteria import misfits
from shoal.spec.hierarchy import Domain, Hierarchy, Range
from shoal.spec.policy import (
    Criterion,
    Delay,
    DistinctLDiversity,
    EntropyLDiversity,
    KAnonymity,
    Measured,
    Missing,
    Policy,
    RecursiveLDiversity,
    Window,
)
from shoal.spec.schema import Quasi, Schema, Sensitive
from shoal.testing.base_strategies import (
    GAPS_IN_TIME,
    batch_cuts,
    clock_ticks,
    hierarchies,
    ranges,
    row_lists,
)
from shoal.testing.definitions import examples
from shoal.testing.definitions.measured import code_of
from shoal.testing.hostile import further_criteria, missing_modes
from shoal.testing.streams import Stream
from shoal.testing.z.strategies import cell_streams

__all__ = ["anonymizers", "hierarchies", "policies", "ranges", "schemas", "streams"]

MAX_ROWS = 40


@st.composite
def anonymizers(draw: st.DrawFn, anonymizer: type[Anonymizer]) -> Anonymizer:
    """Draw an anonymizer with values for its knobs.

    A knob that is a whole number gets its default or a small one, any other number its default or
    one from 0 to 1, a knob that is a choice any of its values; what the class refuses isn't drawn.
    """
    hints = get_type_hints(anonymizer)
    knobs: dict[str, Any] = {}
    for knob in dataclasses.fields(anonymizer):
        if hints[knob.name] is int:
            known = _taken(anonymizer, knob.name, (knob.default, 0, 1, 2, 5))
            knobs[knob.name] = draw(st.sampled_from(known))
        elif hints[knob.name] is float:
            known = _taken(anonymizer, knob.name, (knob.default, 0.0, 0.6, 1.0))
            knobs[knob.name] = draw(st.sampled_from(known))
        elif get_origin(hints[knob.name]) is Literal:
            knobs[knob.name] = draw(st.sampled_from(get_args(hints[knob.name])))
    try:
        return anonymizer(**knobs)
    except ParameterError:
        assume(False)
        raise


def _taken(anonymizer: type[Anonymizer], knob: str, values: tuple[Any, ...]) -> list[Any]:
    """Return the values that a class accepts for a knob, with defaults for all others."""
    taken = []
    for value in values:
        with contextlib.suppress(ParameterError):
            anonymizer(**{knob: value})
            taken.append(value)
    return taken


@st.composite
def schemas(draw: st.DrawFn, *, max_quasi: int = 5, max_sensitive: int = 2) -> Schema:
    """Draw quasi attributes of both kinds with weights, and sensitive ones of any kind."""
    domains = draw(st.lists(ranges() | hierarchies(), min_size=1, max_size=max_quasi))
    weight = st.sampled_from([1.0, 0.5, 3.0])
    quasi = [Quasi(f"q{d}", domain, draw(weight)) for d, domain in enumerate(domains)]
    domain = st.none() | hierarchies() | ranges()
    # Drawn as a number, none is as likely as any other; drawn lists are mostly short.
    sensitive = [draw(domain) for _ in range(draw(st.integers(0, max_sensitive)))]
    return Schema("person", quasi, [Sensitive(f"s{j}", each) for j, each in enumerate(sensitive)])


@st.composite
def _measured(draw: st.DrawFn, anonymizer: type[Anonymizer], schema: Schema) -> list[Measured]:
    """Draw up to two measured criteria, each about one attribute that it fits or about all."""
    names = [*(each.name for each in schema.sensitive), None] if schema.sensitive else []
    known: dict[type[Measured], list[Measured]] = {}
    for each in examples():
        if not isinstance(each, Measured) or not isinstance(each, anonymizer.enforces):
            continue
        for name in names:
            criterion = dataclasses.replace(each, attribute=name)
            if _fits(schema, criterion):
                known.setdefault(type(each), []).append(criterion)
    if not known:
        return []
    form = st.sampled_from([*known.values()]).flatmap(st.sampled_from)
    return draw(st.lists(form, max_size=2))


def _fits(schema: Schema, criterion: Measured) -> bool:
    """Return whether a criterion fits all attributes that it is about."""
    about = [each for each in schema.sensitive if criterion.attribute in (None, each.name)]
    return not any(misfits(criterion, each) for each in about)


@st.composite
def policies(
    draw: st.DrawFn,
    anonymizer: type[Anonymizer],
    schema: Schema,
    *,
    n_subjects: int,
    n_rows: int,
    timed: bool,
    missing: Missing = "quarantine",
) -> Policy:
    """Draw a policy that an anonymizer can enforce on a schema.

    k goes from 1 to one more than there are subjects, the delay from one row to more than there
    are; a stream without time has no bound in seconds only. Measured criteria have a window: of the
    latest rows, one that advances, or the whole table, as the anonymizer publishes.
    """
    criteria: list[Criterion] = [*draw(_measured(anonymizer, schema))]
    by_window = anonymizer.publishes == "windows"
    assume(criteria or not by_window)
    is_measured = bool(criteria)
    if issubclass(KAnonymity, anonymizer.enforces) and (not criteria or draw(st.booleans())):
        criteria.append(KAnonymity(draw(st.sampled_from([2, 1, 3, 5, n_subjects + 1]))))
    names = [attribute.name for attribute in schema.sensitive]
    if names:
        named = st.sampled_from([None, *names])
        forms: list[tuple[type[Criterion], st.SearchStrategy[Criterion]]] = [
            (DistinctLDiversity, st.builds(DistinctLDiversity, st.integers(1, 3), named)),
            (
                EntropyLDiversity,
                st.builds(EntropyLDiversity, st.sampled_from([1.0, 1.5, 2.0]), named),
            ),
            (
                RecursiveLDiversity,
                st.builds(
                    RecursiveLDiversity, st.integers(1, 3), named, st.sampled_from([2.0, 0.7, 1.0])
                ),
            ),
        ]
        criteria += [
            draw(form)
            for kind, form in forms
            if issubclass(kind, anonymizer.enforces) and draw(st.booleans())
        ]
    if further := further_criteria(anonymizer):
        criteria += draw(st.sampled_from([[], *([each] for each in further)]))
    assume(criteria)
    if anonymizer.publishes == "table":
        return Policy(*criteria, missing=missing, window="all")
    window: Window | None = None
    if by_window:
        advance = draw(st.integers(1, 5))
        window = Window(rows=advance * draw(st.integers(1, 5)), advance=advance)
        rows = st.integers(window.rows + advance, window.rows + advance + n_rows)
    else:
        rows = st.integers(1, n_rows + 3)
    seconds = st.sampled_from([2.5, 0.5, 20.0, 1e6])
    delays: list[st.SearchStrategy[Delay | None]] = [st.builds(Delay, rows)]
    if timed:
        delays += [st.builds(Delay, rows, seconds), st.builds(Delay, st.none(), seconds)]
    if not anonymizer.needs_delay:
        delays.append(st.none())
    delay = draw(st.one_of(delays))
    if is_measured and not by_window:
        # A row must not be older than the window, so its delay in rows is bounded.
        assume(delay is not None and delay.rows is not None)
        longest = delay.rows if delay is not None and delay.rows is not None else 0
        window = Window(rows=longest + draw(st.integers(1, 30)))
    return Policy(*criteria, delay=delay, missing=missing, window=window)


def _values(domain: Domain) -> st.SearchStrategy[float]:
    if isinstance(domain, Hierarchy):
        return st.integers(0, len(domain) - 1).map(float)
    return st.floats(domain.lo, domain.hi, allow_subnormal=False) | st.sampled_from(
        [domain.lo, domain.hi]
    )


def _sensitive(domain: Domain | None) -> st.SearchStrategy[list[int]]:
    """Draw a pool of a few codes."""
    if isinstance(domain, Range):
        numbers = st.sampled_from(
            [domain.lo, domain.hi, (domain.lo + domain.hi) / 2, domain.lo + 1]
        )
        return st.lists(numbers.map(code_of), min_size=1, max_size=4)
    most = 3 if domain is None else len(domain) - 1
    return st.lists(st.integers(0, most), min_size=1, max_size=4)


def _gappy(pool: list[float]) -> list[list[float]]:
    """Return a pool as it is, with some missing values, with many, and with nothing else."""
    return [pool, [*pool, np.nan], [*pool, *[np.nan] * 2 * len(pool)], [np.nan]]


@st.composite
def streams(draw: st.DrawFn, anonymizer: type[Anonymizer], *, max_rows: int = MAX_ROWS) -> Stream:
    """Draw a schema, a policy that the anonymizer can enforce, rows, ticks and cuts.

    Each column has a pool of a few values that its rows draw from: a pool of one is a constant
    column, a value that is often in it a skewed one. Where the policy allows missing values, some
    pools have them, and some have nothing else. An anonymizer that publishes cells gets cells.
    """
    if anonymizer.publishes == "values":
        return draw(cell_streams(anonymizer, max_rows=max_rows))
    schema = draw(schemas())
    n_subjects = draw(st.sampled_from([6, 1, 2, 40]))
    timed = draw(st.booleans())
    missing = draw(st.sampled_from(missing_modes(anonymizer)))
    pools = [draw(st.lists(_values(a.sided), min_size=1, max_size=4)) for a in schema.quasi]
    if missing != "quarantine":
        pools = [draw(st.sampled_from(_gappy(pool))) for pool in pools]
    secrets = [draw(_sensitive(attribute.domain)) for attribute in schema.sensitive]
    row = st.tuples(
        st.integers(0, n_subjects - 1),
        st.tuples(*(st.sampled_from(pool) for pool in pools)),
        st.tuples(*(st.sampled_from(pool) for pool in secrets)),
        GAPS_IN_TIME if timed else st.just(np.nan),
    )
    rows = draw(row_lists(row, max_rows))
    n = len(rows)
    policy = draw(
        policies(anonymizer, schema, n_subjects=n_subjects, n_rows=n, timed=timed, missing=missing)
    )
    try:
        anonymizer().check(policy)
    except UnsupportedError:
        # An anonymizer may refuse a combination of what it can enforce.
        assume(False)
    times = np.cumsum([gap for *_, gap in rows])
    ticks = draw(clock_ticks(times)) if timed else ()
    codes = Codes(
        np.array([values for _, values, _, _ in rows], float).reshape(n, len(schema.quasi)),
        np.array([subject for subject, *_ in rows], np.int64),
        np.array([codes for _, _, codes, _ in rows], np.int64).reshape(n, len(schema.sensitive)),
        times,
    )
    return Stream(schema, policy, codes, ticks, draw(batch_cuts(n)))
