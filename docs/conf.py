"""Sphinx configuration: `make docs`."""

import os
import shutil
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

from paramagnet import __version__

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # for notebooks.py

project = "paramagnet"
author = "the paramagnet developers"
copyright = "2026, the paramagnet developers"
extensions = ["myst_nb", "sphinx_copybutton"]
extensions += ["sphinx.ext.autodoc", "sphinx.ext.mathjax", "sphinx.ext.napoleon"]
html_theme = "furo"
exclude_patterns = ["_build"]
MADE = HERE / "_build" / "report"  # report.html and notebooks/, made below
MADE.mkdir(parents=True, exist_ok=True)
html_extra_path = ["site", str(MADE)]  # copied as they are: calculator/, report.html, notebooks/
release = version = __version__
copybutton_exclude = ".linenos, .gp, .go"
copybutton_selector = "div:not(.output) > div.highlight > pre"  # code, not what it printed
# The repository is linked where the project has one: `Repository` below `[project.urls]`.
_urls = tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]
html_context = {"repository": _urls.get("Repository", "")}  # for the sidebar
if "Repository" in _urls:
    html_theme_options = {
        "source_repository": _urls["Repository"],
        "source_branch": "main",
        "source_directory": "docs/",
    }
myst_heading_anchors = 3
myst_enable_extensions = ["dollarmath", "colon_fence"]

highlight_language = "text"  # blocks without a language are formulas
html_title = f"paramagnet {release}"
templates_path = ["templates"]
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/calculator.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}

# MathJax comes with the site: one file, no fonts to fetch, nothing from the network when a page is read.
MATHJAX = Path(find_spec("sphinx-mathjax-offline").submodule_search_locations[0]) / "static" / "mathjax"
mathjax_path = "tex-svg-full.js"
html_static_path = ["static", str(MATHJAX / mathjax_path)]
html_css_files = ["site.css"]

# The adapters' pages are written whether or not the packages they adapt to are installed.
autodoc_mock_imports = [
    name for name in ("torch", "jax", "sklearn", "h5py", "matplotlib") if not find_spec(name)
]
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # a signature of names and defaults is one that can be read
napoleon_google_docstring = False  # the docstrings are numpydoc's
default_role = "py:obj"  # `name` in a docstring is a link where the name is documented

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


def make_report(app):
    """The full report of the reproduction, from the records; it is not committed beside them."""
    from paramagnet.reproduction.annealing_check import FILE, load_checks
    from paramagnet.reproduction.report import write_report
    from paramagnet.sweeps.store import read_results

    results = HERE.parent / "results"
    notes = (results / "findings.md").read_text(encoding="utf-8")
    checks = load_checks(results / FILE)
    write_report(read_results(results), page=MADE / "report.html", notes=notes, checks=checks)


def make_notebooks(app):
    """The tutorials as notebooks to download, and the table of a page."""
    from notebooks import write_notebooks

    write_notebooks(HERE / "tutorials", MADE / "notebooks")
    shutil.copy(HERE.parent / "examples" / "shop.csv", MADE / "notebooks")  # for csv.md


def setup(app):
    app.connect("builder-inited", make_notebooks)
    app.connect("builder-inited", make_report)
