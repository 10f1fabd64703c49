"""The import rule: what each part of the package may import of the rest. Imports inside functions count."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import paramagnet

ROOT = Path(paramagnet.__file__).parent
LEAVES = {
    "_arrays", "_callers", "_checks", "_extras", "_files", "_lazy", "_log_weights", "_parallel", "_progress",
    "_recycled", "_registry", "_version",
}  # fmt: skip
CORE = {"units", "rbm", "layout", "estimates"}
SUMS = CORE | {"kernels", "exact"}
THEORY = {"units", "rbm", "theory", "schemes", "initializers", "package_scales"}
PRODUCT = (
    SUMS | THEORY | {"sampling", "learning", "data", "plots", "diagnosis_plot", "sequence_plots", "couplings"}
)
MAY_IMPORT = {
    "_arrays": set(),
    "_checks": set(),
    "_callers": set(),
    "_extras": set(),
    "_version": set(),
    "_files": set(),
    "_lazy": set(),
    "_log_weights": set(),
    "_progress": set(),
    "_parallel": set(),
    "_recycled": set(),
    "_registry": set(),
    "kernels": set(),
    "unit_base": set(),
    "unit_names": {"unit_base"},
    "half_line": {"unit_base"},
    "relu_units": {"unit_base", "half_line"},
    "unit_categorical": {"unit_base"},
    "units": {"unit_base", "unit_names", "relu_units", "unit_categorical"},
    "plots": set(),
    "sequence_plots": set(),
    "diagnosis_plot": set(),
    "estimates": set(),
    "rbm": {"units"},
    "layout": {"units", "rbm"},
    "couplings": {"units", "rbm"},
    "theory": {"units"},
    "schemes": {"units", "rbm", "theory"},
    "initializers": {"units", "rbm", "theory", "schemes"},
    "package_scales": {"units", "theory", "schemes", "initializers"},
    "exact": {"units", "rbm", "layout", "kernels"},
    "sampling": SUMS,
    "learning": SUMS | {"sampling"},
    "simulation": SUMS | {"sampling", "theory"},
    "centred_simulation": {"units", "rbm", "theory"},
    "data": {"units", "kernels"},
    "adapters": SUMS | THEORY | {"sampling", "learning", "data"},
    "sweeps": PRODUCT,
    "reproduction": PRODUCT | {"sweeps"},  # imported by the command line only
    "cli": PRODUCT | {"adapters", "simulation", "centred_simulation", "sweeps", "reproduction"},
    "__main__": {"cli"},
}


def room_of(module: str) -> str:
    return module.split(".")[1] if "." in module else "__init__"


def imports_of(path: Path) -> set[str]:
    """The rooms of the package that a file imports from."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            assert node.module is not None
            # `from paramagnet import x` may name a module or a public name
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        found |= {room_of(name) for name in names if name.split(".")[0] == "paramagnet"}
    return found


FILES = [path for path in sorted(ROOT.rglob("*.py")) if path != ROOT / "__init__.py"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_one_way(path):
    room = path.relative_to(ROOT).parts[0].removesuffix(".py")
    allowed = MAY_IMPORT[room] | {room} | LEAVES
    assert imports_of(path) <= allowed


def test_no_module_bears_the_name_of_a_public_function():
    modules = {path.stem for path in ROOT.glob("*.py")} | {
        path.name for path in ROOT.iterdir() if path.is_dir()
    }
    assert not modules & set(paramagnet.__all__)


def test_import_is_light():
    heavy = {"scipy", "numba", "matplotlib", "typer", "rich", "safetensors", "torch", "jax", "sklearn"}
    code = "import sys, paramagnet; paramagnet.beta_max(1.0); print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not heavy & {name.split(".")[0] for name in loaded}


def loaded_by(code: str) -> set[str]:
    """The modules of the package that a piece of code enters, in a process of its own."""
    lines = f"{code}\nimport sys\nprint('modules:', *(m for m in sys.modules if m.startswith('paramagnet')))"
    run = subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True, check=True)
    return set(run.stdout.rpartition("modules:")[2].split())


OWN_SWEEP = """
import sys, tempfile
from pathlib import Path
from typer.testing import CliRunner
from paramagnet.cli import app
text = '''
trials = 2
[data]
name = "toy"
n_points = 20
[machine]
n_hidden = 2
gains = [1.0, 2.0]
[learning]
learning_rate = 0.1
[measurement]
epochs = [2]
'''
with tempfile.TemporaryDirectory() as folder:
    Path(folder, "own.toml").write_text(text)
    result = CliRunner().invoke(app, ["sweep", f"{folder}/own.toml", "--jobs", "1", "--out", folder])
assert result.exit_code == 0, result.output
"""


def test_a_sweep_of_ones_own_never_enters_the_reproduction():
    comparison = (
        "import numpy as np, paramagnet as pm\n"
        "data = np.random.default_rng(0).integers(2, size=(20, 4))\n"
        "pm.compare_initializations(data, 2, epochs=2, trials=2)"
    )
    entered = loaded_by(OWN_SWEEP) | loaded_by(comparison)
    assert "paramagnet.sweeps.sweep" in entered
    assert not {name for name in entered if "reproduction" in name}


def test_no_class_and_no_file_has_the_name_of_another():
    files, classes = {}, {}
    for path in FILES:
        if path.name != "__init__.py":
            files.setdefault(path.stem, []).append(path)
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                classes.setdefault(node.name, []).append(path)
    assert not {name: found for name, found in (files | classes).items() if len(found) > 1}


def test_the_page_on_architecture_lists_every_room():
    page = (ROOT.parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    listed = set(re.findall(r"`(\w+)`", "".join(rows)))
    rooms = {path.relative_to(ROOT).parts[0].removesuffix(".py") for path in FILES}
    assert listed == rooms - {"_version", "__main__"}
