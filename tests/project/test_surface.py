"""The public surface: which names are where, what has moved, and that importing costs little."""

from __future__ import annotations

import ast
import importlib
import pickle
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import paramagnet as pm
from public_names import ROOMS, public_names

ROOT = Path(pm.__file__).parent
MOST_AT_THE_TOP = 50  # 49 today; the rest is room for what the design has named already
# What version 0.1 had at the top, moved or not: none of these may be lost.
VERSION_0_1 = (
    "BIT", "SPIN", "GAUSSIAN", "gaussian", "Biases", "RBM", "initialize", "compare_schemes",
    "scheme_std", "SchemeReport", "solve_saddle_point", "SaddlePoint", "ConvergenceError",
    "susceptibility", "layer_correlation", "layer_correlation_slope", "overlap_response",
    "replica_stability", "beta_max", "find_beta_max", "beta_max_formula", "weight_std",
    "LayerCorrelationMaximum", "MaximumWarning", "NoMaximumError", "ReplicaSymmetryWarning", "Moments",
    "exact_moments", "log_partition", "sample_exact", "estimate_log_partition", "Estimate",
    "log_likelihood", "LogZ", "sample", "Exact", "PCD", "CD", "Gradient", "Adam", "SGD", "Schedule",
    "train", "TrainResult", "Checkpoint", "History", "TrainState", "load_checkpoint", "DivergenceError",
    "training_steps", "Trajectory", "log_likelihood_trajectory", "exact_gradient", "read_data",
    "Dataset", "load_dataset", "read_table", "Binarizer", "fit_binarizer", "ConstantDataWarning",
    "log_likelihood_bounds", "DownloadError", "compare_initializations", "InitializationComparison",
)  # fmt: skip


def shown_to_the_type_checker(path: Path, package: str) -> dict[str, str]:
    """The names that a package imports for the type checker, each with its module."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    found = [(alias.name, node.module) for node in block.body for alias in node.names]
    return {name: module.removeprefix(f"{package}.") for name, module in found if module != "paramagnet"}


def test_names_at_the_top():
    assert len(pm.__all__) == len(set(pm.__all__)) <= MOST_AT_THE_TOP
    for name in pm.__all__:
        assert getattr(pm, name) is not None
    with pytest.raises(AttributeError, match="module 'paramagnet' has no attribute 'beta_min'"):
        _ = pm.beta_min
    assert shown_to_the_type_checker(ROOT / "__init__.py", "paramagnet") == pm._MODULE_OF


@pytest.mark.parametrize("room", ROOMS)
def test_names_of_a_room(room):
    package = importlib.import_module(f"paramagnet.{room}")
    assert package is getattr(pm, room)
    assert set(package.__all__) <= set(dir(package))
    shown = shown_to_the_type_checker(ROOT / room / "__init__.py", f"paramagnet.{room}")
    assert shown == package._MODULE_OF
    with pytest.raises(AttributeError, match=f"module 'paramagnet.{room}' has no attribute 'beta_min'"):
        _ = package.beta_min


def test_every_former_name_works():
    for name in VERSION_0_1:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            value = getattr(pm, name)
        assert value is public_names()[name]
        assert [str(warning.message) for warning in caught] == (
            []
            if name in pm.__all__
            else [
                f"`paramagnet.{name}` has moved to `paramagnet.{pm._MOVED[name]}.{name}`; "
                "the old name goes in version 0.3."
            ]
        )
    assert set(pm._MOVED) <= set(VERSION_0_1)


def test_a_moved_name_warns_at_every_place_that_uses_it():
    for _ in range(2):
        with pytest.warns(DeprecationWarning, match=r"moved to `paramagnet\.theory\.SaddlePoint`") as caught:
            _ = pm.SaddlePoint
        assert caught[0].filename == __file__
    with pytest.warns(DeprecationWarning, match=r"paramagnet\.data\.read_table`") as caught:
        from paramagnet import read_table
    assert caught[0].filename == __file__
    assert read_table is pm.data.read_table


def test_dir_lists_the_names_of_today():
    listed = set(dir(pm))
    assert set(pm.__all__) | set(ROOMS) <= listed
    assert not set(pm._MOVED) & listed


def test_the_star_imports_the_names_at_the_top():
    names: dict[str, object] = {}
    exec("from paramagnet import *", names)  # a warning of a moved name would be an error here
    assert set(names) - {"__builtins__"} == set(pm.__all__)


@pytest.mark.parametrize("name", [name for name in VERSION_0_1 if name[0].isupper() and not name.isupper()])
def test_pickles_name_the_module_that_defines_a_class(name):
    """The module is that of version 0.1's pickles too, so they are read without a warning."""
    kind = public_names()[name]
    assert pickle.loads(pickle.dumps(kind)) is kind
    assert f"c{kind.__module__}\n{name}\n".encode() in pickle.dumps(kind, protocol=0)
    assert pickle.loads(f"cparamagnet.{_home(name)}\n{name}\n.".encode()) is kind


def _home(name: str) -> str:
    if name in pm._MODULE_OF:
        return pm._MODULE_OF[name]
    place = pm._MOVED[name]
    inner = getattr(importlib.import_module(f"paramagnet.{place}"), "_MODULE_OF", None)
    return f"{place}.{inner[name]}" if inner else place


def test_results_travel_through_pickle():
    point = pm.theory.solve_saddle_point(1.0, 0.5)
    assert pickle.loads(pickle.dumps(point)).q_v == point.q_v
    rule = pm.fit_binarizer([[0.0, 1.0], [2.0, 3.0]])
    assert repr(pickle.loads(pickle.dumps(rule))) == repr(rule)


def test_importing_a_room_is_light():
    """Rooms import their own file and nothing else until a name of theirs is used."""
    rooms = ", ".join(f"paramagnet.{room}" for room in ROOMS)
    code = f"import sys, {rooms}; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    ours = {name for name in loaded if name.split(".")[0] == "paramagnet"}
    assert ours == {"paramagnet", "paramagnet._lazy", "paramagnet._version"} | {
        f"paramagnet.{room}" for room in ROOMS
    }
    assert "numpy" not in loaded


def test_asking_a_unit_for_what_it_has_not():
    assert not hasattr(pm.GAUSSIAN, "levels")
    assert hasattr(pm.BIT, "levels")
