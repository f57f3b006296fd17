"""The grid of a job: its policy with other values of k, l, t and delay, and other algorithms."""

from __future__ import annotations

import copy
import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from shoal import algorithms
from shoal.compare.cells import Cell, cells_of
from shoal.engine.base import Anonymizer
from shoal.errors import JobError, ParameterError, Problem, did_you_mean
from shoal.job.file import Job
from shoal.job.form import PolicyForm, keyed
from shoal.job.policy import PROMISES, check_policy, policy_of
from shoal.spec.policy import Delay, Policy
from shoal.spec.schema import Schema

__all__ = ["JobGrid", "Values", "grid_of", "numbers_of"]

#: The values of a key of the policy; of the delay, the names of its limits with their values.
Values = Mapping[str, Sequence[Any]]


class JobGrid(NamedTuple):
    """The cells of a job's grid.

    ``own`` is the job's own policy, and ``sections`` has what the ``[policy]`` of a job file says
    for each policy of the grid.
    """

    cells: list[Cell]
    own: Policy
    sections: dict[Policy, dict[str, Any]]
    warnings: tuple[str, ...]


def grid_of(job: Job, policy: Mapping[str, Any], names: Sequence[str], values: Values) -> JobGrid:
    """Return the grid of a job.

    Parameters
    ----------
    job
        The job.
    policy
        Its ``[policy]``, as in the file.
    names
        The algorithms; ``all`` are all that there are. That of the job has its knobs, the others
        have their defaults, and the job's measure of loss.
    values
        What is tried, by key: k, l, t, delay. What isn't named stays as the job says.

    Raises
    ------
    JobError
        If a name is unknown, or a policy makes no sense.
    """
    anonymizers = _anonymizers(job, names)
    keys = [key for key in values if values[key]]
    sections: dict[Policy, dict[str, Any]] = {}
    for chosen in itertools.product(*(values[key] for key in keys)):
        section = copy.deepcopy(dict(policy))
        for key, value in zip(keys, chosen, strict=True):
            section[key] = _replaced(key, section.get(key), value)
        made = _policy(section, job.schema)
        sections.setdefault(_by_rows(made, job.schema), section)
    by_wall = job.policy.delay is not None and job.policy.delay.by_wall(job.schema)
    warned = (_BY_WALL,) if by_wall else ()
    own = _by_rows(job.policy, job.schema) if _has_rows(job.policy) else job.policy
    return JobGrid(cells_of([*sections], anonymizers), own, sections, warned)


def _policy(section: Mapping[str, Any], schema: Schema) -> Policy:
    """Return the policy of a section; its problems have the keys of the job file."""
    try:
        made = policy_of(PolicyForm.model_validate(section))
        check_policy(made, schema, section)
    except JobError as error:
        problems = [keyed("policy", problem) for problem in error.problems]
        raise JobError(
            [
                dataclasses.replace(problem, fix=_WINDOW)
                if problem.key == "policy.window" and "window" not in section
                else problem
                for problem in problems
            ]
        ) from None
    return made


_WINDOW = (
    "Write it into [policy] of the job, for example window = { rows = 20000, advance = 5000 }; or "
    'window = "all", without a delay, for a table'
)
_BY_WALL = (
    "the delay in seconds is by the wall clock, and a file doesn't tell when its rows arrive: only "
    "the delay in rows is compared"
)


def _has_rows(policy: Policy) -> bool:
    return policy.delay is None or policy.delay.rows is not None


def _by_rows(policy: Policy, schema: Schema) -> Policy:
    """Return a policy without seconds of the wall clock, which a file doesn't tell."""
    delay = policy.delay
    if delay is None or not delay.by_wall(schema):
        return policy
    if delay.rows is None:
        what = "is by the wall clock, and a file doesn't tell when its rows arrive"
        fix = "Give delays in rows, such as --delay 1000; or name the column of the times"
        raise JobError(Problem("policy.delay", what, None, fix))
    return Policy(
        *policy.criteria, delay=Delay(rows=delay.rows), lateness=policy.lateness,
        ahead=policy.ahead, missing=policy.missing, window=policy.window,
    )  # fmt: skip


def _replaced(key: str, given: Any, value: Any) -> Any:
    """Return what the policy says of a key, with another number; form and attributes stay.

    >>> _replaced("l", {"illness": {"entropy": 3}}, 2)
    {'illness': {'entropy': 2}}
    """
    if key == "delay":
        limit, number = value
        return {**(given or {}), limit: number}
    if not isinstance(given, dict):
        return value
    form = next((form for form in PROMISES[key].forms if form in given), None)
    if form is not None:
        return {**given, form: value}
    return {attribute: _replaced(key, part, value) for attribute, part in given.items()}


def _anonymizers(job: Job, names: Sequence[str]) -> list[Anonymizer]:
    known = algorithms.names()
    wanted = known if "all" in names else tuple(dict.fromkeys(names))
    problems = [
        Problem("--algorithms", "isn't the name of an algorithm", repr(name),
                did_you_mean(name, [*known, "all"]) or "`shoal algorithms` lists them")
        for name in wanted
        if name not in known
    ]  # fmt: skip
    if problems or not wanted:
        raise JobError(problems or Problem("--algorithms", "names none", None, "Write all"))
    return [
        job.anonymizer
        if name == job.anonymizer.name
        else dataclasses.replace(algorithms.find(name)(), loss=job.anonymizer.loss)
        for name in wanted
    ]


def numbers_of(key: str, text: str | None) -> list[Any]:
    """Read the values of an option: numbers with commas between them.

    >>> numbers_of("k", "5, 10"), numbers_of("t", "0.2"), numbers_of("delay", "1000,30s")
    ([5, 10], [0.2], [('rows', 1000), ('seconds', 30)])
    """
    if text is None:
        return []
    return list(dict.fromkeys(_number(key, part.strip()) for part in text.split(",")))


_EXAMPLES = {"k": "5,10,20", "l": "2,3", "t": "0.1,0.2", "delay": "1000,5000 in rows, or 30s,60s"}


def _number(key: str, text: str) -> Any:
    in_seconds = key == "delay" and text.endswith("s")
    digits = text.removesuffix("s").strip() if in_seconds else text
    try:
        number = float(digits)
    except ValueError:
        number = float("nan")
    is_whole = number == number // 1
    must_be_whole = key == "k" or (key == "delay" and not in_seconds)
    if not 0 < number < float("inf") or (must_be_whole and not is_whole):
        kind = "whole numbers" if must_be_whole else "numbers"
        what = f"must be {kind} above 0, with commas between them"
        raise ParameterError(f"--{key}", what, got=repr(text), fix=f"For example {_EXAMPLES[key]}")
    value = int(number) if is_whole else number
    if key == "t":
        return float(number)
    return value if key != "delay" else ("seconds" if in_seconds else "rows", value)
