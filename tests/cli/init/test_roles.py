import datetime
import tomllib

import pyarrow as pa
import pytest

from shoal.cli.init.draft import draft


def job_of(columns):
    result = draft(pa.table(columns), name="data.csv")
    return tomllib.loads(result.job), result


# -- subject ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "person_id",
        "PatientID",
        "customer",
        "user_id",
        "kundennummer",
        "Kunden-Nr",
        "id_cliente",
        "usuario",
        "SSN",
        "msisdn",
        "IMSI",
        "numéro_personne",
        "paciente",
        "subject",
        "uuid",
        "utente_id",
    ],
)
def test_the_subject_is_found_by_name(name):
    job, _ = job_of({"age": list(range(40)), name: [f"x{n}" for n in range(40)]})
    assert job["schema"]["subject"] == name


@pytest.mark.parametrize("name", ["user_type", "person_weight", "number_of_persons", "customers"])
def test_these_are_no_subjects(name):
    job, _ = job_of({"age": list(range(40)), name: [n % 2 for n in range(40)]})
    assert job["schema"]["subject"] == {"each_row": True}


def test_an_unclear_subject_is_said_aloud():
    job, result = job_of({"age": [n % 9 for n in range(99)], "docid": list(range(99))})
    assert job["schema"]["subject"] == {"each_row": True}
    assert '# subject = "docid"' in result.job
    assert list(job["schema"]["quasi"]) == ["age"]
    assert any("each row counts as another person" in text for text in result.warnings)
    assert any('May be the subject: "docid"' in text for text in result.warnings)


def test_an_id_of_rows_is_no_alternative_to_one_of_people():
    people = {"patient_id": [f"x{n % 50}" for n in range(200)], "age": [n % 50 for n in range(200)]}
    job, result = job_of({"stay": list(range(200)), **people})
    assert job["schema"]["subject"] == "patient_id"
    assert "# subject" not in result.job
    assert 'Left out: "stay"' in "\n".join(result.warnings)


def test_a_number_within_the_household_is_no_subject():
    job, _ = job_of({"age": list(range(600)), "pid": [n % 30 for n in range(600)]})
    assert job["schema"]["subject"] == {"each_row": True}
    assert "pid" not in job["schema"]["quasi"]


def test_the_surest_name_wins_and_the_other_is_left_out():
    job, result = job_of(
        {"id": list(range(40)), "patient_id": list(range(40)), "age": list(range(40))}
    )
    assert job["schema"]["subject"] == "patient_id"
    assert list(job["schema"]["quasi"]) == ["age"]
    assert 'Left out: "id"' in "\n".join(result.warnings)


def test_too_few_subjects_for_k():
    _, result = job_of({"age": list(range(30)), "ssn": [n % 9 for n in range(30)]})
    assert any("9 different values in the sample: too few for k = 10" in w for w in result.warnings)


# -- time ---------------------------------------------------------------------------------------


def instants(n, step=1):
    return [datetime.datetime(2024, 1, 1) + datetime.timedelta(hours=step * i) for i in range(n)]


def test_time_by_type_or_by_name():
    job, _ = job_of({"age": list(range(30)), "x": instants(30)})
    assert job["schema"]["time"] == "x"
    job, _ = job_of({"age": list(range(30)), "ts": [n * 0.5 for n in range(30)]})
    assert job["schema"]["time"] == "ts"


def test_the_better_name_wins():
    job, _ = job_of({"age": list(range(30)), "x": instants(30), "arrived_at": instants(30)})
    assert job["schema"]["time"] == "arrived_at"
    assert "x" not in job["schema"]["quasi"]


def test_a_time_that_goes_back_is_left_out():
    job, result = job_of({"age": list(range(30)), "time": instants(30, step=-1)})
    assert "time" not in job["schema"]
    assert '# time = "time"' in result.job
    assert 'Left out: "time": time stamps: exact times' in "\n".join(result.warnings)


def test_times_of_another_form_are_left_out_with_the_form_that_is_read():
    given = [instant.strftime("%d.%m.%Y %H:%M") for instant in instants(30)]
    job, result = job_of({"age": list(range(30)), "admitted": given})
    assert "time" not in job["schema"]
    wanted = 'For schema.time they must have the form "YYYY-MM-DD hh:mm:ss"'
    assert wanted in "\n".join(result.warnings)
    assert wanted in result.job


def test_a_birthday_is_no_time():
    job, _ = job_of({"age": list(range(30)), "birth_time": instants(30)})
    assert "time" not in job["schema"]
