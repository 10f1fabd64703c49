"""One valid call of every public function and method, with the kind of each of its parameters.

The kinds are those of `hostile_values.MAY_TAKE`; with a question mark None is allowed as well, and two kinds
with a stroke between them allow what either allows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import paramagnet as pm
from hostile_values import BITS, SPINS


@dataclass(frozen=True)
class Call:
    """A function, and for each parameter its kind and a valid value.

    ``also`` names arguments that a message may blame in place of the parameter, where two of them must fit
    together.
    """

    name: str
    function: Callable[..., Any]
    arguments: dict[str, tuple[str, Any]]
    also: dict[str, tuple[str, ...]] = field(default_factory=dict)
    heavy: bool = False  # takes more than some milliseconds


UNITS = {"visible": ("unit", "spin"), "hidden": ("unit", "bit")}
_THEORY = {**UNITS, "b": ("reals", 0.0), "c": ("reals", 0.0)}
_THREADS = {"n_threads": ("count", 1), "force": ("flag", False), "progress": ("callable?", None)}
# Arguments that broadcast against each other blame each other.
_BROADCAST = dict.fromkeys(("beta", "alpha", "b", "c"), ("beta", "alpha", "b", "c"))

# Results and messages of the package, made by it and not by users; and plain objects.
NOT_CALLED = {
    "__version__", "BIT", "SPIN", "GAUSSIAN", "SchemeReport", "SaddlePoint", "ConvergenceError",
    "LayerCorrelationMaximum", "StabilityEdge", "MaximumWarning", "NoMaximumError", "ReplicaSymmetryWarning",
    "Moments",
    "TrainResult", "History", "TrainState", "DivergenceError", "TrainingWarning", "Trajectory", "Dataset",
    "Binarizer", "ConstantDataWarning", "ColumnWarning", "ColumnInfo", "Preparation", "DownloadError",
    "Alignment", "AlignmentWarning", "SequencePreparation", "Couplings", "Contact",
    "InitializationComparison", "Diagnosis", "Finding",
    "Gradient",  # an abstract class
}  # fmt: skip


def machine(visible: str = "spin", hidden: str = "bit") -> pm.RBM:
    rng = np.random.default_rng(1)
    return pm.RBM(rng.normal(size=(3, 2)), rng.normal(size=3), rng.normal(size=2), visible, hidden)


def public_calls(folder: Path) -> Iterator[Call]:
    """Every public name that can be called, every public method; files are made in ``folder``."""
    yield from theory_calls(folder)
    yield from machine_calls(folder)
    yield from learning_calls(folder)
    yield from data_calls(folder)


def theory_calls(folder: Path) -> Iterator[Call]:
    yield Call("gaussian", pm.gaussian, {"variance": ("real", 1.0)})
    yield Call("relu", pm.relu, {})
    yield Call("drelu", pm.drelu, {})
    yield Call("categorical", pm.categorical, {"q": ("count", 3), "zero_sum": ("flag", True)})
    yield Call("Biases", pm.Biases, {"values": ("reals", [0.5, 1.0]), "weights": ("reals?", None)})
    sizes = {"n_visible": ("count", 6), "n_hidden": ("count", 3), **UNITS}
    bias = {"hidden_bias": ("real", 0.0)}
    yield Call("weight_std", pm.weight_std, {**sizes, "visible_bias": ("real", 0.0), **bias})
    yield Call(
        "compare_schemes", pm.compare_schemes, {**sizes, **bias, "schemes": ("choices", ("he",))}, heavy=True
    )
    scheme = {"scheme": ("choice", "layer-correlation"), **sizes, "visible_bias": ("real", 0.0), **bias}
    yield Call("scheme_std", pm.scheme_std, scheme)
    start = {**scheme, "gain": ("real", 1.0), "data": ("states?", None), "scale_from": ("choice", "zero")}
    start |= {"visible_bias": ("reals?", 0.0), "rng": ("rng", 0), "sample_weight": ("nothing", None)}
    yield Call("initialize", pm.initialize, start, {"data": ("visible_bias",)})
    yield Call("draw_machine", pm.draw_machine, start, {"data": ("visible_bias",)})
    of_data = {
        **start,
        "n_visible": ("count", 3),
        "visible_bias": ("reals", "data"),
        "data": ("states", SPINS),
        "sample_weight": ("reals?", None),
    }
    yield Call(
        "initialize from data", pm.initialize, of_data, {"visible_bias": ("data",), "n_visible": ("data",)}
    )
    yield Call(
        "find_beta_max", pm.theory.find_beta_max, {"alpha": ("reals", 0.5), **_THEORY}, _BROADCAST, True
    )
    yield Call("beta_max", pm.beta_max, {"alpha": ("reals", 0.5), **_THEORY}, _BROADCAST, True)
    edge = {"alpha": ("reals", 0.5), **_THEORY}
    yield Call("stability_edge", pm.theory.stability_edge, edge, _BROADCAST, True)
    formula = {"alpha": ("reals", 0.5), "c": ("reals", 0.0)}
    yield Call("beta_max_formula", pm.theory.beta_max_formula, formula, _BROADCAST)
    point = {"beta": ("reals", 1.0), "alpha": ("reals", 0.5), **_THEORY}
    for name in (
        "susceptibility", "layer_correlation", "layer_correlation_slope", "overlap_response",
        "replica_stability", "centred_gain",
    ):  # fmt: skip
        yield Call(name, getattr(pm.theory, name), point, _BROADCAST)
    yield Call(
        "solve_saddle_point", pm.theory.solve_saddle_point, {**point, "throw": ("flag", True)}, _BROADCAST
    )


def machine_calls(folder: Path) -> Iterator[Call]:
    rbm = machine()
    gaussian = machine("gaussian", "bit")
    potts = pm.RBM(np.zeros((9, 2)), 0.0, 0.0, "categorical(3)", "bit")
    states = ("layer", np.array([[0.0, 2.0, 1.0], [1.0, 1.0, 0.0]]))
    parameters = {
        "weights": ("reals", rbm.weights), "visible_bias": ("reals", 0.0), "hidden_bias": ("reals", 0.0),
    }  # fmt: skip
    fits = {"weights": ("visible_bias", "hidden_bias")}
    further = {"visible_parameters": ("nothing", None), "hidden_parameters": ("nothing", None)}
    yield Call("RBM", pm.RBM, {**parameters, **UNITS, **further}, fits)
    v, h = ("layer", SPINS), ("layer", BITS[:, :2])
    yield Call("RBM.energy", rbm.energy, {"v": v, "h": h}, {"v": ("h",), "h": ("v",)})
    for name in ("free_energy", "field_h_given_v", "mean_h_given_v", "hidden_features"):
        yield Call(f"RBM.{name}", getattr(rbm, name), {"v": v})
        yield Call(f"RBM.{name} of Gaussian units", getattr(gaussian, name), {"v": v})
        yield Call(f"RBM.{name} of categorical units", getattr(potts, name), {"v": states})
    for name in ("free_energy_h", "field_v_given_h", "mean_v_given_h"):
        yield Call(f"RBM.{name}", getattr(rbm, name), {"h": h})
    yield Call("RBM.sample_h_given_v", rbm.sample_h_given_v, {"v": v, "rng": ("rng", 0)})
    yield Call("RBM.sample_v_given_h", rbm.sample_v_given_h, {"h": h, "rng": ("rng", 0)})
    units = {"visible": ("unit?", None), "hidden": ("unit?", None)}
    yield Call("RBM.change_units", rbm.change_units, units)
    yield Call("RBM.to_bits", rbm.to_bits, {"layer": ("choice", "both")})
    yield Call("RBM.to_spins", rbm.to_spins, {"layer": ("choice", "both")})
    saved = folder / "machine.safetensors"
    rbm.save(saved)
    yield Call("RBM.save", rbm.save, {
        "path": ("path", folder / "new.safetensors"), "preparation": ("nothing", None),
        "notes": ("nothing", None),
    })  # fmt: skip
    yield Call("RBM.load", pm.RBM.load, {"path": ("path", saved)})


def learning_calls(folder: Path) -> Iterator[Call]:
    rbm = machine()
    m, data, rng = ("machine", rbm), ("states", SPINS), ("rng", 0)
    yield Call("log_partition", pm.log_partition, {"rbm": m, **_THREADS})
    yield Call("exact_moments", pm.exact.exact_moments, {"rbm": m, **_THREADS})
    n = ("count", 4)
    yield Call("sample_exact", pm.sample_exact, {"rbm": m, "n_samples": n, "rng": rng, **_THREADS})
    options = {name: _THREADS[name] for name in ("n_threads", "force")}
    weighted = {"sample_weight": ("reals?", None)}
    yield Call(
        "exact_gradient",
        pm.learning.exact_gradient,
        {"rbm": m, "data": data, **weighted, **options},
        {"data": ("rbm",)},
    )
    numbers = {"value": ("float", 1.0), "error": ("float", 0.0), "n_effective": ("float", 100.0)}
    numbers |= {"points_error": ("float", 0.1), "n_points": ("count", 5)}
    yield Call("Estimate", pm.Estimate, numbers)
    likelihood = {"rbm": m, "data": data, "log_partition": ("real?", None)}
    likelihood |= {"sample_weight": ("reals?", None)}
    yield Call("log_likelihood", pm.log_likelihood, likelihood)
    chains = {"n_threads": ("count?", 1), "progress": ("callable?", None)}
    annealing = {
        "rbm": m, "method": ("choice", "mais"), "n_samples": ("count", 20), "n_temperatures": ("count", 5),
        "schedule": ("reals", "linear"), "marginalize": ("choice", "auto"), "start": ("reals", "uniform"),
        "samples": ("states?", None), "device": ("choice", "cpu"), "rng": rng, **chains,
    }  # fmt: skip
    yield Call("estimate_log_partition", pm.estimate_log_partition, annealing)
    reverse = {**annealing, "method": ("choice", "reverse-ais"), "samples": ("states?", SPINS)}
    yield Call("estimate_log_partition in reverse", pm.estimate_log_partition, reverse)
    gibbs = {
        "rbm": m, "n_samples": n, "n_steps": ("count", 3), "start": ("states?", SPINS),
        "clamp": ("clamp?", None), "method": ("choice", "gibbs"), "path": ("choice", "weights"),
        "base": ("nothing", None), "trajectory": ("nothing", None), "n_replicas": ("choice", "auto"),
        "acceptance": ("real", 0.3), "rng": rng, **chains,
    }  # fmt: skip
    yield Call("sample", pm.sample, gibbs, {"n_samples": ("start",)})
    tempered = {**gibbs, "method": ("choice", "tempering"), "n_replicas": ("count", 2)}
    tempered |= {"base": ("states?", SPINS)}
    yield Call("sample, tempered", pm.sample, tempered, {"n_samples": ("start",), "path": ("base",)}, True)
    many = np.tile(SPINS, (10, 1))
    judged = {
        "rbm": m, "data": ("states", many), "chains": ("states?", None), "validation": ("states?", None),
        "n_chains": ("count", 10), "n_steps": ("count", 20), "log_z": ("nothing", None), "rng": rng,
        "n_threads": ("count?", 1), "progress": ("callable?", None), **weighted,
        "validation_weight": ("nothing", None),
    }  # fmt: skip
    yield Call("diagnose", pm.diagnose, judged, heavy=True)
    known = {**weighted, "chains": ("states?", many), "log_likelihood": ("nothing", None), "rng": rng}
    yield Call("quick_diagnosis", pm.learning.quick_diagnosis, {"rbm": m, "data": ("states", many), **known})
    yield Call("Exact", pm.Exact, options)
    counts = {"n_chains": ("count", 10), "n_steps": ("count", 1), "n_relax": ("count", 1)}
    yield Call("PCD", pm.PCD, {**counts, "n_threads": ("count?", None)})
    ladder = {"path": ("choice", "weights"), "n_replicas": ("count", 2), "acceptance": ("real", 0.3)}
    yield Call("Tempering", pm.Tempering, {**counts, **ladder, "n_threads": ("count?", None)})
    policy = {"method": ("choice", "mais"), "seconds": ("real", 1.0), "n_samples": ("count", 2)}
    policy |= {
        "n_temperatures": ("count", 2),
        "marginalize": ("choice", "auto"),
        "start": ("choice", "uniform"),
    }
    yield Call("LogZ", pm.LogZ, policy)
    yield Call("CD", pm.CD, {"n_steps": ("count", 1), "n_threads": ("count?", None)})
    adam = {"learning_rate": ("real|callable", 0.1), "beta1": ("real", 0.9), "beta2": ("real", 0.99)}
    yield Call("Adam", pm.Adam, {**adam, "epsilon": ("real", 1e-8)})
    yield Call("SGD", pm.SGD, {"learning_rate": ("real|callable", 0.1), "momentum": ("real", 0.5)})
    falling = {"kind": ("choice", "linear"), "rate": ("real", 0.1), "end": ("real?", 0.0)}
    falling |= {"factor": ("nothing", None), "n_updates": ("count?", 5)}
    yield Call("Schedule", pm.Schedule, falling, {"kind": ("end", "n_updates")})
    stepping = {"kind": ("choice", "step"), "rate": ("real", 0.1), "end": ("nothing", None)}
    stepping |= {"factor": ("real", 0.5), "n_updates": ("count", 5)}
    yield Call("Schedule, step", pm.Schedule, stepping)
    yield Call(
        "Schedule.__call__", pm.Schedule("linear", 0.1, end=0.0, n_updates=5), {"update": ("count", 1)}
    )
    yield Call("Schedule.over", pm.Schedule("linear", 0.1).over, {"n_updates": ("count", 5)})
    watchful = {"every": ("count?", None), "tolerance": ("real", 0.3), "factor": ("real", 0.5)}
    watchful |= {"n_chains": ("count", 10), "n_temperatures": ("count", 10)}
    yield Call("Guard", pm.Guard, watchful)
    yield Call("EarlyStopping", pm.EarlyStopping, {"patience": ("count", 2)})
    level = {"data": data, "visible": ("unit", "spin"), "validation": ("states?", None)}
    level |= {"sample_weight": ("reals?", None)}
    yield Call("independent_log_likelihood", pm.independent_log_likelihood, level)
    yield Call("Centring", pm.Centring, {"rate": ("real", 0.1), "factor": ("real?", None)})
    training = {
        "rbm": m, "data": data, "epochs": ("count", 1), "gradient": ("choice?", None),
        "optimizer": ("choice?", pm.SGD(0.1)), "batch_size": ("count?", None), "weight_decay": ("real", 0.0),
        "l1": ("real", 0.0), "l1_group": ("real", 0.0), "clip": ("real?", None),
        "sample_weight": ("reals?", None), "validation_weight": ("nothing", None),
        "evaluate": ("epochs", None), "validation": ("states?", None), "device": ("choice", "cpu"),
        "log_z": ("choice", pm.LogZ()), "centred": ("flag", False),
        "rng": rng, "same_schedule": ("flag", False), "guard": ("flag?", False), "seconds": ("real?", None),
        "early_stopping": ("choice?", None),
    }  # fmt: skip
    stepped = {**training, "before_measuring": ("callable?", None)}
    yield Call("training_steps", lambda **a: list(pm.training_steps(**a)), stepped)
    more = {"callback": ("callable?", None), "checkpoint": ("path?", None)}
    named = {"checkpoint": ("path",), "weight_decay": ("rbm",)}
    yield Call("train", pm.train, {**training, **more}, named)
    measured = {"validation": ("states?", SPINS), "validation_weight": ("reals?", None)}
    yield Call("train, validated", pm.train, {**training, **measured}, {"validation": ("validation_weight",)})
    sampled = {**training, "gradient": ("choice?", pm.PCD(n_chains=4, n_steps=1, n_relax=1, n_threads=1))}
    yield Call("train, sampled", pm.train, {**sampled, **more}, named)
    state = pm.train(rbm, SPINS, epochs=1, rng=0).state
    saved = folder / "run.checkpoint"
    state.save(saved)
    yield Call("TrainState.save", state.save, {"path": ("path", folder / "new.checkpoint")})
    yield Call("load_checkpoint", pm.load_checkpoint, {"path": ("path", saved)})
    keep = {"path": ("path", folder / "kept.checkpoint"), "seconds": ("real", 60.0)}
    yield Call("Checkpoint", lambda **a: pm.Checkpoint(**a).check(), keep)
    states = list(pm.training_steps(rbm, SPINS, epochs=2, rng=0))
    follow = {
        "states": ("states of a run", states), "data": data, "every": ("count", 1),
        "sample_weight": ("reals?", None), "validation_weight": ("nothing", None),
        "validation": ("states?", None), "n_chains": ("count", 5), "n_steps": ("count", 1),
        "n_temperatures": ("count", 5), "restart": ("count?", 50), "rng": rng, "n_threads": ("count?", 1),
    }  # fmt: skip
    yield Call("log_likelihood_trajectory", pm.learning.log_likelihood_trajectory, follow)
    trajectory = pm.learning.log_likelihood_trajectory(states, SPINS, n_chains=5, n_steps=1, rng=0)
    yield Call("Trajectory.__getitem__", trajectory.__getitem__, {"index": ("count", 0)})


def data_calls(folder: Path) -> Iterator[Call]:
    table = np.arange(12.0).reshape(4, 3)
    file, archive, text = folder / "points.npy", folder / "points.npz", folder / "points.csv"
    np.save(file, table)
    np.savez(archive, data=table, other=table)
    text.write_text("a,b,class\n1,2,x\n3,5,y\n4,0,x\n")
    existing = ("path", file)
    yield Call(
        "read_data", pm.read_data, {"path": existing, "name": ("name?", None), "header": ("flag?", None)}
    )
    yield Call(
        "read_data of an archive", pm.read_data, {"path": ("path", archive), "name": ("choice?", "data")}
    )
    reading = {"label": ("label", None), "header": ("flag?", None)}
    named = {"path": existing, **reading, "name": ("name?", None)}
    yield Call("read_table", pm.data.read_table, named)
    named = {"path": ("path", text), **reading, "name": ("name?", None)}
    yield Call("read_table of text", pm.data.read_table, named, {"label": ("path",)})
    loading = {
        "name": ("path", text), "n_points": ("count?", 2), "units": ("unit", "spin"),
        "binarize": ("real", "median"), "rng": ("rng", 0), "per": ("choice?", None), **reading,
        "data_dir": ("folder?", None), "progress": ("progress bar", None),
    }  # fmt: skip
    yield Call("load_dataset", pm.load_dataset, loading, {"name": ("path",), "label": ("path",)})
    fitting = {
        "data": ("states", table), "method": ("real", "otsu"), "per": ("choice", "feature"),
        "units": ("unit", "spin"), "grey_range": ("reals?", None), "sample_weight": ("reals?", None),
    }  # fmt: skip
    yield Call("fit_binarizer", pm.fit_binarizer, fitting)
    grey = {**fitting, "method": ("real", "stochastic"), "grey_range": ("reals?", (0.0, 12.0))}
    yield Call("fit_binarizer, stochastic", pm.fit_binarizer, grey)
    binarizer, drawing = pm.fit_binarizer(table), pm.fit_binarizer(table, "stochastic")
    yield Call("Binarizer.apply", binarizer.apply, {"data": ("states", table), "rng": ("rng", 0)})
    yield Call("Binarizer.apply, stochastic", drawing.apply, {"data": ("states", table), "rng": ("rng", 0)})
    yield Call("Binarizer.thresholds_of", binarizer.thresholds_of, {"data": ("states", table)})
    saved = folder / "binarizer.json"
    binarizer.save(saved)
    yield Call("Binarizer.save", binarizer.save, {"path": ("path", folder / "new.json")})
    yield Call("Binarizer.load", pm.data.Binarizer.load, {"path": ("path", saved)})
    source = {"source": ("table", text), "header": ("flag?", None)}
    described = {**source, "decimal": ("choice", "."), "missing_values": ("marks?", None)}
    yield Call("describe_columns", pm.data.describe_columns, described, {"source": ("path",)})
    columns = {
        **described, "columns": ("column?", None), "drop": ("column?", None), "missing": ("choice", "error"),
        "label": ("label|choices", None), "numbers": ("real", "otsu"), "units": ("unit?", None),
        "most_categories": ("count", 20),
    }  # fmt: skip
    yield Call(
        "fit_preparation",
        pm.data.fit_preparation,
        columns,
        {"source": ("path",), "label": ("source",), "header": ("source",), "missing_values": ("source",)},
    )
    preparation = pm.data.fit_preparation(text)
    applied = {**source, "missing": ("choice?", None)}
    yield Call("Preparation.apply", preparation.apply, applied, {"source": ("path",)})
    yield Call("Preparation.invert", preparation.invert, {"states": ("states", preparation.apply(text))})
    kept = folder / "preparation.json"
    preparation.save(kept)
    yield Call("Preparation.save", preparation.save, {"path": ("path", folder / "other.json")})
    yield Call("Preparation.load", pm.data.Preparation.load, {"path": ("path", kept)})
    yield Call(
        "Preparation.from_json", pm.data.Preparation.from_json, {"text": ("name", preparation.to_json())}
    )
    yield Call("log_likelihood_bounds", pm.data.log_likelihood_bounds, {"data": ("states", SPINS)})
    comparing = {
        "data": ("states|path", SPINS), "n_hidden": ("count", 2), **UNITS, "hidden_bias": ("real", 0.0),
        "gains": ("reals", (1.0,)), "schemes": ("choices", ("xavier",)), "epochs": ("count", 1),
        "trials": ("count", 1), "learning_rate": ("real", 0.1), "batch_size": ("count?", None),
        "centred": ("flag", False),
        "held_out": ("real", 0.0), "binarize": ("real", "otsu"), "seed": ("seed", 0), "jobs": ("count", 1),
        "folder": ("folder?", None), "callback": ("callable?", None), "log_z": ("choice", pm.LogZ()),
    }  # fmt: skip
    yield Call("compare_initializations", pm.compare_initializations, comparing, {"data": ("path",)}, True)
    yield from sequence_calls(folder)


def sequence_calls(folder: Path) -> Iterator[Call]:
    file = folder / "family.fa"
    file.write_text(">a\nWYK\n>b\nWYL\n>c\nWFL\n>d\nWFK\n")
    reading = {"path": ("path", file), "alphabet": ("choice?", "protein"), "unknown": ("choice", "gap")}
    yield Call("read_alignment", pm.data.read_alignment, {**reading, "insertions": ("choice", "drop")})
    alignment = pm.data.read_alignment(file)
    states = ("states", alignment.data)
    writing = {"path": ("path", folder / "new.fa"), "states": states, "alphabet": ("choice", "protein")}
    yield Call("write_fasta", pm.data.write_fasta, {**writing, "names": ("nothing", None)})
    yield Call("Alignment.save", alignment.save, {"path": ("path", folder / "other.fa")})
    work = {"n_threads": ("count?", 1), "progress": ("callable?", None)}
    weighing = {"data": states, "identity": ("real", 0.8), **work}
    yield Call("sequence_weights", pm.data.sequence_weights, weighing)
    counting = {"data": states, "q": ("count", 21), "sample_weight": ("reals?", None)}
    yield Call("site_frequencies", pm.data.site_frequencies, {**counting, "pseudo_count": ("real", 1.0)})
    potts = pm.RBM(np.ones((63, 2)), 0.0, 0.0, "categorical(21)", "bit")
    coupling = {
        "rbm": ("machine", potts), "data": states, "sample_weight": ("reals?", None),
        "method": ("choice", "contexts"), "n_contexts": ("count", 2), "without": ("count?", None),
        "keep": ("flag", False), "rng": ("rng", 0), **work,
    }  # fmt: skip
    yield Call("effective_couplings", pm.couplings.effective_couplings, coupling, {"rbm": ("data",)})
    strengths = ("states", np.ones((3, 3)))
    yield Call("correct_products", pm.couplings.correct_products, {"strengths": strengths})
    contacts = {"strengths": strengths, "n_contacts": ("count", 1), "least_distance": ("count", 1)}
    contacts |= {"positions": ("reals?", None)}
    yield Call("strongest_contacts", pm.couplings.strongest_contacts, contacts)
    preparation = pm.data.SequencePreparation.of(alignment)
    yield Call("SequencePreparation.apply", preparation.apply, {"path": ("path", file)})
    yield Call("SequencePreparation.invert", preparation.invert, {"states": states})
    yield Call(
        "SequencePreparation.write", preparation.write,
        {"path": ("path", folder / "third.fa"), "states": states, "names": ("nothing", None)},
    )  # fmt: skip
    text = {"text": ("name", preparation.to_json())}
    yield Call("SequencePreparation.from_json", pm.data.SequencePreparation.from_json, text)
