"""Classes by name, or by the place where a user keeps them."""

from __future__ import annotations

import inspect
import subprocess
import sys
from dataclasses import dataclass

import pytest

import paramagnet as pm
from own_classes import RestartedChains, RMSprop
from paramagnet._registry import Registry, read_setting
from paramagnet.learning.registries import GRADIENTS, OPTIMIZERS


def test_names_are_those_of_the_public_classes():
    assert GRADIENTS.names == ("exact", "pcd", "cd", "tempering")
    assert OPTIMIZERS.names == ("adam", "sgd")
    found = [GRADIENTS.find(name, "gradient") for name in GRADIENTS.names]
    assert found == [pm.Exact, pm.PCD, pm.CD, pm.Tempering]
    assert [OPTIMIZERS.find(name, "optimizer") for name in OPTIMIZERS.names] == [pm.Adam, pm.SGD]


def test_names_alone_load_no_kernels():
    code = "import sys, paramagnet.learning.registries as r; r.GRADIENTS.names; print('numba' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


def test_classes_are_found_by_their_place():
    assert OPTIMIZERS.find("own_classes:RMSprop", "optimizer") is RMSprop
    assert GRADIENTS.find("own_classes:RestartedChains", "gradient") is RestartedChains


def test_a_module_in_the_current_folder_is_found(tmp_path, monkeypatch):
    (tmp_path / "mine_here.py").write_text("class A:\n    def start(self): ...\n    def step(self): ...\n")
    code = (
        "import sys; sys.path[:] = [p for p in sys.path if p]\n"
        "from paramagnet.learning.registries import OPTIMIZERS\n"
        "print(OPTIMIZERS.find('mine_here:A', 'optimizer').__name__)"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "A"


def test_objects_are_made_with_their_settings():
    assert GRADIENTS.make("pcd", "gradient", {"n_chains": 7}) == pm.PCD(n_chains=7)
    assert OPTIMIZERS.make("own_classes:RMSprop", "optimizer", {"decay": 0.5}) == RMSprop(decay=0.5)
    made = OPTIMIZERS.make("sgd", "optimizer", {"learning_rate": 1})
    assert repr(made) == "SGD(learning_rate=1.0, momentum=0.0)"  # 1 and 1.0 are the same setting
    assert type(OPTIMIZERS.make("own_classes:RMSprop", "o", {"decay": 0}).decay) is float


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cdd", "`gradient` must be one of 'exact', 'pcd', 'cd', .*, or 'package.module:Name' .*, got 'cdd'"),
        (3, "`gradient` must be one of .*, got 3"),
        ("no_such_module:Name", "`gradient` = 'no_such_module:Name' must name a module that can be imported"),
        ("own_classes:Nothing", "`gradient` must name a class of own_classes, which has no 'Nothing'"),
        (
            "own_classes:RMSprop",
            "`gradient` must name a class derived from `Gradient` .*, got 'own",
        ),
        ("own_classes:np", "`gradient` must name a class, got 'own_classes:np'"),
        ("own_classes:Incomplete", "`gradient` must name a class with the method `moments`"),
        ("own classes:A", "`gradient` must be a name or 'package.module:Name', got 'own classes:A'"),
        (":A", "`gradient` must be a name or 'package.module:Name'"),
    ],
)
def test_what_is_no_gradient_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        GRADIENTS.find(text, "gradient")


def test_what_is_no_optimizer_is_refused():
    with pytest.raises(ValueError, match="`optimizer` must name a class with the method `step`"):
        OPTIMIZERS.find("own_classes:RestartedChains", "optimizer")


def test_an_error_inside_a_module_is_not_hidden(tmp_path, monkeypatch):
    (tmp_path / "broken_module.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ZeroDivisionError):
        GRADIENTS.find("broken_module:A", "gradient")


def test_wrong_settings_are_refused():
    with pytest.raises(ValueError, match="`n_chains` is not a setting of CD; it has n_steps, n_threads"):
        GRADIENTS.make("cd", "gradient", {"n_chains": 3})
    with pytest.raises(ValueError, match="`learning_rate` must be given for SGD"):
        OPTIMIZERS.make("sgd", "optimizer", {})
    with pytest.raises(ValueError, match="`n_steps` must be a positive integer, got 0"):
        GRADIENTS.make("cd", "gradient", {"n_steps": 0})


def test_classes_can_be_given_names():
    registry = Registry({"sgd": "paramagnet.learning.optimizers:SGD"}, members=("start", "step"))
    registry.add("rmsprop", RMSprop)
    assert registry.names == ("sgd", "rmsprop")
    assert registry.make("rmsprop", "optimizer", {"decay": 0.5}) == RMSprop(decay=0.5)
    with pytest.raises(ValueError, match="`name` must be a new one, got 'rmsprop'; there are sgd, rmsprop"):
        registry.add("rmsprop", RMSprop)
    with pytest.raises(ValueError, match="`name` must be lower-case letters"):
        registry.add("a:b", RMSprop)
    with pytest.raises(ValueError, match="`cls` must name a class with the method `step`"):
        registry.add("chains", RestartedChains)


@dataclass
class Many:
    count: int
    share: float
    name: str
    switch: bool
    limit: int | None = None
    rate: "LearningRate" = 0.1  # noqa: F821, UP037
    plain = None


def test_settings_are_read_from_text():
    fields = inspect.signature(Many).parameters
    read = {"count": "3", "share": "3", "name": "3", "switch": "no", "limit": "none", "rate": "1e-2"}
    values = {name: read_setting(text, fields[name], f"--{name}") for name, text in read.items()}
    assert values == {"count": 3, "share": 3.0, "name": "3", "switch": False, "limit": None, "rate": 0.01}
    assert type(values["share"]) is float
    assert read_setting("4", fields["limit"], "--limit") == 4
    for name, text, rule in (
        ("count", "x", "an integer"),
        ("share", "x", "a number"),
        ("switch", "3", "true or"),
    ):
        with pytest.raises(ValueError, match=f"`--{name}` must be {rule}.*, got '{text}'"):
            read_setting(text, fields[name], f"--{name}")

    def untyped(a, b=0.5, c=None):
        """Settings without annotations."""

    plain = inspect.signature(untyped).parameters
    assert [read_setting("2", plain[name], "--x") for name in "abc"] == ["2", 2.0, "2"]
