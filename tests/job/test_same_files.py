"""An output that is an input or another output under another name is refused, and nothing lost."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.world import people, shoal, write, write_job

SHOAL = [sys.executable, "-c", "from shoal.cli import main; main()"]
STATE = "checkpoint = { folder = 'state', every = 10 }"


def hard_link(target, name):
    os.link(target, name)
    return name


def symbolic_link(target, name):
    name.symlink_to(target)
    return name


def link_to_a_link(target, name):
    symbolic_link(target, name.with_name("between.csv"))
    return symbolic_link(name.with_name("between.csv"), name)


def link_to_the_folder(target, name):
    symbolic_link(target.parent, name.with_name("elsewhere"))
    return name.with_name("elsewhere") / target.name


def other_spelling(target, name):
    (target.parent / "sub").mkdir(exist_ok=True)
    return f"{target.parent}/sub/.././/{target.name}"


NAMES = [hard_link, symbolic_link, link_to_a_link, link_to_the_folder, other_spelling]


@pytest.fixture
def place(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "links").mkdir()
    write_job(tmp_path / "data", run=STATE)
    write(people(60), tmp_path / "data" / "in.csv")
    (tmp_path / "data" / "state").mkdir(mode=0o700)
    (tmp_path / "data" / "state" / "old").write_bytes(b"kept")
    return tmp_path


def contents(place):
    return {path: path.read_bytes() for path in sorted(place.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("option", ["-o", "--trace"])
@pytest.mark.parametrize(
    ("target", "called"),
    [
        ("in.csv", "is the same file as the input"),
        ("job.toml", "is the same file as the job"),
        ("town.csv", "is the same file as the hierarchy"),
        ("state/old", "is a file in the folder of the run.checkpoint.folder"),
    ],
)
@pytest.mark.parametrize("as_name", NAMES, ids=lambda name: name.__name__)
def test_an_output_under_another_name_is_refused(
    place, as_name, target, called, option, monkeypatch, capfd
):
    data = place / "data"
    name = as_name(data / target, place / "links" / "x.csv")
    before = contents(place)
    words = {"-o": place / "out.csv", option: name}
    given = ["--force", *(word for pair in words.items() for word in pair)]
    assert shoal(monkeypatch, "run", data / "job.toml", "-i", data / "in.csv", *given) == 2
    assert called in capfd.readouterr().err
    assert contents(place) == before


@pytest.mark.parametrize("as_name", NAMES, ids=lambda name: name.__name__)
def test_the_quarantine_and_the_state_under_another_name_are_refused(
    place, as_name, monkeypatch, capfd
):
    data = place / "data"
    name = as_name(data / "in.csv", place / "links" / "x.csv")
    for keys in ({"bad_rows": f"file = '{name}'"}, {"run": STATE.replace("state", str(name))}):
        job = write_job(data, **keys)
        before = contents(place)
        words = ("-i", data / "in.csv", "-o", place / "out.csv")
        assert shoal(monkeypatch, "run", job, *words) == 2
        assert "is the same file as the input" in capfd.readouterr().err
        assert contents(place) == before


def test_an_output_linked_to_a_file_of_the_input_folder_is_refused(place, monkeypatch, capfd):
    (place / "many").mkdir()
    write(people(60), place / "many" / "a.csv")
    os.link(place / "many" / "a.csv", place / "out.csv")
    job = write_job(place / "data")
    before = contents(place)
    words = ("-i", place / "many", "-o", place / "out.csv")
    assert shoal(monkeypatch, "run", job, *words) == 2
    assert "output: is a file in the folder of the input" in capfd.readouterr().err
    assert contents(place) == before


def test_a_link_that_leads_nowhere_is_the_file_it_would_be(place, monkeypatch, capfd):
    job = write_job(place / "data")
    (place / "out.csv").symlink_to(place / "new.csv")
    words = ("-i", place / "data" / "in.csv", "-o", place / "out.csv", "--trace")
    assert shoal(monkeypatch, "run", job, *words, place / "new.csv") == 2
    assert "trace: is the same file as the output" in capfd.readouterr().err
    assert not (place / "new.csv").exists()


@pytest.mark.parametrize("option", ["-i", "-o", "--trace"])
def test_a_loop_of_links_is_a_path_that_cant_be_used(place, option, monkeypatch, capfd):
    (place / "a.csv").symlink_to(place / "b.csv")
    (place / "b.csv").symlink_to(place / "a.csv")
    words = {"-i": place / "data" / "in.csv", "-o": place / "out.csv", option: place / "a.csv"}
    given = [word for pair in words.items() for word in pair]
    assert shoal(monkeypatch, "run", write_job(place / "data"), *given) == 4
    assert "its symbolic links lead in a circle" in capfd.readouterr().err


def test_standard_input_and_output_are_known_by_their_files(place):
    data = place / "data"
    job = write_job(data)
    before = contents(place)
    with (data / "in.csv").open("rb") as source:
        words = ["run", job, "-o", data / "in.csv"]
        done = subprocess.run([*SHOAL, *words], stdin=source, capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    assert "output: is the same file as the input" in done.stderr
    with (data / "in.csv").open("ab") as sink:
        words = ["run", job, "-i", data / "in.csv"]
        done = subprocess.run([*SHOAL, *words], stdout=sink, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2, done.stderr
    assert contents(place) == before


def test_different_files_of_one_folder_and_devices_are_fine(place, monkeypatch):
    job = write_job(place / "data")
    (place / "link.csv").symlink_to(place / "out.csv")
    words = ("-i", place / "data" / "in.csv", "-o", place / "link.csv", "-q")
    assert shoal(monkeypatch, "run", job, *words) == 0
    assert (place / "out.csv").read_text().count("\n") > 1
    words = ("-i", place / "data" / "in.csv", "-o", "/dev/null", "--trace", place / "t.parquet")
    assert shoal(monkeypatch, "run", job, *words, "-q", "--to", "csv") == 0
