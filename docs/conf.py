"""Sphinx configuration: `make docs`."""

project = "paramagnet"
author = "the paramagnet developers"
extensions = ["myst_parser"]
html_theme = "furo"
exclude_patterns = ["_build"]
myst_heading_anchors = 3
