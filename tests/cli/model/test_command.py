"""``shoal model z``: from parameters, and from data."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import numpy as np
import pyarrow as pa
import pytest

from shoal.cli.model.text import chart, choice_lines
from shoal.models.z import Bounds, Choice, Estimate, Point, Scenario, exact, poisson_events
from tests.world import people, shoal, write, write_job

CANARY = "sensitive-value-of-somebody"


@pytest.fixture
def model(monkeypatch, capfd):
    """Run the command; return its exit code and its output."""

    def run(*words):
        code = shoal(monkeypatch, "model", "z", *words)
        out, err = capfd.readouterr()
        return code, out, err

    return run


@pytest.fixture
def found(model):
    """Run the command; return its JSON output."""

    def run(*words):
        code, out, err = model(*words, "--json")
        assert code == 0, err
        return json.loads(out)

    return run


def visits(n_subjects=60, windows=8, **more):
    """Events that follow the model, as a table."""
    events = poisson_events(Scenario.power_law(n_subjects, 6), seed=9, windows=windows)
    return pa.table(
        {
            "who": [f"{CANARY}-{u}" for u in events.subjects],
            "what": pa.array([f"page {a}" for a in events.attributes]).dictionary_encode(),
            "at": events.clock,
        }
        | more
    )


NAMES = ("--subject", "who", "--attribute", "what")
TIMED = (*NAMES, "--time", "at")


# -- parameters ---------------------------------------------------------------------------------


def test_the_default_is_table_2(found):
    reported = found()
    assert (reported["n_subjects"], reported["n_attributes"], reported["window"]) == (
        1000,
        20,
        12.0,
    )
    assert (reported["z"], reported["k"]) == (150, 2)
    true = exact(Scenario.power_law())
    assert reported["probability"]["lower"] <= true <= reported["probability"]["upper"]
    assert reported["least_z"] is reported["curve"] is reported["simulated"] is None


def test_every_parameter_counts(found):
    made = ("--users", 200, "--attributes", 9, "--rate", 0.5, "--exponent", 0.7)
    reported = found(*made, "--window", 3, "--z", 40, "--k", 3)
    scenario = Scenario.power_law(200, 9, rate=0.5, exponent=0.7, window=3, z=40, k=3)
    assert reported["probability"]["lower"] == pytest.approx(exact(scenario))
    assert reported["information_loss"] > 0


def test_the_least_z(found):
    words = ("--users", 200, "--attributes", 10, "--z", 2, "--probability", 0.9)
    z = found(*words)["least_z"]["z"]
    assert exact(Scenario.power_law(200, 10, z=z)) >= 0.9
    assert exact(Scenario.power_law(200, 10, z=z - 1)) < 0.9


def test_what_people_read(model):
    code, out, err = model("--curve", "--simulate", "--probability", "0.9", "--attributes", 10)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "1,000 subjects, 10 attributes, window 12"
    assert lines[1].startswith("z = 150: 82.")
    assert lines[1].endswith("of subjects are 2-anonymous in what they publish in a window")
    assert lines[2].startswith("simulated: 8")
    assert lines[2].endswith("10 seeds")
    assert "nats" in lines[3]
    assert lines[4].endswith("is the least that gives 90.0 %")
    assert lines[5].split() == ["z", "model"]
    assert lines[-1].endswith("100.0 % " + 40 * "█")


def test_the_curve_and_the_simulation_for_programs(found):
    reported = found("--users", 100, "--z", 5, "--curve", "--simulate")
    assert [point["z"] for point in reported["curve"]][-1] == 101
    assert len(reported["simulated"]) == 10


def test_a_picture(model, tmp_path):
    path = tmp_path / "curve.svg"
    assert model("--users", 100, "--z", 5, "--plot", path, "--probability", 0.8)[0] == 0
    picture = ET.parse(path).getroot()
    kinds = [part.tag.rpartition("}")[2] for part in picture]
    assert kinds.count("polyline") == 1
    assert "counted" not in path.read_text()
    code, _, err = model("--plot", tmp_path / "no" / "curve.svg")
    assert code == 4
    assert "can't be written" in err


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        (["--probability", "1.5"], "--probability: must lie above 0 and not above 1; got 1.5"),
        (["--probability", "0"], "--probability: must lie above 0"),
        (["--z", "1001"], "--z: is more than there are subjects (1,000)"),
        (["--z", "20", "--users", "19"], "--z: is more than there are subjects (19)"),
        (["--window", "0"], "--window: must be a number above 0; got 0"),
        (["--window", "nan"], "--window: must be a number above 0; got nan"),
        (["--users", str(10**15 + 1)], "--users: must be at most 1,000,000,000,000,000; got"),
        (["--users", "9" * 12, "--simulate"], "--simulate: makes at most 20,000,000 events"),
        (["--rate", "-1"], "--rate: must be a finite number of at least 0; got -1"),
        (["--exponent", "inf"], "--exponent: must be a finite"),
        (["--subject", "who"], "--subject: needs data. Name a file with --data"),
        (["--window-rows", "5"], "--window-rows: needs data"),
        (["--from", "csv"], "--from: needs data"),
        (["--z", "0"], "--z: must be at least 1; got 0"),
        (["--k", "0"], "--k: must be at least 1; got 0"),
        (["--zz", "3"], "--zz"),
        (["--data", "x.csv", "--z", "3"], "--z: can't be combined with --data"),
        (["--data", "x.csv", "--simulate"], "--simulate: can't be combined with --data"),
        (["--data", "x.csv", "--window", "1", "--window-rows", "2"], "Choose one"),
        (["--data", "x.csv", "--subject", "who"], "--attribute: must be named"),
    ],
)
def test_wrong_usage_is_reported(model, words, reported):
    code, out, err = model(*words)
    assert (code, out) == (2, "")
    assert reported in " ".join(err.split())


def test_all_problems_at_once(model):
    _, _, err = model("--data", "x.csv", "--users", "3", "--rate", "1", "--probability", "7")
    assert "3 problems" in err


# -- data ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_from_a_file_of_any_format(found, tmp_path, ending):
    table = visits()
    reported = found("--data", write(table, tmp_path / f"visits.{ending}"), *TIMED, "--window", 12)
    assert (reported["n_rows"], reported["n_events"], reported["n_bad"]) == (len(table),) * 2 + (0,)
    assert (reported["is_whole"], reported["unit"], reported["k"]) == (True, "seconds", 2)
    assert reported["probability"] == 0.9
    (window,) = reported["windows"]
    assert window["window"] == reported["window"] == 12.0
    assert window["n_subjects_seen"] == 60
    assert window["n_attributes"] == 6
    assert window["by_count"]["z"] == reported["z"]
    assert window["by_count"]["counted"] >= 0.9
    assert window["by_model"]["model_lower"] >= 0.9


def test_what_people_read_of_data(model, tmp_path):
    data = write(visits(), tmp_path / "visits.parquet")
    picture = tmp_path / "curve.svg"
    code, out, err = model("--data", data, *TIMED, "--probability", 0.8, "--plot", picture)
    assert code == 0
    assert CANARY not in out + err
    assert "rows, " in err
    assert "warning" not in err
    lines = out.splitlines()
    tried = [line for line in lines if line.startswith("window of ")]
    assert len(tried) == 2  # 1 and 10 seconds fit into 96
    assert sum(line.startswith("  model ") for line in lines) == 2
    assert sum(line.startswith("  counted ") for line in lines) == 2
    assert lines[-2].startswith("policy.z = ")
    # With 1 second nearly nobody exposes two things in a window, so that more can be published.
    assert lines[-1] == "policy.window = { seconds = 1 }"
    assert picture.read_text().count("<polyline") == 2


def test_a_window_of_rows(found, model, tmp_path):
    data = write(visits(), tmp_path / "visits.csv")
    reported = found("--data", data, *TIMED, "--window-rows", 100)
    assert (reported["unit"], reported["window"]) == ("rows", 100.0)
    (window,) = reported["windows"]
    assert window["n_windows"] == reported["n_rows"] // 100
    # Without a column of time nothing else is left.
    again = found("--data", data, *NAMES, "--window-rows", 100)
    assert again["windows"] == reported["windows"]
    assert len(found("--data", data, *NAMES)["windows"]) == 4
    assert "{ rows = 100 }" in model("--data", data, *NAMES, "--window-rows", 100)[1]


def test_columns_of_a_job(found, tmp_path):
    schema = 'subject = "person"\ntime = "at"\n[schema.quasi]\ntown = { hierarchy = "town.csv" }\n'
    job = write_job(tmp_path, schema=schema, policy="k = 3\ndelay = { rows = 20 }")
    data = write(people(400), tmp_path / "people.csv")
    reported = found("--data", data, "--job", job, "--window", 50)
    assert reported["windows"][0]["n_attributes"] == 4
    # What the command line names goes before what the job does.
    reported = found("--data", data, "--job", job, "--attribute", "ward", "--window", 50)
    assert reported["windows"][0]["n_attributes"] == 3
    words = ("--attribute", "ward", "--attribute", "town", "--window", 50)
    reported = found("--data", data, "--job", job, *words)
    assert reported["windows"][0]["n_attributes"] == 7
    assert reported["n_events"] == 800


def test_columns_are_guessed_by_their_names(model, tmp_path):
    named = visits().rename_columns(["user_id", "page", "timestamp"])
    code, out, err = model("--data", write(named, tmp_path / "named.parquet"), "--window", 12)
    assert code == 0
    assert "policy.z = " in out
    assert "the subject is user_id, the attribute is page, the time is timestamp" in err
    assert CANARY not in err


def test_columns_that_tell_nothing_have_to_be_named(model, tmp_path):
    data = write(visits(), tmp_path / "visits.csv")
    code, out, err = model("--data", data)
    assert (code, out) == (2, "")
    assert "--subject: must be named" in err


@pytest.mark.parametrize(("unit", "length"), [("seconds", 12), ("rows", 50)])
def test_the_window_of_a_job_with_z(found, tmp_path, unit, length):
    job = tmp_path / "job.toml"
    job.write_text(
        '[schema]\nsubject = "who"\ntime = "at"\n[schema.quasi]\nwhat = { path = " " }\n'
        f"[policy]\nz = 3\nwindow = {{ {unit} = {length} }}\n[algorithm]\nname = 'z-anonymity'\n"
    )
    reported = found("--data", write(visits(), tmp_path / "visits.csv"), "--job", job)
    assert (reported["unit"], reported["window"]) == (unit, length)


def test_what_is_missing_exposes_nothing(found, tmp_path):
    table = pa.table(
        {
            "who": ["a", "b", None, "a", "b", ""],
            "what": ["x", None, "x", "y", "x", "x"],
            "at": [0.0, 1.0, 2.0, None, 4.0, 5.0],
        }
    )
    data = write(table, tmp_path / "gaps.parquet")
    reported = found("--data", data, *TIMED, "--window", 2)
    assert (reported["n_rows"], reported["n_bad"], reported["n_events"]) == (6, 3, 2)


def test_rows_out_of_order_are_sorted_and_reported(found, model, tmp_path):
    table = visits()
    mixed = table.take(np.random.default_rng(1).permutation(len(table)))
    words = (*TIMED, "--window", 12)
    straight = found("--data", write(table, tmp_path / "a.parquet"), *words)
    assert found("--data", write(mixed, tmp_path / "b.parquet"), *words) == straight
    assert "aren't in the order of time" in model("--data", tmp_path / "b.parquet", *words)[2]


def test_the_sample_is_bounded_and_said(found, model, tmp_path):
    data = write(visits(), tmp_path / "visits.parquet")
    reported = found("--data", data, *TIMED, "--window", 2, "--rows", 150)
    assert (reported["n_rows"], reported["is_whole"]) == (150, False)
    _, _, err = model("--data", data, *TIMED, "--window", 2, "--rows", 150)
    assert "150 rows, 150 events, the first ones (--rows 150)" in err


def test_bytes_and_numbers_are_values_too(found, tmp_path):
    table = visits()
    codes = np.arange(len(table)) % 5
    table = table.append_column("raw", pa.array([bytes([255, code]) for code in codes]))
    table = table.append_column("number", pa.array(codes / 2))
    data = write(table, tmp_path / "visits.parquet")
    for name in ("raw", "number"):
        words = ("--subject", "who", "--time", "at", "--attribute", name, "--window", 12)
        assert found("--data", data, *words)["windows"][0]["n_attributes"] == 5


def test_where_no_z_helps_it_is_reported(model, tmp_path):
    data = write(visits(n_subjects=5), tmp_path / "visits.csv")
    code, out, err = model("--data", data, *TIMED, "--window", 12, "--k", 9)
    assert code == 0
    assert "no z reaches 90.0 % and publishes anything" in err
    assert "since nothing is published" in out


def test_very_many_people(found):
    reported = found("--users", 10**15, "--z", 10**14, "--attributes", 3)
    assert reported["probability"] == {"lower": 1.0, "upper": 1.0}


def test_where_nothing_is_revealed_there_is_no_minus(model):
    _, out, _ = model("--rate", 0)
    assert "a published set reveals 0.00 nats, as much as an exposed one" in out
    assert "-0" not in out


def gappy(what, at):
    who = [f"p{i % 3}" for i in range(len(at))]
    return pa.table({"who": who, "what": pa.array(what, pa.string()), "at": at})


def test_data_without_a_value_cant_be_counted(model, tmp_path):
    data = write(gappy([None] * 9, np.arange(9.0)), tmp_path / "gaps.parquet")
    code, out, err = model("--data", data, *TIMED, "--window", 3)
    assert (code, out) == (4, "")
    assert "nothing can be counted: no row has a value in what" in err


def test_data_without_a_value_in_a_complete_window_cant_be_counted(model, tmp_path):
    data = write(gappy([None] * 8 + ["x"], np.arange(9.0)), tmp_path / "gaps.parquet")
    code, out, err = model("--data", data, *NAMES, "--window-rows", 8)
    assert (code, out) == (2, "")
    assert "window: has nothing to count: nobody exposes anything in a complete one" in err


def test_data_without_a_value_after_the_first_window_isnt_counted(found, model, tmp_path):
    data = write(gappy(["x"] * 4 + [None] * 8, np.arange(12.0)), tmp_path / "gaps.parquet")
    words = ("--data", data, *NAMES, "--window-rows", 4)
    assert found(*words)["windows"][0]["by_count"] is None
    assert "counted  nothing: after the first window nobody exposes" in model(*words)[1]


@pytest.mark.parametrize(
    ("at", "reported"),
    [
        ([0.0] * 6, "window: is longer than the sample"),
        ([-1e308] * 3 + [1e308] * 3, "window: is too short for the sample"),
        ([0.0, 1.0, 2.0, 3.0, 4.0, 1e300], "window: is too short for the sample"),
        ([0.0, 1.0, 2.0, 3.0, 4.0, float("inf")], "rows have no subject or no time"),
    ],
)
@pytest.mark.parametrize("window", [(), ("--window", "1")])
def test_odd_times_are_reported(model, tmp_path, at, reported, window):
    data = write(gappy(["x", "y"] * 3, at), tmp_path / "odd.parquet")
    assert reported in model("--data", data, *TIMED, *window)[2]


@pytest.mark.parametrize(
    ("words", "code", "reported"),
    [
        ((*NAMES, "--window", 12), 2, "there is no time column. Name one with --time"),
        ((*TIMED, "--window", 9999), 2, "window: is longer than the sample"),
        (("--subject", "whom", "--attribute", "what"), 2, "Did you mean 'who'?"),
        (("--subject", "who", "--attribute", "why"), 2, "column why: isn't in the input"),
        ((*NAMES, "--time", "what", "--window", 3), 4, "has no row with a subject"),
    ],
)
def test_wrong_data_are_reported(model, tmp_path, words, code, reported):
    data = write(visits(), tmp_path / "visits.csv")
    found, out, err = model("--data", data, *words)
    assert (found, out) == (code, "")
    assert reported in err
    assert CANARY not in err


def test_a_job_without_a_subject_is_reported(model, tmp_path):
    schema = "subject = { each_row = true }\n[schema.quasi]\ntown = { hierarchy = 'town.csv' }\n"
    job = write_job(tmp_path, schema=schema, policy="k = 3\ndelay = { rows = 20 }")
    data = write(people(50), tmp_path / "people.csv")
    code, _, err = model("--data", data, "--job", job)
    assert code == 2
    assert "--subject: must be named" in err


def test_a_file_that_isnt_there(model, tmp_path):
    assert model("--data", tmp_path / "gone.csv", *TIMED)[0] == 4


# -- words --------------------------------------------------------------------------------------


def choice(**more):
    estimate = Estimate(60.0, 1, 30, 20, (0.1, 0.2))
    point = Point(5, Bounds(0.9, 0.95))
    return Choice(estimate, (point,), point, None, **more)


def test_bounds_and_what_wasnt_counted_are_reported():
    lines = choice_lines(choice(), k=3, in_rows=False)
    assert lines == [
        "window of 60 seconds: 20 subjects in a window, 2 attributes, 1 window",
        "  model    z = 5: 90.0 % to 95.0 % of subjects are 3-anonymous",
        "  counted  nothing: the sample is shorter than two windows",
    ]


def test_bars_show_what_was_counted():
    lines = chart([Point(1, Bounds(0.0, 0.0), 0.5, 1.0), Point(1000, Bounds(1.0, 1.0), 0.0, 0.0)])
    assert lines[0].split() == ["z", "model", "counted"]
    assert lines[1].endswith("50.0 % " + 20 * "█")
    assert lines[2] == "   1,000   100.0 %     0.0 %"


def test_exact_beside_the_estimate(found, model):
    scenario = Scenario.power_law(n_attributes=8, z=250)
    report = found("--attributes", "8", "--z", "250", "--exact")
    assert report["exact"] == exact(scenario)
    assert report["classes"] is None
    assert "exact: " in model("--attributes", "8", "--exact")[1]


def test_classes_of_people(found, model):
    report = found("--attributes", "8", "--z", "50", "--classes", "activity=10")["classes"]
    idle, busy = report["probabilities"]
    assert report["n_subjects"] == [500, 500]
    assert busy < report["overall"] < idle
    alike = found("--attributes", "8", "--z", "50", "--classes", "interest=0", "--exact")
    assert alike["classes"]["overall"] != alike["exact"]  # each class exposes half as much
    code, out, _ = model("--attributes", "8", "--z", "50", "--classes", "interest=0.5")
    assert code == 0
    assert "classes (interest=0.5): " in out


@pytest.mark.parametrize(
    "words",
    [
        ("--classes", "activity=-1"),
        ("--classes", "interest=2"),
        ("--classes", "age=3"),
        ("--classes", "activity"),
        ("--classes", "activity=10", "--users", "1", "--z", "1"),
        ("--classes", "activity=10", "--attributes", "25"),
        ("--exact", "--attributes", "25"),
        ("--exact", "--data", "x.csv"),
    ],
)
def test_what_cannot_be_computed_is_refused(model, words):
    code, out, err = model(*words)
    assert (code, out) == (2, "")
    assert words[0] in err


def test_samples_of_the_trees(monkeypatch, capfd):
    assert shoal(monkeypatch, "model", "tree", "--samples", "3000", "--json") == 0
    report = json.loads(capfd.readouterr().out)
    assert report["samples_for_one_leaf"] == 2952
    assert report["error_of_one_leaf"] < 0.025 < report["error_of_all_leaves"]
    assert shoal(monkeypatch, "model", "tree") == 0
    assert "samples = 2,952 for any one leaf" in capfd.readouterr().out
    assert shoal(monkeypatch, "model", "tree", "--error", "0") == 2
    assert "--error" in capfd.readouterr().err
