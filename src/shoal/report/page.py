"""The frame of one offline HTML file: style, headings, tables and lists.

Nothing is fetched and no script is run: a policy in the file forbids both. Colours follow the
reader's light or dark setting. The same parts are shown in a notebook by `fragment`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from shoal.errors import ResourceError
from shoal.io.files.atomic import atomic_write
from shoal.io.streams import open_output
from shoal.report.markup import Markup, joined, slug, tag
from shoal.report.style import STYLE

__all__ = [
    "Section",
    "bullets",
    "document",
    "fragment",
    "note",
    "paragraph",
    "side",
    "table",
    "write_page",
]

#: What a reader's browser may do with the file: show it, with the style that is in it.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a page under its own heading.

    Parameters
    ----------
    title
        The heading; its level follows from where the section stands.
    parts
        What is in it: elements, and sections below it.

    >>> Section("Risk", [paragraph("Low."), Section("Who", [])]).html(2)
    '<section id="risk"><h2>Risk</h2><p>Low.</p><section id="who"><h3>Who</h3></section></section>'
    """

    title: str
    parts: Sequence[Markup | Section] = field(default_factory=tuple)

    def html(self, level: int) -> Markup:
        """Return the section with its heading at a level."""
        inner = [part.html(level + 1) if isinstance(part, Section) else part for part in self.parts]
        return tag("section", tag(f"h{level}", self.title), *inner, id=slug(self.title))


def write_page(path: Path, html: str, *, private: bool) -> None:
    """Write a page, which appears under its name only when it is complete.

    A private one can be read by its owner only. A link stays, and what it leads to is written.

    Raises
    ------
    ResourceError
        If it can't be written.
    """
    try:
        if path.exists() and not path.is_file():
            # A pipe or a device has no name to be replaced.
            with closing(open_output(path)) as output:
                output.write(html.encode())
            return
        with atomic_write(path.resolve(), private=private) as output:
            output.write(html.encode())
    except OSError as error:
        raise ResourceError(f"{path}: can't be written ({error.strerror}).") from error


def document(title: str, lead: Sequence[Markup], sections: Sequence[Section]) -> str:
    """Return a whole HTML file: a title, what stands before the first section, the sections."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        tag("title", title),
        tag("style", Markup(STYLE)),
    )
    body = tag("body", _body(title, lead, sections, 1, contents=True), class_="shoal page")
    return "<!DOCTYPE html>\n" + tag("html", head, "\n", body, lang="en") + "\n"


def fragment(title: str, lead: Sequence[Markup], sections: Sequence[Section]) -> str:
    """Return the same for a notebook: an element with its style, below the notebook's heading."""
    body = _body(title, lead, sections, 2, contents=False)
    return joined(tag("style", Markup(STYLE)), tag("div", body, class_="shoal"))


def _body(
    title: str, lead: Sequence[Markup], sections: Sequence[Section], level: int, *, contents: bool
) -> Markup:
    links = [tag("a", each.title, href=f"#{slug(each.title)}") for each in sections]
    nav = tag("nav", _list("ul", links), aria_label="Contents") if contents and links else Markup()
    header = tag("header", tag(f"h{level}", title), *lead, nav)
    parts = [each.html(level + 1) for each in sections]
    return joined(header, "\n", tag("main", *(joined(part, "\n") for part in parts)))


def paragraph(*text: str) -> Markup:
    """Return a paragraph."""
    return tag("p", *text)


def note(*text: str, kind: str = "note") -> Markup:
    """Return a paragraph that stands out: a ``note``, or a ``warning``."""
    return tag("p", *text, class_=f"box {kind}")


def bullets(items: Sequence[str]) -> Markup:
    """Return a list."""
    return _list("ul", items)


def _list(kind: str, items: Sequence[str]) -> Markup:
    return tag(kind, *(tag("li", item) for item in items))


def side(*figures: Markup) -> Markup:
    """Return figures beside each other where there is room, else below each other."""
    return tag("div", *figures, class_="side")


def table(
    caption: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    numbers: Sequence[int] = (),
) -> Markup:
    """Return a table; the first cell of each row names it.

    Parameters
    ----------
    caption
        What the table shows.
    columns
        The heads of all columns.
    rows
        The cells, as text or `Markup`.
    numbers
        Which columns hold numbers, and are set to the right.
    """
    wide = set(numbers)

    def cell(i: int, text: str) -> Markup:
        kind = "number" if i in wide else None
        if i == 0:
            return tag("th", text, scope="row", class_=kind)
        return tag("td", text, class_=kind)

    heads = [
        tag("th", name, scope="col", class_="number" if i in wide else None) if name else tag("td")
        for i, name in enumerate(columns)
    ]
    lines = [tag("tr", *(cell(i, text) for i, text in enumerate(row))) for row in rows]
    whole = tag(
        "table",
        tag("caption", caption),
        tag("thead", tag("tr", *heads)),
        tag("tbody", *lines),
    )
    # A wide table scrolls by itself, by keyboard too; the page never does.
    return tag("div", whole, class_="scroll", tabindex=0, role="region", aria_label=caption)
