import numpy as np
import pyarrow.compute as pc
import pytest

from shoal.datasets import census
from shoal.errors import ParameterError
from shoal.spec.hierarchy import Hierarchy, Range

ROWS = 100_000


@pytest.fixture(scope="module")
def stream():
    return census(ROWS, subjects=20_000, seed=11)


@pytest.fixture(scope="module")
def columns(stream):
    table = stream.table()
    return {name: table[name].to_numpy(zero_copy_only=False) for name in table.column_names}


def test_the_schema_has_what_a_census_has(stream):
    schema = stream.schema
    assert (schema.subject, schema.time) == ("person_id", "arrived_at")
    assert len(schema.quasi) == 10
    assert [attribute.name for attribute in schema.sensitive] == ["diagnosis"]
    assert schema.keep == ("visit",)
    trees = {a.name: a.domain for a in schema.quasi if isinstance(a.domain, Hierarchy)}
    assert {name: tree.depth for name, tree in trees.items()} == {
        "sex": 2,
        "education": 4,
        "marital_status": 4,
        "occupation": 4,
        "postcode": 5,
        "country_of_birth": 4,
    }
    assert sum(isinstance(a.domain, Range) for a in schema.quasi) == 4


def test_the_number_of_subjects_is_exact_and_they_come_back(columns):
    people, counts = np.unique(columns["person_id"], return_counts=True)
    assert len(people) == 20_000
    assert (counts > 1).mean() > 0.5


@pytest.mark.parametrize(("rows", "subjects", "expected"), [(1, None, 1), (10, None, 3), (7, 7, 7)])
def test_the_number_of_subjects_of_short_streams(rows, subjects, expected):
    table = census(rows, subjects=subjects).table()
    assert table.num_rows == rows
    assert pc.count_distinct(table["person_id"]).as_py() == expected


def test_a_subject_keeps_its_quasi_values_mostly(stream):
    table = stream.table()
    quasi = [attribute.name for attribute in stream.schema.quasi]
    versions = table.select(["person_id", *quasi]).group_by(["person_id", *quasi]).aggregate([])
    n_versions = np.bincount(versions["person_id"].to_numpy())
    assert set(n_versions) == {1, 2}
    assert 0.01 < (n_versions == 2).mean() < 0.05
    fixed = ["person_id", "age", "sex", "education", "country_of_birth"]
    assert table.select(fixed).group_by(fixed).aggregate([]).num_rows == 20_000


def test_a_change_of_life_lasts(stream):
    homes: dict[int, list[str]] = {}
    table = stream.table().select(["person_id", "postcode"])
    for person, home in zip(*(column.to_pylist() for column in table.columns), strict=True):
        known = homes.setdefault(person, [])
        if home not in known[-1:]:
            known.append(home)
    assert max(len(known) for known in homes.values()) == 2


def test_times_pass(columns):
    times = columns["arrived_at"]
    assert times[0] > 0
    assert (np.diff(times) > 0).all()


def test_attributes_are_correlated(columns):
    def correlation(x, y):
        return np.corrcoef(columns[x], columns[y])[0, 1]

    def mean_income(name, value):
        return columns["income"][columns[name] == value].mean()

    assert correlation("income", "hours_per_week") > 0.3
    assert correlation("age", "hours_per_week") < -0.3
    assert mean_income("education", "Master's degree") > 1.5 * mean_income(
        "education", "Lower secondary"
    )
    assert mean_income("occupation", "Physician") > 2 * mean_income("occupation", "Cleaner")
    assert mean_income("postcode", "2550") > 1.5 * mean_income("postcode", "2050")
    age = columns["age"]
    assert age[columns["marital_status"] == "Widowed"].mean() > 70
    assert age[columns["marital_status"] == "Never married"].mean() < 40
    assert age[columns["diagnosis"] == "Atrial fibrillation"].mean() > 60
    assert (columns["sex"][columns["occupation"] == "Electrician"] == "Male").mean() > 0.85


def _ends(name, drift):
    """The mean over the first and over the last tenth of the stream."""
    values = census(50_000, seed=3, drift=drift).table()[name].to_numpy()
    return values[:5000].mean(), values[-5000:].mean()


def test_drift_moves_the_population():
    first, last = _ends("age", 1.0)
    assert last - first > 8
    first, last = _ends("age", -1.0)
    assert last - first < -4


def test_drift_raises_the_pay_of_the_same_work():
    table = census(50_000, seed=3, drift=1.0).table()
    clerk = table["occupation"].to_numpy(False) == "Office clerk"
    income = table["income"].to_numpy()
    assert income[-15_000:][clerk[-15_000:]].mean() > 1.1 * income[:15_000][clerk[:15_000]].mean()


def test_drift_brings_people_from_abroad():
    born = census(50_000, seed=3, drift=2.0).table()["country_of_birth"].to_numpy(False)
    assert (born[-5000:] != "Australia").mean() > (born[:5000] != "Australia").mean() + 0.1


def test_no_drift_unless_asked_for():
    first, last = _ends("age", 0.0)
    assert abs(last - first) < 1.5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rows": 0}, "census.rows"),
        ({"rows": 10, "subjects": 0}, "census.subjects: must be"),
        ({"rows": 10, "subjects": 11}, "more subjects than rows; got 11 subjects in 10 rows"),
        ({"rows": 10, "drift": float("nan")}, "census.drift"),
    ],
)
def test_refuses(arguments, message):
    with pytest.raises(ParameterError, match=message):
        census(**arguments)
