"""What the page of keys says about editors works: Taplo, which VS Code runs, knows the schema."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from shoal.job.json_schema import job_schema

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "job-keys.md").read_text(encoding="utf-8")
JOB = (ROOT / "examples" / "anonymize_a_csv" / "job.toml").read_text(encoding="utf-8")
NEAR = Path(sys.executable).with_name("taplo")
TAPLO = str(NEAR) if NEAR.exists() else shutil.which("taplo")
DIRECTIVE, CONFIG = re.findall(
    r"^```text\n(#:schema.*?|\[\[rule.*?)^```$", PAGE.partition("## In an editor")[2], re.M | re.S
)

#: The language server that the extension of VS Code has in it.
SERVER = "@taplo/lsp@0.8.0"
#: The jobs of the examples and of the folder for operators.
JOBS = sorted(
    path
    for folder in ("examples", "deploy")
    for path in (ROOT / folder).rglob("*.toml")
    if "[policy]" in path.read_text(encoding="utf-8")
)

linted = pytest.mark.skipif(TAPLO is None, reason="needs taplo (pip)")


@pytest.fixture(params=["directive", "config"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A folder with the schema, named in one of the two ways of the page."""
    (tmp_path / "job.schema.json").write_text(json.dumps(job_schema()))
    (tmp_path / "job.toml").write_text((DIRECTIVE if request.param == "directive" else "") + JOB)
    if request.param == "config":
        (tmp_path / ".taplo.toml").write_text(CONFIG)
    return tmp_path


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(TAPLO), "lint", "job.toml"], cwd=folder, capture_output=True, text=True, timeout=60
    )


@linted
def test_a_job_is_right_and_a_slip_is_marked(folder: Path) -> None:
    done = lint(folder)
    assert done.returncode == 0, done.stderr
    job = folder / "job.toml"
    job.write_text(job.read_text().replace("\nk = 5", "\nkk = 5"))
    done = lint(folder)
    assert done.returncode == 1
    assert "'kk' was unexpected" in done.stderr


@linted
def test_all_jobs_of_the_examples_fit_the_schema(tmp_path: Path) -> None:
    assert len(JOBS) >= 8
    (tmp_path / "job.schema.json").write_text(json.dumps(job_schema()))
    for number, job in enumerate(JOBS):
        (tmp_path / f"{number}.toml").write_text(DIRECTIVE + job.read_text(encoding="utf-8"))
    command = [str(TAPLO), "lint", *(f"{number}.toml" for number in range(len(JOBS)))]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


@linted
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("[policy]", "[polcy]"),
        ("k = 5 ", 'k = "five" '),
        ("k = 5 ", "k = 5.5 "),
        ("delay = { rows = 100 }", "delay = { row = 100 }"),
        ('subject = "patient_id"', ""),
        ("step = 5 }", 'step = "5" }'),
    ],
)
def test_slips_are_found(right: str, wrong: str, tmp_path: Path) -> None:
    assert JOB.count(right) == 1, right
    (tmp_path / "job.schema.json").write_text(json.dumps(job_schema()))
    (tmp_path / "job.toml").write_text(DIRECTIVE + JOB.replace(right, wrong))
    assert lint(tmp_path).returncode == 1


# -- what VS Code shows while you type ----------------------------------------------------------


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The language server, from npm."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("needs node and npm")
    folder = tmp_path_factory.mktemp("npm")
    command = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), SERVER]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        pytest.skip(f"npm can't install {SERVER}: {done.stderr[-200:]}")
    return folder / "node_modules" / "@taplo" / "lsp"


def asked(server: Path, folder: Path, text: str, places: list[tuple[str, int, int]]) -> Any:
    """Open a text as `job.toml`; ask about places in it."""
    done = subprocess.run(
        ["node", str(Path(__file__).with_name("language_server.cjs")), str(server), str(folder)],
        input=json.dumps({"text": text, "places": places}),
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def labels(answer: list[dict[str, Any]]) -> set[str]:
    return {item["label"].strip('"') for item in answer}


#: Somebody types: a key of the policy is to come, the value of a key, a knob, a section.
TYPED = """\
[policy]

[algorithm]
name = ""

[publish]
order = ""
numerik = 1
"""


@pytest.mark.nightly
@pytest.mark.parametrize("way", ["directive", "config"])
def test_the_editor_completes_explains_and_marks(way: str, server: Path, tmp_path: Path) -> None:
    (tmp_path / "job.schema.json").write_text(json.dumps(job_schema()))
    if way == "config":
        (tmp_path / ".taplo.toml").write_text(CONFIG)
    # Both have a line at the top, so that all places are the same.
    text = (DIRECTIVE if way == "directive" else "# a job\n") + TYPED
    complete = "completion"
    places = [(complete, 2, 0), (complete, 4, 8), (complete, 5, 0), (complete, 7, 9)]
    found = asked(server, tmp_path, text, [*places, (complete, 3, 1), ("hover", 6 + 1, 2)])
    keys, names, knobs, orders, sections, explained = found["answers"]
    assert labels(keys) >= {"k", "l", "t", "delay", "window", "missing"}
    [k] = [item for item in keys if item["label"] == "k"]
    assert "subjects" in k["documentation"]["value"]
    assert k["insertText"].startswith("k = ")
    assert labels(names) >= {"tide", "castle", "z-anonymity"}
    assert labels(knobs) >= {"clusters", "release"}
    assert labels(orders) == {"released", "arrival", "shuffled"}
    assert labels(sections) >= {"schema", "run.checkpoint", "bad_rows"}
    assert "order in which rows" in explained["contents"]["value"]
    said = " ".join(mark["message"] for mark in found["marked"])
    assert "'numerik' was unexpected" in said
    assert '"schema" is a required property' in said
