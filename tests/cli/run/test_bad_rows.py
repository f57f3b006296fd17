"""``shoal run`` on rows that can't be used: set apart with a reason, or the end of the run."""

from __future__ import annotations

import csv
import io
import json
import stat
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.world import ID_AND_AGE, people, read, shoal, write, write_job

Fields = list[object]


def csv_line(fields: Fields) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(fields)
    return text.getvalue().encode()


NAMES = ["person", "age", "town", "illness", "ward"]


def json_line(fields: Fields) -> bytes:
    return json.dumps(dict(zip(NAMES, fields, strict=True))).encode() + b"\n"


# Each kind of bad row, and a part of the reason that it must be given. All hold a canary.
BAD_CSV: dict[str, tuple[bytes, str]] = {
    "no subject": (b",40,berlin,flu,CANARY\n", "person is missing"),
    "no number": (b"CANARY,fCANARYx,berlin,flu,A\n", "age isn't a number"),
    "not a number": (b"CANARY,nan,berlin,flu,A\n", "age"),
    "infinity": (b"CANARY,inf,berlin,flu,A\n", "age"),
    "category": (b"CANARY,40,CANARYVILLE,flu,A\n", "town has a category that its hierarchy lacks"),
    "out of range": (b"CANARY,121,berlin,flu,A\n", "age is out of its range"),
    "too many": (b"CANARY,40,berlin,flu,A,CANARY\n", "6 fields"),
    "too few": (b"CANARY,40,berlin\n", "3 fields"),
    "not UTF-8": (b"CANARY,40,berlin,fl\xff,A\n", "UTF-8"),
    "no quasi": (b"CANARY,,berlin,flu,A\n", "age is missing"),
    "no category": (b"CANARY,40,,flu,A\n", "town is missing"),
}
BAD_JSON: dict[str, tuple[bytes, str]] = {
    "no subject": (json_line([None, 40, "berlin", "flu", "CANARY"]), "person is missing"),
    "no number": (json_line(["CANARY", "CANARY", "berlin", "flu", "A"]), "age"),
    "not a number": (json_line(["CANARY", float("nan"), "berlin", "flu", "A"]), ""),
    "infinity": (json_line(["CANARY", float("inf"), "berlin", "flu", "A"]), ""),
    "category": (json_line(["CANARY", 40, "CANARYVILLE", "flu", "A"]), "town has a category"),
    "out of range": (json_line(["CANARY", 121, "berlin", "flu", "A"]), "age is out of its range"),
    "no JSON": (b'{"person": "CANARY", "age": \n', "JSON"),
    "no object": (b'["CANARY", 40]\n', "object"),
    "not UTF-8": (b'{"person": "CANARY\xff", "age": 40}\n', "UTF-8"),
    "no quasi": (b'{"person": "CANARY", "town": "bonn", "illness": "flu"}\n', "age is missing"),
}


def rows(form: str, n_rows: int) -> list[bytes]:
    line = csv_line if form == "csv" else json_line
    table = people(n_rows).select(NAMES).to_pylist()
    return [line(list(row.values())) for row in table]


class Place:
    """Where a run with bad rows takes place."""

    def __init__(self, folder: Path, form: str, lines: list[bytes], bad_rows: str = "") -> None:
        self.job = write_job(folder, bad_rows=bad_rows)
        self.input, self.output = folder / f"in.{form}", folder / f"out.{form}"
        self.trace, self.quarantine = folder / "trace.parquet", folder / "job.quarantine.jsonl"
        header = [csv_line(list(NAMES))] if form == "csv" else []
        self.input.write_bytes(b"".join(header + lines))

    def run(self, monkeypatch: pytest.MonkeyPatch, *options: str) -> int:
        return shoal(
            monkeypatch, "run", self.job, "-i", self.input, "-o", self.output,
            "--trace", self.trace, "--force", *options,
        )  # fmt: skip


KINDS = [("csv", BAD_CSV), ("jsonl", BAD_JSON)]


@pytest.mark.parametrize(("form", "bad"), KINDS, ids=["csv", "jsonl"])
def test_bad_rows_are_set_apart_with_position_reason_and_raw_row(
    form, bad, tmp_path, monkeypatch, capfd
):
    lines = rows(form, 60)
    places = {5 * i + 2: kind for i, kind in enumerate(bad)}
    for place, kind in places.items():
        lines[place] = bad[kind][0]
    at = Place(tmp_path, form, lines)
    assert at.run(monkeypatch, "--json") == 0
    out, err = capfd.readouterr()
    assert "CANARY" not in out + err
    found = json.loads(out)["rows"]
    n_bad = len(places)
    assert (found["in"], found["quarantined"]) == (60, n_bad)
    assert found["published"] + found["suppressed"] == 60 - n_bad
    assert stat.S_IMODE(at.quarantine.stat().st_mode) == 0o600
    quarantine = [json.loads(line) for line in at.quarantine.read_text().splitlines()]
    assert {line["row"]: places.get(line["row"]) for line in quarantine} == places
    for line in quarantine:
        kind = places[line["row"]]
        assert bad[kind][1] in line["reason"], kind
        assert "CANARY" not in line["reason"]
        assert "CANARY" in line["raw"], kind
    assert b"CANARY" not in at.output.read_bytes()
    traced = {line["row"]: line["outcome"] for line in read(at.trace).to_pylist()}
    assert {row for row, outcome in traced.items() if outcome == "quarantined"} == set(places)
    words = ("audit", at.job, at.output, "--original", at.input, "--trace", at.trace)
    assert shoal(monkeypatch, *words) == 0, capfd.readouterr().out


