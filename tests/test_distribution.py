"""What is installed: the wheel in an empty environment, and the extras that messages name."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

import shoal
from shoal.errors import install_hint

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
#: The packages that a module needs and that aren't always there, and the extra that has them.
OPTIONAL = {"confluent_kafka": "kafka", "paho": "mqtt", "cryptography": "seal",
            "prometheus_client": "metrics", "pyspark": "spark"}  # fmt: skip


def hints() -> dict[str, set[str]]:
    """The extras that sources and pages tell to install, by where."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "deploy").rglob("*")]
    paths = [*(ROOT / "src").rglob("*.py"), *(ROOT / "examples").rglob("*.py"), *pages]
    found = {}
    for path in paths:
        if path.is_file():
            text = path.read_text(encoding="utf-8")
            named = {
                extra.strip()
                for extras in re.findall(
                    r"(?:shoal(?:-[\w.-]+\.whl)?|\.)\[([a-z, ]+)\]|install_hint\(.(\w+).\)", text
                )
                for extra in "".join(extras).split(",")
            }
            if named:
                found[str(path.relative_to(ROOT))] = named
    return found


def test_hints_name_what_can_be_installed() -> None:
    found = hints()
    assert len([path for path in found if path.startswith("src")]) >= 7
    assert {path: named - set(EXTRAS) for path, named in found.items() if named - set(EXTRAS)} == {}


@pytest.mark.parametrize(("package", "extra"), OPTIONAL.items())
def test_an_extra_has_the_package_that_its_hint_is_about(package: str, extra: str) -> None:
    """A module that catches the missing package names the extra that brings it."""
    assert any(package.split("_")[0] in each for each in EXTRAS[extra])
    needs = re.compile(rf"(?:import|from) {package}\b|needs {package}")
    modules = [path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py")]
    named = [text for text in modules if needs.search(text) and "install_hint" in text]
    assert named
    # Reading Avro takes more of the same package.
    extras = (extra, "registry") if extra == "kafka" else (extra,)
    hint = re.compile(rf"install_hint\(.({'|'.join(extras)}).\)")
    assert all(hint.search(text) for text in named)


def test_nobody_is_told_to_install_the_package_of_that_name_on_pypi() -> None:
    folders = ("src", "docs", "examples", "deploy", "benchmarks")
    paths = [path for each in folders for path in (ROOT / each).rglob("*") if path.is_file()]
    wrong = re.compile(rb"(pip|uv|pipx) (install|add) '?shoal\b(?!-)")
    paths += ROOT.glob("*.md")
    assert [path for path in paths if wrong.search(path.read_bytes())] == []


def test_extras_are_on_the_page_of_versions() -> None:
    page = (ROOT / "docs" / "versions.md").read_text(encoding="utf-8")
    table = page.partition("## Install")[2]
    assert re.findall(r"^\| `(\w+)` \|", table, re.M) == sorted(
        EXTRAS, key=lambda extra: table.index(f"\n| `{extra}` |")
    )


def test_the_version_is_the_same_everywhere() -> None:
    assert PROJECT["version"] == shoal.__version__
    assert f"version: {shoal.__version__}" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_urls_are_what_an_index_shows() -> None:
    assert {"Homepage", "Documentation", "Repository", "Changelog"} <= set(PROJECT["urls"])
    assert all(url.startswith("https://") for url in PROJECT["urls"].values())


@pytest.mark.nightly
def test_a_wheel_works_in_an_empty_environment(tmp_path: Path) -> None:
    """Build both files, check them as an index does, install the wheel, and run a job."""
    pytest.importorskip("build")
    pytest.importorskip("twine")
    dist = tmp_path / "dist"
    call(sys.executable, "-m", "build", "--outdir", str(dist), str(ROOT))
    [wheel], [archive] = [*dist.glob("*.whl")], [*dist.glob("*.tar.gz")]
    checked = call(sys.executable, "-m", "twine", "check", "--strict", str(wheel), str(archive))
    assert checked.count("PASSED") == 2
    names = zipfile.ZipFile(wheel).namelist()
    assert "shoal/py.typed" in names
    assert not [name for name in names if name.split("/")[0] in ("tests", "docs", "benchmarks")]
    environment = tmp_path / "empty"
    venv.create(environment, with_pip=True)
    python = str(environment / "bin" / "python")
    call(python, "-m", "pip", "install", "--quiet", str(wheel))
    program, example = str(environment / "bin" / "shoal"), tmp_path / "example"
    shutil.copytree(ROOT / "examples" / "anonymize_a_csv", example)
    assert call(program, "--version") == f"shoal {shoal.__version__}\n"
    job, people = str(example / "job.toml"), str(example / "people.csv")
    out, trace = str(tmp_path / "published.csv"), str(tmp_path / "trace.parquet")
    call(program, "run", job, "-i", people, "-o", out, "--trace", trace, "-q")
    assert "kept" in call(program, "audit", job, out, "--trace", trace, "--original", people)
    lacking = subprocess.run(
        [program, "run", job, "-i", people, "-o", out, "--force", "--metrics", "127.0.0.1:0"],
        capture_output=True, text=True, env=CLEAN,
    )  # fmt: skip
    assert lacking.returncode == 2
    assert install_hint("metrics") in lacking.stderr


#: Without the sources of this checkout on the path, and in plain Python: nothing compiles.
CLEAN = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {
    "NUMBA_DISABLE_JIT": "1"
}


def call(*command: str) -> str:
    environment = dict(os.environ) if command[0] == sys.executable else CLEAN
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout
