"""What README and docs say is true: the example runs, the equation map is complete, links exist."""

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

from paramagnet.experiments.points import load_points
from paramagnet.experiments.spec import DataSpec, LearningSpec, MeasurementSpec, read_spec
from paramagnet.experiments.store import RunRecord

ROOT = Path(__file__).parents[1]
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
    assert (ROOT / "tests" / test).is_file()


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


def readme_example() -> str:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return re.search(r"```python\n(.*?)```", text, flags=re.DOTALL).group(1)


def test_readme_example_runs_and_prints_what_it_says(tmp_path):
    code = readme_example()
    assert len([line for line in code.splitlines() if line.strip()]) <= 10
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=tmp_path, capture_output=True, text=True, env=os.environ | {"PYTHONHASHSEED": "0"}, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    promised = re.findall(r"# (\d\.\d+)\.\.\.", code)
    lines = run.stdout.splitlines()
    assert len(promised) == 2
    for value, line in zip(promised, lines, strict=False):
        assert line.startswith(value)
    assert "+-" in lines[2] or lines[2].startswith("-")
    assert (tmp_path / "toy.safetensors").is_file()


def test_the_example_of_a_specification_is_valid_and_names_every_key(tmp_path):
    text = (ROOT / "docs" / "sweeps.md").read_text(encoding="utf-8")
    example = re.search(r"```toml\n(.*?)```", text, flags=re.DOTALL).group(1)
    (tmp_path / "mine.toml").write_text(example)
    rows = (",".join(str((i * k) % 7 % 2) for k in range(1, 6)) for i in range(80))
    (tmp_path / "mine.csv").write_text("\n".join(rows))
    spec = read_spec(tmp_path / "mine.toml")
    runs = list(spec.runs())
    assert len(runs) == 10 * 2 * 2 * (3 + 2)
    points, held_out = load_points(runs[0])
    assert (points.shape, held_out.shape) == ((60, 5), (20, 5))
    content = tomllib.loads(example)
    for section, kind in (("data", DataSpec), ("learning", LearningSpec), ("measurement", MeasurementSpec)):
        keys = {field.name for field in dataclasses.fields(kind)} - {"sha256", "held_out_sha256"}
        assert set(content[section]) == keys
    top = {field.name for field in dataclasses.fields(spec)} - {"name", "table"}
    assert set(content) | set(content["machine"]) == top | {"machine"}
    fields = {field.name for field in dataclasses.fields(RunRecord)}
    table = text[text.index("| `digest`") : text.index("```python")]
    assert (
        set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\|[^|]*\|", table, flags=re.MULTILINE)))) == fields
    )


@pytest.mark.parametrize(
    "name", ["README.md", *(f"docs/{p.name}" for p in sorted((ROOT / "docs").glob("*.md")))]
)
def test_links_and_figures_exist(name):
    path = ROOT / name
    for target in re.findall(r"\]\(([^)#]+)", path.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert (path.parent / target).exists(), target


def test_table_of_the_adapters_is_the_measured_one(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    benchmark = importlib.import_module("bench_adapters")
    record = json.loads((ROOT / "benchmarks" / "data" / "adapters.json").read_text(encoding="utf-8"))
    page = (ROOT / "docs" / "adapters.md").read_text(encoding="utf-8")
    assert len(record["results"]["seeds"]) == 5
    assert benchmark.table(record["results"]["seeds"]) in page
