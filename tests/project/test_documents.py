"""What README and docs say is true: the example runs, maps are complete, links and tables hold."""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import paramagnet
from paramagnet.reproduction.paper_specs import find_spec
from paramagnet.sweeps.run_points import load_points
from paramagnet.sweeps.spec import DataSpec, LearningSpec, MeasurementSpec
from paramagnet.sweeps.store import RunRecord
from public_names import public_names

ROOT = Path(__file__).parents[2]
LABELS = [
    "RBM",
    "likelihood",
    "initial_RBM",
    "layer_correlation",
    "def_beta_max",
    "free_energy",
    "f_chi_relation",
    "replica_relation",
    "Phi_x",
    "Phi_x-RS-HS",
    "free_energy_RS",
    "saddle_Q-hat",
    "saddle_Qv",
    "saddle_Qh",
    "partial_integration",
    "spin-glass_transition_point",
    "chi_(l,k)",
    "def_E(z)",
    "Q_(l,k)",
    "mat_chi",
    "mat_Q",
    "mat_Q-hat",
    "chi_solution",
    "beta_max",
    "beta-max-condition_ising",
    "Phi_x-0",
    "Phi_x-3",
    "Phi_x-saddle",
    "Phi_x-RS",
    "I_{l.k}-0",
    "I_{l.k}-1",
    "I_{l.k}-2",
]


