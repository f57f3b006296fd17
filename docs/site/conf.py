"""How Sphinx builds the site. `build.py` copies the pages, and gives the version."""

import re
from typing import Any

project = "Shoal"
html_title = "Shoal"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown"}

# Anchors are those that a repository shows: a link works here and there.
myst_heading_anchors = 6
# A name in single backticks of a docstring is a link where it is the name of one thing, else code.
default_role = "py:obj"
suppress_warnings = ["ref.python"]
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_class_signature = "mixed"
add_module_names = False
python_maximum_signature_line_length = 90
python_use_unqualified_type_names = True

html_theme = "furo"
html_static_path = ["static"]
html_favicon = "static/favicon.svg"
html_css_files = ["site.css"]
templates_path = ["templates"]
html_sidebars = {
    "**": [
        "sidebar/scroll-start.html",
        "sidebar/brand.html",
        "sidebar/search.html",
        "sidebar/navigation.html",
        "versions-link.html",
        "sidebar/scroll-end.html",
    ]
}
html_show_sourcelink = False
html_copy_source = False
html_show_copyright = False
html_last_updated_fmt = None
# Pictures are drawn for both colour schemes or have a background of their own.
pygments_style = "default"
pygments_dark_style = "monokai"


def as_restructured(*event: Any) -> None:
    """Change the lines of a docstring to what Sphinx understands.

    Examples follow the parameters without a heading, and a bar is a bar.
    """
    lines: list[str] = event[-1]
    example = next((i for i, line in enumerate(lines) if line.startswith(">>>")), None)
    if example is not None and any(set(line) == {"-"} for line in lines[:example]):
        lines[example:example] = ["Examples", "--------"]
    for i, line in enumerate(lines):
        if "|" in line and not line.lstrip().startswith((">>>", "...")):
            parts = re.split(r"(`[^`]*`)", line)
            lines[i] = "".join(p if p.startswith("`") else p.replace("|", "\\|") for p in parts)


def setup(app: Any) -> None:
    """Have docstrings changed before `napoleon` reads their sections."""
    app.connect("autodoc-process-docstring", as_restructured, priority=400)
