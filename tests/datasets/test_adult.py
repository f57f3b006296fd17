from pathlib import Path

import pyarrow.compute as pc
import pytest

from shoal.datasets import adult
from shoal.datasets._adult_domains import COLUMNS, TABLE_5_4
from shoal.errors import DataError, JobError, ParameterError, ResourceError
from shoal.spec.hierarchy import Hierarchy, Range

FILE = Path(__file__).parents[3] / "shared" / "data" / "adult.csv"

needs_file = pytest.mark.skipif(not FILE.exists(), reason="../shared/data/adult.csv isn't there")

ORIGINAL = """\
39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, \
2174, 0, 40, United-States, <=50K
54, ?, 12285, Some-college, 10, Married-civ-spouse, ?, Husband, White, Male, \
0, 0, 60, South, >50K

"""
HEADED = ",".join(COLUMNS) + "\n" + ORIGINAL.replace(", ", ",").replace("?", "").rstrip() + "\n"


@pytest.fixture(params=[ORIGINAL, HEADED], ids=["original", "csv"])
def file(request, tmp_path):
    path = tmp_path / "adult.data"
    path.write_text(request.param, encoding="utf-8")
    return path


def test_reads_both_forms(file):
    assert adult(file).table().to_pylist() == [
        {
            "age": 39,
            "workclass": "State-gov",
            "final_weight": 77516,
            "education": "Bachelors",
            "education_num": 13,
            "marital_status": "Never-married",
            "occupation": "Adm-clerical",
            "relationship": "Not-in-family",
            "race": "White",
            "sex": "Male",
            "capital_gain": 2174,
            "capital_loss": 0,
            "hours_per_week": 40,
            "native_country": "United-States",
            "salary_class": "<=50K",
        }
    ]


def test_missing_values_are_nulls_if_rows_stay(file):
    data = adult(file, complete=False)
    assert data.n_rows == 2
    assert data.table()["workclass"].to_pylist() == ["State-gov", None]
    assert data.table()["occupation"].null_count == 1
    weight = next(a.domain for a in data.schema.quasi if a.name == "final_weight")
    assert weight.lo == 12285


def test_the_quasi_attributes_of_table_5_4(file):
    schema = adult(file).schema
    assert schema.each_row
    domains = {attribute.name: attribute.domain for attribute in schema.quasi}
    assert tuple(domains) == TABLE_5_4
    ranges = {name: domain for name, domain in domains.items() if isinstance(domain, Range)}
    assert ranges == {
        "age": Range(17, 90, step=1),
        "final_weight": Range(13492, 1490400, step=1),
        "education_num": Range(1, 16, step=1),
        "capital_gain": Range(0, 99999, step=1),
        "capital_loss": Range(0, 4356, step=1),
        "hours_per_week": Range(1, 99, step=1),
    }
    trees = {name: domain for name, domain in domains.items() if isinstance(domain, Hierarchy)}
    assert {name: (len(tree), tree.depth) for name, tree in trees.items()} == {
        "education": (16, 5),
        "marital_status": (7, 4),
        "occupation": (14, 3),
        "native_country": (41, 5),  # the table says 40; the complete rows hold 41
    }


def test_a_sensitive_attribute_is_no_quasi(file):
    schema = adult(file, sensitive="occupation").schema
    assert [attribute.name for attribute in schema.sensitive] == ["occupation"]
    assert len(schema.quasi) == 9


def test_quasi_chooses_and_orders(file):
    schema = adult(file, quasi=["sex", "age"], sensitive="salary_class").schema
    assert [attribute.name for attribute in schema.quasi] == ["sex", "age"]


def test_refuses_a_column_of_two_roles(file):
    with pytest.raises(JobError, match="quasi and sensitive"):
        adult(file, quasi=["age"], sensitive="age")


@pytest.mark.parametrize("arguments", [{"quasi": ["edcation"]}, {"sensitive": "edcation"}])
def test_refuses_an_unknown_column(file, arguments):
    with pytest.raises(ParameterError, match="Did you mean 'education'"):
        adult(file, **arguments)


def test_refuses_a_file_that_is_not_there(tmp_path):
    with pytest.raises(ResourceError, match=r"nothing\.data: can't be read"):
        adult(tmp_path / "nothing.data")


def test_refuses_a_file_that_is_not_text(tmp_path):
    path = tmp_path / "adult.data"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ResourceError, match="isn't UTF-8"):
        adult(path)


def test_refuses_other_files_without_telling_values(tmp_path):
    path = tmp_path / "adult.data"
    path.write_text(ORIGINAL + "39, Canary\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"line 4: must have 15 fields; got 2") as short:
        adult(path)
    path.write_text(ORIGINAL.replace("77516", "Canary"), encoding="utf-8")
    with pytest.raises(DataError, match=r"line 1: final_weight must be a whole number") as text:
        adult(path)
    assert "Canary" not in str(short.value) + str(text.value)


@needs_file
def test_the_real_file_is_covered_by_the_domains():
    data = adult(FILE, quasi=COLUMNS)
    table = data.table()
    assert data.n_rows == 30_162
    for attribute in data.schema.quasi:
        values = table[attribute.name]
        assert values.null_count == 0
        if isinstance(attribute.domain, Hierarchy):
            unseen = set(attribute.domain.leaves) - set(values.unique().to_pylist())
            assert unseen == ({"Never-worked"} if attribute.name == "workclass" else set())
            assert all(attribute.domain.code(v) is not None for v in values.unique().to_pylist())
        else:
            bounds = pc.min_max(values).as_py()
            assert attribute.domain.lo <= bounds["min"]
            assert bounds["max"] <= attribute.domain.hi


@needs_file
def test_the_real_file_with_its_gaps():
    data = adult(FILE, complete=False)
    assert data.n_rows == 32_561
    gaps = {name: data.table()[name].null_count for name in COLUMNS}
    assert {name: n for name, n in gaps.items() if n} == {
        "workclass": 1836,
        "occupation": 1843,
        "native_country": 583,
    }
    weight = next(a.domain for a in data.schema.quasi if a.name == "final_weight")
    assert weight.lo == pc.min(data.table()["final_weight"]).as_py()
