"""Build the policy of a job file: criteria, window and delay, in all their forms."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Literal, NamedTuple, TypeVar, get_args

from shoal.errors import JobError, Problem, did_you_mean, nearest_word
from shoal.job.form import PolicyForm, keyed, shown
from shoal.spec.criteria import Criterion, criteria
from shoal.spec.policy import Delay, Missing, Policy, Window
from shoal.spec.schema import Schema

__all__ = ["PolicyParts", "check_policy", "parts_of", "policy_of"]

T = TypeVar("T")


class Promise(NamedTuple):
    """A key of the policy: what a plain number means, and the forms by name."""

    plain: type[Criterion]
    forms: Mapping[str, type[Criterion]]

    @property
    def examples(self) -> tuple[str, ...]:
        """The key with a plain number, and each form."""
        forms = (f"{{ {name} = {form.example} }}" for name, form in self.forms.items())
        return f"{self.plain.key} = {self.plain.example}", *forms

    def example(self, attribute: str | None) -> str:
        """Return an example as the fix of a problem."""
        key, _, number = self.examples[0].partition(" = ")
        form = number if attribute is None else f"{{ {attribute} = {number} }}"
        return f"For example {key} = {form}"

    def near(self, word: str) -> str | None:
        """Return a hint to the form that may have been meant, if one is near.

        >>> PROMISES["t"].near("variations")
        "Did you mean 'variation'?"
        >>> PROMISES["t"].near("Hamming")
        "Did you mean 'variation'? It is the form for hamming."
        """
        known = {alias: name for name, form in self.forms.items() for alias in form.aliases}
        found = nearest_word(word, [*self.forms, *known])
        if found is None:
            return None
        if found in known:
            return f"Did you mean '{known[found]}'? It is the form for {found}."
        return f"Did you mean '{found}'?"


def _promises() -> dict[str, Promise]:
    """Return the keys that promise something, from the classes of criteria."""
    kinds: dict[str, list[type[Criterion]]] = {}
    for criterion in criteria():
        kinds.setdefault(criterion.key, []).append(criterion)
    return {
        key: Promise(
            next((each for each in found if each.default), found[0]),
            {each.form: each for each in found if each.form},
        )
        for key, found in kinds.items()
    }


PROMISES = _promises()
#: The keys of a policy that promise nothing on their own.
OTHERS = frozenset({"ahead", "delay", "lateness", "missing", "window"})


class PolicyParts(NamedTuple):
    """The parts of a policy, each checked on its own."""

    criteria: tuple[Criterion, ...]
    delay: Delay | None
    window: Window | Literal["all"] | None


def policy_of(raw: PolicyForm) -> Policy:
    """Return the policy of a job.

    >>> policy_of(PolicyForm(k=5, t={"salary": 0.2}, beta={"basic": 2}, window="all")).criteria
    ... # doctest: +NORMALIZE_WHITESPACE
    (KAnonymity(k=5), TCloseness(attribute='salary', t=0.2),
     BasicLikeness(attribute=None, beta=2))
    """
    parts = parts_of(raw)
    missing: Missing = raw.missing  # type: ignore[assignment]
    return Policy(
        *parts.criteria,
        delay=parts.delay,
        lateness=raw.lateness,
        ahead=raw.ahead,
        missing=missing,
        window=parts.window,
    )


def parts_of(raw: PolicyForm, without: Collection[str] = ()) -> PolicyParts:
    """Return the parts of a job's policy, or raise all of their problems.

    ``without`` are keys that were removed, because they are unknown or of the wrong form.
    """
    problems: list[Problem] = []

    def attempt(key: str, build: Callable[[], T]) -> T | None:
        try:
            return build()
        except JobError as error:
            problems.extend(keyed(key, problem) for problem in error.problems)
            return None

    promised: list[Criterion] = []
    given_keys = {key: given for key in PROMISES if (given := getattr(raw, key)) is not None}
    for key, given in given_keys.items():
        promised += _criteria(key, given, None, problems)
    # A removed key may have been the promise.
    if not given_keys and OTHERS.issuperset(without):
        problems.append(
            Problem("policy", "promises nothing", None, "Set k, for example k = 10, or z")
        )
    delay, window = raw.delay, raw.window
    held = None
    if delay is not None:
        held = attempt("policy.delay", lambda: Delay(**delay.model_dump()))
    against: Window | Literal["all"] | None = None
    if window == "all":
        against = "all"
    elif window is not None:
        fields = {key: value for key, value in window.model_dump().items() if value is not None}
        if fields.keys() & {"rows", "seconds"} or "window" in without:
            against = attempt("policy.window", lambda: Window(**fields))
        else:
            example = "For example rows = 20000, or for z-anonymity seconds = 3600"
            problems.append(Problem("policy.window.rows", "is missing", None, example))
    meanings = get_args(Missing)
    if raw.missing not in meanings:
        what, fix = f"must be one of {', '.join(meanings)}", did_you_mean(raw.missing, meanings)
        problems.append(Problem("policy.missing", what, shown(raw.missing), fix))
    if problems:
        raise JobError(problems)
    return PolicyParts(tuple(promised), held, against)


def check_policy(policy: Policy, schema: Schema, raw: Mapping[str, Any]) -> None:
    """Raise if a policy doesn't fit the schema, with hints to misspelt kinds.

    ``raw`` is the section that the policy was made from: only there an attribute could be meant
    that has the name of a form.
    """
    doubtful = [*_ambiguous(raw, {each.name for each in schema.sensitive})]
    if doubtful:
        raise JobError(doubtful)
    try:
        policy.check(schema)
    except JobError as error:
        raise JobError(_spelt(problem) for problem in error.problems) from None


def _ambiguous(raw: Mapping[str, Any], sensitive: Collection[str]) -> Iterator[Problem]:
    """Return the problems of names that are those of a form and of a sensitive attribute.

    >>> [problem] = _ambiguous({"t": {"variation": 0.2}}, ["variation"])
    >>> problem.key, problem.what
    ('policy.t.variation', 'is both a form of t and a sensitive attribute')
    >>> list(_ambiguous({"t": {"variation": {"emd": 0.2}}}, ["variation"]))
    []
    """
    for key, promise in PROMISES.items():
        given = raw.get(key)
        if not isinstance(given, Mapping):
            continue
        for name in promise.forms:
            number = given.get(name)
            if name not in sensitive or number is None or isinstance(number, Mapping):
                continue
            what = f"is both a form of {key} and a sensitive attribute"
            plain, form = (
                f"{{ {name} = {{ {each} = {number} }} }}" for each in (promise.plain.form, name)
            )
            fix = f"Write {plain} for the attribute, or {form} for the attribute in this form"
            yield Problem(f"policy.{key}.{name}", what, None, fix)


def _spelt(problem: Problem) -> Problem:
    """Add a hint to a problem if its attribute may be a misspelt kind."""
    _, key, name = (*problem.key.split(".", 2), "", "")[:3]
    near = PROMISES[key].near(name) if key in PROMISES else None
    return problem if near is None else dataclasses.replace(problem, fix=f"{near} {problem.fix}")


# -- one promise ----------------------------------------------------------------------------------


def _criteria(
    key: str, raw: object, attribute: str | None, problems: list[Problem]
) -> list[Criterion]:
    """Return the criteria of a key: a number, a kind, or one of these for each attribute."""
    promise = PROMISES[key]
    where = f"policy.{key}" if attribute is None else f"policy.{key}.{attribute}"
    if not isinstance(raw, Mapping):
        return _made(where, promise.plain, raw, {}, attribute, problems)
    # A form has a number; a table behind its name is that of an attribute which is called so.
    forms = [
        form
        for form in promise.forms
        if form in raw and not (attribute is None and isinstance(raw[form], Mapping))
    ]
    if len(forms) == 1:
        return _of_form(where, promise, forms[0], raw, attribute, problems)
    if forms:
        what = f"must be one of {', '.join(promise.examples[1:-1])} and {promise.examples[-1]}"
        problems.append(Problem(where, what, f"the keys {', '.join(raw)}"))
    elif attribute is not None or not raw:
        near = next(filter(None, map(promise.near, raw)), None)
        fix = near or promise.example(attribute)
        problems.append(Problem(where, _without_form(promise), None, fix))
    else:
        return [c for name, part in raw.items() for c in _criteria(key, part, name, problems)]
    return []


def _without_form(promise: Promise) -> str:
    if not promise.forms:
        return "must be a number, or one for each attribute by name"
    *others, last = promise.forms
    return f"is a table without {', '.join(others)} or {last}"


def _of_form(
    where: str,
    promise: Promise,
    name: str,
    raw: Mapping[str, Any],
    attribute: str | None,
    problems: list[Problem],
) -> list[Criterion]:
    form = promise.forms[name]
    known = _options(form)
    found = [
        Problem(
            f"{where}.{other}", f"can't be combined with {name}", None, did_you_mean(other, known)
        )
        for other in raw
        if other not in (name, *known)
    ]
    found += [
        Problem(f"{where}.{option}", "is missing", None, f"For example {promise.examples[-1]}")
        for option in form.needs
        if option not in raw
    ]
    if not isinstance(raw.get("relative", False), bool):
        what = "must be true or false"
        found.append(Problem(f"{where}.relative", what, shown(raw["relative"])))
    problems += found
    options = {option: raw[option] for option in known if option in raw}
    made = _made(where, form, raw[name], options, attribute, problems)
    return [] if found else made


def _options(criterion: type[Criterion]) -> list[str]:
    """Return the fields of a criterion beside its number and its attribute."""
    names = [field.name for field in dataclasses.fields(criterion) if field.name != "attribute"]
    return names[1:]


def _made(
    where: str,
    criterion: type[Criterion],
    value: object,
    options: dict[str, Any],
    attribute: str | None,
    problems: list[Problem],
) -> list[Criterion]:
    """Return the criterion, or none and add its problems."""
    if attribute is not None:
        options = options | {"attribute": attribute}
    make: Callable[..., Criterion] = criterion
    try:
        return [make(value, **options)]
    except JobError as error:
        for problem in error.problems:
            field = problem.key.rpartition(".")[2]
            key = f"{where}.{field}" if field in options else where
            problems.append(dataclasses.replace(problem, key=key))
        return []
