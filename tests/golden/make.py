"""What `test_golden.py` compares the code with, and the script that records it.

A case computes named arrays from stated seeds and stated options only. Three things are recorded of it:

- ``values.json``: some of its numbers, readable. Exact cases must agree to nine digits on every machine.
- ``bits.json``: SHA-256 of the bytes of every array. Bits depend on the order in which a processor adds (the
  vector width of the kernels and of BLAS) and on the libraries; they are recorded by `signature`, and a
  machine whose signature is not among them skips these comparisons.
- ``files.json``: SHA-256 of the checkpoints as files. They change whenever the file format does.

``files/*.safetensors`` were written by version 0.1 of the formats and must be readable for ever. They are
never written again. ``digests.json`` holds a hash over the digests of all runs of every specification.

    python tests/golden/make.py                       # files.json anew; bits of a signature that has none
    python tests/golden/make.py --replace bits values # the others, only where a change of bits is intended
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

import paramagnet as pm
from paramagnet.sweeps.execute import execute
from paramagnet.sweeps.spec import Spec
from paramagnet.sweeps.spec_files import parse_spec

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
N_SHOWN = 4  # numbers of an array in values.json


# Where bits are comparable


@cache
def signature() -> str:
    """What the bits of a result depend on besides the code: vector width, BLAS kernels, versions."""
    from numba import __version__ as numba_version
    from numba import config
    from numba.core.codegen import get_host_cpu_features
    from numpy._core._multiarray_umath import __cpu_features__ as numpy_features

    features = (config.CPU_FEATURES or get_host_cpu_features()).split(",")
    kernels = "avx512" if "+avx512f" in features else "avx2" if "+avx2" in features else "other"
    loops = [name for name in ("X86_V4", "AVX512_SKX", "X86_V3", "AVX2") if numpy_features.get(name)]
    blas = [library for library in threadpool_info() if library["user_api"] == "blas"]
    blas.sort(key=lambda library: "numpy" not in library["filepath"])  # SciPy may have one of its own
    library = f"{blas[0]['internal_api']} {blas[0]['version']} {blas[0].get('architecture')}" if blas else "-"
    versions = [
        f"{name} {_minor(text)}" for name, text in (("numpy", np.__version__), ("numba", numba_version))
    ]
    return ", ".join(
        [platform.machine(), f"kernels {kernels}", f"loops {next(iter(loops), '-')}", library, *versions]
    )


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


# Cases


def machine(visible: str, hidden: str, n_visible: int = 8, n_hidden: int = 5) -> pm.RBM:
    """A machine whose numbers are written by a generator of its own, not by `initialize`."""
    rng = np.random.default_rng([11, n_visible, n_hidden])
    return pm.RBM(
        0.3 * rng.standard_normal((n_visible, n_hidden)),
        0.2 * rng.standard_normal(n_visible),
        0.1 * rng.standard_normal(n_hidden),
        visible,
        hidden,
    )


def points(visible: str, n_points: int, n_visible: int = 8) -> np.ndarray:
    """Correlated data in the values of the visible units."""
    rng = np.random.default_rng([12, n_points, n_visible])
    fields = rng.standard_normal((n_points, 2)) @ rng.standard_normal((2, n_visible)) + 0.3
    fields += 0.5 * rng.standard_normal(fields.shape)
    if visible.startswith("gaussian"):
        return np.round(fields, 3)
    high = fields > 0.0
    return np.where(high, 1.0, -1.0) if visible == "spin" else high.astype(float)


EXACT = pm.Exact(n_threads=1, force=False)
PCD = pm.PCD(n_chains=60, n_steps=3, n_relax=10, n_threads=1)
CD = pm.CD(n_steps=2, n_threads=1)
ADAM = pm.Adam(learning_rate=0.01, beta1=0.9, beta2=0.999, epsilon=1e-8)
SGD = pm.SGD(learning_rate=0.05, momentum=0.5)
PAIRS = ("spin-bit", "bit-bit", "spin-spin", "bit-spin")
GAUSSIAN_PAIRS = ("gaussian-bit", "gaussian(0.5)-spin", "spin-gaussian")
SETTINGS: dict[str, dict[str, object]] = {
    "adam": {"optimizer": ADAM, "batch_size": 15, "weight_decay": 0.0},
    "sgd": {"optimizer": SGD, "batch_size": None, "weight_decay": 0.001},
}
GRADIENTS = {"exact": EXACT, "pcd": PCD, "cd": CD}
EPOCHS = 4
MIDDLE = {
    "adam": 5,
    "sgd": 2,
}  # updates after which a run is interrupted: in the midst of an epoch of batches


def training_cases() -> dict[str, tuple[str, str, str]]:
    """Names of all training runs: gradient, pair of unit types, optimizer."""
    names = [(gradient, pair, "adam") for gradient in GRADIENTS for pair in (*PAIRS, *GAUSSIAN_PAIRS)]
    names += [(gradient, pair, "sgd") for gradient in GRADIENTS for pair in ("spin-bit", "gaussian-bit")]
    return {"-".join(name): name for name in names}


def start_training(
    name: str, start: pm.RBM | pm.TrainState | None = None, **options: object
) -> pm.TrainResult:
    """One training run with every option stated; from its own machine, or going on from a state."""
    gradient, pair, setting = training_cases()[name]
    visible, hidden = pair.split("-")
    return pm.train(
        machine(visible, hidden) if start is None else start,
        points(visible, 40),
        epochs=EPOCHS,
        gradient=GRADIENTS[gradient],
        evaluate=(0, 2, EPOCHS),
        validation=points(visible, 12),
        device="cpu",
        guard=False,
        rng=5,
        **SETTINGS[setting],
        **options,
    )


def interrupted_state(name: str) -> pm.TrainState:
    """The state after `MIDDLE` updates, the times in it set to zero."""
    kept: list[pm.TrainState] = []
    last = MIDDLE[training_cases()[name][2]]

    def stop(state: pm.TrainState) -> None:
        kept.append(state)
        if state.update == last:
            raise StopIteration

    start_training(name, callback=stop)
    return without_times(kept[-1])


def without_times(state: pm.TrainState) -> pm.TrainState:
    """The same state with all measured times set to zero: they differ from run to run."""
    return replace(
        state, seconds=0.0, records=tuple(replace(record, seconds=0.0) for record in state.records)
    )


def _train(name: str) -> dict[str, np.ndarray]:
    result = start_training(name)
    history = result.history
    arrays = {
        "weights": result.rbm.weights,
        "visible_bias": result.rbm.visible_bias,
        "hidden_bias": result.rbm.hidden_bias,
        "log_likelihood": history.log_likelihood,
        "validation": history.validation,
        "gradient_norm": history.gradient_norm,
        "error": history.error,
    }
    return arrays | {f"checkpoint {key}": array for key, array in checkpoint_arrays(name).items()}


def checkpoint_arrays(name: str) -> dict[str, np.ndarray]:
    """The arrays of the checkpoint in the midst of the run, as any reader of safetensors finds them."""
    from safetensors.numpy import load

    return dict(sorted(load(checkpoint_bytes(interrupted_state(name))).items()))


def checkpoint_bytes(state: pm.TrainState) -> bytes:
    """The checkpoint of a state as a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state.safetensors"
        state.save(path)
        return path.read_bytes()


