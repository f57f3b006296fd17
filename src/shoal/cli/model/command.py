"""``shoal model z``: estimate the probability of k-anonymity under z-anonymity."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from shoal.cli.model.refined import check_classes, refined_json, refined_lines
from shoal.cli.model.sample import Columns, Sample, columns_of, read_sample
from shoal.cli.model.svg import svg
from shoal.cli.model.text import (
    as_json,
    chart,
    choice_lines,
    information_text,
    percent,
    window_text,
)
from shoal.cli.terminal import print_message, print_result
from shoal.errors import JobError, Problem, ResourceError
from shoal.models.z import (
    MOST_SUBJECTS,
    Choice,
    Point,
    Scenario,
    best,
    candidate_windows,
    choose,
    curve,
    entropy,
    information_loss,
    k_anonymity,
    least_z,
    rising,
    simulated_shares,
)

__all__ = ["ModelOptions", "model_z"]

#: The seeds of the simulation.
SEEDS = tuple(range(10))
#: The most events that are simulated.
MOST_EVENTS = 20_000_000
#: The default probability with data.
PROBABILITY = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOptions:
    """The options of the command line; None where they weren't given."""

    data: str | None
    job: Path | None
    subject: str | None
    attribute: tuple[str, ...]
    time: str | None
    from_format: str | None
    rows: int
    window: float | None
    window_rows: int | None
    k: int
    probability: float | None
    z: int | None
    users: int | None
    attributes: int | None
    rate: float | None
    exponent: float | None
    curve: bool
    simulate: bool
    exact: bool
    classes: str | None
    plot: Path | None
    as_json: bool


def model_z(options: ModelOptions) -> int:
    """Print the estimates of the model; return the exit code."""
    _check(options)
    if options.data is None:
        return _of_parameters(options)
    return _of_data(options, options.data)


def _check(options: ModelOptions) -> None:
    """Raise all problems of the options at once."""
    problems = []
    if options.probability is not None and not 0.0 < options.probability <= 1.0:
        problems.append(
            Problem("--probability", "must lie above 0 and not above 1", f"{options.probability:g}")
        )
    if options.window is not None and not (math.isfinite(options.window) and options.window > 0):
        problems.append(Problem("--window", "must be a number above 0", f"{options.window:g}"))
    if options.window is not None and options.window_rows is not None:
        problems.append(
            Problem("--window-rows", "can't be combined with --window", None, "Choose one")
        )
    if options.classes is not None:
        check_classes(options.classes)
    made = ("z", "users", "attributes", "rate", "exponent", "classes")
    given = ("job", "subject", "attribute", "time", "from_format", "window_rows")
    flags = {"from_format": "--from", "window_rows": "--window-rows"}
    if options.data is not None:
        problems += [
            Problem(
                f"--{name}",
                "can't be combined with --data, from which it is estimated",
                None,
                "Leave it out",
            )
            for name in made
            if getattr(options, name) is not None
        ]
        problems += [
            Problem(f"--{name}", "can't be combined with --data", None, "The data is counted")
            for name in ("simulate", "exact")
            if getattr(options, name)
        ]
    else:
        problems += [
            Problem(flags.get(name, f"--{name}"), "needs data", None, "Name a file with --data")
            for name in given
            if getattr(options, name)
        ]
    if problems:
        raise JobError(problems)


# -- parameters on the command line -------------------------------------------------------------


