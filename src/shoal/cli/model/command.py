"""``shoal model z``: from z-anonymity to the probability of k-anonymity."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from shoal.cli.model.sample import Columns, Sample, columns_of, read_sample
from shoal.cli.model.svg import svg
from shoal.cli.model.words import as_json, chart, choice_lines, length, percent, told_by
from shoal.cli.terminal import say, tell
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
#: So many events are simulated at most.
MOST_EVENTS = 20_000_000
#: What is asked of data if nothing is said.
PROBABILITY = 0.9


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """What the command line asks for; None is what wasn't said."""

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
    plot: Path | None
    as_json: bool


def model_z(ask: ModelOptions) -> int:
    """Tell what the model says; give the exit code."""
    _check(ask)
    if ask.data is None:
        return _of_parameters(ask)
    return _of_data(ask, ask.data)


def _check(ask: ModelOptions) -> None:
    """Refuse what makes no sense, all at once."""
    problems = []
    if ask.probability is not None and not 0.0 < ask.probability <= 1.0:
        problems.append(
            Problem("--probability", "must lie above 0 and not above 1", f"{ask.probability:g}")
        )
    if ask.window is not None and not (math.isfinite(ask.window) and ask.window > 0):
        problems.append(Problem("--window", "must be a number above 0", f"{ask.window:g}"))
    if ask.window is not None and ask.window_rows is not None:
        problems.append(Problem("--window-rows", "doesn't go with --window", None, "Choose one"))
    made = ("z", "users", "attributes", "rate", "exponent")
    given = ("job", "subject", "attribute", "time", "from_format", "window_rows")
    flags = {"from_format": "--from", "window_rows": "--window-rows"}
    if ask.data is not None:
        problems += [
            Problem(f"--{name}", "doesn't go with --data, which tells it", None, "Leave it out")
            for name in made
            if getattr(ask, name) is not None
        ]
        if ask.simulate:
            problems.append(
                Problem("--simulate", "doesn't go with --data", None, "What was seen is counted")
            )
    else:
        problems += [
            Problem(flags.get(name, f"--{name}"), "is about data", None, "Name a file with --data")
            for name in given
            if getattr(ask, name)
        ]
    if problems:
        raise JobError(problems)


# -- parameters on the command line -------------------------------------------------------------


def _of_parameters(ask: ModelOptions) -> int:
    scenario = _scenario(ask)
    points = curve(scenario) if ask.curve or ask.plot or ask.probability else ()
    reached = None if ask.probability is None else _least(scenario, points, ask.probability)
    found = k_anonymity(scenario)
    if ask.simulate:
        _check_events(scenario)
    simulated = simulated_shares(scenario, SEEDS) if ask.simulate else None
    if ask.plot is not None:
        _draw(ask, ask.plot, points, "k-anonymity under z-anonymity")
    if ask.as_json:
        told: dict[str, Any] = {
            "n_subjects": scenario.n_subjects,
            "n_attributes": scenario.n_attributes,
            "window": scenario.window,
            "z": scenario.z,
            "k": scenario.k,
            "probability": {"lower": found.lower, "upper": found.upper},
            "entropy": entropy(scenario),
            "information_loss": information_loss(scenario),
            "least_z": None if reached is None else as_json(reached),
            "curve": [as_json(point) for point in points] if ask.curve else None,
            "simulated": None if simulated is None else simulated.tolist(),
        }
        tell(json.dumps(told))
        return 0
    tell(
        f"{scenario.n_subjects:,} subjects, {scenario.n_attributes:,} attributes, "
        f"window {scenario.window:g}"
    )
    tell(
        f"z = {scenario.z:,}: {percent(found.middle)} of subjects are {scenario.k}-anonymous in "
        "what they publish in a window"
    )
    if simulated is not None:
        error = float(simulated.std(ddof=1)) / math.sqrt(len(simulated))
        tell(
            f"simulated: {percent(float(simulated.mean()))}, standard error {percent(error)}, "
            f"{len(simulated)} seeds"
        )
    tell(told_by(entropy(scenario), information_loss(scenario)))
    if reached is not None:
        assert ask.probability is not None
        tell(f"z = {reached.z:,} is the least that gives {percent(ask.probability)}")
    if ask.curve:
        tell("\n".join(chart(rising(points))))
    return 0


