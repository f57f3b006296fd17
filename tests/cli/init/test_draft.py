import csv
import datetime
import tomllib
from pathlib import Path

import hypothesis.strategies as st
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

from shoal.cli.init.columns import MARKS, describe
from shoal.cli.init.draft import draft
from shoal.cli.init.roles import Asked, assign
from shoal.datasets import census
from shoal.errors import JobError, ParameterError
from shoal.spec.hierarchy import Hierarchy, Range
from tests.examples import examples

SHARED = Path(__file__).parents[4] / "shared" / "data"

KEYS = {
    "schema": {"subject", "time", "quasi", "sensitive", "keep"},
    "input": {"delimiter", "quote", "encoding", "decimal", "null"},
    "policy": {"k", "l", "delay", "missing"},
    "algorithm": {"name", "release", "effort", "workers", "capacity", "loss"},
    "publish": {"numeric", "order", "suppressed"},
    "run": {"seed"},
    "bad_rows": {"action", "file"},
}


def job_of(columns, **options):
    table = pa.table(columns)
    result = draft(table, name="data.csv", **options)
    job = tomllib.loads(result.job)
    assert set(KEYS) - {"input"} <= set(job) <= set(KEYS)
    for section, keys in KEYS.items():
        assert set(job.get(section, {})) <= keys
    return job, result


def domain_of(spec, files, folder):
    """Build the domain as the job's reader would."""
    if "range" in spec:
        return Range(*spec["range"], step=spec["step"])
    if "values" in spec:
        return Hierarchy.flat(spec["values"])
    if "mask" in spec:
        mask = spec["mask"]
        return Hierarchy.digits(mask) if isinstance(mask, int) else Hierarchy.masked(mask)
    path = folder / spec["hierarchy"]
    path.write_text(files[path.name], encoding="utf-8")
    return Hierarchy.from_csv(path)


def words(n, prefix=""):
    return [f"{prefix}{chr(97 + i % 26)}{chr(97 + i // 26)}word" for i in range(n)]


def test_a_census_is_understood(tmp_path):
    stream = census(5000, seed=1)
    job, result = job_of(stream.table().to_pydict(), total_rows=5000)
    assert job["schema"]["subject"] == "person_id"
    assert job["schema"]["time"] == "arrived_at"
    assert set(job["schema"]["sensitive"]) == {"diagnosis"}
    assert '# left out: "income": it looks sensitive, but nearly everybody' in result.job
    assert job["schema"]["keep"] == {"columns": []}
    assert job["schema"]["quasi"]["postcode"] == {"mask": 4}
    assert job["schema"]["quasi"]["age"] == {"range": [10, 100], "step": 1}
    assert set(result.files) == {"occupation.csv", "country_of_birth.csv"}
    for name, spec in job["schema"]["quasi"].items():
        domain = domain_of(spec, result.files, tmp_path)
        if isinstance(domain, Hierarchy):
            assert set(stream.table()[name].unique().to_pylist()) <= set(domain.leaves)
    assert job["policy"] == {"k": 10, "l": 3, "delay": {"rows": 500}}
    assert job["algorithm"] == {"name": "tide"}
    assert job["bad_rows"] == {"action": "quarantine"}
    assert '# file = "job.quarantine.jsonl"' in result.job


def test_algorithm_knobs_are_there_as_comments():
    _, result = job_of({"age": [1, 2, 3]})
    uncommented = result.job.replace("# effort", "effort").replace("# seed", "seed")
    job = tomllib.loads(uncommented)
    assert job["algorithm"]["effort"] == 20
    assert job["run"]["seed"] == 7


# -- sensitive and policy -----------------------------------------------------------------------


def test_l_only_where_there_are_enough_values():
    ages = list(range(30))
    job, _ = job_of({"age": ages, "disease": ["a", "b", "c"] * 10})
    assert job["policy"]["l"] == 3
    job, result = job_of({"age": ages, "disease": ["a", "b", "b"] * 10})
    assert "l" not in job["policy"]
    assert any("too few for l = 3" in text for text in result.warnings)
    job, _ = job_of({"age": ages, "disease x": ["a", "b", "c"] * 10, "religion": ["a", "b"] * 15})
    assert job["policy"]["l"] == {"disease x": 3}
    job, _ = job_of({"age": ages})
    assert "sensitive" not in job["schema"]