@pytest.mark.parametrize(
    ("form", "kind"), [(form, kind) for form, bad in KINDS for kind in bad]
)  # fmt: skip
def test_stop_ends_with_3_and_shows_row_and_reason_but_no_value(
    form, kind, tmp_path, monkeypatch, capfd
):
    raw, reason = dict(KINDS)[form][kind]
    lines = [*rows(form, 7), raw, *rows(form, 3)]
    at = Place(tmp_path, form, lines, bad_rows='action = "stop"')
    assert at.run(monkeypatch) == 3
    out, err = capfd.readouterr()
    assert "row 7: " in err
    assert reason in err
    assert 'bad_rows.action = "quarantine"' in err
    assert "CANARY" not in out + err
    assert "person-" not in out + err
    assert not at.quarantine.exists()


@pytest.mark.parametrize("ending", ["csv", "arrow", "parquet"])
def test_the_quarantine_may_have_another_format(ending, tmp_path, monkeypatch, capfd):
    bad_rows = f'file = "bad.{ending}"'
    at = Place(tmp_path, "csv", [*rows("csv", 20), BAD_CSV["category"][0]], bad_rows)
    assert at.run(monkeypatch) == 0
    assert f"quarantined rows are in {tmp_path / 'bad'}.{ending}" in capfd.readouterr().err
    assert read(tmp_path / f"bad.{ending}")["row"].cast("int64").to_pylist() == [20]


def test_without_bad_rows_there_is_no_quarantine(tmp_path, monkeypatch):
    at = Place(tmp_path, "csv", rows("csv", 20))
    at.quarantine.unlink(missing_ok=True)
    assert at.run(monkeypatch, "-q") == 0
    assert not at.quarantine.exists()


def test_only_bad_rows(tmp_path, monkeypatch, capfd):
    at = Place(tmp_path, "csv", [raw for raw, _ in BAD_CSV.values()])
    assert at.run(monkeypatch) == 3
    n_bad, err = len(BAD_CSV), capfd.readouterr().err
    assert f"{n_bad} rows in, 0 published, 0 suppressed, {n_bad} quar" in err
    assert (
        f"shoal: nothing was published: {n_bad} of {n_bad} rows can't be used: age isn't a" in err
    )
    assert len(at.output.read_text().splitlines()) == 1
    words = ("audit", at.job, at.output, "--original", at.input, "--trace", at.trace)
    assert shoal(monkeypatch, *words) == 0, capfd.readouterr().out


@settings(
    max_examples=examples(15),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    kinds=st.lists(st.sampled_from([None, None, *BAD_CSV]), min_size=1, max_size=60),
    order=st.sampled_from(["released", "arrival"]),
)
def test_every_row_is_accounted_for(kinds, order, tmp_path, monkeypatch, capfd):
    good = rows("csv", len(kinds))
    lines = [
        line if kind is None else BAD_CSV[kind][0] for line, kind in zip(good, kinds, strict=True)
    ]
    at = Place(tmp_path, "csv", lines)
    at.job = write_job(tmp_path, publish=f'order = "{order}"', bad_rows="limit = 1")
    code = at.run(monkeypatch, "--json")
    found = json.loads(capfd.readouterr().out)["rows"]
    assert code == (0 if found["published"] else 3)
    assert found["in"] == len(kinds)
    assert found["quarantined"] == len(kinds) - kinds.count(None)
    assert found["in"] == sum(found.values()) - found["in"]
    assert len(at.output.read_text().splitlines()) == 1 + found["published"]


def test_the_trace_names_the_subject_of_a_quarantined_row_whatever_its_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = write_job(tmp_path, schema=ID_AND_AGE, policy="k = 2\ndelay = { rows = 9 }")
    data = write(pa.table({"id": [7, 8, 9], "age": [20, 21, 999]}), tmp_path / "in.parquet")
    trace = tmp_path / "trace.parquet"
    out = tmp_path / "out.csv"
    assert shoal(monkeypatch, "run", job, "-i", data, "-o", out, "--trace", trace) == 0
    lines = {line["outcome"]: line["subject"] for line in pq.read_table(trace).to_pylist()}
    assert lines["quarantined"] == "9"
