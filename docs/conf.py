"""Configuration of the documentation."""

from __future__ import annotations

import tomllib
from pathlib import Path

project_file = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))

project = "fedaccord"
author = "The fedaccord authors"
copyright = f"2026, {author}"
release = project_file["project"]["version"]

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.mathjax"]
myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"
autodoc_default_options = {"members": True}
add_module_names = False  # users import from `fedaccord`
autodoc_preserve_defaults = True

html_theme = "furo"
html_title = f"fedaccord {release}"
html_copy_source = False
