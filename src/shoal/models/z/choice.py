"""Choose z and the window so that enough subjects are k-anonymous."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from shoal.errors import ParameterError
from shoal.models.z.bounds import Bounds, k_anonymity
from shoal.models.z.estimation import Estimate, estimate
from shoal.models.z.events import Events
from shoal.models.z.measured import Measured
from shoal.models.z.scenario import Scenario

__all__ = [
    "Choice",
    "Point",
    "best",
    "candidate_windows",
    "choose",
    "curve",
    "least_z",
    "rising",
    "z_grid",
]

#: Common lengths of windows, from a second to a month.
SECONDS = (1, 10, 60, 600, 3600, 6 * 3600, 86_400, 7 * 86_400, 30 * 86_400)
#: Windows in rows are the sample divided by these.
PARTS = (100, 50, 20, 10)
#: The least number of windows in a sample.
FITS = 4
#: The largest number of candidates; the longest are kept.
CANDIDATES = 4
#: A share above this counts as 1.
FLAT = 0.9995


@dataclass(frozen=True, slots=True)
class Point:
    """The share of subjects that are k-anonymous for one z: by the model, and in the sample."""

    z: int
    model: Bounds
    measured: float | None = None
    published: float | None = None

    @property
    def shares(self) -> tuple[float, ...]:
        """The share by the model, and the one in the sample if there is one."""
        return (self.model.lower,) if self.measured is None else (self.model.lower, self.measured)


@dataclass(frozen=True, slots=True)
class Choice:
    """The z that reaches a probability of k-anonymity, for windows of one length.

    Parameters
    ----------
    estimate
        The parameters of the sample.
    points
        The curve over z.
    by_model
        The least z from which on the model reaches the probability.
    by_count
        The least z from which on the sample reaches it; None if nothing can be counted, because the
        sample is shorter than two windows, or nobody exposes anything after the first.
    """

    estimate: Estimate
    points: tuple[Point, ...]
    by_model: Point
    by_count: Point | None

    @property
    def chosen(self) -> Point:
        """The point by count, or by the model if there is none: counting assumes less."""
        return self.by_model if self.by_count is None else self.by_count


def choose(events: Events, window: float, *, k: int, probability: float, n_z: int = 16) -> Choice:
    """Find the least z that reaches a probability of k-anonymity with a window.

    Neither curve is monotonic. So z is the least from which on all larger ones that were tried
    reach the probability, too. If z is larger than the number of subjects, nothing is published,
    and all subjects are alike.

    >>> from shoal.models.z import Scenario, poisson_events
    >>> events = poisson_events(Scenario.power_law(), seed=5, windows=8)
    >>> found = choose(events, 12, k=2, probability=0.9)
    >>> 200 < found.by_model.z < 260, 200 < found.by_count.z < 260
    (True, True)
    """
    if not 0.0 < probability <= 1.0:
        raise ParameterError("probability", "must lie between 0 and 1", got=probability)
    found = estimate(events, window)
    measured = Measured(events, window)
    most = found.n_subjects + 1

    def point(z: int) -> Point:
        model = k_anonymity(found.scenario(z, k))
        if not measured.n_present:
            return Point(z, model)
        return Point(z, model, measured.anonymity_sets(z).share(k), measured.published(z))

    points = _points(point, most, n_z)
    tried = [at.z for at in points]
    by_model = least_z(
        tried, [at.model.lower >= probability for at in points],
        lambda z: k_anonymity(found.scenario(z, k)).lower >= probability,
    )  # fmt: skip
    by_count = None
    if measured.n_present:
        by_count = least_z(
            tried, [_reaches(at, probability) for at in points],
            lambda z: measured.anonymity_sets(z).share(k) >= probability,
        )  # fmt: skip
    return Choice(found, points, point(by_model), None if by_count is None else point(by_count))


def _reaches(at: Point, probability: float) -> bool:
    return at.measured is not None and at.measured >= probability


def best(choices: Sequence[Choice]) -> Choice:
    """Return the choice that publishes most; where that is unknown, the longest window."""

    def worth(choice: Choice) -> tuple[float, float]:
        published = choice.chosen.published
        return (-1.0 if published is None else published, choice.estimate.window)

    return max(choices, key=worth)


def least_z(tried: Sequence[int], reach: Sequence[bool], reaches: Callable[[int], bool]) -> int:
    """Return the least z from which on ``reaches`` holds, by bisection after the last known miss.

    >>> least_z([1, 10, 20], [False, False, True], lambda z: z >= 13)
    13
    >>> least_z([1, 10, 20], [True, False, False], lambda z: False)
    20
    """
    if all(reach):
        return tried[0]
    last = max(i for i, is_reached in enumerate(reach) if not is_reached)
    low, high = tried[last], tried[min(last + 1, len(tried) - 1)]
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reaches(middle) else (middle, high)
    return high


def rising(points: Sequence[Point]) -> tuple[Point, ...]:
    """Return the curve up to the first point of its flat end.

    >>> some = [Point(z, Bounds(share, share)) for z, share in ((1, 0.5), (2, 1.0), (3, 1.0))]
    >>> [at.z for at in rising(some)]
    [1, 2]
    """
    below = [i for i, at in enumerate(points) if min(at.shares) < FLAT]
    return tuple(points[: (max(below) if below else -1) + 2])


def z_grid(most: int, n: int) -> list[int]:
    """Return at most n values of z from 1 to the largest, denser where they are small.

    >>> z_grid(1001, 12)
    [1, 4, 16, 63, 201, 251, 401, 601, 801, 1001]
    """
    most = max(1, most)
    near, far = np.geomspace(1, most, n // 2), np.linspace(1, most, n - n // 2)
    return sorted({round(z) for z in (*near.tolist(), *far.tolist())})


def curve(scenario: Scenario, n_z: int = 16) -> tuple[Point, ...]:
    """Return the model's curve for z from 1 to one more than there are subjects.

    >>> at = curve(Scenario.power_law())
    >>> at[0].z, round(at[0].model.middle, 2), at[-1].z, at[-1].model.middle
    (1, 0.17, 1001, 1.0)
    """

    def point(z: int) -> Point:
        return Point(z, k_anonymity(replace(scenario, z=z)))

    return _points(point, scenario.n_subjects + 1, n_z)


def _points(point: Callable[[int], Point], most: int, n_z: int) -> tuple[Point, ...]:
    """Return a curve from 1 to the largest z, with more points before its flat end."""
    found = {z: point(z) for z in z_grid(most, n_z)}
    below = [z for z, at in found.items() if min(at.shares) < FLAT]
    upto = min((z for z in found if not below or z > max(below)), default=most)
    for z in np.linspace(1, upto, n_z).round().astype(int).tolist():
        if z not in found:
            found[z] = point(z)
    return tuple(found[z] for z in sorted(found))


def candidate_windows(events: Events) -> list[float]:
    """Return lengths of windows to try: common ones that fit into the sample.

    >>> hours = Events(np.array([0.0, 9 * 3600.0]), *np.zeros((2, 2), np.int64))
    >>> candidate_windows(hours)
    [10.0, 60.0, 600.0, 3600.0]
    """
    if events.in_rows:
        some = [events.span // part for part in PARTS]
    else:
        some = [float(seconds) for seconds in SECONDS if FITS * seconds <= events.span]
    found = sorted({window for window in some if window >= 1})[-CANDIDATES:]
    return found or [events.span / FITS or 1.0]
