"""Drafts of made-up files are safe: they are run, and audited by the true subjects."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shoal.audit import audit
from shoal.cli.init.draft import draft
from shoal.io import open_source
from shoal.job import Job
from shoal.spec.schema import Schema
from tests.cli.init.worlds import WORLDS, World
from tests.world import shoal

#: Enough rows for the figures, and few enough for plain Python.
MEASURED = 60


def published_columns(job: Job) -> set[str]:
    quasi = {attribute.name for attribute in job.schema.quasi}
    return quasi | {attribute.name for attribute in job.schema.sensitive} | set(job.schema.keep)


def by_true_subject(job: Job, true: str) -> Schema:
    return Schema(
        subject=true,
        quasi=[quasi for quasi in job.schema.quasi if quasi.name != true],
        sensitive=job.schema.sensitive,
        keep=job.schema.keep,
    )


def read(path: Path) -> pa.Table:
    source = open_source(str(path))
    try:
        return pa.concat_tables([pa.Table.from_batches([chunk.batch]) for chunk in source])
    finally:
        source.close()


@pytest.mark.compiled
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.nightly) if name == "telecom" else name
        for name in WORLDS
    ],
)
def test_a_draft_is_safe_by_the_true_subject(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd
) -> None:
    world: World = WORLDS[name]
    data, original = world.write(tmp_path)
    job_path, output, trace = (tmp_path / file for file in ("job.toml", "out.csv", "trace.parquet"))
    words = ("init", data, "-o", job_path, "--measure", MEASURED)
    assert shoal(monkeypatch, *words) == 0
    job = Job.load(job_path)
    assert published_columns(job).isdisjoint(world.identifying)
    assert job.schema.subject == world.subject
    assert job.schema.time == world.time
    assert len(job.schema.quasi) <= 10
    assert shoal(monkeypatch, "check", job_path, "-i", data) == 0, capfd.readouterr().out
    words = ("run", job_path, "-i", data, "-o", output, "--trace", trace)
    assert shoal(monkeypatch, *words) == 0, capfd.readouterr().err
    words = ("audit", job_path, output, "--original", data, "--trace", trace)
    assert shoal(monkeypatch, *words) == 0, capfd.readouterr().out
    published, lines = read(output), pq.read_table(trace)
    assert published.num_rows > original.num_rows / 2
    true = original[world.subject].take(lines["row"])
    lines = lines.set_column(lines.column_names.index("subject"), "subject", true)
    report = audit(by_true_subject(job, world.subject), job.policy, published, trace=lines)
    assert report["k-anonymity"].verdict == "kept", str(report)


@pytest.mark.parametrize("seed", [2, 3])
@pytest.mark.parametrize("name", WORLDS)
def test_ids_are_known_by_their_values_whatever_they_are_called(name: str, seed: int) -> None:
    world = WORLDS[name]
    table = world.table(seed)
    called = {column: f"x{i}" for i, column in enumerate(sorted(world.identifying))}
    table = table.rename_columns([called.get(column, column) for column in table.column_names])
    schema = tomllib.loads(draft(table, name=world.file).job)["schema"]
    published = {*schema["quasi"], *schema.get("sensitive", {}), *schema["keep"]["columns"]}
    assert published.isdisjoint(called.values())
    chosen = schema["subject"]
    # Where several columns are ids of the same people, any of them will do.
    n_true = len(table[called[world.subject]].unique())
    assert isinstance(chosen, str)
    assert len(table[chosen].unique()) == n_true


def test_a_clinic_is_understood(tmp_path: Path) -> None:
    table = WORLDS["clinic"].table(1)
    result = draft(table, name="stays.csv", total_rows=table.num_rows)
    schema = tomllib.loads(result.job)["schema"]
    assert set(schema["quasi"]) == {"race", "gender", "zip3", "age", "age_years", "weight"}
    assert set(schema["sensitive"]) == {"diag_1", "diag_2", "A1Cresult"}
    assert schema["quasi"]["age_years"] == {"range": [10, 100], "step": 1}
    age = [line.split(";") for line in result.files["age.csv"].splitlines()]
    assert [path[0] for path in age] == [f"[{10 * n}-{10 * n + 10})" for n in range(1, 10)]
    assert age[0][1:] == ["[10-30)", "[10-50)", "[10-90)", "*"]
    assert '# admission_type_id = { values = ["1", "2", "3", "5", "6", "8"] }' in result.job
    assert "# num_medications = { range = [" in result.job
    assert '"age_years" has outliers in 2 of 1000 rows of the sample' in "\n".join(result.warnings)
    assert "450" not in result.job + "".join(result.warnings)
    assert re.search(r'# left out: "household": values recur as ids of people do', result.job)


def test_a_file_of_events_is_understood() -> None:
    world = WORLDS["telecom"]
    result = draft(world.table(1), name=world.file)
    schema = tomllib.loads(result.job)["schema"]
    assert schema["quasi"]["plz"] == {"mask": 5}
    assert schema["quasi"]["altersgruppe"] == {"hierarchy": "altersgruppe.csv"}
    assert "999999" not in result.job
    assert "# dauer_s = { range = [0, " in result.job
    assert "of 1,200 rows 1 above, to quarantine" in result.job
    assert '# zelle = { values = ["4711"' in result.job


def test_an_exact_salary_is_not_published_as_it_is() -> None:
    world = WORLDS["payroll"]
    result = draft(world.table(1), name=world.file)
    schema = tomllib.loads(result.job)["schema"]
    assert set(schema["sensitive"]) == {"union_member"}
    assert (
        '# left out: "gross": 110 values, nearly each of which belongs to one person' in result.job
    )
    assert "# sick_days = { range = [" in result.job
