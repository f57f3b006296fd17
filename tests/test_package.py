"""The root of the package: its names, its help, and the packages that can be called."""

from __future__ import annotations

import importlib
import inspect
import pydoc
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import shoal
from shoal.job.auditing import audit
from shoal.job.running import run

ROOT = Path(__file__).parents[1]


def test_public_names_are_found_when_they_are_used() -> None:
    for name in dir(shoal):
        assert getattr(shoal, name) is not None
    assert {"Stream", "AsyncStream", "Job", "Schema", "anonymize", "run"} <= set(dir(shoal))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = shoal.nothing


def test_help_fits_on_a_screen() -> None:
    text = pydoc.plain(pydoc.render_doc(shoal))
    assert text.count("\n") <= 50
    assert max(map(len, text.splitlines())) <= 104
    for name in dir(shoal):
        assert name == "__version__" or name in text, name


def test_importing_loads_neither_arrow_nor_numba_and_is_quick() -> None:
    code = (
        "import time; begin = time.process_time()\n"
        "import sys, shoal\n"
        "shoal.Schema('p', [shoal.Quasi('age', shoal.Range(0, 9))]), shoal.run\n"
        "print([m for m in ('numba', 'numpy', 'pyarrow') if m in sys.modules])\n"
        "print(time.process_time() - begin)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded, seconds = done.stdout.splitlines()
    assert loaded == "[]"
    # Seconds of the processor: a busy machine doesn't count.
    assert float(seconds) < 0.3


@pytest.mark.parametrize(("name", "function"), [("run", run), ("audit", audit)])
def test_a_package_can_be_called_and_is_still_a_package(name: str, function: object) -> None:
    package = getattr(shoal, name)
    assert isinstance(package, ModuleType)
    assert callable(package)
    assert package is importlib.import_module(f"shoal.{name}")
    assert inspect.signature(package) == inspect.signature(function)  # type: ignore[arg-type]
    assert f"shoal.{name}(" in (package.__doc__ or "")


@pytest.mark.parametrize(
    "imports",
    [
        "import shoal",
        "import shoal, shoal.run.pipeline, shoal.audit.report",
        "import shoal.audit\nfrom shoal.run.pipeline import Pipeline\nimport shoal",
        "from shoal import run, audit\nimport shoal",
    ],
)
def test_a_package_can_be_called_however_it_was_imported(imports: str) -> None:
    code = f"""
{imports}
import shoal.run.pipeline as pipeline
assert callable(shoal.run) and callable(shoal.audit)
assert shoal.run.pipeline is pipeline
for package in (shoal.run, shoal.audit):
    try:
        package(5)
    except shoal.ShoalError as error:
        print(type(error).__name__)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["ParameterError"] * 2, done.stderr


@pytest.mark.nightly
def test_type_checkers_see_functions(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import pandas as pd\n"
        "import polars as pl\n"
        "import shoal\n"
        "from shoal.run.pipeline import Pipeline\n"
        "def f(job: shoal.Job, s: shoal.Schema, p: shoal.Policy, frame: pl.DataFrame) -> None:\n"
        "    reveal_type(shoal.run(job, input=frame).frame)\n"
        "    reveal_type(shoal.anonymize(frame, s, p).frame)\n"
        "    reveal_type(shoal.anonymize([{'a': 1}], s, p).frame)\n"
        "    reveal_type(shoal.Stream(s, p).push({'a': 1}))\n"
        "    reveal_type(shoal.Stream(s, p).push(frame))\n"
        "    reveal_type(shoal.audit(job, frame).verdict)\n"
        "    reveal_type(Pipeline(s, p, job.anonymizer).publish)\n"
        "    shoal.run(5)\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "mypy", str(script)],
        cwd=ROOT, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    found = [line.partition(": ")[2] for line in done.stdout.splitlines()]
    revealed = [line.partition('"')[2].rstrip('"') for line in found if "Revealed" in line]
    frame = "polars.dataframe.frame.DataFrame"
    assert [kind.replace("builtins.", "") for kind in revealed] == [
        frame,
        frame,
        "list[dict[str, Any]]",
        "list[dict[str, Any]]",
        f"list[{frame}]",
        "Literal['kept'] | Literal['broken'] | Literal['unverifiable']",
        "shoal.arrow.release.Publish",
    ], done.stdout
    assert [line for line in found if line.startswith("error")] != [], "a wrong job isn't seen"
