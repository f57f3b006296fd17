"""``shoal report``, ``shoal run --report`` and ``shoal audit --html``: files and exit codes."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import signal
import stat
from pathlib import Path

import pytest

from tests.world import people, shoal, write, write_job


@pytest.fixture
def world(tmp_path, monkeypatch):
    """The folder with a job and its input; it is the working folder."""
    monkeypatch.chdir(tmp_path)
    write_job(tmp_path)
    write(people(60), tmp_path / "in.csv")
    return tmp_path


@pytest.fixture
def done(world, monkeypatch):
    """The job, output, input and trace of a run."""
    job, out, source, trace = "job.toml", "out.csv", "in.csv", "trace.parquet"
    assert shoal(monkeypatch, "run", job, "-i", source, "-o", out, "--trace", trace, "-q") == 0
    return job, out, source, trace


def test_a_report_for_the_house_and_one_for_the_public(done, monkeypatch, capfd):
    job, out, source, trace = done
    words = ("report", job, out, "--original", source, "--trace", trace)
    assert shoal(monkeypatch, *words, "--attacks", "linking", "--population", source) == 0
    assert capfd.readouterr().out == "kept: the internal report is in report.html\n"
    page = Path("report.html").read_text(encoding="utf-8")
    assert "person-" not in page
    assert "linking" in page
    assert shoal(monkeypatch, *words) == 2
    assert "exists already" in capfd.readouterr().err
    assert shoal(monkeypatch, *words, "--audience", "public", "-o", "public.html") == 0
    public = Path("public.html").read_text(encoding="utf-8")
    assert shoal(monkeypatch, "report", job, out, "--audience", "public", "--force") == 0
    assert Path("report.html").read_text(encoding="utf-8") == public


def test_what_is_for_the_house_can_be_read_by_its_owner_only(done, monkeypatch):
    job, out, source, _ = done
    # One that was there is replaced, with its rights.
    Path("report.html").touch()
    usual = stat.S_IMODE(Path("report.html").stat().st_mode)
    for words, page, mode in (
        (("report", job, out, "--attacks", "none", "--force"), "report.html", 0o600),
        (("audit", job, out, "--html", "audit.html"), "audit.html", 0o600),
        (("run", job, "-i", source, "-o", "again.csv", "--report", "r.html"), "r.html", 0o600),
        (("report", job, out, "--audience", "public", "-o", "p.html"), "p.html", usual),
    ):
        assert shoal(monkeypatch, *words) in (0, 6)
        assert stat.S_IMODE(Path(page).stat().st_mode) == mode, page


def test_a_page_is_written_where_a_link_leads(done, monkeypatch):
    Path("link.html").symlink_to("page.html")
    words = ("report", done[0], done[1], "--audience", "public", "-o")
    assert shoal(monkeypatch, *words, "link.html") == 0
    assert Path("link.html").is_symlink()
    assert Path("page.html").stat().st_size
    assert shoal(monkeypatch, *words, "/dev/null") == 0


def test_json_is_the_same_without_a_page(done, monkeypatch, capfd):
    job, out, source, trace = done
    words = ("report", job, out, "--original", source, "--trace", trace, "--attacks", "none")
    assert shoal(monkeypatch, *words, "--json") == 0
    figures = json.loads(capfd.readouterr().out)
    assert figures["promise"]["verdict"] == "kept"
    assert not figures["attacks"]["applies"]
    assert figures["what"]["output"][0]["name"] == "out.csv"
    assert not Path("report.html").exists()


def test_a_broken_promise_ends_with_1(done, monkeypatch):
    job, out, source, trace = done
    strict = Path(job).read_text().replace("k = 3", "k = 50")
    Path("strict.toml").write_text(strict)
    assert strict != Path(job).read_text()
    words = ("report", "strict.toml", out, "--original", source, "--trace", trace)
    assert shoal(monkeypatch, *words, "--attacks", "none") == 1


def test_wrong_usage_ends_with_2(done, monkeypatch, capfd):
    for more, said in (
        (("--audience", "press"), "--audience"),
        (("--attacks", "guessing"), "guessing"),
        (("-o", "nowhere/report.html"), "doesn't exist"),
    ):
        assert shoal(monkeypatch, "report", done[0], done[1], *more) == 2
        assert said in capfd.readouterr().err


def test_a_run_ends_with_a_report_and_keeps_no_trace(world, monkeypatch, capfd):
    words = ("run", "job.toml", "-i", "in.csv", "-o", "out.csv", "--report", "r.html")
    assert shoal(monkeypatch, *words) == 0
    assert "kept: the internal report is in r.html" in capfd.readouterr().err
    assert "whether it is kept" in Path("r.html").read_text(encoding="utf-8")
    assert sorted(file.name for file in world.iterdir()) == [
        "in.csv", "job.toml", "out.csv", "r.html", "town.csv"
    ]  # fmt: skip


def test_the_trace_of_a_reported_run_is_private_while_it_lasts(world, monkeypatch):
    from shoal.cli import report

    seen = []

    def look(job, page, source, sink, trace, **_):
        seen.extend(stat.S_IMODE(path.stat().st_mode) for path in (Path(trace), Path(trace).parent))
        raise RuntimeError("a failure")

    monkeypatch.setattr(report, "report_on_run", look)
    words = ("run", "job.toml", "-i", "in.csv", "-o", "out.csv", "--report", "r.html", "-q")
    assert shoal(monkeypatch, *words) == 70
    assert seen == [0o600, 0o700]
    assert not list(world.glob(".shoal-*"))


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)], ids=["term", "int"]
)
def test_a_signal_during_the_report_leaves_no_trace_behind(world, monkeypatch, number, code):
    from shoal.cli import report

    before = signal.signal(number, lambda *_: None)

    def interrupted(*_, **__):
        signal.raise_signal(number)
        raise RuntimeError("the signal came to nothing")

    monkeypatch.setattr(report, "report_on_run", interrupted)
    words = ("run", "job.toml", "-i", "in.csv", "-o", "out.csv", "--report", "r.html", "-q")
    try:
        assert shoal(monkeypatch, *words) == code
    finally:
        signal.signal(number, before)
    assert not list(world.glob(".shoal-*"))


def test_a_folder_that_was_left_behind_is_removed_and_no_other(world, monkeypatch, capfd):
    for name, mode, file in (
        ("stale", 0o700, "trace.parquet"),
        ("used", 0o700, "trace.parquet"),
        ("open", 0o755, "trace.parquet"),
        ("foreign", 0o700, "notes.txt"),
    ):
        folder = world / f".shoal-{name}"
        folder.mkdir(mode=mode)
        folder.chmod(mode)
        (folder / file).touch()
    (world / ".shoal-link").symlink_to(world / ".shoal-used")
    in_use = os.open(world / ".shoal-used", os.O_RDONLY)
    fcntl.flock(in_use, fcntl.LOCK_EX)
    words = ("run", "job.toml", "-i", "in.csv", "-o", "out.csv", "--report", "r.html", "-q")
    try:
        assert shoal(monkeypatch, *words) == 0
    finally:
        os.close(in_use)
    left = sorted(folder.name for folder in world.glob(".shoal-*"))
    assert left == [".shoal-foreign", ".shoal-link", ".shoal-open", ".shoal-used"]
    assert ".shoal-stale: a run that was killed" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-i", "in.csv", "-o", "-"), "the output isn't a file"),
        (("-i", "-", "-o", "out.csv"), "the input isn't a file"),
        (("-i", "in.csv", "-o", "out.csv", "--follow"), "the input isn't a file"),
    ],
)
def test_a_report_needs_files_that_can_be_read_again(world, monkeypatch, capfd, words, said):
    assert shoal(monkeypatch, "run", "job.toml", *words, "--report", "r.html") == 2
    assert said in capfd.readouterr().err


def test_a_report_never_overwrites_what_the_run_reads_or_writes(world, monkeypatch, capfd):
    for name in ("in.csv", "out.csv", "job.toml"):
        words = ("run", "job.toml", "-i", "in.csv", "-o", "out.csv", "--report", name, "--force")
        assert shoal(monkeypatch, *words) == 2
        assert "is the same file as" in capfd.readouterr().err


def test_an_audit_writes_its_verdicts_as_a_page(done, monkeypatch, capfd):
    job, out, source, trace = done
    words = ("audit", job, out, "--original", source, "--trace", trace, "--html", "audit.html")
    assert shoal(monkeypatch, *words) == 0
    assert capfd.readouterr().out.startswith("kept: ")
    page = Path("audit.html").read_text(encoding="utf-8")
    assert page.count('<span class="kept">kept</span>') == 12
    assert "person-" not in page


def test_a_page_overwrites_nothing_unless_asked_to_and_never_an_input(done, monkeypatch, capfd):
    job, out, source, trace = done
    Path("parts").mkdir()
    Path("parts/rows.csv").write_bytes(Path(out).read_bytes())
    Path("link.csv").hardlink_to(source)
    Path("old.html").write_text("<!DOCTYPE html>old")
    given = ("--original", source, "--trace", trace)
    for command, way in (("audit", "--html"), ("report", "-o")):
        more = ("--attacks", "none") if command == "report" else ()
        for page in (job, "town.csv", out, source, trace, "link.csv"):
            before = Path(page).read_bytes()
            assert shoal(monkeypatch, command, job, out, *given, way, page, "--force") == 2
            assert "is the same file as the" in capfd.readouterr().err
            assert Path(page).read_bytes() == before
        for page in ("parts/rows.csv", "parts/new.html"):
            assert shoal(monkeypatch, command, job, "parts", way, page, "--force") == 2
            assert "folder of the published data" in capfd.readouterr().err
        assert shoal(monkeypatch, command, job, out, *given, *more, way, "old.html") == 2
        assert "old.html exists already" in capfd.readouterr().err
        assert Path("old.html").read_text() == "<!DOCTYPE html>old"
    assert shoal(monkeypatch, "audit", job, out, *given, "--html", "old.html", "--force") == 0
    assert Path("old.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_a_page_never_overwrites_a_file_of_the_job(tmp_path, monkeypatch, capfd):
    house = tmp_path / "house"
    house.mkdir()
    private = "limit = 1\nfile = 'bad/'\n[private]\nseal = true"
    run = "checkpoint = { folder = 'state', every = 10, seal = 'file:key' }"
    inputs = "\n[input]\npath = 'in.csv'\n[output]\npath = 'out.csv'\n"
    job = write_job(house, run=run, bad_rows=private + inputs)
    (house / "key").write_text("ab" * 32)
    write(people(60), house / "in.csv")
    monkeypatch.chdir(house)
    with Path("in.csv").open("a") as file:
        file.write("person-0,,,,,\n")
    assert shoal(monkeypatch, "run", "job.toml", "--trace", "trace/", "-q") == 0
    published = tmp_path / "copy.csv"
    published.write_bytes(Path("out.csv").read_bytes())
    (tmp_path / "note.txt").write_text("mine")
    (tmp_path / "link.html").symlink_to(house / "key")
    monkeypatch.chdir(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    pages = {
        house / "key": "is the same file as the key of the seal",
        "link.html": "is the same file as the key of the seal",
        house / "in.csv": "is the same file as the input",
        house / "out.csv": "is the same file as the output",
        house / "town.csv": "is the same file as the hierarchy",
        house / "state" / "lock": "lies in the folder of the run.checkpoint.folder",
        house / "state" / "new.html": "lies in the folder of the run.checkpoint.folder",
        next((house / "bad").iterdir()): "lies in the folder of the bad_rows.file",
        next((house / "trace").iterdir()): "isn't an HTML file",
        "note.txt": "isn't an HTML file",
    }
    for command, way in (("audit", "--html"), ("report", "-o")):
        for page, said in pages.items():
            for more in ((), ("--force",)):
                assert shoal(monkeypatch, command, job, published, way, page, *more) == 2
                assert said in capfd.readouterr().err
    assert before == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}


def test_what_does_not_fit_is_said(done, world, monkeypatch, capfd):
    write_job(world, policy="k = 40\ndelay = { rows = 30 }")
    job, out, source, trace = done
    words = ("report", job, out, "--original", source, "--trace", trace, "--attacks", "none")
    assert shoal(monkeypatch, *words) == 1
    first, *others = capfd.readouterr().out.splitlines()
    assert first == "broken: the internal report is in report.html"
    assert any(line.startswith("  k-anonymity: broken; ") for line in others)


def test_a_report_has_a_control_if_asked_for(done, monkeypatch, capfd):
    job, out, source, trace = done
    words = ("report", job, out, "--original", source, "--trace", trace)
    assert shoal(monkeypatch, *words, "--attacks", "linking", "--control", 0.3) == 0
    assert ">control</th>" in Path("report.html").read_text(encoding="utf-8")
    assert shoal(monkeypatch, *words, "--control", 2, "-o", "r.html") == 2
    assert "control: must be a share between 0 and 1; got 2" in capfd.readouterr().err


def test_the_page_of_an_audit_names_what_was_audited(done, monkeypatch):
    job, out, *_ = done
    shoal(monkeypatch, "audit", job, out, "--html", "audit.html")
    page = Path("audit.html").read_text(encoding="utf-8")
    assert "out.csv, SHA-256" in page
    assert "job.toml" in page
    assert hashlib.sha256(Path(out).read_bytes()).hexdigest() in page
