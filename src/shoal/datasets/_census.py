"""Generate a census-like stream: correlated quasi attributes, returning subjects, optional drift.

A person is a pure function of the seed and the person's number. So a person returns unchanged
without being stored, and memory doesn't grow with the number of people.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.datasets import _census_domains as domains
from shoal.datasets._dataset import BATCH_ROWS, Dataset, at_least
from shoal.errors import ParameterError
from shoal.spec.hierarchy import Hierarchy, Range

__all__ = ["census"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

ROWS_PER_SECOND = 50.0
MOVERS = 0.05
"""The share of people whose quasi values change once during the stream."""
CHRONIC = 0.5
"""The share of rows with the person's chronic illness."""
VISIT_SHARES = (0.7, 0.08, 0.17, 0.05)

DRIFT_YEARS = 25.0
DRIFT_PAY = 0.5
DRIFT_ABROAD = 1.0

# The cumulative distribution of ages, drawn by interpolation.
AGE_SHARES = (0.0, 0.12, 0.31, 0.57, 0.80, 0.95, 1.0)
AGES = (18.0, 25.0, 35.0, 50.0, 65.0, 80.0, 99.0)
AGE_BANDS = (25.0, 35.0, 50.0, 65.0, 80.0)
# The nine borders between ranks of education, in log-odds.
EDUCATION_BORDERS = (-5.0, -3.2, -1.9, -0.9, 0.0, 0.4, 0.9, 2.1, 4.0)


