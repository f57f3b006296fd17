"""``shoal init``: what it drafts can be run and audited."""

from __future__ import annotations

import datetime
import tomllib

import pyarrow as pa
import pytest

from shoal.cli.init.messages import markers_of
from shoal.io import Dialect
from shoal.job import Job
from tests.world import people, shoal, write


def sample(n_rows: int) -> pa.Table:
    names = ["patient_id", "age", "city", "diagnosis", "ward", "admitted_at"]
    return people(n_rows).rename_columns(names)


def without_header(n_rows: int) -> list[str]:
    return [
        f"P{i % 50:05d};2026-03-01 {i % 24:02d}:00;{'Male' if i % 3 else 'Female'};1011{i % 7};A"
        for i in range(n_rows)
    ]


def test_a_file_without_a_header_is_refused_and_none_of_it_shown(tmp_path, monkeypatch, capfd):
    data, job = tmp_path / "data.csv", tmp_path / "job.toml"
    lines = without_header(200)
    for kept in (lines, lines[:2], [line.split(";")[3] for line in lines]):
        data.write_text("\n".join(kept))
        assert shoal(monkeypatch, "init", data, "-o", job) == 2
        assert not job.exists()
        out, err = capfd.readouterr()
        assert not out
        assert "does it have a header?" in err
        assert not [value for value in kept[0].split(";") if len(value) > 1 and value in err]


@pytest.mark.parametrize(
    ("names", "asked"),
    [
        # Of files that were put together; of years; and as the user says.
        ("id;at;sex;zip;ward", []),
        ("id;at;sex;2019;2020", []),
        ("1;2;3;10113;A", ["--subject", "1"]),
    ],
)
def test_a_header_isnt_taken_for_values(names, asked, tmp_path, monkeypatch):
    data, job = tmp_path / "data.csv", tmp_path / "job.toml"
    data.write_text("\n".join([names, *without_header(100), names, *without_header(100)]))
    assert shoal(monkeypatch, "init", data, "-o", job, "--measure", "0", *asked) == 0


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_draft_can_be_run_and_the_audit_finds_it_kept(ending, tmp_path, monkeypatch, capfd):
    data, job = write(sample(400), tmp_path / f"data.{ending}"), tmp_path / "job.toml"
    assert shoal(monkeypatch, "init", data, "-o", job) == 0
    out, err = capfd.readouterr()
    assert out == f"shoal run {job} -i {data} -o published.csv\n"
    assert f"wrote {job} from 400 rows\n" in err
    assert err.endswith(f"Review it, try it with `shoal check {job} -i {data}`, then:\n")
    assert "person-" not in out + err
    assert job.stat().st_mode & 0o077 == 0
    published, trace = tmp_path / "published.csv", tmp_path / "trace.parquet"
    words = ("run", job, "-i", data, "-o", published, "--trace", trace)
    assert shoal(monkeypatch, *words) == 0
    words = ("audit", job, published, "--original", data, "--trace", trace)
    assert shoal(monkeypatch, *words) == 0, capfd.readouterr().out


def test_nothing_is_overwritten_unless_forced(tmp_path, monkeypatch, capfd):
    data, job = write(sample(200), tmp_path / "data.csv"), tmp_path / "job.toml"
    job.write_text("mine")
    assert shoal(monkeypatch, "init", data, "-o", job) == 2
    err = capfd.readouterr().err
    assert f"{job} exists already, and would be overwritten. Choose another name with -o, or" in err
    assert shoal(monkeypatch, "init", tmp_path / "gone.csv", "-o", job) == 4
    assert "gone.csv: can't be read: it doesn't exist" in capfd.readouterr().err
    assert job.read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir() if path not in (data, job)] == []
    assert shoal(monkeypatch, "init", data, "-o", job, "--force") == 0
    assert Job.load(job).schema.subject == "patient_id"


@pytest.mark.parametrize("force", [(), ("--force",)])
def test_a_draft_never_overwrites_the_data(force, tmp_path, monkeypatch, capfd):
    # The hierarchy of the bands would be written to a file of this name.
    table = sample(200)
    bands = [f"[{10 * (i % 7)}-{10 * (i % 7) + 10})" for i in range(200)]
    data = write(table.set_column(1, "age", pa.array(bands)), tmp_path / "age.csv")
    (tmp_path / "link.toml").hardlink_to(data)
    before = data.read_bytes()
    for job in ("job.toml", "age.csv", "link.toml"):
        words = ("init", data, "-o", tmp_path / job, "--measure", 0, *force)
        assert shoal(monkeypatch, *words) == 2
        assert "is an input file" in capfd.readouterr().err
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "age.csv").write_bytes(before)
    words = ("init", folder, "-o", folder / "job.toml", "--measure", 0, *force)
    assert shoal(monkeypatch, *words) == 2
    assert data.read_bytes() == (folder / "age.csv").read_bytes() == before
    (tmp_path / "other").mkdir()
    assert shoal(monkeypatch, "init", data, "-o", tmp_path / "other/job.toml", *force) == 0


