"""How Sphinx builds the site from the pages that build.py put together."""

import re
from pathlib import Path
from typing import Any

import dpaudit

project = "dpaudit"
author = "the dpaudit authors"
project_copyright = "the dpaudit authors, Apache-2.0"
release = dpaudit.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_favicon = "static/favicon.svg"
html_search_scorer = str(Path(__file__).with_name("scorer.js"))
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#1a6b3d",
        "color-brand-content": "#1d5a9e",
        "color-brand-visited": "#6a4795",
    },
    "dark_css_variables": {
        "color-brand-primary": "#76d297",
        "color-brand-content": "#84b9f5",
        "color-brand-visited": "#bfa3e6",
    },
}
html_title = f"dpaudit {release}"
html_copy_source = False
html_show_sphinx = False
myst_enable_extensions = ["attrs_block", "attrs_inline", "deflist"]
myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
napoleon_google_docstring = True
napoleon_use_ivar = True
suppress_warnings = ["ref.python"]  # a class may be reached by more than one path
linkcheck_anchors = False


def _norms(*given: Any) -> None:
    """In docstrings bars are norms and stars unpack: neither is markup."""
    lines = given[-1]
    for place, each in enumerate(lines):
        parts = each.split("``")
        parts[::2] = [re.sub(r"(\||(?<=[ (])\*(?=\w))", r"\\\1", part) for part in parts[::2]]
        lines[place] = "``".join(parts)


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", _norms)
