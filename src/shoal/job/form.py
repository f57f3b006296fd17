"""The form of a job file: its keys and their types.

`shoal.job.file` checks what keys mean, and whether their values fit together.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Annotated, Any, Literal

import pydantic
from pydantic import BaseModel, ConfigDict

from shoal.errors import Problem, did_you_mean
from shoal.io.registry import keys_of

__all__ = [
    "REQUIRED",
    "SECTIONS",
    "WAYS",
    "AuditForm",
    "BadRowsForm",
    "DomainForm",
    "Form",
    "PolicyForm",
    "PrivateForm",
    "PublishForm",
    "RunForm",
    "SchemaForm",
    "SparkForm",
    "WindowForm",
    "endpoint_form",
    "keyed",
    "problems_of",
    "shortened",
    "shown",
]

SECTIONS = (
    "schema", "policy", "algorithm", "publish", "input", "output", "run", "bad_rows", "private",
    "audit", "spark",
)  # fmt: skip
REQUIRED = ("schema", "policy")
WAYS = ("range", "hierarchy", "values", "mask", "path", "grid")
EXAMPLES = {
    "schema.subject": "Name the column that identifies people, or write { each_row = true }",
    "schema.quasi": "Name at least one column that an outsider may know",
    "policy.delay": "For example delay = { rows = 10000 }",
    "policy.t": "For example t = 0.2",
    "policy.beta": "For example beta = 2",
    "policy.disclosure": "For example disclosure = 0.7",
    "policy.window": 'For example window = { rows = 20000, advance = 5000 }, or window = "all"',
    "publish.pseudonym": "For example pseudonym = { rotate = 3600 }",
    "publish.pseudonym.rotate": "For example rotate = 3600",
    "run.checkpoint": 'For example checkpoint = { folder = "state", every = 10 }',
    "run.checkpoint.folder": 'For example folder = "state"',
}
#: How pydantic calls a wrong type, and what is meant.
TYPES = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "string_type": "text",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a table",
    "model_type": "a table",
    "model_attributes_type": "a table",
}
#: A number with a unit of time, and the seconds of each unit.
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-zµ]+)\s*", re.IGNORECASE)
_UNITS = {"ms": 0.001, "s": 1, "sec": 1, "secs": 1, "second": 1, "seconds": 1, "m": 60, "min": 60,
          "mins": 60, "minute": 60, "minutes": 60, "h": 3600, "hour": 3600, "hours": 3600,
          "d": 86400, "day": 86400, "days": 86400}  # fmt: skip
#: What to do about a column whose name TOML has taken apart.
CUT_NAME = "If the dot belongs to the name of the column, write the name in quotation marks"
#: The keys that count seconds.
_SECONDS = frozenset(
    {"seconds", "lateness", "ahead", "every", "rotate", "interval", "publish.time"}
)


class Form(BaseModel):
    """A table of the file; unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class EachRowForm(Form):
    """``subject = { each_row = true }``."""

    each_row: Literal[True]


class DomainForm(Form):
    """The keys that give a domain; at most one of them is set."""

    range: list[int | float] | None = None
    step: int | float | None = None
    hierarchy: str | None = None
    values: list[str] | None = None
    mask: int | list[str] | None = None


class QuasiForm(DomainForm):
    """A quasi attribute: a domain and a weight; without a domain it is open, for z-anonymity."""

    weight: int | float = 1.0
    path: str | None = None
    levels: int | None = None
    grid: list[str | int] | None = None


class KeepForm(Form):
    """``[schema.keep]``."""

    columns: list[str] = []


class SchemaForm(Form):
    """``[schema]``."""

    subject: str | EachRowForm
    time: str | None = None
    quasi: dict[str, QuasiForm]
    sensitive: dict[str, DomainForm] = {}
    keep: KeepForm = KeepForm()


class DelayForm(Form):
    """``policy.delay``."""

    rows: int | None = None
    seconds: int | float | None = None
    clock: Literal["stream", "wall"] | None = None


class WindowForm(Form):
    """``policy.window``, where it isn't ``"all"``."""

    rows: int | None = None
    advance: int | None = None
    seconds: int | float | None = None


class PolicyForm(Form):
    """``[policy]``."""

    k: int | None = None
    z: int | None = None
    l: int | dict[str, Any] | None = None  # noqa: E741
    t: float | dict[str, Any] | None = None
    beta: float | dict[str, Any] | None = None
    disclosure: float | dict[str, Any] | None = None
    window: WindowForm | Literal["all"] | None = None
    delay: DelayForm | None = None
    lateness: int | float | None = None
    ahead: int | float | None = None
    missing: str = "quarantine"


class PseudonymForm(Form):
    """``publish.pseudonym``."""

    rotate: int | float


class PublishForm(Form):
    """``[publish]``."""

    numeric: str = "range"
    order: str = "released"
    suppressed: str = "drop"
    time: int | float | None = None
    pseudonym: PseudonymForm | None = None


def endpoint_form(section: Literal["input", "output"]) -> type[Form]:
    """Return the form of ``[input]`` or ``[output]``: the keys of all connectors."""
    keys: dict[str, Any] = dict(keys_of(section))
    return pydantic.create_model(f"{section.title()}Form", __base__=Form, **keys)


class CheckpointForm(Form):
    """``run.checkpoint``."""

    folder: str
    every: int | float = 10
    seal: str | None = None


class RunForm(Form):
    """``[run]``."""

    name: str | None = None
    checkpoint: CheckpointForm | None = None
    seed: Annotated[int, pydantic.Field(ge=-(2**63), lt=2**63)] | None = None


