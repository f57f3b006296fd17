"""That imports are followed as Python follows them."""

from __future__ import annotations

import ast
import sys
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

import shoal
from shoal.engine import sources
from shoal.engine.sources import closure, digest_of, imports_of, path_of

ROOT = Path(shoal.__file__).parent


def modules() -> list[str]:
    paths = [path.relative_to(ROOT.parent).with_suffix("") for path in sorted(ROOT.rglob("*.py"))]
    return [".".join(path.parts).removesuffix(".__init__") for path in paths]


def is_scanning(name: str) -> bool:
    path = path_of(name)
    assert path is not None
    return path.name == "__init__.py" and b"pkgutil.iter_modules(" in path.read_bytes()


#: Packages that find their modules by a scan.
SCANNING = [name for name in modules() if is_scanning(name)]


def parsed(name: str) -> set[str]:
    """What a module imports at its top level, by Python's own parser."""
    path = sources.path_of(name)
    assert path is not None
    names, tree = set(), ast.parse(path.read_bytes())
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    conditions = {ast.unparse(node.test) for node in tree.body if isinstance(node, ast.If)}
    is_lazy = "__getattr__" in functions or "not IS_PLAIN" in conditions
    for node in ast.walk(tree) if is_lazy else tree.body:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None, "an import is relative"
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            is_whole = all(sources.path_of(name) is not None for name in inner)
            names |= inner if is_whole else {node.module, *inner}
    return {n for n in names if n.partition(".")[0] == "shoal" and sources.path_of(n) is not None}


def test_imports_are_those_that_python_sees() -> None:
    names = [name for name in modules() if name not in SCANNING]
    assert {name: imports_of(name) for name in names} == {name: parsed(name) for name in names}


def test_what_compiles_counts_though_plain_python_leaves_it_out() -> None:
    assert imports_of("shoal.engine.jit") == {"shoal.engine.cache", "shoal.engine.linking"}


@pytest.mark.parametrize("package", SCANNING)
def test_a_package_that_scans_its_folder_imports_all_of_it(package: str) -> None:
    inside = {name for name in modules() if name.rpartition(".")[0] == package}
    assert len(inside) > 1
    assert imports_of(package) == parsed(package) | inside


def test_a_package_that_imports_names_when_they_are_used_imports_their_modules() -> None:
    assert imports_of("shoal.engine") == {"shoal.engine.base", "shoal.engine.space"}
    assert {"shoal.run.frame", "shoal.spec.policy"} <= imports_of("shoal")


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A package of somebody else's, of which files can be written."""
    module = ModuleType("theirs")
    module.__file__ = str(tmp_path / "__init__.py")
    monkeypatch.setitem(sys.modules, "theirs", module)
    (tmp_path / "__init__.py").touch()

    def write(**files: str) -> None:
        for name, text in files.items():
            (tmp_path / f"{name}.py").write_text(text)
        sources.forget()

    yield write
    sources.forget()


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("import theirs.a", {"a"}),
        ("import theirs.a as x, theirs.b", {"a", "b"}),
        ("from theirs import a, b", {"a", "b"}),
        ("from theirs import a, nothing", {"", "a"}),
        ("from theirs import (  # why\n    a,\n    b as c,\n)", {"a", "b"}),
        ("from theirs import a, \\\n    b", {"a", "b"}),
        ("from theirs.a import nothing", {"a"}),
        ("from . import a", {"a"}),
        ("from .b import nothing", {"b"}),
        ("from .... import a", set()),
        ("import numpy, os.path", set()),
        ("def f():\n    import theirs.a", set()),
        ("if TYPE_CHECKING:\n    import theirs.a", set()),
        ('"""Prose\nfrom the beginning\nimport\n"""', set()),
    ],
)
def test_every_form_of_import_is_understood(package, line: str, found: set[str]) -> None:
    package(a="", b="", top=line)
    assert imports_of("theirs.top") == {f"theirs.{n}".rstrip(".") for n in found}


def test_a_package_in_an_archive_was_installed(package, tmp_path, monkeypatch) -> None:
    """Spark's workers import pyspark from an archive, which may lie anywhere."""
    archive = tmp_path / "packed.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr("packed/__init__.py", "")
    module = ModuleType("packed")
    module.__file__ = str(archive / "packed" / "__init__.py")
    monkeypatch.setitem(sys.modules, "packed", module)
    package(a="import packed\nimport theirs.b", b="")
    assert set(closure(["theirs.a"])) == {"theirs.a", "theirs.b"}
    digest_of(closure(["theirs.a"]))


def test_a_package_behind_a_link_was_installed(package, tmp_path, monkeypatch) -> None:
    link = tmp_path / "link"
    link.symlink_to(Path(pytest.__file__).parents[1])
    monkeypatch.setattr(pytest, "__file__", str(link / "pytest" / "__init__.py"))
    package(a="import pytest")
    assert set(closure(["theirs.a"])) == {"theirs.a"}


def test_imports_are_followed_to_the_end_and_in_circles(package) -> None:
    package(a="import theirs.b", b="import theirs.c", c="import theirs.a", d="import theirs.a")
    assert set(closure(["theirs.a"])) == {"theirs.a", "theirs.b", "theirs.c"}
    assert closure(["theirs.nothing", "nobody"]) == {}
    assert set(closure(["theirs.a"], ["theirs.b"])) == {"theirs.a"}


def test_what_is_left_out_is_followed_from_within(package) -> None:
    package(a="import theirs.b", b="import theirs.c", c="import theirs.a")
    assert set(closure(["theirs.b"], ["theirs"])) == {"theirs.a", "theirs.b", "theirs.c"}


def test_the_digest_depends_on_names_and_contents(package) -> None:
    digests = []
    for text in ("", "k = 1", "k = 2"):
        package(a="import theirs.b", b=text)
        digests.append(digest_of(closure(["theirs.a"])))
    package(a="import theirs.c", c="k = 2")
    digests.append(digest_of(closure(["theirs.a"])))
    assert len(set(digests)) == 4
    assert digest_of(closure(["theirs.a"])) == digests[-1]