def sorted_file(content: bytes) -> bytes:
    """A safetensors file with its header in alphabetical order: safetensors 0.8 writes it in any order."""
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    return json.dumps(header, sort_keys=True).encode() + content[8 + size :]


def checkpoint_facts(state: pm.TrainState) -> dict[str, object]:
    """The metadata of a checkpoint that are no arrays: counts, generator, settings, the address of chains."""
    content = checkpoint_bytes(state)
    size = int.from_bytes(content[:8], "little")
    facts: dict[str, object] = json.loads(json.loads(content[8 : 8 + size])["__metadata__"]["state"])
    return facts


def _initialize(pair: str, scheme: str, **options: object) -> dict[str, np.ndarray]:
    visible, hidden = pair.split("-")
    rbm = pm.initialize(
        8, 5, visible=visible, hidden=hidden, hidden_bias=0.0, scheme=scheme, gain=0.5, rng=3, **options
    )
    return {"weights": rbm.weights, "visible_bias": rbm.visible_bias, "hidden_bias": rbm.hidden_bias}


def _initialize_from_data(pair: str, scheme: str, scale_from: str) -> dict[str, np.ndarray]:
    data = points(pair.split("-")[0], 40)
    return _initialize(pair, scheme, visible_bias="data", data=data, scale_from=scale_from)


