"""That the digest tells edits of the code that decides, and of no other."""

from __future__ import annotations

import ast
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import shoal
from shoal.algorithms.castle import Castle
from shoal.algorithms.z_anonymity import ZAnonymizer
from shoal.engine import sources
from shoal.engine.sources import NOT_COMPILED, closure, digest_of
from shoal.run import decision_code
from shoal.run.decision_code import deciding_modules, decision_digest
from shoal.spark.shard_job import own_code

FILE, TOPIC = "shoal.io.files.replayable", "shoal.io.kafka.source"

JOBS: dict[str, Callable[[], str]] = {
    "castle, file": lambda: decision_digest("shoal.algorithms.castle", FILE),
    "castle, topic": lambda: decision_digest("shoal.algorithms.castle", TOPIC),
    "z, file": lambda: decision_digest("shoal.algorithms.z_anonymity", FILE),
    "castle, Spark": lambda: own_code(Castle()),
    "z, Spark": lambda: own_code(ZAnonymizer()),
}
ALL = set(JOBS)


@pytest.fixture
def edit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Path]]:
    """Adds a line to a module, in a copy of the package which the digests are of."""
    package = tmp_path / "shoal"
    shutil.copytree(
        Path(shoal.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__")
    )
    monkeypatch.setattr(shoal, "__file__", str(package / "__init__.py"))
    sources.forget()

    def change(module: str, line: str = "_edited = 1\n") -> None:
        path = package.joinpath(*module.split(".")[1:])
        path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        path.write_text(path.read_text() + line)
        sources.forget()

    yield change
    sources.forget()


EDITS = [
    # What turns rows into codes and back, orders them and takes them in.
    ("shoal.arrow.codec", ALL),
    ("shoal.arrow.order", ALL),
    ("shoal.arrow.labels", ALL),
    ("shoal.arrow.pseudonyms", ALL),
    ("shoal.arrow.release", ALL),
    ("shoal.run.core", ALL),
    ("shoal.run.encoder", ALL),
    ("shoal.spec.policy", ALL),
    ("shoal.spec.hierarchy", ALL),
    # Engines and kernels, and how they are compiled.
    ("shoal.engine.base", ALL),
    ("shoal.engine.jit", ALL),
    ("shoal.engine.kernels.predicate", ALL),
    # Spark's driver has z-anonymity built in.
    ("shoal.engine.z.pairs", {"z, file", "castle, Spark", "z, Spark"}),
    ("shoal.engine.deadlines", {"castle, file", "castle, topic", "castle, Spark"}),
    ("shoal.algorithms.castle", {"castle, file", "castle, topic", "castle, Spark"}),
    ("shoal.algorithms.fads", set()),
    ("shoal.engine.rtree.tree", set()),
    # How the rows of this job are read and dealt out.
    ("shoal.io.formats.csv", ALL),
    ("shoal.io.formats.parquet", ALL - {"castle, topic"}),
    ("shoal.io.files.random_access", {"castle, file", "z, file"}),
    ("shoal.io.kafka.values", {"castle, topic"}),
    ("shoal.io.kafka.sink", set()),
    ("shoal.io.files.spark", {"castle, Spark", "z, Spark"}),
    ("shoal.io.kafka.spark", {"castle, Spark", "z, Spark"}),
    ("shoal.spark.routing", {"castle, Spark", "z, Spark"}),
    ("shoal.spark.z.arrow_tasks", {"castle, Spark", "z, Spark"}),
    # Spark numbers rows by these totals.
    ("shoal.metrics.summary", {"castle, Spark", "z, Spark"}),
    # What only counts, tells, stores and starts.
    ("shoal.metrics.queries", set()),
    ("shoal.errors", set()),
    ("shoal.events", set()),
    ("shoal.engine.cache", set()),
    ("shoal.engine.cache_files", set()),
    ("shoal.engine.cache_folders", set()),
    ("shoal.engine.cpu_levels", set()),
    ("shoal.run.state.store", set()),
    ("shoal.run.observe.server", set()),
    ("shoal.audit.run", set()),
    ("shoal.job.file", set()),
    ("shoal.cli.run.command", set()),
    ("shoal.cli.demo.command", set()),
    ("shoal.cli.app", set()),
    ("shoal.testing.streams", set()),
    ("shoal", set()),
]


def test_an_edit_is_detected_by_the_jobs_that_it_can_change(edit) -> None:
    for module, changed in EDITS:
        before = {job: digest() for job, digest in JOBS.items()}
        edit(module)
        after = {job: digest() for job, digest in JOBS.items()}
        assert {job for job in JOBS if before[job] != after[job]} == changed, module


def test_comments_docstrings_and_layout_decide_nothing(edit) -> None:
    before = decision_digest()
    edit("shoal.arrow.codec", "\n\n# A comment.\n")
    assert decision_digest() == before
    edit("shoal.arrow.codec", '\ndef f(x):\n    """Say one thing."""\n    return (x)\n')
    other = decision_digest()
    assert other != before
    path = closure(["shoal.arrow.codec"])["shoal.arrow.codec"]
    text = path.read_text().replace("Say one thing", "Say another").replace("(x)\n", "x\n")
    path.write_text(text)
    sources.forget()
    assert decision_digest() == other


def test_code_that_decides_imports_at_the_top() -> None:
    """An import inside a function wouldn't be followed."""
    files = {
        name: path
        for job in ((FILE, "shoal.algorithms.castle"), (TOPIC,), ("shoal.spark.driver",))
        for name, path in closure([*decision_code.ROOTS, *job], decision_code.NOT_DECIDING).items()
    } | closure([f"shoal.algorithms.{n.replace('-', '_')}" for n in shoal.algorithms.names()])
    inner = {
        (name, statement.module)
        for name, path in files.items()
        for function in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(function, ast.FunctionDef)
        for statement in ast.walk(function)
        if isinstance(statement, ast.ImportFrom) and (statement.module or "").startswith("shoal")
    }
    assert inner == set()


def test_the_modules_are_listed_by_name() -> None:
    names = deciding_modules("shoal.algorithms.castle")
    assert {"shoal.run.core", "shoal.arrow.codec", "shoal.algorithms.castle"} <= set(names)
    assert not [name for name in names if name.startswith(("shoal.cli", "shoal.io"))]


def test_kernels_are_compiled_again_where_they_call_what_was_edited(edit) -> None:
    modules = ("shoal.algorithms.castle", "shoal.algorithms.fads", "shoal.engine.kernels.rng")

    def edited(module: str) -> set[str]:
        digests = []
        for _ in range(2):
            files = {m: closure([m], NOT_COMPILED) for m in modules}
            digests.append({m: digest_of(files[m]) for m in modules})
            if len(digests) == 1:
                edit(module)
        return {m for m in modules if digests[0][m] != digests[1][m]}

    assert edited("shoal.algorithms.castle") == {"shoal.algorithms.castle"}
    assert edited("shoal.engine.kernels.rng") == set(modules)
    assert edited("shoal.engine.jit") == set(modules)
    assert edited("shoal.engine.kernels.boxes") == set(modules[:2])
    for module in ("shoal.cli.run.command", "shoal.arrow.codec", *NOT_COMPILED, "shoal"):
        assert edited(module) == set(), module


def test_code_without_a_file_is_never_the_same() -> None:
    assert decision_digest("typed_in") != decision_digest("typed_in")
    assert decision_digest("shoal.algorithms.castle") == decision_digest("shoal.algorithms.castle")