def _scenario(ask: ModelOptions) -> Scenario:
    problems = [
        Problem(f"--{name}", "must be a finite number of at least 0", f"{value:g}")
        for name, value in (("rate", ask.rate), ("exponent", ask.exponent))
        if value is not None and not (math.isfinite(value) and value >= 0)
    ]
    if ask.users is not None and ask.users > MOST_SUBJECTS:
        problems.append(Problem("--users", f"must be at most {MOST_SUBJECTS:,}", f"{ask.users:,}"))
    if problems:
        raise JobError(problems)
    usual = Scenario.power_law()
    n_subjects = usual.n_subjects if ask.users is None else ask.users
    z = usual.z if ask.z is None else ask.z
    if z > n_subjects:
        raise JobError(
            Problem(
                "--z", f"is more than there are subjects ({n_subjects:,}): nothing would be "
                "published", f"{z:,}", "Say a smaller --z, or more --users",
            )
        )  # fmt: skip
    return Scenario.power_law(
        n_subjects,
        usual.n_attributes if ask.attributes is None else ask.attributes,
        rate=usual.rates[0] if ask.rate is None else ask.rate,
        exponent=1.0 if ask.exponent is None else ask.exponent,
        window=usual.window if ask.window is None else ask.window,
        z=z,
        k=ask.k,
    )


def _check_events(scenario: Scenario) -> None:
    """Refuse to simulate more than fits in memory."""
    n_events = 2 * scenario.window * sum(scenario.rates) * scenario.n_subjects
    if not n_events <= MOST_EVENTS:
        raise JobError(
            Problem(
                "--simulate", f"makes at most {MOST_EVENTS:,} events of two windows",
                f"{n_events:,.0f}", "Say fewer --users, a lower --rate or a shorter --window",
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


def _of_data(ask: ModelOptions, data: str) -> int:
    columns = columns_of(ask.job, ask.subject, ask.attribute, ask.time, data, ask.from_format)
    given = ask.window if ask.window_rows is None else float(ask.window_rows)
    in_rows = ask.window_rows is not None or columns.time is None
    if given is None and columns.window is not None:
        given = columns.window.seconds or float(columns.window.rows)
        in_rows = columns.window.seconds is None
    _check_time(ask, columns)
    sample = read_sample(data, columns, rows=ask.rows, in_rows=in_rows, from_format=ask.from_format)
    _tell_sample(data, sample, ask)
    if not len(sample.events):
        names = ", ".join(quasi.name for quasi in columns.quasi)
        raise ResourceError(
            f"{data}: nothing can be counted: no row that was read has a value in {names}"
        )
    windows = candidate_windows(sample.events) if given is None else [given]
    probability = PROBABILITY if ask.probability is None else ask.probability
    choices = [choose(sample.events, one, k=ask.k, probability=probability) for one in windows]
    chosen = best(choices)
    if ask.plot is not None:
        words = f"window of {length(chosen.estimate.window, in_rows=in_rows)}"
        _draw(replace(ask, probability=probability), ask.plot, chosen.points, words)
    if ask.as_json:
        tell(json.dumps(_choices_json(ask, sample, choices, chosen, probability)))
        return 0
    for choice in choices:
        tell("\n".join(choice_lines(choice, k=ask.k, in_rows=in_rows)))
    tell("\n".join(chart(rising(chosen.points))))
    unit = "rows" if in_rows else "seconds"
    z = chosen.chosen.z
    if z > chosen.estimate.n_subjects:
        say(
            f"no z gives {percent(probability)} and publishes anything: take a shorter window, "
            "coarser attributes, or a lower --probability"
        )
    tell(f"policy.z = {z}\npolicy.window = {{ {unit} = {chosen.estimate.window:.12g} }}")
    return 0


def _check_time(ask: ModelOptions, columns: Columns) -> None:
    if ask.window is not None and columns.time is None:
        raise JobError(
            Problem(
                "--window", "is in seconds, and no column tells the time", None,
                "Name one with --time, or say --window-rows",
            )
        )  # fmt: skip


def _tell_sample(data: str, sample: Sample, ask: ModelOptions) -> None:
    """What the figures rest on, aloud."""
    rest = "" if sample.is_whole else f", the first ones: --rows {ask.rows} bounds the sample"
    say(f"{data}: {sample.n_rows:,} rows, {len(sample.events):,} events{rest}")
    if sample.n_bad:
        say(f"warning: {sample.n_bad:,} rows have no subject or no time, and weren't used")
    if not sample.is_sorted:
        say("warning: rows aren't in the order of time; they were sorted")


def _choices_json(
    ask: ModelOptions, sample: Sample, choices: list[Choice], chosen: Choice, probability: float
) -> dict[str, Any]:
    def told(choice: Choice) -> dict[str, Any]:
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
        "k": ask.k,
        "probability": probability,
        "z": chosen.chosen.z,
        "window": chosen.estimate.window,
        "windows": [told(choice) for choice in choices],
    }


def _draw(ask: ModelOptions, path: Path, points: tuple[Point, ...], title: str) -> None:
    text = svg(rising(points), k=ask.k, probability=ask.probability, title=title)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ResourceError(f"{path}: can't be written: {error.strerror}") from None
