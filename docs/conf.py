"""Sphinx configuration: `make docs`."""

import os
import sys
from pathlib import Path

project = "paramagnet"
author = "the paramagnet developers"
extensions = ["myst_nb"]
html_theme = "furo"
exclude_patterns = ["_build"]
html_extra_path = ["site"]  # pages that are copied as they are: calculator/
myst_heading_anchors = 3

# The tutorials are run while they are built, in empty folders; what fails there fails the build.
nb_execution_mode = "force"
nb_execution_in_temp = True
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_merge_streams = True
os.environ["TTY_COMPATIBLE"] = "0"  # no bars and colours from commands in cells
# For `!paramagnet`, should the environment not be activated.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
