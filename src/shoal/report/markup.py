"""HTML and SVG elements whose text is always escaped."""

from __future__ import annotations

import html
import re

__all__ = ["Markup", "joined", "slug", "tag"]

_VOID = {"br", "circle", "hr", "line", "meta", "path", "polyline", "rect"}


class Markup(str):
    """Text that is HTML already: `tag` doesn't escape it again."""

    __slots__ = ()


def tag(element: str, *children: str, **attributes: object) -> Markup:
    """Return an element; children that aren't `Markup`, and all attributes, are escaped.

    An attribute ``class_`` is written as ``class``, ``text_anchor`` as ``text-anchor``; one that is
    None is left out.

    >>> tag("p", "a < b, ", tag("b", "c"), class_="note", id=None)
    '<p class="note">a &lt; b, <b>c</b></p>'
    >>> tag("line", x1=0, stroke_width=2)
    '<line x1="0" stroke-width="2"/>'
    """
    said = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{html.escape(str(value))}"'
        for name, value in attributes.items()
        if value is not None
    )
    if element in _VOID and not children:
        return Markup(f"<{element}{said}/>")
    return Markup(f"<{element}{said}>{joined(*children)}</{element}>")


def joined(*children: str) -> Markup:
    """Return children one after the other, escaped where they aren't `Markup`."""
    return Markup(
        "".join(
            child if isinstance(child, Markup) else html.escape(child, quote=False)
            for child in children
        )
    )


def slug(text: str) -> str:
    """Return a text as the id of an element, which begins with a letter.

    >>> slug("3. Who can be found, and how")
    'who-can-be-found-and-how'
    """
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).lstrip("-0123456789").rstrip("-")
