"""One valid call of every function and method of `paramagnet.adapters` whose package is installed.

See `hostile_calls` for the kinds of parameters.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hostile_calls import UNITS, Call, machine
from hostile_values import BITS, SPINS


def adapter_calls(folder: Path) -> Iterator[Call]:
    """All of them; files are made in ``folder``."""
    if installed("torch"):
        yield from torch_calls()
    if installed("jax"):
        yield from jax_calls()
    if installed("sklearn"):
        yield from sklearn_calls()
    if installed("h5py"):
        yield from archive_calls(folder)


def installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def torch_calls() -> Iterator[Call]:
    import torch

    from paramagnet.adapters import pytorch

    options = {**UNITS, "hidden_bias": ("real", 0.0)}
    filling = {
        "weight": ("tensor", torch.zeros(2, 3)), **options, "visible_dim": ("axis", 1), "gain": ("real", 1.0),
        "generator": ("torch generator", None),
    }  # fmt: skip
    yield Call("layer_correlation_normal_", pytorch.layer_correlation_normal_, filling)
    place = {"dtype": ("torch dtype", None), "device": ("torch device", None)}
    rbm = ("machine", machine())
    yield Call("to_tensors", pytorch.to_tensors, {"rbm": rbm, "visible_dim": ("axis", 1), **place})
    parameters = {
        "weight": ("reals", torch.zeros(2, 3)), "visible_bias": ("reals", 0.0), "hidden_bias": ("reals", 0.0),
        **UNITS, "visible_dim": ("axis", 1),
    }  # fmt: skip
    fits = ("weights", "visible_bias", "hidden_bias")
    yield Call("from_tensors", pytorch.from_tensors, parameters, {"weight": fits, "visible_dim": fits})
    sizes = {"n_visible": ("count", 3), "n_hidden": ("count", 2), **options}
    drawn = {"generator": ("torch generator", None)}
    yield Call("RBMModule", pytorch.RBMModule, {**sizes, **drawn, **place})
    yield Call("RBMModule.from_rbm", pytorch.RBMModule.from_rbm, {"rbm": rbm, **place})
    module = pytorch.RBMModule(3, 2)
    v, h = ("layer of tensors", torch.ones(4, 3)), ("layer of tensors", torch.ones(4, 2))
    for name in ("free_energy", "field_h_given_v", "mean_h_given_v", "forward"):
        yield Call(f"RBMModule.{name}", getattr(module, name), {"v": v})
    for name in ("field_v_given_h", "mean_v_given_h"):
        yield Call(f"RBMModule.{name}", getattr(module, name), {"h": h})
    yield Call("RBMModule.sample_h_given_v", module.sample_h_given_v, {"v": v, **drawn})
    yield Call("RBMModule.sample_v_given_h", module.sample_v_given_h, {"h": h, **drawn})


def jax_calls() -> Iterator[Call]:
    import jax

    from paramagnet.adapters import jaxinit

    def draw(key: Any, shape: Any, **options: Any) -> Any:
        return jaxinit.layer_correlation_normal(**options)(key, shape)

    options = {
        **UNITS, "hidden_bias": ("real", 0.0), "gain": ("real", 1.0), "visible_axis": ("axis", -2),
        "hidden_axis": ("axis", -1), "batch_axis": ("axes", ()), "dtype": ("jax dtype", None),
    }  # fmt: skip
    drawing = {"key": ("jax key", jax.random.key(0)), "shape": ("axes", (3, 2)), **options}
    axes = dict.fromkeys(("visible_axis", "hidden_axis", "batch_axis"), ("shape",))
    yield Call("jaxinit.layer_correlation_normal", draw, drawing, axes)


def sklearn_calls() -> Iterator[Call]:
    from sklearn.neural_network import BernoulliRBM

    from paramagnet.adapters import bernoulli
    from paramagnet.adapters.scikit import RBMTransformer

    rbm, bits = ("machine", machine()), machine().to_bits()
    names = {"feature_names": ("names?", None)}
    yield Call("to_sklearn", bernoulli.to_sklearn, {"rbm": rbm, **names})
    yield Call("from_sklearn", bernoulli.from_sklearn, {"estimator": ("choice", bernoulli.to_sklearn(bits))})
    warm = {
        "estimator": ("choice", BernoulliRBM(2)), "n_features": ("count", 3), "hidden_bias": ("real", 0.0),
        "visible_bias": ("reals?", 0.0), "gain": ("real", 1.0), **names, "rng": ("rng", 0),
    }  # fmt: skip
    yield Call("warm_start_bernoulli_rbm", bernoulli.warm_start_bernoulli_rbm, warm)

    def fit(**options: Any) -> Any:
        return RBMTransformer(**options).fit(SPINS)

    settings = {
        "n_components": ("count", 2), "hidden": ("unit", "bit"), "hidden_bias": ("real?", None),
        "visible_bias": ("reals?", "data"), "gain": ("real", 1.0),
        "learning_rate": ("real|callable?", 0.1), "recipe": ("choice", "paper"),
        "batch_size": ("count?", 4), "n_iter": ("count?", 1), "weight_decay": ("real", 0.0),
        "l1": ("real", 0.0), "l1_group": ("real", 0.0), "clip": ("real?", None),
        "centred": ("flag?", False),
        "gradient": ("choice?", None), "threshold": ("real?", "auto"),
    }  # fmt: skip
    yield Call("RBMTransformer.fit", fit, settings, {"gain": ("rbm",)})
    drawing = {"n_samples": ("count", 2), "n_steps": ("count", 1)}
    yield Call("RBMTransformer.sample", fit(n_components=2, n_iter=1).sample, drawing)


def archive_calls(folder: Path) -> Iterator[Call]:
    from paramagnet.adapters import rbms_archive

    file = folder / "archive.h5"
    bits = machine("bit", "bit")
    rbms_archive.save_rbms(bits, file)
    saving = {
        "rbm": ("machine", bits), "path": ("path", folder / "new.h5"), "chains": ("states?", BITS),
        "seed": ("count?", None), "batch_size": ("count", 10), "gibbs_steps": ("count", 1),
        "learning_rate": ("real", 0.1),
    }  # fmt: skip
    yield Call("save_rbms", rbms_archive.save_rbms, saving)
    yield Call("load_rbms", rbms_archive.load_rbms, {"path": ("path", file), "update": ("count?", None)})
    yield Call("rbms_updates", rbms_archive.rbms_updates, {"path": ("path", file)})
    parameters = {"weight_matrix": bits.weights, "vbias": bits.visible_bias, "hbias": bits.hidden_bias}
    yield Call("from_rbms", rbms_archive.from_rbms, {"parameters": ("choice", parameters)})