class BadRowsForm(Form):
    """``[bad_rows]``."""

    action: Literal["quarantine", "stop"] = "quarantine"
    file: str | None = None
    limit: int | float = 0.05


class PrivateForm(Form):
    """``[private]``."""

    seal: bool = False
    file_megabytes: int | float | None = None
    file_hours: int | float | None = None
    keep_megabytes: int | float | None = None
    keep_days: int | float | None = None


class AuditForm(Form):
    """``[audit]``."""

    sample: int | float = 0


class SparkForm(Form):
    """``[spark]``."""

    shards: int = 1
    interval: int | float = 1
    files: int | None = None
    rows: int | None = None


def problems_of(section: str, model: type[Form], error: pydantic.ValidationError) -> list[Problem]:
    """Return the findings of pydantic as problems, one for each key."""
    problems: dict[str, Problem] = {}
    allowed: dict[str, list[str]] = {}
    for found in error.errors():
        # Where several types are possible, pydantic adds the one it tried last.
        parts = found["loc"]
        # An unknown key may be called like a type.
        n_sure = 1 if found["type"] == "extra_forbidden" else 0
        place = [
            str(part)
            for i, part in enumerate(parts)
            if i >= len(parts) - n_sure or not _is_type(part)
        ]
        key = ".".join([section, *place])
        if found["type"] == "missing":
            problem = Problem(key, "is missing", None, EXAMPLES.get(key))
        elif found["type"] == "extra_forbidden":
            is_cut = model is SchemaForm and len(place) > 2 and isinstance(found["input"], dict)
            fix = CUT_NAME if is_cut else did_you_mean(place[-1], _known(model, place))
            problem = Problem(key, "is unknown", None, fix)
        elif found["type"] in TYPES:
            if key not in problems or key in allowed:
                # Each further finding about the same value allows one more type.
                allowed.setdefault(key, []).append(TYPES[found["type"]])
                what, fix = f"must be {_one_of(allowed[key])}", _without_unit(key, found["input"])
                got = shown(found["input"])
                problems[key] = Problem(key, what, got, fix or EXAMPLES.get(key))
            continue
        else:
            what = found["msg"][:1].lower() + found["msg"][1:]
            what = what.removeprefix("input ").replace("should be", "must be")
            problem = Problem(key, what, shown(found["input"]), EXAMPLES.get(key))
        problems.setdefault(key, problem)
    # A table with a wrong key is reported by that key only, not also as the wrong type.
    return [p for key, p in problems.items() if not any(k.startswith(f"{key}.") for k in problems)]


def _one_of(types: list[str]) -> str:
    """Return the types that are allowed, in words; a whole number is a number."""
    names = list(dict.fromkeys(types))
    if "a number" in names and "a whole number" in names:
        names.remove("a whole number")
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def _without_unit(key: str, value: object) -> str | None:
    """Return how to write a duration: times have no unit in a job file, but are all seconds."""
    name = key.rpartition(".")[2]
    if name not in _SECONDS and key not in _SECONDS:
        return None
    given = _DURATION.fullmatch(value) if isinstance(value, str) else None
    unit = _UNITS.get(given[2].lower()) if given else None
    example = f"{float(given[1]) * unit:g}" if given and unit else "30"
    return f"Seconds, without a unit: {name} = {example}"


def keyed(key: str, problem: Problem) -> Problem:
    """Return a problem under its key in the job file: `Range.step` becomes `.step` of a key."""
    head, _, tail = problem.key.partition(".")
    if head in SECTIONS:
        return problem
    if head[:1].isupper() and tail:
        return dataclasses.replace(problem, key=f"{key}.{tail}")
    if problem.key[:1].isupper() or problem.key in ("algorithm", "loss", "hierarchy"):
        return dataclasses.replace(problem, key=key)
    return dataclasses.replace(problem, key=key, what=f"{problem.key}: {problem.what}")


def _is_type(part: object) -> bool:
    """Return whether a part of a location is the name of a type and not a key."""
    return isinstance(part, str) and (
        part in ("str", "int", "float", EachRowForm.__name__, WindowForm.__name__)
        or part.startswith(("list[", "dict[", "literal["))
    )


def _known(model: type[BaseModel], place: list[str]) -> list[str]:
    """Return the known keys of the table in which an unknown one was found."""
    fields = model.model_fields
    if model is SchemaForm and len(place) > 1:
        inner: dict[str, type[BaseModel]] = {
            "quasi": QuasiForm,
            "sensitive": DomainForm,
            "keep": KeepForm,
            "subject": EachRowForm,
        }
        fields = inner[place[0]].model_fields if place[0] in inner else fields
    if model is PolicyForm and place[0] == "delay" and len(place) > 1:
        fields = DelayForm.model_fields
    if model is PolicyForm and place[0] == "window" and len(place) > 1:
        fields = WindowForm.model_fields
    if model is PublishForm and place[0] == "pseudonym" and len(place) > 1:
        fields = PseudonymForm.model_fields
    if model is RunForm and place[0] == "checkpoint" and len(place) > 1:
        fields = CheckpointForm.model_fields
    return list(fields)


def shown(value: object) -> str:
    """Return a value of the job file for a message, shortened if it is long."""
    return shortened(repr(value))


def shortened(text: str) -> str:
    """Return a text for a message, cut if it is long."""
    return text if len(text) <= 40 else f"{text[:37]}..."