def census(
    rows: int,
    *,
    subjects: int | None = None,
    seed: int = 0,
    drift: float = 0.0,
    batch_rows: int = BATCH_ROWS,
) -> Dataset:
    """Generate a stream of visits: ten correlated quasi attributes and a sensitive diagnosis.

    Subjects return, recent ones more often. A subject keeps its quasi values, except that those of
    one in twenty change once: another home, job or family.

    Parameters
    ----------
    rows
        How many rows.
    subjects
        The exact number of different subjects. By default one for every four rows.
    seed
        The same seed returns the same rows.
    drift
        How much new subjects at the end of the stream differ from those at its beginning: with 1
        they are about 25 years older, earn more and are more often born abroad; with 0 the
        population doesn't change.
    batch_rows
        How many rows a batch has; it doesn't change the rows.

    >>> stream = census(1000, subjects=300, seed=7)
    >>> stream.schema.subject, stream.schema.payload
    ('person_id', ('diagnosis', 'visit'))
    >>> len(stream.table()["person_id"].unique())
    300
    """
    at_least("census.rows", rows, 1)
    at_least("census.seed", seed, 0)
    if subjects is None:
        subjects = -(-rows // 4)
    if at_least("census.subjects", subjects, 1) > rows:
        raise ParameterError(
            "census.subjects",
            "there can't be more subjects than rows",
            got=f"{subjects} subjects in {rows} rows",
        )
    if not math.isfinite(drift):
        raise ParameterError("census.drift", "must be a finite number", got=drift)
    schema = domains.schema()
    named = {a.name: a.domain for a in schema.quasi} | {a.name: a.domain for a in schema.sensitive}
    leaves = {
        name: pa.array(domain.leaves)
        for name, domain in named.items()
        if isinstance(domain, Hierarchy)
    }
    leaves["visit"] = pa.array(domains.VISITS)
    ranges = {name: domain for name, domain in named.items() if isinstance(domain, Range)}
    model = _Model(seed, subjects, drift, ranges)

    def chunks() -> Iterator[pa.RecordBatch]:
        for columns in _stream(model, rows, subjects, seed):
            yield pa.record_batch(
                {
                    name: leaves[name].take(pa.array(columns[name]))
                    if name in leaves
                    else pa.array(columns[name])
                    for name in schema.columns
                }
            )

    return Dataset(
        name="census",
        schema=schema,
        description=f"a made-up census of {subjects} people in {rows} visits",
        n_rows=rows,
        chunks=chunks,
        batch_rows=batch_rows,
    )


def _stream(
    model: _Model, rows: int, subjects: int, seed: int
) -> Iterator[dict[str, npt.NDArray[np.generic]]]:
    """Yield columns in chunks: draw who comes when; the rest comes from the model."""
    rng = np.random.default_rng(seed)
    start, n_seen, clock = 0, 0, 0.0
    while start < rows:
        n = min(BATCH_ROWS, rows - start)
        # New subjects fall on a random subset of all rows, which includes the first row.
        first = 1 if start == 0 else 0
        to_come = subjects - n_seen - first
        n_new = int(rng.hypergeometric(to_come, rows - start - first - to_come, n - first))
        new = np.zeros(n, dtype=bool)
        new[:first] = True
        new[first + rng.permutation(n - first)[:n_new]] = True
        seen = n_seen + np.cumsum(new)
        back = np.minimum((seen * np.sqrt(rng.random(n))).astype(np.int64), seen - 1)
        person = np.where(new, seen - 1, back)
        times = clock + np.cumsum(rng.exponential(1.0 / ROWS_PER_SECOND, n))
        when = (start + np.arange(n)) / rows
        columns: dict[str, npt.NDArray[np.generic]] = {"person_id": person, "arrived_at": times}
        columns |= model.people(person, when)
        columns["diagnosis"] = model.diagnosis(person, columns, rng.random(n), rng.random(n))
        columns["visit"] = np.searchsorted(np.cumsum(VISIT_SHARES)[:-1], rng.random(n), "right")
        yield columns
        start, n_seen, clock = start + n, int(seen[-1]), float(times[-1])


class _Model:
    """The population: all values of a person are derived from the person's number."""

    def __init__(self, seed: int, subjects: int, drift: float, ranges: dict[str, Range]) -> None:
        self._key = np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]
        self._subjects = subjects
        self._drift = drift
        self._ranges = ranges
        self._jobs = _job_table()
        self._marital = np.cumsum(domains.MARITAL_BY_AGE, axis=1)
        abroad = [share for part in domains.BIRTHPLACES.values() for share in part.values()]
        self._abroad = np.cumsum(abroad) / np.sum(abroad)
        self._regions = np.cumsum(list(domains.REGIONS.values()))
        self._illness = np.log([found.share for found in domains.DIAGNOSES])
        self._illness_age = np.array([found.age for found in domains.DIAGNOSES])
        self._illness_men = np.log([found.men for found in domains.DIAGNOSES])

    def people(self, person: Ints, when: Floats) -> dict[str, npt.NDArray[np.generic]]:
        """Return the quasi values of people at a time between 0 and 1, categories as codes."""
        entered = self._drift * person / self._subjects
        changed = (self._draw(person, 0) < MOVERS) & (self._draw(person, 1) < when)
        # After the change a second set of draws is used.
        later = np.where(changed, 32, 0)
        sex = (self._draw(person, 2) < 0.49).astype(np.int64)
        years = np.interp(self._draw(person, 3), AGE_SHARES, AGES) + DRIFT_YEARS * entered
        age = self._whole("age", years)
        abroad = self._draw(person, 4) < _probability(-1.0 + DRIFT_ABROAD * entered)
        birthplace = np.searchsorted(self._abroad, self._draw(person, 5), "right")
        birthplace = np.where(abroad, birthplace, 0)
        learned = _log_odds(self._draw(person, 6)) - 0.03 * (age - 45.0) + 0.5 * abroad
        education = np.searchsorted(EDUCATION_BORDERS, learned)
        band = np.searchsorted(AGE_BANDS, age, "right")
        marital = _choose(self._marital[band], self._draw(person, later + 7))
        job = self._job(person, later, band, education, sex)
        worked = np.array([job.hours for job in domains.OCCUPATIONS])[job]
        extra = 3.0 * _log_odds(self._draw(person, later + 10)) - 3.0 * (1 - sex)
        hours = self._whole("hours_per_week", worked + np.where(worked > 0, extra, 0.0))
        pay = np.array([job.pay for job in domains.OCCUPATIONS])[job]
        pay = pay + 0.09 * (education - 4) + np.where(worked > 20, np.log1p(hours) - 3.7, 0.0)
        pay = pay - 0.0004 * (age - 52.0) ** 2 + 0.22 * _log_odds(self._draw(person, later + 11))
        income = self._whole("income", np.exp(pay + DRIFT_PAY * entered), unit=100)
        return {
            "age": age,
            "sex": sex,
            "education": education,
            "marital_status": marital,
            "occupation": job,
            "income": income,
            "hours_per_week": hours,
            "postcode": self._postcode(person, later, pay, abroad),
            "country_of_birth": birthplace,
            "household_size": self._household(person, later, marital, age),
        }

    def diagnosis(
        self,
        person: Ints,
        columns: dict[str, npt.NDArray[np.generic]],
        chronic: Floats,
        other: Floats,
    ) -> npt.NDArray[np.generic]:
        """Return the diagnosis of each visit: often the person's chronic illness."""
        decades = (columns["age"].astype(np.float64) - 45.0) / 10.0
        men = columns["sex"].astype(np.float64) - 0.5
        odds = self._illness + np.outer(decades, self._illness_age)
        odds += np.outer(men, self._illness_men)
        cumulative = np.cumsum(np.exp(odds), axis=1)
        cumulative /= cumulative[:, -1:]
        return _choose(cumulative, np.where(chronic < CHRONIC, self._draw(person, 16), other))

    def _job(self, person: Ints, later: Ints, band: Ints, education: Ints, sex: Ints) -> Ints:
        working = _choose(self._jobs[sex, education], self._draw(person, later + 8))
        student, unemployed, home, retired = range(
            len(domains.OCCUPATIONS) - 4, len(domains.OCCUPATIONS)
        )
        idle = self._draw(person, later + 9)
        at_home = np.where(sex == 1, 0.06, 0.16)
        job = np.where(idle < at_home, np.where(idle < 0.05, unemployed, home), working)
        job = np.where((band == 0) & (idle < 0.45), student, job)
        return np.where(idle < np.array([0.0, 0.0, 0.0, 0.15, 0.93, 1.0])[band], retired, job)

    def _postcode(
        self, person: Ints, later: Ints, pay: Floats, abroad: npt.NDArray[np.bool_]
    ) -> Ints:
        # People born abroad live in the larger regions more often.
        where = self._draw(person, later + 12) ** np.where(abroad, 1.4, 1.0)
        region = np.searchsorted(self._regions[:-1], where, "right")
        wealth = _probability(1.2 * (pay - 10.4) + 0.7 * _log_odds(self._draw(person, later + 13)))
        per_region = domains.POSTCODES_PER_REGION
        return region * per_region + np.minimum(
            (wealth * per_region).astype(np.int64), per_region - 1
        )

    def _household(self, person: Ints, later: Ints, marital: Ints, age: Ints) -> Ints:
        couple = marital <= 2
        children = np.exp(-(((age - 40.0) / 12.0) ** 2)) * np.where(couple, 1.6, 0.6)
        drawn = -np.log1p(-self._draw(person, later + 14)) * (children + 0.15)
        return self._whole("household_size", 1 + couple + np.floor(drawn + 0.3))

    def _whole(self, name: str, values: Floats, unit: int = 1) -> Ints:
        domain = self._ranges[name]
        whole: Floats = np.clip(np.rint(values / unit) * unit, domain.lo, domain.hi)
        return whole.astype(np.int64)

    def _draw(self, person: Ints, salt: int | Ints) -> Floats:
        """Return the uniform number of a person and a salt: SplitMix64 with random access."""
        golden = np.uint64(0x9E3779B97F4A7C15)
        state = (person * 64 + salt).astype(np.uint64) * golden + self._key
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        state ^= state >> np.uint64(31)
        # Adding a half excludes 0 and 1, whose log-odds are infinite.
        top = (state >> np.uint64(12)).astype(np.float64)
        return np.asarray((top + 0.5) * 2.0**-52, dtype=np.float64)


def _job_table() -> Floats:
    """Return the cumulative probability of each occupation, by sex and rank of education."""
    jobs = domains.OCCUPATIONS
    share = np.array([job.share for job in jobs])
    best = np.array([job.education for job in jobs])
    men = np.array([job.men for job in jobs])
    ranks = np.arange(len(EDUCATION_BORDERS) + 1)
    fits = share * np.exp(-((ranks[:, None] - best) ** 2) / 3.0)
    table = np.stack([fits / (1 + men), fits * men / (1 + men)])
    cumulative = np.cumsum(table, axis=2)
    return np.asarray(cumulative / cumulative[:, :, -1:], dtype=np.float64)


def _choose(cumulative: Floats, draw: Floats) -> Ints:
    """Return, for each row, the first column whose cumulative probability exceeds the draw."""
    chosen: Ints = (cumulative[:, :-1] <= draw[:, None]).sum(axis=1)
    return chosen


def _probability(log_odds: Floats) -> Floats:
    return np.asarray(1.0 / (1.0 + np.exp(-log_odds)), dtype=np.float64)


def _log_odds(draw: Floats) -> Floats:
    return np.asarray(np.log(draw / (1.0 - draw)), dtype=np.float64)
