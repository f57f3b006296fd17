"""Build the site of the documentation: ``make docs``, or ``python docs/site/build.py``.

The pages are those of ``docs``, as they are. They also link to what lies outside of it: examples,
sources, the changelog. So the pages are copied to a folder first, such files become pages of their
own there, and links lead to these. ``docs/index.md`` says which page is of which kind: its tables
are the navigation. Then Sphinx builds the site, without a network; every warning is an error.

    --tag v0.1.0    build that tag, too, by its own sources, in a folder of its name; repeatable
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import io
import os
import pkgutil
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
#: The kinds of pages, by the heading of the index and in the order of the navigation.
KINDS = ("Tutorials", "How-to guides", "Reference", "Explanation", "Project")
#: Pages of the repository's root, and what they are called in the site.
ROOT_PAGES = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "README.md": "index.md",
}
#: What is copied beside the pages.
ASSETS = {".svg", ".png", ".html"}
#: How the blocks of a source page are coloured. In a folder, files with other endings aren't shown.
LANGUAGES = {
    ".py": "python", ".toml": "toml", ".sh": "sh", ".json": "json", ".yml": "yaml",
    ".yaml": "yaml", ".service": "ini", ".csv": "text", ".md": "text", ".jsonl": "text",
}  # fmt: skip
LINES_SHOWN = 400
FENCE = r"^(?P<fence>`{3,})[^\n]*\n.*?^(?P=fence)$"
LINK = re.compile(r"(?P<head>\]\()(?P<to>[^)\s]+)(?=\))|(?P<html>(?:src|href)=\")(?P<there>[^\"]+)")


def sections(page: str) -> dict[str, list[str]]:
    """Return the pages that each section of an index lists."""
    parts = (part.partition("\n") for part in re.split(r"^## ", page, flags=re.M)[1:])
    return {heading: first_links(text) for heading, _, text in parts}


def first_links(text: str) -> list[str]:
    """Return the pages of tables: the link that begins a row."""
    return re.findall(r"^\| \[[^]]*\]\(([^)#:]+\.md)\)", text, re.M)


class Pages:
    """The pages of the site, copied to a folder."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root = root
        self.folder = folder
        #: Files and folders outside of the documentation that a page links to.
        self.linked: dict[Path, None] = {}

    def write(self) -> None:
        """Write all pages, and those that they link to."""
        docs = self.root / "docs"
        for path in sorted(docs.rglob("*")):
            target = path.relative_to(docs)
            if target.parts[0] == "site" or path.is_dir():
                continue
            if path.suffix == ".md":
                self._copy(path, target)
            elif path.suffix in ASSETS:
                (self.folder / target).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, self.folder / target)
        for name, target in ROOT_PAGES.items():
            if target != "index.md" and (self.root / name).exists():
                self._copy(self.root / name, Path(target))
        written: set[Path] = set()
        while waiting := [path for path in self.linked if path not in written]:
            for path in waiting:
                self._write(self.place(path), self._source_page(path))
                written.add(path)

    def place(self, path: Path) -> Path:
        """Return where a file of the repository is in the site."""
        inner = path.relative_to(self.root)
        if inner.as_posix() in ROOT_PAGES:
            return Path(ROOT_PAGES[inner.as_posix()])
        if inner.parts[0] == "docs" and path.suffix in ASSETS | {".md"}:
            return inner.relative_to("docs")
        self.linked.setdefault(path)
        return Path("source") / inner.parent / f"{inner.name}.md"

    def _copy(self, path: Path, target: Path) -> None:
        text = self._with_links(path, target, path.read_text(encoding="utf-8"))
        if target.name == "index.md":
            text += "".join(self._navigation(text, target))
        self._write(target, text)

    def _write(self, target: Path, text: str) -> None:
        (self.folder / target).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / target).write_text(text, encoding="utf-8")

    def _navigation(self, text: str, target: Path) -> Iterator[str]:
        """Return what tells Sphinx of the pages of an index; those of the first one by kind."""
        parts = {"": first_links(text)}
        if target == Path("index.md"):
            parts = {f":caption: {kind}\n": sections(text).get(kind, []) for kind in KINDS}
        for caption, pages in parts.items():
            if pages:
                yield f"\n```{{toctree}}\n:hidden:\n{caption}\n" + "\n".join(pages) + "\n```\n"

    def _with_links(self, path: Path, target: Path, text: str) -> str:
        """Return a page whose links lead to where things are in the site."""

        def replaced(found: re.Match[str]) -> str:
            link = found["to"] or found["there"]
            name, sharp, anchor = link.partition("#")
            there = (path.parent / name).resolve()
            # What doesn't exist stays as it is, so that the build fails and names it.
            if not name or ":" in name or not there.exists():
                return found[0]
            moved = os.path.relpath(self.place(there), target.parent)
            return (found["head"] or found["html"]) + moved + sharp + anchor

        return outside_blocks(text, lambda part: LINK.sub(replaced, part))

    def _source_page(self, path: Path) -> str:
        """Return a page that shows a file, or the files of a folder."""
        inner = path.relative_to(self.root).as_posix()
        files = [path] if path.is_file() else sorted(filter(is_shown, path.iterdir()))
        return f"---\norphan: true\n---\n\n# `{inner}`\n\n" + "\n".join(
            self._shown(each, path) for each in files
        )

    def _shown(self, path: Path, page: Path) -> str:
        if path.is_dir():
            there = os.path.relpath(self.place(path), self.place(page).parent)
            return f"- [`{path.name}/`]({there})\n"
        lines = path.read_text(encoding="utf-8").splitlines()
        text = "\n".join(lines[:LINES_SHOWN])
        fence = "`" * max([3, *(len(run) + 1 for run in re.findall(r"`{3,}", text))])
        block = f"{fence}{LANGUAGES.get(path.suffix, 'text')}\n{text}\n{fence}\n"
        if len(lines) > LINES_SHOWN:
            block += f"\n…and {len(lines) - LINES_SHOWN} more lines.\n"
        return block if path == page else f"## `{path.name}`\n\n{block}"


