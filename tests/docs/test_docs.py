"""The documentation matches the code: jobs are read, examples run, options and keys compared."""

from __future__ import annotations

import dataclasses
import doctest
import importlib
import pkgutil
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pydantic
import pytest
import typer

from shoal import algorithms, engine
from shoal.cli.app import app
from shoal.errors import JobError
from shoal.job import Job
from shoal.job import form as job_form

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(
    r"(?:<!-- (?P<mark>[^\n]*?) -->\s*\n)?^```(?P<kind>[^\n]*)\n(?P<text>.*?)^```$", re.M | re.S
)
SHOAL = [sys.executable, "-c", "from shoal.cli import main; main()"]


@dataclass(frozen=True)
class Block:
    """A fenced block of a page: its kind, and the comment before it, if there is one."""

    page: str
    line: int
    kind: str
    mark: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix() if page.is_relative_to(ROOT) else page.name


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for found in FENCE.finditer(text):
        line = text.count("\n", 0, found.start("text"))
        yield Block(name(page), line, found["kind"], found["mark"] or "", found["text"])


BLOCKS = [block for page in PAGES for block in blocks(page)]


def of_kind(*kinds: str) -> list[Block]:
    return [block for block in BLOCKS if block.kind in kinds]


def prose(page: Path) -> str:
    """A page without its fenced blocks."""
    return FENCE.sub("", page.read_text(encoding="utf-8"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the files that jobs in the documentation name."""
    for path in (ROOT / "examples" / "anonymize_a_csv").glob("*.csv"):
        shutil.copy(path, tmp_path)
    return tmp_path


# -- blocks -------------------------------------------------------------------------------------


def test_every_block_is_of_a_known_kind() -> None:
    known = {"toml", "toml wrong", "python", "python notest", "sh", "console", "text", "diff"}
    assert {block.kind for block in BLOCKS} <= known


@pytest.mark.parametrize("block", of_kind("toml"), ids=str)
def test_a_job_is_a_job(block: Block, folder: Path) -> None:
    Job.parse(block.text, folder=folder)


@pytest.mark.parametrize("block", of_kind("toml wrong"), ids=str)
def test_a_wrong_job_is_wrong_as_the_page_says(block: Block, folder: Path) -> None:
    with pytest.raises(JobError) as caught:
        Job.parse(block.text, folder=folder, where="wrong.toml")
    message = str(caught.value).replace(f"{folder}/", "")
    assert f"shoal: {message}\n" in (ROOT / block.page).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "page",
    [
        # R-trees are slow in plain Python.
        pytest.param(page, marks=pytest.mark.compiled if "tree-" in page.name else ())
        for page in PAGES
    ],
    ids=name,
)
def test_python_runs(page: Path) -> None:
    """The examples of a page, one after the other, in one name space."""
    scope: dict[str, object] = {"__name__": "__main__"}
    for block in blocks(page):
        # Files that a tutorial has its reader save are run by the tutorial.
        if block.kind != "python" or block.mark.startswith(("from ", "file ", "more ")):
            continue
        examples = doctest.DocTestParser().get_doctest(
            block.text, scope, str(block), block.page, block.line
        )
        assert examples.examples, f"{block}: a block of Python without a prompt isn't tested"
        failures: list[str] = []
        runner = doctest.DocTestRunner(verbose=False)
        runner.run(examples, out=failures.append, clear_globs=False)
        assert not runner.failures, "".join(failures)
        scope = examples.globs


@pytest.mark.parametrize("block", [b for b in BLOCKS if b.mark.startswith("from ")], ids=str)
def test_a_quoted_piece_is_in_its_file(block: Block) -> None:
    quoted = ROOT / block.mark.removeprefix("from ")
    assert block.text in quoted.read_text(encoding="utf-8")


#: The README's commands run in `make test`; those of other pages take plain Python long.
TESTED = [
    pytest.param(block, marks=() if block.page == "README.md" else pytest.mark.nightly)
    for block in of_kind("sh")
    if block.mark == "tested"
]


@pytest.mark.parametrize("block", TESTED, ids=str)
def test_commands_run(block: Block, tmp_path: Path) -> None:
    """Run the known commands of a block that is marked as tested, next to the examples."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    folder, n_run = tmp_path, 0
    for line in block.text.replace("\\\n", " ").splitlines():
        match shlex.split(line, comments=True):
            case ["cd", there]:
                folder = folder / there
            case ["mkdir" | "cp", *_] as command:
                subprocess.run(command, cwd=folder, check=True, timeout=600)
            case ["shoal", *arguments]:
                done = subprocess.run(
                    [*SHOAL, *arguments], cwd=folder, capture_output=True, text=True, timeout=600
                )
                assert done.returncode == 0, f"shoal {shlex.join(arguments)}: {done.stderr}"
                n_run += 1
    assert n_run, f"{block}: is marked as tested, but has no command of Shoal"


# -- links --------------------------------------------------------------------------------------


def anchor(heading: str) -> str:
    """The anchor of a heading, as GitHub makes it."""
    words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").strip().lower()
    return re.sub(r"[^\w\- ]", "", words).replace(" ", "-")


def anchors(page: Path) -> set[str]:
    """The anchors of a page; the second of two equal ones ends on -1."""
    plain = [anchor(heading) for heading in re.findall(r"^#+ (.*)$", prose(page), re.M)]
    before = (plain[:i].count(each) for i, each in enumerate(plain))
    return {f"{each}-{n}" if n else each for each, n in zip(plain, before, strict=True)}


def links(page: Path) -> list[str]:
    text = re.sub(r"`[^`\n]*`", "`", prose(page))
    found = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'(?:src|href)="([^"]+)"', text)
    return [link for link in found if not re.match(r"[a-z]+:", link)]


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    dead = []
    for link in links(page):
        path, _, place = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (place and place not in anchors(target)):
            dead.append(link)
    assert not dead


def test_every_page_can_be_found_from_the_index() -> None:
    reached, waiting = set(), [ROOT / "docs" / "index.md"]
    while waiting:
        page = waiting.pop()
        reached.add(page)
        targets = ((page.parent / link.partition("#")[0]).resolve() for link in links(page))
        waiting += [t for t in targets if t.suffix == ".md" and t.exists() and t not in reached]
    assert set((ROOT / "docs").rglob("*.md")) <= reached


def test_every_test_that_a_page_names_exists() -> None:
    there = {
        test
        for path in (ROOT / "tests").rglob("test_*.py")
        for test in re.findall(r"def (test_\w+)\(", path.read_text(encoding="utf-8"))
    }
    named = {test for page in PAGES for test in re.findall(r"`(test_\w+)`", prose(page))}
    assert named
    assert named <= there


# -- the command line ---------------------------------------------------------------------------

COMMANDS: Any = typer.main.get_command(app)
CLI = ROOT / "docs" / "cli.md"


def section(page: Path, heading: str) -> str:
    """A second-level section of a page, blocks included."""
    text = page.read_text(encoding="utf-8")
    return text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def options_of(command: Any) -> set[str]:
    return {
        option
        for parameter in command.params
        if parameter.param_type_name == "option"
        for option in (*parameter.opts, *parameter.secondary_opts)
    } - {"--help", "-h"}


LEAVES = {
    f"{name} {inner}".strip(): command
    for name, outer in COMMANDS.commands.items()
    for inner, command in getattr(outer, "commands", {"": outer}).items()
}


@pytest.mark.parametrize("command", sorted(LEAVES))
def test_the_options_of_a_command_are_those_of_its_page(command: str) -> None:
    table = re.findall(r"^\| (`-.*?) \|", section(CLI, f"shoal {command}"), re.M)
    documented = {option for cell in table for option in re.findall(r"`(-[-\w]+)`", cell)}
    assert documented == options_of(LEAVES[command])


@pytest.mark.parametrize("command", sorted(LEAVES))
def test_the_defaults_of_a_command_are_those_of_its_page(command: str) -> None:
    rows = re.findall(r"^\| (`-.*?) \| (.*?) \|", section(CLI, f"shoal {command}"), re.M)
    documented = {re.findall(r"`(-[-\w]+)`", cell)[0]: default for cell, default in rows}
    for parameter in LEAVES[command].params:
        if parameter.param_type_name != "option" or parameter.opts[0] not in documented:
            continue
        shown = documented[parameter.opts[0]].strip("`")
        if parameter.default is None:
            by_job = ("as the job says", "as the job says, or `-")
            assert shown in ("none", "by the name", *by_job)
        elif isinstance(parameter.default, bool):
            assert shown in ("off", parameter.secondary_opts[0] if parameter.secondary_opts else "")
        elif isinstance(parameter.default, int | float):
            assert float(shown) == parameter.default
        else:
            assert shown == str(parameter.default)


def test_every_command_of_the_page_exists() -> None:
    documented = set(re.findall(r"^## shoal ([\w ]+)$", CLI.read_text(encoding="utf-8"), re.M))
    assert documented == set(LEAVES)


def test_the_options_of_the_program_are_on_the_page() -> None:
    text = prose(CLI)
    assert [option for option in options_of(COMMANDS) if f"{option}`" not in text] == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_no_page_names_an_unknown_command(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    called = re.findall(r"(?:^|[`|$] ?)(?:\.venv/bin/)?shoal +([a-z]\w*)", text, re.M)
    assert set(called) <= set(COMMANDS.commands)


def test_the_exit_codes_of_the_page_are_those_that_exist() -> None:
    documented = re.findall(r"^\| (\d+) \|", section(CLI, "Exit codes"), re.M)
    assert documented == ["0", "1", "2", "3", "4", "5", "6", "70", "130", "143"]


# -- the job file -------------------------------------------------------------------------------

JOB = ROOT / "docs" / "job.md"
MODELS = {
    "schema": job_form.SchemaForm,
    "policy": job_form.PolicyForm,
    "publish": job_form.PublishForm,
    "input": job_form.endpoint_form("input"),
    "output": job_form.endpoint_form("output"),
    "run": job_form.RunForm,
    "bad_rows": job_form.BadRowsForm,
    "private": job_form.PrivateForm,
    "audit": job_form.AuditForm,
    "spark": job_form.SparkForm,
}


def keys() -> Iterator[str]:
    for heading, model in MODELS.items():
        for key in model.model_fields:
            yield f"{heading}.{key}" if key != "keep" else "schema.keep.columns"


def test_the_keys_of_the_job_are_those_of_its_page() -> None:
    documented = re.findall(r"^### (\w+\.[\w.]+)$", JOB.read_text(encoding="utf-8"), re.M)
    assert sorted(documented) == sorted(keys())


def test_the_sections_of_the_job_are_those_of_its_page() -> None:
    headings = re.findall(r"^## (\w+)$", JOB.read_text(encoding="utf-8"), re.M)
    assert headings == list(job_form.SECTIONS)


@pytest.mark.parametrize(
    "model",
    [
        job_form.QuasiForm,
        job_form.DomainForm,
        job_form.DelayForm,
        job_form.WindowForm,
        job_form.CheckpointForm,
        job_form.EachRowForm,
        job_form.KeepForm,
        job_form.PseudonymForm,
    ],
)
def test_the_inner_keys_of_the_job_are_on_its_page(model: type[pydantic.BaseModel]) -> None:
    text = JOB.read_text(encoding="utf-8")
    missing = [key for key in model.model_fields if not re.search(rf"`[^`]*\b{key}\b[^`]*`", text)]
    assert not missing


def test_the_defaults_of_the_job_are_those_of_its_page() -> None:
    text = JOB.read_text(encoding="utf-8")
    for heading, model in MODELS.items():
        for key, field in model.model_fields.items():
            if isinstance(field.default, str):
                entry = text.partition(f"\n### {heading}.{key}\n")[2].partition("\n#")[0]
                assert re.search(rf"[Dd]efault[^.]*`\"{re.escape(field.default)}\"`", entry) or (
                    f'`"{field.default}"`' in entry and "the default" in entry
                ), f"{heading}.{key}"


def knobs_of(text: str, column: str) -> dict[str, str]:
    """A column of the first table of knobs, by knob; a dash means that the knob isn't there."""
    lines = text[text.index("| knob |") :].partition("\n\n")[0].splitlines()
    head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    documented = {row[0].strip("`"): row[head.index(column)].strip('`"') for row in rows}
    return {knob: default for knob, default in documented.items() if default != "–"}


@pytest.mark.parametrize("algorithm", algorithms.names())
def test_the_knobs_of_an_algorithm_are_on_its_page_and_on_the_jobs(algorithm: str) -> None:
    """The defaults on the job's page are generated, see `tests/generated.py`."""
    fields = dataclasses.fields(algorithms.find(algorithm))
    # As TOML writes them.
    words = {None: "none", True: "true", False: "false"}
    defaults = {
        field.name: words[field.default]
        if field.default is None or isinstance(field.default, bool)
        else str(field.default)
        for field in fields
    }
    page = (ROOT / "docs" / "algorithms" / f"{algorithm}.md").read_text(encoding="utf-8")
    assert knobs_of(page, "default") == defaults
    assert set(defaults) <= set(knobs_of(section(JOB, "algorithm"), "meaning"))


def test_a_knob_that_the_jobs_page_explains_exists() -> None:
    known = {
        field.name
        for name in algorithms.names()
        for field in dataclasses.fields(algorithms.find(name))
    }
    assert set(knobs_of(section(JOB, "algorithm"), "meaning")) == known


@cache
def engine_modules() -> dict[str, list[str]]:
    """The modules of the engine package by their last name, as pages name them."""
    found: dict[str, list[str]] = {}
    for module in pkgutil.walk_packages(engine.__path__, "shoal.engine."):
        found.setdefault(module.name.rpartition(".")[2], []).append(module.name)
    return found


@pytest.mark.parametrize("algorithm", algorithms.names())
def test_the_functions_that_a_page_names_exist(algorithm: str) -> None:
    """The right column of the pseudo-code."""
    home = sys.modules[algorithms.find(algorithm).__module__]
    page = ROOT / "docs" / "algorithms" / f"{algorithm}.md"
    code = section(page, "Step by step").partition("```text\n")[2].partition("\n```")[0]
    named = [
        word
        for line in code.splitlines()
        if "  " in line.strip()
        for word in line.strip().rsplit("  ", 1)[1].split(", ")
    ]
    assert len(named) > 10
    for word in named:
        *module, function = word.strip().split(".")
        if not module:
            assert hasattr(home, function), word
            continue
        homes = map(importlib.import_module, engine_modules().get(module[-1], ()))
        assert any(hasattr(home, function) for home in homes), word