def test_a_nearly_unique_sensitive_value_is_left_out_unless_it_is_asked_for():
    table = {"age": [n % 7 for n in range(99)], "salary": [n * 1.5 for n in range(99)]}
    job, result = job_of(table)
    assert "sensitive" not in job["schema"]
    assert any("anyone who knows one finds the row" in text for text in result.warnings)
    job, result = job_of(table, asked=Asked(sensitive=("salary",)))
    assert list(job["schema"]["sensitive"]) == ["salary"]
    assert any("make it coarser" in text for text in result.warnings)


@pytest.mark.parametrize(
    ("total", "rows"),
    [(None, 10_000), (10**6, 10_000), (99_999, 9000), (3456, 300), (500, 100), (3, 100)],
)
def test_the_delay_suits_the_data(total, rows):
    job, _ = job_of({"age": [1, 2, 3]}, total_rows=total)
    assert job["policy"]["delay"] == {"rows": rows}


# -- what is left out ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["name", "First Name", "e-mail", "email", "Telefon", "Straße", "nachname", "ip_address"]
)
def test_direct_identifiers_are_left_out(name):
    job, result = job_of({"age": list(range(30)), name: ["a", "b", "c"] * 10})
    assert list(job["schema"]["quasi"]) == ["age"]
    assert any(text.startswith("Left out") for text in result.warnings)


def test_the_name_of_a_thing_is_no_identifier():
    job, _ = job_of({"age": list(range(30)), "country_name": ["a", "b", "c"] * 10})
    assert "country_name" in job["schema"]["quasi"]


@pytest.mark.parametrize(
    "values",
    [
        [f"free text {n}" for n in range(50)],
        [None] * 50,
        ["same"] * 50,
        [[n] for n in range(50)],
        ["two\nlines", "one"] * 25,
    ],
    ids=["nearly unique", "empty", "constant", "nested", "line breaks"],
)
def test_what_cannot_be_used_is_left_out(values):
    job, result = job_of({"age": list(range(50)), "x": values})
    assert list(job["schema"]["quasi"]) == ["age"]
    assert any(text.startswith('Left out: "x"') for text in result.warnings)
    assert '# left out: "x"' in result.job


def test_warnings_and_repr_hold_no_values():
    table = {
        "age": [*range(59), None],
        "note": [f"Canary {n}" for n in range(60)],
        "city": ["Canary", "?", ""] * 20,
        "diagnosis": ["Canary", "other"] * 30,
        "n": ["Canary", "Canary"] * 30,
    }
    _, result = job_of(table)
    assert "Canary" not in repr(result) + repr(describe("city", pa.chunked_array([table["city"]])))
    assert "Canary" in result.job  # the value of a list: the comment says so
    assert "# Lists hold values that were seen in the sample" in result.job


def test_gaps_are_counted():
    job, result = job_of(
        {"age": [str(n) for n in range(58)] + ["NA", ""], "city": ["a", "b ", None, "?"] * 15}
    )
    assert job["policy"]["missing"] == "extended"
    text = "\n".join(result.warnings)
    assert '"age" has no value in 1 of 60 rows of the sample: these count as any value' in text
    assert '"age" has a text for missing in 1 of 60 rows of the sample: these go to' in text
    assert '"city" has no value in 15 of 60 rows' in text
    assert '"city" has a text for missing in 15 of 60 rows of the sample: these count as' in text
    assert '"city" has values with spaces at their ends' in text


def test_the_draft_says_what_missing_means_only_where_something_is():
    city = ["a", "b"] * 30
    words_only, result = job_of({"age": [*map(str, range(59)), "NA"], "city": city})
    assert "missing" not in words_only["policy"]
    assert "policy.missing" not in "\n".join(result.warnings)
    gaps, result = job_of({"age": [*range(59), None], "city": city})
    assert gaps["policy"]["missing"] == "extended"
    assert '"maybe": it stays missing' in result.job
    subject, result = job_of({"person_id": [*range(59), None], "city": city})
    assert "missing" not in subject["policy"]
    assert '"person_id" has no value in 1 of 60 rows of the sample: these go to quarantine.' in (
        result.warnings
    )


