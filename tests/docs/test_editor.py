"""What the page of keys says about editors works: Taplo, which VS Code runs, knows the schema."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

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

pytestmark = pytest.mark.skipif(TAPLO is None, reason="needs taplo (pip)")


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


def test_a_job_is_right_and_a_slip_is_marked(folder: Path) -> None:
    done = lint(folder)
    assert done.returncode == 0, done.stderr
    job = folder / "job.toml"
    job.write_text(job.read_text().replace("\nk = 5", "\nkk = 5"))
    done = lint(folder)
    assert done.returncode == 1
    assert "'kk' was unexpected" in done.stderr
