"""Settings of the documentation: Sphinx, Markdown through MyST, the furo theme."""

from __future__ import annotations

import importlib.metadata

project = "Dagsail"
author = "The Dagsail authors"
project_copyright = "The Dagsail authors"
release = importlib.metadata.version("dagsail")
version = release

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]

myst_enable_extensions = ["deflist", "dollarmath"]
myst_heading_anchors = 3

autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True

html_theme = "furo"
html_title = f"Dagsail {release}"