# -- domains ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "total", "expected"),
    [
        (range(17, 91), 74, {"range": [10, 90], "step": 1}),
        (range(17, 91), None, {"range": [10, 100], "step": 1}),
        ([str(n) for n in range(17, 91)], 74, {"range": [10, 90], "step": 1}),
        ([0, 1, 1], None, {"range": [0, 1], "step": 1}),
        ([1000, 487_000, 3], 3, {"range": [0, 500_000], "step": 5000}),
        ([47.13, 48.31, 47.5], 3, {"range": [47.0, 48.4], "step": 0.02}),
        ([-0.5, 0.25, "?"], 3, {"range": [-0.5, 0.3], "step": 0.01}),
        ([float("nan"), 1.0, 2.0], 3, {"range": [1, 2], "step": 1}),
    ],
)
def test_ranges_are_round(values, total, expected):
    values = [str(v) for v in values] if "?" in values else list(values)
    job, _ = job_of({"alter": values}, total_rows=total)
    assert job["schema"]["quasi"]["alter"] == expected


def test_numbers_that_are_labels_are_listed_in_order():
    job, _ = job_of({"marital": [10, 9, 2, 1] * 9})
    assert job["schema"]["quasi"]["marital"] == {"values": ["1", "2", "9", "10"]}


def test_truth_values_are_listed():
    job, _ = job_of({"x": [True, False, None]})
    assert job["schema"]["quasi"]["x"] == {"values": ["false", "true"]}


def test_dictionaries_are_text():
    column = pa.array(["a", "b", "a"]).dictionary_encode()
    job, _ = job_of({"x": column})
    assert job["schema"]["quasi"]["x"] == {"values": ["a", "b"]}


def test_postcodes_are_masked():
    job, _ = job_of({"plz": ["01067", "10115"] * 9, "ZipCode": [53703, 53706] * 9})
    assert job["schema"]["quasi"] == {"plz": {"mask": 5}, "ZipCode": {"mask": 5}}
    job, _ = job_of({"postcode": ["1012AB", "3511XZ"] * 9})
    assert job["schema"]["quasi"]["postcode"] == {"mask": ["1012AB", "3511XZ"]}


def test_codes_of_one_length_are_masked(tmp_path):
    codes = [f"K{n:03d}" for n in range(150)] * 2
    table = {"x": codes, "y": [f"{n % 40:03d}" for n in range(300)]}
    with pytest.raises(JobError, match="Name some with --quasi"):
        job_of(table)
    job, result = job_of(table, asked=Asked(quasi=("x", "y")))
    assert job["schema"]["quasi"]["y"] == {"mask": 3}
    assert any('"x" is published as asked, but values recur' in text for text in result.warnings)
    tree = domain_of(job["schema"]["quasi"]["x"], result.files, tmp_path)
    assert (len(tree), tree.depth, tree.label(0, 9)) == (150, 5, "K00*")


def test_a_calendar_for_days(tmp_path):
    days = [datetime.date(1980, 5, 17), datetime.date(1981, 12, 1)] * 20
    for column in (days, [str(day) for day in days]):
        job, result = job_of({"date of birth": column})
        tree = domain_of(job["schema"]["quasi"]["date of birth"], result.files, tmp_path)
        assert len(tree) == 366 + 365
        assert tree.depth == 5
        assert tree.label(0, 30) == "1980-01"
        assert tree.label(0, 365) == "1980"


def test_days_that_never_were_have_a_place(tmp_path):
    job, result = job_of({"dob": ["1980-05-17", "1980-02-31"] * 20})
    tree = domain_of(job["schema"]["quasi"]["dob"], result.files, tmp_path)
    assert len(tree) == 366 + 1
    assert tree.node("no date") is not None