def _exact_sums(pair: str, n_visible: int, n_hidden: int) -> dict[str, np.ndarray]:
    rbm = machine(*pair.split("-"), n_visible, n_hidden)
    moments = pm.exact.exact_moments(rbm, n_threads=1, force=False)
    data = points(pair.split("-")[0], 9, n_visible)
    slope = pm.learning.exact_gradient(rbm, data, n_threads=1, force=False)
    return {
        "log_partition": np.array([pm.log_partition(rbm, n_threads=1, force=False), moments.log_partition]),
        "visible": moments.visible,
        "hidden": moments.hidden,
        "products": moments.products,
        "gradient": slope.weights,
        "log_likelihood": np.array([pm.log_likelihood(rbm, data).value]),
    }


def _exact_draws(pair: str) -> dict[str, np.ndarray]:
    return {"states": pm.sample_exact(machine(*pair.split("-")), 50, rng=7, n_threads=1, force=False)}


def _chains(pair: str) -> dict[str, np.ndarray]:
    rbm = machine(*pair.split("-"))
    return {"states": pm.sample(rbm, 60, n_steps=20, start=None, clamp=None, rng=8, n_threads=1)}


def _annealing(pair: str, method: str) -> dict[str, np.ndarray]:
    estimate = pm.estimate_log_partition(
        machine(*pair.split("-")), method=method, n_samples=60, n_temperatures=40, rng=9, n_threads=1
    )
    return {"estimate": np.array([estimate.value, estimate.error, estimate.n_effective])}


_SWEEP = """
trials = 1
seed = 4
[data]
name = "toy"
n_points = 40
held_out = "fresh"
held_out_points = 20
[machine]
visible = "spin"
hidden = "{hidden}"
n_hidden = 3
hidden_bias = -0.5
gains = [0.5]
rivals = []
starts = ["layer-correlation+data-own", "d-wave", "0.5 hopfield", "hinton+data"]
[learning]
optimizer = "{optimizer}"
learning_rate = 0.05
batch_size = 10
gradient = "{gradient}"
n_chains = 50
n_steps = 2
n_relax = 5
[measurement]
epochs = [2, 4]
curve = 3
log_partition = "{log_partition}"
n_samples = 60
n_temperatures = 30
curve_samples = 20
curve_temperatures = 10
"""
SWEEPS = {
    "exact": {"hidden": "bit", "optimizer": "adam", "gradient": "exact", "log_partition": "exact"},
    "exact-mais": {"hidden": "bit", "optimizer": "sgd", "gradient": "exact", "log_partition": "mais"},
    "pcd-exact": {"hidden": "spin", "optimizer": "adam", "gradient": "pcd", "log_partition": "exact"},
    "pcd-mais": {"hidden": "bit", "optimizer": "adam", "gradient": "pcd", "log_partition": "mais"},
}


def _sweep(name: str) -> dict[str, np.ndarray]:
    records = [execute(run) for run in parse_spec(_SWEEP.format(**SWEEPS[name]), name).runs()]
    columns = ("sigma", "log_likelihood", "held_out", "error")
    return {column: np.array([getattr(record, column) for record in records]) for column in columns}


Case = Callable[[], dict[str, np.ndarray]]
SCHEMES = ("layer-correlation", "xavier", "he", "lecun", "hinton")