def is_shown(path: Path) -> bool:
    """Return whether a file or folder is part of a source page."""
    return path.name != "__pycache__" if path.is_dir() else path.suffix in LANGUAGES


def outside_blocks(text: str, change: Callable[[str], str]) -> str:
    """Change a page, but not its fenced blocks, nor code in its lines."""
    parts, end = [], 0
    for block in re.finditer(rf"{FENCE}|`[^`\n]+`", text, re.M | re.S):
        parts += [change(text[end : block.start()]), block[0]]
        end = block.end()
    return "".join([*parts, change(text[end:])])


# -- the reference of Python --------------------------------------------------------------------


def reference() -> dict[str, str]:
    """Return the pages of the reference of Python, which Sphinx fills from the docstrings."""
    return {
        "shoal": _page("shoal", _names("shoal")),
        "shoal.algorithms": _page("shoal.algorithms", _names("shoal.algorithms")),
        "shoal.testing": _page(
            "shoal.testing", (f".. automodule:: {name}\n   :members:\n" for name in _tools())
        ),
    }


def _page(module: str, directives: Iterator[str]) -> str:
    head = f"# `{module}`\n\n```{{eval-rst}}\n.. py:module:: {module}\n\n"
    return head + "\n".join(directives) + "```\n"


def _names(module: str) -> Iterator[str]:
    package = importlib.import_module(module)
    for name in public_names(module):
        found: Any = getattr(package, name)
        if inspect.ismodule(found):  # a package that can be called, such as shoal.run
            yield f".. autofunction:: {found._function().__module__}.{name}\n"
        elif inspect.isclass(found):
            members = "" if module == "shoal.algorithms" else "   :members:\n"
            yield f".. autoclass:: {module}.{name}\n{members}"
        else:
            yield f".. autofunction:: {module}.{name}\n"


def public_names(module: str) -> list[str]:
    """Return the public names of a module."""
    return [name for name in dir(importlib.import_module(module)) if not name.startswith("_")]


def _tools() -> Iterator[str]:
    """Return the public modules of `shoal.testing`."""
    package = importlib.import_module("shoal.testing")
    for module in pkgutil.iter_modules(package.__path__, "shoal.testing."):
        if not module.name.rpartition(".")[2].startswith("_"):
            yield module.name


# -- building -----------------------------------------------------------------------------------


def build(folder: Path, name: str, versions: str) -> None:
    """Build the site of this checkout; `name` is its version, `versions` the page of all."""
    with tempfile.TemporaryDirectory() as temporary:
        pages = Path(temporary) / "pages"
        Pages(ROOT, pages).write()
        if (pages / "api.md").exists():
            (pages / "api").mkdir()
            for module, text in reference().items():
                (pages / "api" / f"{module}.md").write_text(text, encoding="utf-8")
            with (pages / "api.md").open("a", encoding="utf-8") as page:
                page.write("\n```{toctree}\n:hidden:\n:glob:\n\napi/*\n```\n")
        shutil.rmtree(folder, ignore_errors=True)
        options = ["-q", "-W", "--keep-going", "-d", f"{temporary}/trees", "-c", str(HERE)]
        options += ["-D", f"release={name}", "-A", f"versions={versions}"]
        done = subprocess.run([sys.executable, "-m", "sphinx", *options, str(pages), str(folder)])
    if done.returncode:
        shutil.rmtree(folder, ignore_errors=True)
        sys.exit("shoal: the site wasn't built. The warnings above name the page and the line.")


def build_tag(folder: Path, tag: str) -> None:
    """Build the site of a tag by its own sources, beside that of this checkout."""
    archive = subprocess.run(
        ["git", "archive", tag], cwd=ROOT, check=True, capture_output=True
    ).stdout
    with tempfile.TemporaryDirectory() as temporary:
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            files.extractall(temporary, filter="data")
        script = Path(temporary) / "docs" / "site" / "build.py"
        command = [sys.executable, str(script), str(folder / tag), "--name", tag]
        command += ["--versions", "../all-versions.html"]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(
            [f"{temporary}/src", *filter(None, [os.environ.get("PYTHONPATH")])]
        )}  # fmt: skip
        subprocess.run(command, env=environment, check=True)


def write_versions(folder: Path, name: str, tags: list[str]) -> None:
    """Write the page that lists the versions: each is a site of its own."""
    rows = [f'<li><a href="index.html">{name}</a> (this one)</li>']
    rows += [f'<li><a href="{tag}/index.html">{tag}</a></li>' for tag in tags]
    template = (HERE / "all-versions.html").read_text(encoding="utf-8")
    (folder / "all-versions.html").write_text(template.replace("<!-- rows -->", "\n".join(rows)))


def main() -> None:
    """Build what the command line asks for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "build" / "site")
    parser.add_argument("--name", default="development", help="the version that pages show")
    parser.add_argument("--versions", default="", help="where the page of all versions is")
    parser.add_argument("--tag", action="append", default=[], help="build this tag, too")
    options = parser.parse_args()
    folder = options.folder.resolve()
    build(folder, options.name, options.versions or "all-versions.html")
    if not options.versions:
        for tag in options.tag:
            build_tag(folder, tag)
        write_versions(folder, options.name, options.tag)


if __name__ == "__main__":
    main()