def test_two_drafts_in_a_folder_may_share_a_hierarchy(tmp_path, monkeypatch, capfd):
    bands = pa.array([("[0-10)", "[10-20)", "[20-30)")[n % 3] for n in range(200)])
    data = write(sample(200).set_column(1, "age", bands), tmp_path / "data.csv")
    for name in ("one.toml", "two.toml"):
        assert shoal(monkeypatch, "init", data, "-o", tmp_path / name, "--measure", 0) == 0
    (tmp_path / "age.csv").write_text("mine")
    assert shoal(monkeypatch, "init", data, "-o", tmp_path / "three.toml", "--measure", 0) == 2
    assert f"{tmp_path}/age.csv exists already, and would be" in capfd.readouterr().err
    assert (tmp_path / "age.csv").read_text() == "mine"


def test_the_given_number_of_rows_is_read(tmp_path, monkeypatch, capfd):
    data = write(sample(200), tmp_path / "data.csv")
    words = ("init", data, "-o", tmp_path / "job.toml", "--rows", 50)
    assert shoal(monkeypatch, *words) == 0
    assert "from 50 rows" in capfd.readouterr().err


def test_data_that_can_not_be_drafted_from(tmp_path, monkeypatch, capfd):
    job = tmp_path / "job.toml"
    empty = write(sample(1).slice(0, 0), tmp_path / "empty.csv")
    assert shoal(monkeypatch, "init", empty, "-o", job) == 4
    assert "has no rows to draft a job from" in capfd.readouterr().err
    assert shoal(monkeypatch, "init", tmp_path / "gone.csv", "-o", job) == 4
    data = write(sample(100), tmp_path / "data.csv")
    monkeypatch.setattr("shoal.cli.init.command.draft", None)
    assert shoal(monkeypatch, "init", data, "-o", tmp_path / "no" / "job.toml") == 4
    err = capfd.readouterr().err
    assert f"can't be written: the folder {tmp_path}/no doesn't exist. Create it first." in err
    assert not job.exists()
    assert shoal(monkeypatch, "init", data, "-o", "-") == 2
    assert "output: must be a file: " in capfd.readouterr().err


# -- what is asked for --------------------------------------------------------------------------


def drafted(monkeypatch, tmp_path, *options, n_rows=200):
    data, job = write(sample(n_rows), tmp_path / "data.csv"), tmp_path / "job.toml"
    assert shoal(monkeypatch, "init", data, "-o", job, "--measure", 0, "--force", *options) == 0
    return Job.load(job)


def test_roles_are_those_that_are_asked_for(tmp_path, monkeypatch):
    job = drafted(
        monkeypatch, tmp_path, "--subject", "patient_id", "--time", "admitted_at", "--quasi",
        "age, city", "--sensitive", "diagnosis", "--keep", "ward", "--k", 4,
    )  # fmt: skip
    assert (job.schema.subject, job.schema.time) == ("patient_id", "admitted_at")
    assert [quasi.name for quasi in job.schema.quasi] == ["age", "city"]
    assert [sensitive.name for sensitive in job.schema.sensitive] == ["diagnosis"]
    assert job.schema.keep == ("ward",)
    assert "published as they are, without protection" in (tmp_path / "job.toml").read_text()
    assert job.policy.k == 4


def test_options_may_be_repeated_and_nothing_else_is_proposed_for_their_role(tmp_path, monkeypatch):
    job = drafted(monkeypatch, tmp_path, "--quasi", "age", "--quasi", "ward", "--drop", "diagnosis")
    assert [quasi.name for quasi in job.schema.quasi] == ["age", "ward"]
    assert job.schema.sensitive == ()
    text = (tmp_path / "job.toml").read_text()
    assert "# city = {" in text
    assert '# left out: "diagnosis": as asked by --drop' in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--quasi", "agee"), "--quasi: agee isn't a column of the data. Did you mean 'age'?"),
        (("--subject", "patient"), "Did you mean 'patient_id'?"),
        (("--quasi", "age", "--keep", "age"), "--quasi and --keep: age can't have two roles"),
        (("--drop", "age", "--time", "age"), "age can't have two roles. Decide on one"),
        (("--time", "city"), "--time: city has values that can't be read as times"),
    ],
)
def test_wrong_names_and_two_roles_are_refused(options, message, tmp_path, monkeypatch, capfd):
    data, job = write(sample(100), tmp_path / "data.csv"), tmp_path / "job.toml"
    assert shoal(monkeypatch, "init", data, "-o", job, *options) == 2
    assert message in capfd.readouterr().err
    assert not job.exists()


def test_an_id_that_is_asked_for_is_warned_about(tmp_path, monkeypatch, capfd):
    options = ("--keep", "patient_id")
    job = drafted(monkeypatch, tmp_path, *options)
    assert job.schema.keep == ("patient_id",)
    assert '"patient_id" is published as asked, but its name is that of an id' in (
        capfd.readouterr().err
    )