def _exact_cases() -> dict[str, Case]:
    cases: dict[str, Case] = {}
    for scheme in SCHEMES:
        cases[f"initialize {scheme}"] = lambda scheme=scheme: _initialize("spin-bit", scheme)
    for pair in ("bit-bit", "gaussian-bit", "spin-gaussian"):
        cases[f"initialize {pair}"] = lambda pair=pair: _initialize(pair, "layer-correlation")
    for scheme, scale_from in (
        ("layer-correlation", "zero"),
        ("layer-correlation", "biases"),
        ("hopfield", "zero"),
    ):
        cases[f"initialize data {scheme} {scale_from}"] = lambda s=scheme, f=scale_from: (
            _initialize_from_data("bit-spin", s, f)
        )
    for pair in (*PAIRS, *GAUSSIAN_PAIRS):
        cases[f"sums {pair}"] = lambda pair=pair: _exact_sums(pair, 8, 5)
        cases[f"sums {pair} 9 x 12"] = lambda pair=pair: _exact_sums(pair, 9, 12)
    for name in training_cases():
        if name.startswith("exact-"):
            cases[f"train {name}"] = lambda name=name: _train(name)
    cases["sweep exact"] = lambda: _sweep("exact")
    return cases


def _sampled_cases() -> dict[str, Case]:
    cases: dict[str, Case] = {}
    for pair in ("spin-bit", "bit-spin", "gaussian-bit", "spin-gaussian"):
        cases[f"exact draws {pair}"] = lambda pair=pair: _exact_draws(pair)
        cases[f"chains {pair}"] = lambda pair=pair: _chains(pair)
        for method in ("mais", "ais", "reverse-ais"):
            cases[f"annealing {method} {pair}"] = lambda pair=pair, method=method: _annealing(pair, method)
    for name in training_cases():
        if not name.startswith("exact-"):
            cases[f"train {name}"] = lambda name=name: _train(name)
    for name in SWEEPS:
        if name != "exact":
            cases[f"sweep {name}"] = lambda name=name: _sweep(name)
    return cases


EXACT_CASES, SAMPLED_CASES = _exact_cases(), _sampled_cases()
CASES = EXACT_CASES | SAMPLED_CASES


def compute(name: str) -> dict[str, np.ndarray]:
    """The arrays of a case, with one BLAS thread: last bits depend on their number."""
    with threadpool_limits(1, "blas"):
        return {key: np.ascontiguousarray(array) for key, array in CASES[name]().items()}


def hash_of(array: np.ndarray) -> str:
    """Sixteen digits that stand for type, shape and bytes of an array."""
    head = f"{array.dtype.str} {array.shape} ".encode()
    return hashlib.sha256(head + array.tobytes()).hexdigest()[:16]


def shown(array: np.ndarray) -> list[float]:
    """Some of its numbers: the first ones, then the norm."""
    flat = np.nan_to_num(
        array.astype(np.float64).ravel(), posinf=-1.0
    )  # an exact estimate has infinite samples
    return [float(f"{value:.10g}") for value in (*flat[:N_SHOWN], float(np.linalg.norm(flat)))]


# Specifications and stores


STUDY = "win"  # the name of the study of starts, and of the folder of its records
NO_SPECIFICATIONS = ("recipe_choice",)  # settings that a script of benchmarks reads by itself


def spec_sources() -> dict[str, Path]:
    """All specifications of the repository by the names of their records, wherever the files are kept."""
    found = {}
    for path in (*ROOT.glob("src/paramagnet/**/*.toml"), *ROOT.glob("studies/**/specs/*.toml")):
        is_study = path.is_relative_to(ROOT / "studies") or path.parent.name == STUDY
        found[f"{STUDY}/{path.stem}" if is_study else path.stem] = path
    benchmarks = (path for path in ROOT.glob("benchmarks/*.toml") if path.stem not in NO_SPECIFICATIONS)
    return found | {path.stem: path for path in benchmarks}


