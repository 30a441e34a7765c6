"""How Sphinx builds these pages: `make docs`."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from api_pages import write_pages

from dynident import __version__

project = "dynident"
author = "The dynident authors"
copyright = "The dynident authors, Apache-2.0"
release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "mathml"]
exclude_patterns = ["*.py"]
default_role = "literal"  # docstrings write `name` for code

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

autodoc_typehints = "none"  # the docstring says what an argument is, with shape and unit
autodoc_member_order = "bysource"
napoleon_use_ivar = True
suppress_warnings = ["ref.python"]  # attributes of several classes share short names such as `n`
napoleon_attr_annotations = False  # types of arrays say nothing; the docstring has shape and unit
html_math_renderer = "mathml"

html_theme = "furo"
html_title = "dynident"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_show_sourcelink = False
html_copy_source = False

write_pages(HERE / "api")