def test_one_version_everywhere_and_no_date_before_a_release():
    cff = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    cite = (ROOT / "docs" / "cite.md").read_text(encoding="utf-8")
    (version,) = re.findall(r"^version: (\S+)$", cff, flags=re.MULTILINE)
    assert version == re.search(r"version = \{(.+)\}", cite)[1] == paramagnet.__version__
    dated = re.search(r"^date-released: (\S+)$", cff, flags=re.MULTILINE)
    heading = re.search(
        rf"^## \[{re.escape(version)}\] - (\S+)$",
        (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"),
        flags=re.MULTILINE,
    )
    assert (dated and dated[1]) == (heading and heading[1])  # both have the day of the release, or neither


def equation_rows():
    text = (ROOT / "docs" / "equations.md").read_text(encoding="utf-8")
    rows = [
        [cell.strip() for cell in line.strip().strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("| `eqn:")
    ]
    return {row[0].strip("`").removeprefix("eqn:"): row[2:] for row in rows}


def test_every_labelled_equation_is_mapped():
    assert list(equation_rows()) == LABELS


@pytest.mark.parametrize("label", LABELS)
def test_equation_map_points_to_what_exists(label):
    function, test = (cell.strip("`") for cell in equation_rows()[label])
    if function == "derivation":
        assert test == ""
        return
    module, _, attribute = function.rpartition(".")
    try:
        owner = importlib.import_module(module)
    except ModuleNotFoundError:
        module, _, class_name = module.rpartition(".")
        owner = getattr(importlib.import_module(module), class_name)
    assert hasattr(owner, attribute)
    assert any((ROOT / "tests").rglob(test))


@pytest.mark.parametrize(
    "name", ["README.md", "CHANGELOG.md", *(f"docs/{p.name}" for p in (ROOT / "docs").glob("*.md"))]
)
def test_no_placeholder_is_left(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    assert not re.search(r"@[A-Z0-9]+@|^[A-Z_]{6,}$", text, flags=re.MULTILINE)


def test_code_cites_only_labels_that_exist():
    cited = set()
    for path in (ROOT / "src").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for match in re.finditer("eqn:", text):
            here = text[match.end() :]
            known = [label for label in LABELS if here.startswith(label)]
            assert known, f"{path.name} cites eqn:{here[:20]}"
            cited.add(max(known, key=len))
    assert len(cited) > 15


@pytest.mark.skipif("PARAMAGNET_DATA" not in os.environ, reason="PARAMAGNET_DATA is not set")
def test_labels_are_those_of_the_paper():
    sources = list((Path(os.environ["PARAMAGNET_DATA"]).parent / "paper").glob("*.txt"))
    if not sources:
        pytest.skip("the paper's source is not beside the data")
    found = re.findall(
        r"\\label\{eqn:(.+?)\}\s*(?:\\\\)?$", sources[0].read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    assert found == LABELS


def test_the_example_of_a_specification_is_valid_and_names_every_key(tmp_path):
    text = (ROOT / "docs" / "sweeps.md").read_text(encoding="utf-8")
    example = re.search(r"```toml\n(.*?)```", text, flags=re.DOTALL).group(1)
    (tmp_path / "mine.toml").write_text(example)
    rows = (",".join(str((i * k) % 7 % 2) for k in range(1, 6)) for i in range(80))
    (tmp_path / "mine.csv").write_text("\n".join(rows))
    spec = find_spec(tmp_path / "mine.toml")
    runs = list(spec.runs())
    assert len(runs) == 10 * 2 * 2 * (3 + 2 + 1)  # gains, rivals, starts
    points, held_out = load_points(runs[0])
    assert (points.shape, held_out.shape) == ((60, 5), (20, 5))
    content = tomllib.loads(example)
    for section, kind in (("data", DataSpec), ("learning", LearningSpec), ("measurement", MeasurementSpec)):
        keys = {field.name for field in dataclasses.fields(kind)} - {"sha256", "held_out_sha256", "options"}
        assert set(content[section]) == keys
    top = {field.name for field in dataclasses.fields(spec)} - {"name", "table"}
    assert set(content) | set(content["machine"]) == top | {"machine"}
    fields = {field.name for field in dataclasses.fields(RunRecord)} | {"checksum"}  # of the line
    table = text[text.index("| `digest`") : text.index("```python")]
    assert (
        set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\|[^|]*\|", table, flags=re.MULTILINE)))) == fields
    )


TUTORIALS = [p.stem for p in (ROOT / "docs" / "tutorials").glob("*.md") if p.stem != "index"]
MADE_BY_BUILD = {
    "report.html",
    "notebooks/shop.csv",
    *(f"../notebooks/{name}.ipynb" for name in TUTORIALS),
}  # by docs/conf.py
PAGES = sorted(p.relative_to(ROOT).as_posix() for p in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])


def without_code(text):
    return re.sub(r"^(`{3,})[^\n]*\n.*?^\1`*$", "", text, flags=re.DOTALL | re.MULTILINE)


def anchors_of(path):
    headings = re.findall(
        r"^#{1,3} (.+)$", without_code(path.read_text(encoding="utf-8")), flags=re.MULTILINE
    )
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


INCLUDED = {"docs/changelog.md", "docs/contributing.md"}  # files of the repository, which begin on their own


@pytest.mark.parametrize("name", sorted({*PAGES, "CONTRIBUTING.md"} - INCLUDED))
def test_a_page_opens_with_what_it_is_for(name):
    """The first sentence says what the page is for, and for whom; those of README and the site say what the
    package does.
    """
    text = without_code((ROOT / name).read_text(encoding="utf-8"))
    first = text[text.index("\n# ") if "\n# " in text else 0 :].split("\n\n")[1]
    if name in ("README.md", "docs/index.md"):
        assert first.startswith("Start a restricted Boltzmann machine (RBM) at a good weight scale, train it")
    else:
        verbs = "is|are|has|shows|lists|compares|recommends|explains"
        assert re.match(rf"(This (page|tutorial)|These six tutorials) ({verbs})\b", first)


@pytest.mark.parametrize("name", PAGES)
def test_links_anchors_and_figures_exist(name):
    path = ROOT / name
    text = without_code(path.read_text(encoding="utf-8"))
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith(("http:", "https:")):
            continue
        file, _, anchor = target.partition("#")
        linked = path.parent / file if file else path
        assert linked.exists(), target
        if anchor:
            assert anchor in anchors_of(linked), target
    for target in re.findall(r'href="([^"]+)"', text):  # what the site copies as it is, or makes
        assert (ROOT / "docs" / "site" / target).is_file() or target in MADE_BY_BUILD, target


def test_notebooks_of_the_tutorials_have_all_their_cells(tmp_path, monkeypatch):
    nbformat = pytest.importorskip("nbformat")
    monkeypatch.syspath_prepend(ROOT / "docs")
    paths = importlib.import_module("notebooks").write_notebooks(ROOT / "docs" / "tutorials", tmp_path)
    assert [path.stem for path in paths] == sorted(TUTORIALS)
    for path in paths:
        page = (ROOT / "docs" / "tutorials" / f"{path.stem}.md").read_text(encoding="utf-8")
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
        code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
        assert len(code) == page.count("```{code-cell}") > 2
        assert all(cell in page for cell in code)
        assert not any("```{code-cell}" in cell.source or "](../" in cell.source for cell in notebook.cells)


@pytest.mark.parametrize("name", [name for name in PAGES if "tutorials" not in name])
def test_records_and_scripts_that_a_page_names_exist(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    named = re.findall(r"`(?:python )?((?:benchmarks|results|tests|src|examples)/[\w./*-]+)[^`]*`", text)
    for pattern in named:
        assert list(ROOT.glob(pattern.replace("NAME", "*"))) or "/.state" in pattern, pattern


def test_measured_tables_are_those_of_the_records(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    tables = importlib.import_module("document_tables")
    found = {}
    for name in tables.PAGES:
        found |= tables.blocks((ROOT / name).read_text(encoding="utf-8"))
    assert set(found) == set(tables.TABLES)
    for name in found:
        assert found[name] == tables.TABLES[name]().strip(), f"`make tables` writes {name} again"


def test_the_table_of_updates_has_a_column_for_all_that_was_timed(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    tables = importlib.import_module("document_tables")
    plain = {"seconds": {"paramagnet": 2e-3, "scikit-learn": 5e-3, "rbms": 4e-3}}
    centred = {"seconds": {"paramagnet": 2.2e-3, "uncentred": 2e-3}}
    results = {"rounds": 7, "former": None, "PCD-1": plain, "PCD-1, centred": centred}
    monkeypatch.setattr(tables, "record", lambda name: results)
    lines = tables.updates_speed().strip().splitlines()
    assert [cell.strip() for cell in lines[0].split("|")[3:-1]] == [
        "over rbms", "over scikit-learn (no Adam)", "over ours without centring",
    ]  # fmt: skip
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines[2:]]
    assert rows == [["PCD-1", "2.0 ms", "2.0", "2.5", ""], ["PCD-1, centred", "2.2 ms", "", "", "0.91"]]


def test_every_public_name_is_on_the_page_of_the_api():
    """Each name once, under the module that the page gives for it."""
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    module, documented = None, {}
    for directive, name in re.findall(
        r"^\.\. (auto\w+|py:data|currentmodule):: ([\w.]+)", text, flags=re.MULTILINE
    ):
        if directive == "currentmodule":
            adapter = name.startswith("paramagnet.adapters.")  # may want a package that is not installed
            module = None if adapter else importlib.import_module(name)
        else:
            assert name not in documented, name
            documented[name] = None if module is None else getattr(module, name)
    for name, value in public_names().items():
        assert name == "__version__" or documented[name] is value, name
    public = {  # of the adapters
        name
        for path in (ROOT / "src" / "paramagnet" / "adapters").glob("[a-z]*.py")
        for name in re.findall(r"^(?:def|class) ([A-Za-z]\w*)", path.read_text("utf-8"), flags=re.MULTILINE)
    }
    assert public <= set(documented)


def test_table_of_the_adapters_is_the_measured_one(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    benchmark = importlib.import_module("bench_adapters")
    record = json.loads((ROOT / "benchmarks" / "data" / "adapters.json").read_text(encoding="utf-8"))
    page = (ROOT / "docs" / "adapters.md").read_text(encoding="utf-8")
    assert len(record["results"]["seeds"]) == 5
    assert benchmark.table(record["results"]["seeds"]) in page


def test_the_single_test_of_contributing_exists():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    file, words = re.search(r"pytest (tests/\S+\.py) -k (\w+)", text).groups()
    assert re.search(rf"^def test_\w*{words}", (ROOT / file).read_text(encoding="utf-8"), flags=re.MULTILINE)


@pytest.mark.parametrize("address", ["", "https://github.com/someone/paramagnet"])
def test_pages_link_the_repository_once_it_has_an_address(tmp_path, address):
    """conf.py, run beside a pyproject.toml with that address; the theme itself need not be installed."""
    (tmp_path / "docs").mkdir()
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    project = re.sub(r"^Repository = .*\n", "", project, flags=re.M)  # should it have one
    line = f'[project.urls]\nRepository = "{address}"\n' if address else "[project.urls]\n"
    (tmp_path / "pyproject.toml").write_text(project.replace("[project.urls]\n", line), encoding="utf-8")
    found = 'find_spec("sphinx-mathjax-offline").submodule_search_locations[0]'
    configuration = (ROOT / "docs" / "conf.py").read_text(encoding="utf-8")
    assert found in configuration
    (tmp_path / "docs" / "conf.py").write_text(configuration.replace(found, "HERE"), encoding="utf-8")
    code = (
        "import json, runpy; found = runpy.run_path('docs/conf.py');"
        "print(json.dumps([found['html_context'], found.get('html_theme_options')]))"
    )
    words = [sys.executable, "-c", code]
    run = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    context, options = json.loads(run.stdout)
    assert context == {"repository": address}
    assert (options or {}).get("source_repository", "") == address