def test_a_dialect_is_found_and_written_into_the_job(tmp_path, monkeypatch):
    data, job = tmp_path / "data.csv", tmp_path / "job.toml"
    rows = [f"{n};{20 + n % 50},5;Köln;?" for n in range(100)]
    data.write_bytes("\n".join(["kunde;alter;ort;grund", *rows, ""]).encode("latin-1"))
    assert shoal(monkeypatch, "init", data, "-o", job, "--measure", 0) == 0
    assert tomllib.loads(job.read_text())["input"]["delimiter"] == ";"
    read = Job.load(job)
    assert read.schema.subject == "kunde"
    assert [quasi.name for quasi in read.schema.quasi] == ["alter"]
    words = ("run", job, "-i", data, "-o", tmp_path / "out.csv", "--json")
    assert shoal(monkeypatch, *words) == 0


def test_texts_for_missing_values_are_counted_as_they_are_listed():
    (said,) = markers_of(Dialect(null=("NA", "ej", "k.A.", "xx")))
    assert said.startswith("Texts for missing values in input.null: 4, of which guessed: 2.")
    assert list(markers_of(Dialect(null=("NA", "k.A.")))) == []


@pytest.mark.parametrize(
    "forms", [("%Y-%m-%d", "%d.%m.%Y"), ("%Y-%m-%d", "%Y-%m-%d %H:%M:%S", "%d/%m/%Y %H:%M")]
)
def test_dates_of_several_forms_are_no_people(forms, tmp_path, monkeypatch, capfd):
    begin = datetime.datetime(2026, 3, 1, 6)
    lines = ["admitted;age;city"]
    for n in range(200):
        when = begin + datetime.timedelta(days=n // 2, hours=n % 2)
        written, city = when.strftime(forms[n % len(forms)]), ("Ulm", "Bonn")[n % 2]
        lines.append(f"{written};{18 + n % 60};{city}")
    data, job = tmp_path / "in.csv", tmp_path / "job.toml"
    data.write_text("\n".join(lines))
    assert shoal(monkeypatch, "init", data, "-o", job, "--measure", 0) == 0
    drafted = tomllib.loads(job.read_text())["schema"]
    assert drafted["subject"] == {"each_row": True}
    assert "admitted" not in drafted["quasi"]
    err = capfd.readouterr().err
    assert 'Left out: "admitted": dates in several forms: write all of them in one.' in err
    assert "May be the subject" not in err


def test_amounts_with_separated_thousands_are_no_ids(tmp_path, monkeypatch, capfd):
    lines = [f"{n};{18 + n % 60};{1 + n % 9}.{100 + n},{n % 90 + 10}" for n in range(200)]
    data, job = tmp_path / "in.csv", tmp_path / "job.toml"
    data.write_text("\n".join(["visit;age;cost", *lines]))
    assert shoal(monkeypatch, "init", data, "-o", job, "--measure", 0) == 0
    err = capfd.readouterr().err
    assert 'Left out: "cost": numbers with separated thousands: leave the separator out' in err


@pytest.mark.parametrize(("marker", "n_warnings"), [("k.A.", 0), ("ej", 1)])
def test_a_few_markers_of_missing_values_change_no_type(
    marker, n_warnings, tmp_path, monkeypatch, capfd
):
    lines = ["Geburtsdatum;PLZ;Größe (cm);Stadt"]
    for n in range(120):
        cells = [f"{n % 28 + 1:02}.03.{1950 + n % 50}", f"{1000 + 83 * n:05}", str(150 + n % 45)]
        cells = [marker if n % 40 == i else cell for i, cell in enumerate(cells)]
        lines.append(";".join([*cells, marker if n % 50 == 0 else ("Ulm", "Bonn")[n % 2]]))
    data, job = tmp_path / "leute.csv", tmp_path / "job.toml"
    data.write_text("\n".join(lines))
    assert shoal(monkeypatch, "init", data, "-o", job, "--measure", 0) == 0
    drafted = tomllib.loads(job.read_text())
    assert drafted["input"]["null"] == marker
    assert drafted["schema"]["quasi"]["PLZ"] == {"mask": 5}
    assert drafted["schema"]["quasi"]["Stadt"] == {"values": ["Bonn", "Ulm"]}
    assert "# date: dates; day, month, year, decade" in job.read_text()
    err = capfd.readouterr().err
    said = "Texts for missing values in input.null: 1, of which guessed: 1."
    assert err.count(said) == n_warnings
    assert "May be the subject" not in err


def test_a_hierarchy_of_another_draft_is_found_before_anything_is_measured(
    tmp_path, monkeypatch, capfd
):
    bands = pa.array([("[0-10)", "[10-20)", "[20-30)")[n % 3] for n in range(200)])
    data = write(sample(200).set_column(1, "age", bands), tmp_path / "data.csv")
    (tmp_path / "age.csv").write_text("mine")

    def measure(*_: object, **__: object) -> None:
        raise AssertionError("nothing is measured")

    monkeypatch.setattr("shoal.cli.init.draft.measure", measure)
    assert shoal(monkeypatch, "init", data, "-o", tmp_path / "two.toml") == 2
    err = capfd.readouterr().err
    assert (
        "age.csv exists already, and would be overwritten. Write the job to another folder" in err
    )
    assert (tmp_path / "age.csv").read_text() == "mine"
    assert not (tmp_path / "two.toml").exists()
