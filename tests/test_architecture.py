"""The import rule: what each part of the package may import of the rest. Imports inside functions count."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import paramagnet

ROOT = Path(paramagnet.__file__).parent
LEAVES = {"_arrays", "_checks", "_files", "_version"}
MAY_IMPORT = {
    "_arrays": set(),
    "_checks": set(),
    "_files": set(),
    "_version": set(),
    "kernels": set(),
    "units": set(),
    "plots": set(),
    "rbm": {"units"},
    "theory": {"units"},
    "initializers": {"units", "rbm", "theory"},
    "learning": {"units", "rbm", "kernels"},
    "data": {"units", "kernels"},
    "adapters": {"units", "rbm", "theory", "initializers", "learning", "data"},
    "experiments": {"units", "rbm", "theory", "initializers", "learning", "data", "kernels", "plots"},
    "cli": {
        "units", "rbm", "theory", "initializers", "learning",
        "data", "kernels", "plots", "adapters", "experiments",
    },
    "__main__": {"cli"},
}  # fmt: skip


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


def test_public_names_are_those_shown_to_the_type_checker():
    tree = ast.parse((ROOT / "__init__.py").read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    shown = {
        alias.name: node.module.removeprefix("paramagnet.") for node in block.body for alias in node.names
    }
    assert shown == paramagnet._MODULE_OF


def test_public_names_exist_and_others_do_not():
    for name in paramagnet.__all__:
        assert getattr(paramagnet, name) is not None
    assert set(paramagnet.__all__) <= set(dir(paramagnet))
    with pytest.raises(AttributeError, match="no attribute 'beta_min'"):
        _ = paramagnet.beta_min


def test_import_is_light():
    heavy = {"scipy", "numba", "matplotlib", "typer", "rich", "safetensors", "torch", "jax", "sklearn"}
    code = "import sys, paramagnet; paramagnet.beta_max(1.0); print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not heavy & {name.split(".")[0] for name in loaded}