def test_many_values_go_into_drawers_and_the_job_says_so(tmp_path):
    values = [*words(300), "Éa", "ea", "ßa", "*", "A…", "any value"]
    job, result = job_of({"city": values})
    tree = domain_of(job["schema"]["quasi"]["city"], result.files, tmp_path)
    assert set(tree.leaves) == set(values)
    assert tree.depth == 5
    assert len([node for node in tree.parents[1:] if node == 0]) <= 7
    line = next(line for line in result.job.splitlines() if line.startswith("city"))
    assert "to be improved" in line
    assert "Hierarchy files hold values that were seen in the sample" in result.job


def test_files_of_similar_columns_do_not_collide():
    _, result = job_of(
        {"City": words(30), "city": words(30), "city?": words(30), "城市": words(30)}
    )
    assert sorted(result.files) == ["city.csv", "city_2.csv", "city_3.csv"]


# -- anything at all ----------------------------------------------------------------------------

names = st.text(st.characters(codec="utf-8"), max_size=12)
cells = st.one_of(
    st.text(st.characters(codec="utf-8", exclude_characters="\ufeff"), max_size=4),
    st.sampled_from(sorted(MARKS)),
    st.none(),
)
columns_of_30 = st.one_of(
    st.lists(cells, min_size=30, max_size=30),
    st.lists(st.integers(-(2**63), 2**63 - 1) | st.none(), min_size=30, max_size=30),
    st.lists(st.floats() | st.none(), min_size=30, max_size=30),
)


@settings(max_examples=examples(150), deadline=None, derandomize=True)
@given(st.dictionaries(names, columns_of_30, min_size=1, max_size=4))
def test_any_table_gives_a_job_that_can_be_read(tmp_path_factory, columns):
    table = {"age": list(range(30))} | columns
    job, result = job_of(table, total_rows=30)
    folder = tmp_path_factory.mktemp("job")
    for name, spec in job["schema"]["quasi"].items():
        domain = domain_of(spec, result.files, folder)
        described = describe(name, pa.table(table)[name])
        if isinstance(domain, Range):
            assert domain.lo <= described.lo
            assert described.hi <= domain.hi
        else:
            assert set(described.values) <= set(domain.leaves)


def test_refuses_what_it_cannot_draft_from():
    with pytest.raises(ParameterError, match="has no rows"):
        draft(pa.table({"age": pa.array([], pa.int64())}), name="data.csv")
    with pytest.raises(ParameterError, match='same name: "age"'):
        draft(pa.table([[1], [2]], names=["age", "age"]), name="data.csv")
    with pytest.raises(JobError, match="none of the 1 columns"):
        draft(pa.table({"email": ["a", "b"]}), name="data.csv")


def test_hierarchy_files_are_quoted_where_needed():
    _, result = job_of({"city": ['a;"b"', *words(40)]})
    rows = list(csv.reader(result.files["city.csv"].splitlines(), delimiter=";"))
    assert 'a;"b"' in {row[0] for row in rows}


@pytest.mark.parametrize(
    "file", ["adult.csv", "informs_demographics_2005.csv", "online_retail.parquet"]
)
def test_real_files(file, tmp_path):
    path = SHARED / file
    if not path.exists():
        pytest.skip(f"../shared/data/{file} isn't there")
    is_csv = file.endswith("csv")
    table = pyarrow.csv.read_csv(path) if is_csv else pq.read_table(path).slice(0, 50_000)
    job, result = job_of({name: table[name] for name in table.column_names})
    for spec in job["schema"]["quasi"].values():
        domain_of(spec, result.files, tmp_path)
    roles = assign([describe(name, table[name]) for name in table.column_names], table)
    expected = {
        "adult.csv": (["salary_class"], None),
        "informs_demographics_2005.csv": (["income"], "dupersid"),
        "online_retail.parquet": ([], "customer_id"),
    }[file]
    subject = None if roles.subject is None else roles.subject.name
    assert ([c.name for c in roles.sensitive], subject) == expected
    assert {"duid", "pid", "invoice_no", "stock_code"}.isdisjoint(job["schema"]["quasi"])
    assert len(job["schema"]["quasi"]) <= 10