def read_source(name: str) -> Spec:
    """The specification of that name."""
    path = spec_sources()[name]
    return parse_spec(path.read_text(encoding="utf-8"), name, path.parent)


def spec_digests(name: str) -> dict[str, object]:
    """The number of runs of a specification, a hash over their sorted digests, and that of its settings."""
    spec = read_source(name)
    digests = sorted(run.digest for run in spec.runs())
    return {
        "runs": len(digests),
        "digests": hashlib.sha256("\n".join(digests).encode()).hexdigest(),
        "settings": spec.settings,
    }


# Recording


def read(name: str) -> dict[str, object]:
    """A file of this folder; empty where there is none."""
    path = FOLDER / name
    content: dict[str, object] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return content


def _write(name: str, content: dict[str, object]) -> None:
    """A line for each entry; one level deeper where entries are by signature."""
    if name in ("bits.json", "files.json"):
        parts = (f"{json.dumps(key)}: {_lines(value)}" for key, value in content.items())
        text = "{\n" + ",\n".join(parts) + "\n}"
    else:
        text = _lines(content)
    (FOLDER / name).write_text(text + "\n", encoding="utf-8")


def _lines(content: dict[str, object]) -> str:
    return "{\n" + ",\n".join(f" {json.dumps(k)}: {json.dumps(v)}" for k, v in content.items()) + "\n}"


OLD_CHECKPOINTS = (
    "exact-spin-bit-adam", "exact-spin-gaussian-adam", "exact-gaussian-bit-sgd", "pcd-spin-bit-adam",
    "pcd-gaussian-bit-adam", "pcd-spin-bit-sgd", "cd-bit-bit-adam",
)  # fmt: skip
OLD_MACHINES = ("spin-bit", "bit-bit", "gaussian(0.5)-spin")


def old_file(name: str) -> Path:
    """A checkpoint or a machine in the first version of the formats."""
    return FOLDER / "files" / f"{name}.safetensors"


def write_old_files() -> None:
    """Was called once, at version 0.1.0."""
    (FOLDER / "files").mkdir(exist_ok=True)
    for name in OLD_CHECKPOINTS:
        interrupted_state(name).save(old_file(name))
    for pair in OLD_MACHINES:
        machine(*pair.split("-")).save(old_file(pair))


def file_hashes() -> dict[str, str]:
    """SHA-256 of the checkpoints in the midst of every run, as files with sorted headers."""
    return {
        name: hashlib.sha256(sorted_file(checkpoint_bytes(interrupted_state(name)))).hexdigest()
        for name in training_cases()
    }


def main() -> None:
    """Record what is asked for, and say what differs from the former record."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parts = ("bits", "values", "digests", "facts")
    parser.add_argument("--replace", nargs="+", choices=parts, default=[], help="records to replace")
    replaced = set(parser.parse_args().replace)
    here, bits, files = signature(), read("bits.json"), read("files.json")
    print(f"signature: {here}")
    if "bits" in replaced or here not in bits or "values" in replaced:
        arrays = {name: compute(name) for name in CASES}
        if "bits" in replaced or here not in bits:
            former = bits.get(here, {})
            bits[here] = {n: {k: hash_of(a) for k, a in found.items()} for n, found in arrays.items()}
            for name in CASES:
                if former and former.get(name) != bits[here][name]:
                    print(f"bits changed: {name}")
            _write("bits.json", bits)
        if "values" in replaced:
            _write("values.json", {n: {k: shown(a) for k, a in found.items()} for n, found in arrays.items()})
    with threadpool_limits(1, "blas"):
        files[here] = file_hashes()
        _write("files.json", files)
        if "facts" in replaced:
            names = training_cases()
            _write("facts.json", {name: checkpoint_facts(interrupted_state(name)) for name in names})
    if "digests" in replaced:
        _write("digests.json", {name: spec_digests(name) for name in sorted(spec_sources())})


if __name__ == "__main__":
    sys.exit(main())