def _of_parameters(options: ModelOptions) -> int:
    scenario = _scenario(options)
    points = curve(scenario) if options.curve or options.plot or options.probability else ()
    reached = None if options.probability is None else _least(scenario, points, options.probability)
    found = k_anonymity(scenario)
    if options.simulate:
        _check_events(scenario)
    simulated = simulated_shares(scenario, SEEDS) if options.simulate else None
    if options.plot is not None:
        _draw(options, options.plot, points, "k-anonymity under z-anonymity")
    if options.as_json:
        report: dict[str, Any] = {
            "n_subjects": scenario.n_subjects,
            "n_attributes": scenario.n_attributes,
            "window": scenario.window,
            "z": scenario.z,
            "k": scenario.k,
            "probability": {"lower": found.lower, "upper": found.upper},
            "entropy": entropy(scenario),
            "information_loss": information_loss(scenario),
            "least_z": None if reached is None else as_json(reached),
            "curve": [as_json(point) for point in points] if options.curve else None,
            "simulated": None if simulated is None else simulated.tolist(),
            **refined_json(scenario, with_exact=options.exact, classes=options.classes),
        }
        print_result(json.dumps(report))
        return 0
    refined = refined_lines(scenario, with_exact=options.exact, classes=options.classes)
    print_result(
        f"{scenario.n_subjects:,} subjects, {scenario.n_attributes:,} attributes, "
        f"window {scenario.window:g}"
    )
    print_result(
        f"z = {scenario.z:,}: {percent(found.middle)} of subjects are {scenario.k}-anonymous in "
        "what they publish in a window"
    )
    for line in refined:
        print_result(line)
    if simulated is not None:
        error = float(simulated.std(ddof=1)) / math.sqrt(len(simulated))
        print_result(
            f"simulated: {percent(float(simulated.mean()))}, standard error {percent(error)}, "
            f"{len(simulated)} seeds"
        )
    print_result(information_text(entropy(scenario), information_loss(scenario)))
    if reached is not None:
        assert options.probability is not None
        print_result(f"z = {reached.z:,} is the least that gives {percent(options.probability)}")
    if options.curve:
        print_result("\n".join(chart(rising(points))))
    return 0


def _scenario(options: ModelOptions) -> Scenario:
    problems = [
        Problem(f"--{name}", "must be a finite number of at least 0", f"{value:g}")
        for name, value in (("rate", options.rate), ("exponent", options.exponent))
        if value is not None and not (math.isfinite(value) and value >= 0)
    ]
    if options.users is not None and options.users > MOST_SUBJECTS:
        problems.append(
            Problem("--users", f"must be at most {MOST_SUBJECTS:,}", f"{options.users:,}")
        )
    if problems:
        raise JobError(problems)
    usual = Scenario.power_law()
    n_subjects = usual.n_subjects if options.users is None else options.users
    z = usual.z if options.z is None else options.z
    if z > n_subjects:
        raise JobError(
            Problem(
                "--z", f"is more than there are subjects ({n_subjects:,}): nothing would be "
                "published", f"{z:,}", "Give a smaller --z, or more --users",
            )
        )  # fmt: skip
    return Scenario.power_law(
        n_subjects,
        usual.n_attributes if options.attributes is None else options.attributes,
        rate=usual.rates[0] if options.rate is None else options.rate,
        exponent=1.0 if options.exponent is None else options.exponent,
        window=usual.window if options.window is None else options.window,
        z=z,
        k=options.k,
    )


def _check_events(scenario: Scenario) -> None:
    """Raise if a simulation wouldn't fit in memory."""
    n_events = 2 * scenario.window * sum(scenario.rates) * scenario.n_subjects
    if not n_events <= MOST_EVENTS:
        raise JobError(
            Problem(
                "--simulate", f"makes at most {MOST_EVENTS:,} events of two windows",
                f"{n_events:,.0f}", "Give fewer --users, a lower --rate or a shorter --window",
            )
        )  # fmt: skip


def _least(scenario: Scenario, points: tuple[Point, ...], probability: float) -> Point:
    z = least_z(
        [at.z for at in points],
        [at.model.lower >= probability for at in points],
        lambda z: k_anonymity(replace(scenario, z=z)).lower >= probability,
    )
    return Point(z, k_anonymity(replace(scenario, z=z)))


# -- data ---------------------------------------------------------------------------------------


