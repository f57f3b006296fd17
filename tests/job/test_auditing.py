"""``shoal.audit``: frames of any kind and files, with a job or with schema and policy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import shoal
from shoal import anonymize
from shoal.errors import DataError, JobError, ParameterError
from shoal.job import Job
from tests.run.test_stream import POLICY, SCHEMA
from tests.world import people, read, write, write_job

pytestmark = pytest.mark.filterwarnings("ignore:run.seed:UserWarning")

KINDS: dict[str, Any] = {
    "table": lambda table: table,
    "batch": lambda table: table.combine_chunks().to_batches()[0],
    "pandas": lambda table: table.to_pandas(),
    "polars": pl.from_arrow,
    "dicts": lambda table: table.to_pylist(),
}


@pytest.mark.parametrize("name", KINDS)
def test_frames_of_any_kind_are_judged_alike(name: str) -> None:
    make, table = KINDS[name], people(60)
    result = anonymize(table, SCHEMA, POLICY, "castle", seed=1, trace=True)
    report = shoal.audit(
        SCHEMA, POLICY, make(result.frame), trace=make(result.trace), original=make(table)
    )
    assert report.verdict == "kept", report
    forged = result.trace.set_column(1, "subject", pa.array(["one"] * result.trace.num_rows))
    broken = shoal.audit(SCHEMA, POLICY, make(result.frame), trace=make(forged))
    assert broken["k-anonymity"].verdict == "broken"


def test_a_result_brings_its_trace() -> None:
    table = people(60)
    result = anonymize(table.to_pandas(), SCHEMA, POLICY, "castle", trace=True)
    assert shoal.audit(SCHEMA, POLICY, result, original=table).verdict == "kept"
    without = anonymize(table.to_pandas(), SCHEMA, POLICY, "castle")
    assert shoal.audit(SCHEMA, POLICY, without).verdict == "unverifiable"


def test_a_job_is_judged_by_files_and_by_frames(tmp_path: Path) -> None:
    path = write_job(tmp_path, publish="numeric = 'bounds'")
    source, trace = write(people(60), tmp_path / "people.csv"), tmp_path / "trace.parquet"
    done = shoal.run(path, input=source, output=tmp_path / "out.csv", trace=trace)
    for job in (path, str(path), Job.load(path)):
        report = shoal.audit(job, tmp_path / "out.csv", original=source, trace=trace)
        assert report.verdict == "kept", report
    assert shoal.audit(path, done, original=people(60), trace=trace).verdict == "kept"


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("out.csv", "Ann,1970-01-01,berlin,ann@example.org,more,still more,and more\n"),
        ("out.csv", "Ann\n"),
        ("out.jsonl", '{"age": "Ann", broken\n'),
        ("out.jsonl", '["Ann"]\n'),
    ],
)
def test_a_line_that_is_no_row_of_the_output_breaks_its_shape(
    tmp_path: Path, name: str, line: str
) -> None:
    path = write_job(tmp_path)
    source, trace = write(people(60), tmp_path / "people.csv"), tmp_path / "trace.parquet"
    shoal.run(path, input=source, output=tmp_path / name, trace=trace)
    with (tmp_path / name).open("a") as file:
        file.write(line)
    report = shoal.audit(path, tmp_path / name, original=source, trace=trace)
    assert report["shape"].verdict == "broken"
    assert "1 line isn't a row" in report["shape"].detail
    assert "Ann" not in str(report)
    for judge in (shoal.report, shoal.attack):
        with pytest.raises(DataError, match=r"1 line isn't a row, and may hold anything\. Remove"):
            judge(path, tmp_path / name, original=source)


def test_nothing_was_published() -> None:
    assert shoal.audit(SCHEMA, POLICY, []).n_rows == 0


def test_the_report_is_readable_in_a_notebook() -> None:
    result = anonymize(people(60), SCHEMA, POLICY, "castle", trace=True)
    report = shoal.audit(SCHEMA, POLICY, result, original=people(60))
    assert repr(report) == str(report)
    page = report._repr_html_()
    assert page.startswith(f"<table><caption>{str(report).splitlines()[0]}</caption>")
    assert page.count("<tr>") == len(report.verdicts)


@pytest.mark.parametrize(
    ("arguments", "options", "says"),
    [
        ((), {}, "audit: takes a job and the published rows, .*; got nothing"),
        ((SCHEMA, POLICY), {}, "got Schema, Policy"),
        ((SCHEMA, POLICY, 7), {}, "published: must be a file, a DataFrame of .*got builtins.int"),
        ((SCHEMA, POLICY, []), {"original": 7}, "original: must be a file"),
        ((SCHEMA, POLICY, []), {"numeric": "x"}, "numeric: must be one of range, .*; got 'x'"),
        ((7, []), {}, "job: must be a Job, the path of a job file, or a dictionary"),
    ],
)
def test_wrong_arguments_are_refused(arguments: Any, options: Any, says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        shoal.audit(*arguments, **options)


def test_what_a_job_says_is_not_said_again(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="numeric: is set by the job"):
        shoal.audit(write_job(tmp_path), [], numeric="bounds")  # type: ignore[call-overload]


def test_the_job_says_the_format_where_the_name_says_none(tmp_path: Path) -> None:
    """And where the name says another one, it was converted."""
    path = write_job(tmp_path)
    path.write_text(path.read_text() + "\n[output]\npath = 'published'\nformat = 'jsonl'\n")
    source, trace = write(people(60), tmp_path / "people.csv"), tmp_path / "trace.parquet"
    done = shoal.run(path, input=source, trace=trace)
    published = tmp_path / "published"
    assert shoal.audit(path, published, original=source, trace=trace).verdict == "kept"
    assert shoal.audit(path, done, original=source, trace=trace).verdict == "kept"
    with pytest.raises(ParameterError, match="has an ending that stands for no known format"):
        shoal.audit(write_job(tmp_path), published)
    converted = write(read(published, "jsonl"), tmp_path / "published.csv")
    assert shoal.audit(path, converted, original=source, trace=trace).verdict == "kept"


def test_a_result_knows_how_its_rows_look() -> None:
    table = people(60)
    done = shoal.anonymize(
        table, SCHEMA, POLICY, numeric="bounds", suppressed="root", seed=1, trace=True
    )
    assert shoal.audit(SCHEMA, POLICY, done, original=table).verdict == "kept"
    assert shoal.audit(SCHEMA, POLICY, done, original=table, numeric="range").verdict == "broken"


def test_an_original_that_lacks_a_column_is_refused() -> None:
    with pytest.raises(JobError, match="original: column town: isn't in the input"):
        shoal.audit(SCHEMA, POLICY, [], original=people(3).drop_columns(["town"]))
