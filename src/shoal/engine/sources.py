"""Find the source files that a module depends on, by following its imports."""

from __future__ import annotations

import hashlib
import importlib.util
import re
import sys
import sysconfig
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path

__all__ = ["NOT_COMPILED", "closure", "digest_of", "forget", "imports_of", "path_of"]

#: What finds, keeps and loads kernels. What decorates one can get into it; these modules can't.
NOT_COMPILED = (
    "shoal.engine.cache", "shoal.engine.cache_files", "shoal.engine.cache_folders",
    "shoal.engine.cpu_levels", "shoal.engine.sources",
)  # fmt: skip
#: Where Python and its tools put packages.
_INSTALLED = {
    Path(sysconfig.get_path(kind)).resolve()
    for kind in ("stdlib", "platstdlib", "purelib", "platlib")
}
_STATEMENT = r"(?:from|import)\b(?:[^\n(\\]*\([^)]*\)|(?:[^\n]*\\\n)*[^\n]*)"
#: An import at the left margin, up to the end of the line or of the parentheses; or one anywhere.
_IMPORT = re.compile(rf"^{_STATEMENT}", re.MULTILINE)
_ANY_IMPORT = re.compile(rf"^[ \t]*{_STATEMENT}", re.MULTILINE)
#: What is no name of a module in such a statement.
_NO_MODULE = re.compile(r"\bas\s+\w+|#.*")


def closure(modules: Iterable[str], leaving_out: Sequence[str] = ()) -> dict[str, Path]:
    """Return the files of modules and of all that they import, directly or not, by name.

    Parameters
    ----------
    modules
        The names to begin with.
    leaving_out
        Modules or packages that are not entered from outside of them.
    """
    found: dict[str, Path] = {}
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        path = path_of(name)
        if name in found or path is None:
            continue
        found[name] = path
        for other in imports_of(name):
            package = next((out for out in leaving_out if _is_in(other, out)), None)
            if package is None or _is_in(name, package):
                waiting.append(other)
    return found


@cache
def imports_of(name: str) -> frozenset[str]:
    """Return the modules that it imports, but for the standard library and installed packages.

    Of these, the packages that the module and Shoal are in count all the same.
    Imports inside functions and under ``if TYPE_CHECKING`` don't count: compiled code can't have
    them, and a test keeps them out of code that decides. But a package that imports its names when
    they are used lists them there, one that scans its folder imports all modules in it, and what
    compiles is imported under ``if not IS_PLAIN``.
    """
    path = path_of(name)
    if path is None:
        return frozenset()
    is_package = path.name == "__init__.py"
    package = name if is_package else name.rpartition(".")[0]
    text = _source_of(path).decode()
    names: set[str] = set()
    if is_package and "pkgutil.iter_modules(" in text:
        entries = (entry.stem for entry in path.parent.iterdir() if entry != path)
        names |= {f"{name}.{entry}" for entry in entries}
    is_lazy = (is_package and "\ndef __getattr__(" in text) or "\nif not IS_PLAIN:\n" in text
    for statement in (_ANY_IMPORT if is_lazy else _IMPORT).findall(text):
        kind, *words = re.findall(r"[\w.]+", _NO_MODULE.sub("", statement))
        if kind == "import":
            names.update(words)
        elif words:
            base = _absolute(words[0], package)
            inner = {word for word in words[2:] if path_of(f"{base}.{word}") is not None}
            names |= {f"{base}.{word}" for word in inner}
            if inner != set(words[2:]):
                names.add(base)
    near = {"shoal", name.partition(".")[0]}
    return frozenset(
        other
        for other in names
        if (other.partition(".")[0] in near or not _is_installed(other.partition(".")[0]))
        and path_of(other) is not None
    )


def digest_of(files: dict[str, Path], form: Callable[[bytes], bytes] = bytes) -> str:
    """Return a digest of the names of modules and of their sources, brought into some form."""
    digest = hashlib.blake2b(digest_size=12)
    for name, path in sorted(files.items()):
        content = form(_source_of(path))
        digest.update(f"{name} {len(content)} ".encode())
        digest.update(content)
    return digest.hexdigest()


def forget() -> None:
    """Forget what was read, so that edits are seen; for tests."""
    for memo in (imports_of, _source_of, path_of, _is_installed):
        memo.cache_clear()


@cache
def _source_of(path: Path) -> bytes:
    return path.read_bytes()


def _absolute(name: str, package: str) -> str:
    try:
        return importlib.util.resolve_name(name, package)
    except ImportError:
        return name


@cache
def path_of(name: str) -> Path | None:
    """Return the file of a module, which needn't have been imported; its top package must be."""
    top, *rest = name.split(".")
    file = getattr(sys.modules.get(top), "__file__", None)
    if file is None:
        return None
    if not rest:
        return Path(file)
    path = Path(file).parent.joinpath(*rest)
    choices = (path.with_name(f"{path.name}.py"), path / "__init__.py")
    # A module that was added at run time may lie elsewhere.
    loaded = getattr(sys.modules.get(name), "__file__", None)
    elsewhere = None if loaded is None else Path(loaded)
    return next((choice for choice in choices if choice.is_file()), elsewhere)


@cache
def _is_installed(top: str) -> bool:
    """Return whether a package is one of the standard library, or was installed by a tool.

    So was one inside an archive, as Spark brings its own.
    """
    path = path_of(top)
    if path is None or not path.is_file():
        return True
    return any(path.resolve().is_relative_to(folder) for folder in _INSTALLED)


def _is_in(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")