def _of_data(options: ModelOptions, data: str) -> int:
    columns = columns_of(
        options.job, options.subject, options.attribute, options.time, data, options.from_format
    )
    given = options.window if options.window_rows is None else float(options.window_rows)
    in_rows = options.window_rows is not None or columns.time is None
    if given is None and columns.window is not None:
        given = columns.window.seconds or float(columns.window.rows)
        in_rows = columns.window.seconds is None
    _check_time(options, columns)
    sample = read_sample(
        data, columns, rows=options.rows, in_rows=in_rows, from_format=options.from_format
    )
    _print_sample(data, sample, options)
    if not len(sample.events):
        names = ", ".join(quasi.name for quasi in columns.quasi)
        raise ResourceError(f"{data}: nothing can be counted: no row has a value in {names}")
    windows = candidate_windows(sample.events) if given is None else [given]
    probability = PROBABILITY if options.probability is None else options.probability
    choices = [choose(sample.events, one, k=options.k, probability=probability) for one in windows]
    chosen = best(choices)
    if options.plot is not None:
        title = f"window of {window_text(chosen.estimate.window, in_rows=in_rows)}"
        _draw(replace(options, probability=probability), options.plot, chosen.points, title)
    if options.as_json:
        print_result(json.dumps(_choices_json(options, sample, choices, chosen, probability)))
        return 0
    for choice in choices:
        print_result("\n".join(choice_lines(choice, k=options.k, in_rows=in_rows)))
    print_result("\n".join(chart(rising(chosen.points))))
    unit = "rows" if in_rows else "seconds"
    z = chosen.chosen.z
    if z > chosen.estimate.n_subjects:
        print_message(
            f"no z reaches {percent(probability)} and publishes anything: use a shorter window, "
            "coarser attributes, or a lower --probability"
        )
    print_result(f"policy.z = {z}\npolicy.window = {{ {unit} = {chosen.estimate.window:.12g} }}")
    return 0


def _check_time(options: ModelOptions, columns: Columns) -> None:
    if options.window is not None and columns.time is None:
        raise JobError(
            Problem(
                "--window", "is in seconds, and there is no time column", None,
                "Name one with --time, or use --window-rows",
            )
        )  # fmt: skip


def _print_sample(data: str, sample: Sample, options: ModelOptions) -> None:
    """Print the size of the sample, and warnings about it."""
    rest = "" if sample.is_whole else f", the first ones (--rows {options.rows})"
    print_message(f"{data}: {sample.n_rows:,} rows, {len(sample.events):,} events{rest}")
    if sample.n_bad:
        print_message(
            f"warning: {sample.n_bad:,} rows have no subject or no time, and weren't used"
        )
    if not sample.is_sorted:
        print_message("warning: rows aren't in the order of time; they were sorted")


def _choices_json(
    options: ModelOptions, sample: Sample, choices: list[Choice], chosen: Choice, probability: float
) -> dict[str, Any]:
    def as_dict(choice: Choice) -> dict[str, Any]:
        found = choice.estimate
        return {
            "window": found.window,
            "n_windows": found.n_windows,
            "n_subjects": found.n_subjects,
            "n_subjects_seen": found.n_seen,
            "n_attributes": found.n_attributes,
            "by_model": as_json(choice.by_model),
            "by_count": None if choice.by_count is None else as_json(choice.by_count),
            "curve": [as_json(point) for point in choice.points],
        }

    return {
        "n_rows": sample.n_rows,
        "n_bad": sample.n_bad,
        "n_events": len(sample.events),
        "is_whole": sample.is_whole,
        "unit": "rows" if sample.events.in_rows else "seconds",
        "k": options.k,
        "probability": probability,
        "z": chosen.chosen.z,
        "window": chosen.estimate.window,
        "windows": [as_dict(choice) for choice in choices],
    }


def _draw(options: ModelOptions, path: Path, points: tuple[Point, ...], title: str) -> None:
    text = svg(rising(points), k=options.k, probability=options.probability, title=title)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ResourceError(f"{path}: can't be written: {error.strerror}") from None
