"""Sphinx configuration: `make docs`."""

project = "paramagnet"
author = "the paramagnet developers"
extensions = ["myst_parser"]
html_theme = "furo"
exclude_patterns = ["_build"]
html_extra_path = ["site"]  # pages that are copied as they are: calculator/
myst_heading_anchors = 3
