"""``shoal audit``: verdicts and exit codes."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shoal.audit import audit
from shoal.io import open_durable, open_source
from shoal.job import Job
from tests.world import people, read, shoal, write, write_job


@pytest.fixture
def done(tmp_path, monkeypatch):
    """The job of a run, its output, its input and its trace."""
    job = write_job(tmp_path)
    source = write(people(60), tmp_path / "in.csv")
    out, trace = tmp_path / "out.csv", tmp_path / "trace.parquet"
    assert shoal(monkeypatch, "run", job, "-i", source, "-o", out, "--trace", trace, "-q") == 0
    return job, out, source, trace


def test_kept_ends_with_0(done, monkeypatch, capfd):
    job, out, source, trace = done
    words = ("audit", job, out, "--original", source, "--trace", trace)
    assert shoal(monkeypatch, *words) == 0
    assert capfd.readouterr().out.startswith("kept: 11 of 11 promises, over 60 published rows\n")
    assert shoal(monkeypatch, *words, "--json") == 0
    report = json.loads(capfd.readouterr().out)
    assert report["verdict"] == "kept"
    assert report["exit_code"] == 0
    assert {verdict["verdict"] for verdict in report["verdicts"]} == {"kept"}


def test_without_a_trace_it_can_not_tell_and_ends_with_6(done, monkeypatch, capfd):
    job, out, _, _ = done
    assert shoal(monkeypatch, "audit", job, out) == 6
    assert "unverifiable" in capfd.readouterr().out


def test_broken_ends_with_1_and_shows_no_value(done, monkeypatch, capfd):
    job, out, source, trace = done
    table = read(out)
    illnesses = ["CANARY", *table["illness"].to_pylist()[1:]]
    write(table.set_column(2, "illness", pa.array(illnesses)), out)
    words = ("audit", job, out, "--original", source, "--trace", trace)
    assert shoal(monkeypatch, *words) == 1
    said = capfd.readouterr().out
    assert said.startswith("broken: ")
    assert "CANARY" not in said
    assert "person-" not in said


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_columns_that_the_job_doesnt_know_are_counted(ending, done, tmp_path, monkeypatch, capfd):
    """In a file without a header, their names are values of a person."""
    job, out, _, _ = done
    table = read(out)
    strange = tmp_path / f"strange.{ending}"
    more = table.append_column("CANARY", table["ward"]).append_column("person", table["ward"])
    write(more, strange)
    assert shoal(monkeypatch, "audit", job, strange) == 1
    said = capfd.readouterr().out
    assert "private columns are in the output: person" in said
    assert "the schema doesn't publish: 1 that isn't in the schema" in said
    write(table.rename_columns([f"CANARY {i}" for i in range(4)]), strange)
    page = tmp_path / "page.html"
    assert shoal(monkeypatch, "audit", job, strange) == 1
    assert shoal(monkeypatch, "report", job, strange, "-o", page) == 1
    captured = capfd.readouterr()
    assert "4 that aren't in the schema" in captured.out
    assert "none of the expected columns is there: does the file have a header?" in captured.out
    assert "CANARY" not in captured.out + captured.err + page.read_text()


def test_a_group_that_lacks_people_is_broken_without_any_trace(done, monkeypatch, capfd):
    job, out, _, _ = done
    write(read(out).slice(0, 1), out)
    assert shoal(monkeypatch, "audit", job, out) == 1
    assert "k-anonymity: broken" in capfd.readouterr().out


@pytest.mark.parametrize("ending", ["csv", "parquet", "arrow", "jsonl", "jsonl.gz", "jsonl.zst"])
def test_an_output_without_rows(ending, tmp_path, monkeypatch, capfd):
    job = write_job(tmp_path)
    source = write(people(10, n_people=1), tmp_path / "in.csv")
    out, trace = tmp_path / f"out.{ending}", tmp_path / "trace.parquet"
    assert shoal(monkeypatch, "run", job, "-i", source, "-o", out, "--trace", trace, "-q") == 3
    words = ("audit", job, out, "--original", source, "--trace", trace)
    assert shoal(monkeypatch, *words) == 0, capfd.readouterr().out


def test_json_lines_without_rows_have_the_columns_of_the_job(tmp_path, monkeypatch, capfd):
    job = write_job(tmp_path, publish='numeric = "bounds"')
    folder = tmp_path / "parts"
    folder.mkdir()
    for path in (tmp_path / "out.jsonl", folder / "1.jsonl"):
        path.write_bytes(b"")
    for published in (tmp_path / "out.jsonl", folder):
        assert shoal(monkeypatch, "audit", job, published) == 6
        assert "shape: kept; 5 columns" in capfd.readouterr().out


@pytest.mark.parametrize(("lines", "code"), [("[]\n", 4), ("no rows\n", 4), ("{}\n", 1)])
def test_what_has_no_rows_of_json_is_not_taken_for_empty(lines, code, tmp_path, monkeypatch):
    out = tmp_path / "out.jsonl"
    out.write_text(lines)
    assert shoal(monkeypatch, "audit", write_job(tmp_path), out) == code


def test_an_original_or_a_trace_without_lines_is_still_refused(done, monkeypatch, capfd):
    job, out, *_ = done
    empty = job.parent / "empty.jsonl"
    empty.write_bytes(b"")
    assert shoal(monkeypatch, "audit", job, out, "--original", empty) == 4
    assert shoal(monkeypatch, "audit", job, out, "--trace", empty) == 4
    assert capfd.readouterr().err.count("no line with a JSON object") == 2


def test_columns_that_are_null_throughout(tmp_path, monkeypatch, capfd):
    job = write_job(tmp_path, policy="k = 3\ndelay = { rows = 20 }")
    table = people(60)
    for name in ("illness", "ward"):
        table = table.set_column(table.schema.names.index(name), name, pa.nulls(60))
    source = write(table, tmp_path / "in.jsonl")
    out, trace = tmp_path / "out.jsonl", tmp_path / "trace.parquet"
    assert shoal(monkeypatch, "run", job, "-i", source, "-o", out, "--trace", trace, "-q") == 0
    assert read(out).schema.field("ward").type == pa.null()
    words = ("audit", job, out, "--original", source, "--trace", trace)
    assert shoal(monkeypatch, *words) == 0, capfd.readouterr().out


def test_files_that_are_not_there(done, monkeypatch, capfd):
    job, out, *_ = done
    gone = job.parent / "gone.csv"
    assert shoal(monkeypatch, "audit", job, gone) == 4
    assert shoal(monkeypatch, "audit", job, gone.with_suffix(".jsonl")) == 4
    assert shoal(monkeypatch, "audit", job, out, "--original", gone) == 4
    assert shoal(monkeypatch, "audit", job, out, "--trace", job.parent / "gone.parquet") == 4
    assert shoal(monkeypatch, "audit", job.parent / "gone.toml", out) == 2
    err = capfd.readouterr().err
    assert err.count("it doesn't exist") == 4
    assert "shoal init" in err


def test_what_is_no_trace(done, monkeypatch, capfd):
    job, out, source, _ = done
    assert shoal(monkeypatch, "audit", job, out, "--trace", source) == 2
    assert "trace" in capfd.readouterr().err


def test_an_original_of_something_else(done, monkeypatch, capfd):
    job, out, source, trace = done
    write(read(source).drop_columns(["age"]), source)
    words = ("audit", job, out, "--original", source, "--trace", trace)
    assert shoal(monkeypatch, *words) == 2
    assert "column age: isn't in the input" in capfd.readouterr().err


def test_folders_of_parts_are_judged_as_one_output(done, tmp_path, monkeypatch, capfd):
    job, out, source, trace = done
    folders = {}
    for path, form in ((out, "csv"), (source, "jsonl"), (trace, "parquet")):
        folder = folders[path] = tmp_path / f"{path.stem}-parts"
        table = read(path)
        with contextlib.closing(
            open_durable(f"{folder}/", table.schema, None, format=form)
        ) as sink:
            for batch in table.to_batches(max_chunksize=17):
                sink.write(batch)
                sink.commit()
        assert len(list(folder.iterdir())) > 3
    words = ("--original", folders[source], "--trace", folders[trace])
    assert shoal(monkeypatch, "audit", job, folders[out], *words) == 0
    assert capfd.readouterr().out.startswith("kept: 11 of 11 promises, over 60 published rows\n")


def in_batches(table, folder, n):
    """What a system that writes a folder for each batch makes of a table."""
    for place, begin in enumerate(range(0, table.num_rows + n, n)):
        batch = folder / f"batch-{place:010}"
        batch.mkdir(parents=True)
        (batch / "_SUCCESS").touch()
        (batch / "._SUCCESS.crc").write_bytes(b"\0")
        part = table.slice(begin, n)
        if part.num_rows:
            pq.write_table(part, batch / "part-00000-0c-c000.snappy.parquet")
    return folder


def test_folders_of_batches_are_judged_as_one_output(done, tmp_path, monkeypatch, capfd):
    job, out, source, trace = done
    published, lines = (in_batches(read(path), tmp_path / path.stem, 17) for path in (out, trace))
    words = ("--original", source, "--trace", lines)
    assert shoal(monkeypatch, "audit", job, published, *words) == 0
    assert capfd.readouterr().out.startswith("kept: 11 of 11 promises, over 60 published rows\n")


def test_batches_that_published_nothing(done, tmp_path, monkeypatch, capfd):
    job, out, _, _ = done
    published = in_batches(read(out).slice(0, 0), tmp_path / "none", 5)
    assert shoal(monkeypatch, "audit", job, published) == 6
    assert "over 0 published rows" in capfd.readouterr().out


def test_parts_with_and_without_dictionaries_are_one_table(done, tmp_path, monkeypatch, capfd):
    job, out, *_ = done
    folder = tmp_path / "parts"
    folder.mkdir()
    table = read(out)
    longer = pa.concat_tables([table.slice(0, 30)] * 400)
    # The first is held as codes all over, the second isn't.
    pq.write_table(longer, folder / "1.parquet")
    pq.write_table(table.slice(30), folder / "2.parquet", use_dictionary=False)
    kinds = [str(chunk.batch.schema) for chunk in open_source(folder)]
    assert len(set(kinds)) == 2
    assert shoal(monkeypatch, "audit", job, folder) == 6
    assert "over 12,030 published rows" in capfd.readouterr().out


def test_parts_whose_columns_change_their_type_are_refused(done, tmp_path, monkeypatch, capfd):
    job, *_ = done
    folder = tmp_path / "parts"
    folder.mkdir()
    for place, ward in enumerate(("A", 7)):
        pq.write_table(pa.table({"ward": [ward]}), folder / f"{place}.parquet")
    assert shoal(monkeypatch, "audit", job, folder) == 4
    assert "type of a column changes" in capfd.readouterr().err


def test_times_that_go_back_break_no_promise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    table = people(200)
    times = [float(i - 40 * (i % 3 == 0)) for i in range(200)]
    table = table.set_column(table.schema.names.index("at"), "at", pa.array(times))
    data = write(table, tmp_path / "in.parquet")
    schema = (
        'time = "at"\n'
        + write_job(tmp_path).read_text().split("[schema]\n")[1].split("[policy]")[0]
    )
    job = write_job(tmp_path, schema=schema, policy="k = 3\ndelay = { seconds = 30 }")
    trace, out = tmp_path / "trace.parquet", tmp_path / "out.parquet"
    assert shoal(monkeypatch, "run", job, "-i", data, "-o", out, "--trace", trace) == 0
    capfd.readouterr()
    shoal(monkeypatch, "audit", job, out, "--trace", trace, "--original", data, "--json")
    verdicts = {v["name"]: v["verdict"] for v in json.loads(capfd.readouterr().out)["verdicts"]}
    assert verdicts["delay"] == "kept"
    assert "broken" not in verdicts.values()


def test_roots_above_a_single_child_are_roots(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    schema = 'subject = "id"\n[schema.quasi]\nzip = { mask = ["53703", "53706", "53715"] }\n'
    policy, publish = "k = 5\ndelay = { rows = 3 }", 'suppressed = "root"'
    job = write_job(tmp_path, schema=schema, policy=policy, publish=publish)
    data = write(pa.table({"id": ["a", "b"], "zip": ["53703", "53715"]}), tmp_path / "in.csv")
    trace, out = tmp_path / "trace.parquet", tmp_path / "out.csv"
    assert shoal(monkeypatch, "run", job, "-i", data, "-o", out, "--trace", trace) == 3
    assert shoal(monkeypatch, "audit", job, out, "--trace", trace, "--original", data) == 0


def test_the_audit_knows_one_person_under_two_spellings(tmp_path: Path) -> None:
    job = Job.load(write_job(tmp_path, policy="k = 2\nl = 2\ndelay = { rows = 9 }"))
    published = pa.table(
        {
            "age": ["[20, 30]"] * 2,
            "town": ["any"] * 2,
            "illness": ["flu", "flu "],
            "ward": ["A", "A"],
        }
    )
    trace = pa.table(
        {
            "row": [0, 1],
            "subject": ["a", " a"],
            "outcome": ["group"] * 2,
            "arrived": [0, 1],
            "published": [2, 2],
            "arrived_s": pa.array([None, None], pa.float64()),
            "published_s": pa.array([None, None], pa.float64()),
            "group": [0, 0],
            "window": pa.array([None, None], pa.int64()),
            "loss": [0.5, 0.5],
            "seq": [0, 1],
        }
    )
    report = audit(job.schema, job.policy, published, trace=trace)
    assert report["k-anonymity"].verdict == "broken"
    assert report["distinct l-diversity of illness"].verdict == "broken"


def test_the_audit_refuses_a_file_with_metadata(tmp_path: Path) -> None:
    job = Job.load(write_job(tmp_path, policy="k = 2\ndelay = { rows = 9 }"))
    published = pa.table({"age": ["[20, 30]"], "town": ["any"], "illness": ["flu"], "ward": ["A"]})
    hiding = published.replace_schema_metadata({"ids": "a b c"})
    assert audit(job.schema, job.policy, published)["secrecy"].verdict == "kept"
    assert audit(job.schema, job.policy, hiding)["secrecy"].verdict == "broken"
