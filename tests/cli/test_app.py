"""The program itself: help, version, usage, and what isn't loaded for them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import shoal as package
from shoal.cli import app as app_module
from shoal.errors import CheckpointError
from tests.world import shoal

HEAVY = ("numba", "pyarrow")
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "code",
    [
        "import shoal",
        "import shoal.cli",
        "import sys; sys.argv = ['shoal', '--help']; from shoal.cli import main; main()",
        "import sys; sys.argv = ['shoal', 'run', '--help']; from shoal.cli import main; main()",
        "import sys; sys.argv = ['shoal', '--version']; from shoal.cli import main; main()",
    ],
)
def test_quick_things_load_nothing_heavy(code):
    look = f"import sys; print([name for name in {HEAVY!r} if name in sys.modules])"
    script = f"try:\n    {code}\nfinally:\n    {look}"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_command_that_uses_arrow_imports_no_pandas(tmp_path):
    pytest.importorskip("pandas")
    rows, job = ROOT / "examples/anonymize_a_csv/people.csv", tmp_path / "job.toml"
    words = ["shoal", "init", str(rows), "-o", str(job), "--measure", "0"]
    script = (
        f"import sys; sys.argv = {words!r}\n"
        "from shoal.cli import main\n"
        "try:\n    main()\n"
        "finally:\n    print('pyarrow' in sys.modules, 'pandas' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "True False"
    assert job.exists()


def test_pandas_stays_where_it_is_wanted(monkeypatch, capfd):
    # This process uses Arrow already; whether pandas can be imported is its own matter.
    assert shoal(monkeypatch, "--version") == 0
    assert pytest.importorskip("pandas") is sys.modules["pandas"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["init", "data.csv", "--k", "0"], "--k: must be at least 1; got 0"),
        (["init", "data.csv", "--measure", "-1"], "--measure: must be at least 0; got -1"),
        (["compare", "job.toml", "in.csv", "--jobs", "0"], "--jobs: must be at least 1; got 0"),
        (["model", "z", "--window-rows", "0"], "--window-rows: must be at least 1; got 0"),
    ],
)
def test_a_number_that_is_too_small_is_refused_in_the_usual_words(words, said, monkeypatch, capfd):
    assert shoal(monkeypatch, *words) == 2
    assert f"shoal: {said}" in capfd.readouterr().err


def test_version(monkeypatch, capfd):
    assert shoal(monkeypatch, "--version") == 0
    assert capfd.readouterr().out == f"shoal {package.__version__}\n"


def test_help_names_every_command(monkeypatch, capfd):
    assert shoal(monkeypatch, "--help") == 0
    out = capfd.readouterr().out
    for command in ("run", "check", "audit", "init", "algorithms", "demo"):
        assert f"\n  {command} " in out


@pytest.mark.parametrize(
    "words", [["rnu"], ["run"], ["run", "job.toml", "--outptu", "x"], ["audit", "job.toml"]]
)
def test_wrong_usage_ends_with_2(words, monkeypatch, capfd):
    assert shoal(monkeypatch, *words) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert "Error" in err


def test_a_missing_job_ends_with_2(monkeypatch, capfd, tmp_path):
    assert shoal(monkeypatch, "run", tmp_path / "job.toml", "-i", "x.csv") == 2
    assert "`shoal init DATA -o job.toml` drafts one" in capfd.readouterr().err


def fail_with(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def broken(**options: object) -> None:
        raise error

    monkeypatch.setattr(app_module, "app", broken)


def test_failures_end_with_their_code_and_a_sentence(monkeypatch, capfd):
    fail_with(monkeypatch, CheckpointError("state: is of another job."))
    assert shoal(monkeypatch) == 5
    assert capfd.readouterr().err == "shoal: state: is of another job.\n"


def test_ctrl_c_anywhere_ends_with_130(monkeypatch, capfd):
    fail_with(monkeypatch, KeyboardInterrupt())
    assert shoal(monkeypatch) == 130
    assert capfd.readouterr().err == "shoal: interrupted\n"


def test_ctrl_c_while_libraries_are_imported_is_one_line():
    # An interrupted import leaves a library that can't be imported again.
    script = (
        "import sys; sys.modules.update(dict.fromkeys(['numba', 'numpy', 'pyarrow']))\n"
        "from shoal.cli import app\n"
        "def interrupted(**_): raise KeyboardInterrupt\n"
        "app.app = interrupted\n"
        "app.main()"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (130, "shoal: interrupted\n")


def test_an_interrupt_inside_a_command_is_said_once(monkeypatch, capfd):
    def interrupted(**_):
        raise KeyboardInterrupt

    monkeypatch.setattr("shoal.cli.algorithms.algorithms", interrupted)
    assert shoal(monkeypatch, "algorithms") == 130
    assert capfd.readouterr().err == "shoal: interrupted\n"


def test_a_bug_says_where_and_not_what(monkeypatch, capfd):
    fail_with(monkeypatch, ValueError("CANARY"))
    assert shoal(monkeypatch) == 70
    err = capfd.readouterr().err
    assert "ValueError in test_app.py, line" in err
    assert "CANARY" not in err
    monkeypatch.setenv("SHOAL_DEBUG", "1")
    assert shoal(monkeypatch) == 70
    assert "CANARY" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run", "job.toml", "in.csv"), "(in.csv). Give the data with -i."),
        (("run", "job.toml", "--delay", "5"), "--delay. Set it in the job file."),
        (("check", "job.toml", "--k", "5"), "--k. Set it in the job file."),
    ],
)
def test_data_and_promises_in_the_wrong_place_are_told_where_they_belong(
    words, said, monkeypatch, capfd
):
    assert shoal(monkeypatch, *words) == 2
    assert said in capfd.readouterr().err


def test_other_mistakes_have_no_such_hint(monkeypatch, capfd):
    assert shoal(monkeypatch, "audit", "job.toml", "out.csv", "more.csv") == 2
    assert shoal(monkeypatch, "run", "job.toml", "--forc") == 2
    err = capfd.readouterr().err
    assert "Give the data" not in err
    assert "in the job" not in err
    assert "--force" in err
