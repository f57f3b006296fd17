"""The domains of a job file: all their forms, and the errors of wrong ones."""

from __future__ import annotations

import pytest

from shoal.errors import JobError
from shoal.job.domains import Files, quasi_domain, sensitive_domain
from shoal.job.form import DomainForm, QuasiForm
from shoal.spec.hierarchy import Hierarchy, Range
from shoal.spec.ladder import Grid, Open, Path

KEY = "schema.quasi.x"

WAYS = [
    ({}, Open()),
    ({"weight": 2}, Open()),
    ({"path": "*"}, Path("*", levels=5)),
    ({"path": "::", "levels": 3}, Path("::", levels=3)),
    ({"grid": ["lat", "lon", 500]}, Grid("lat", "lon", [500])),
    ({"grid": ["lat", "lon", 500, 1000, 5000]}, Grid("lat", "lon", [500, 1000, 5000])),
    ({"range": [0, 9], "step": 3}, Range(0, 9, step=3)),
    ({"range": [0, 9]}, Range(0, 9)),
    ({"values": ["a", "b"]}, Hierarchy.flat(["a", "b"])),
    ({"mask": ["01", "02"]}, Hierarchy.masked(["01", "02"])),
    ({"mask": 2}, Hierarchy.digits(2)),
]


@pytest.mark.parametrize(("given", "domain"), WAYS)
def test_every_way(given, domain, tmp_path):
    assert quasi_domain(KEY, QuasiForm(**given), Files(tmp_path)) == domain


def test_a_hierarchy_is_read_and_remembered(tmp_path):
    (tmp_path / "tree.csv").write_text("a;A;*\nb;B;*\n")
    files = Files(tmp_path)
    found = quasi_domain(KEY, QuasiForm(hierarchy="tree.csv"), files)
    assert found == Hierarchy.from_rows([["a", "A", "*"], ["b", "B", "*"]])
    assert files.read == {"tree.csv": b"a;A;*\nb;B;*\n"}


WRONG = [
    ({"levels": 3}, "levels", "is for a path only"),
    ({"values": ["a"], "levels": 3}, "levels", "is for a path only"),
    ({"path": ""}, "path", "must be the text between two parts; got ''"),
    ({"path": "/", "levels": 0}, "levels", "from 1 to 20; got 0"),
    ({"path": "/", "step": 1}, "step", "is for a range only"),
    ({"grid": ["lat", "lon", 500], "step": 1}, "step", "is for a range only"),
    ({"step": 1}, "step", "is for a range only"),
    ({"values": ["a"], "step": 1}, "step", "is for a range only"),
    ({"grid": []}, "grid", "must be the columns of latitude and longitude"),
    ({"grid": ["lat"]}, "grid", "got 1 items"),
    ({"grid": [500, 1000]}, "grid", 'For example ["lat", "lon", 500, 1000, 5000]'),
    ({"grid": ["lat", "lon", "500"]}, "grid", "then sides of cells in metres; got 3 items"),
    ({"grid": ["lat", "lon"]}, "grid", "must be 1 to 20 sides in metres"),
    ({"grid": ["lat", "lat", 500]}, "grid", "another column than the latitude"),
    ({"grid": ["lat", "lon", 500, 700]}, "grid", "got 700 after 500. For example 500, 1000"),
    ({"range": [0, 1, 2]}, "range", "must be [lowest, highest]; got 3 items"),
    ({"path": "/", "grid": ["a", "b", 10]}, "", "values, mask, path and grid, or none"),
    ({"range": [0, 1], "values": ["a"]}, "", "got range, values"),
]


@pytest.mark.parametrize(("given", "key", "says"), WRONG)
def test_wrong_ways_are_reported_under_the_keys_of_the_file(given, key, says, tmp_path):
    with pytest.raises(JobError) as raised:
        quasi_domain(KEY, QuasiForm(**given), Files(tmp_path))
    (problem,) = raised.value.problems
    # Of what Path itself refuses, the job knows the key that it has in the file.
    assert problem.key in (f"{KEY}.{key}".rstrip("."), f"Path.{key}")
    assert says in str(problem)


def test_a_sensitive_attribute_has_no_paths_and_grids(tmp_path):
    assert sensitive_domain(KEY, DomainForm(), Files(tmp_path)) is None
    with pytest.raises(JobError, match="one of range, hierarchy, values and mask, or none"):
        sensitive_domain(KEY, DomainForm(mask=2, values=["a"]), Files(tmp_path))
    assert {"path", "grid"}.isdisjoint(DomainForm.model_fields)
