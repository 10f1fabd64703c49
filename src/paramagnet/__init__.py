"""Restricted Boltzmann machines: initial weights at a good scale, training, likelihoods with errors.

>>> import paramagnet as pm
>>> round(pm.weight_std(784, 500), 6)
0.042301

What most users need is here; the rest is in `paramagnet.theory`, `paramagnet.exact`, `paramagnet.learning`,
`paramagnet.data` and `paramagnet.sweeps`, which can be used after ``import paramagnet`` alone.
"""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

from paramagnet._version import __version__ as __version__

if TYPE_CHECKING:
    from paramagnet import couplings as couplings
    from paramagnet import data as data
    from paramagnet import exact as exact
    from paramagnet import learning as learning
    from paramagnet import package_scales as package_scales
    from paramagnet import sweeps as sweeps
    from paramagnet import theory as theory
    from paramagnet import units as units
    from paramagnet.data.binarize import fit_binarizer as fit_binarizer
    from paramagnet.data.datasets import load_dataset as load_dataset
    from paramagnet.data.files import read_data as read_data
    from paramagnet.estimates import Estimate as Estimate
    from paramagnet.exact.sums import log_partition as log_partition
    from paramagnet.exact.sums import sample_exact as sample_exact
    from paramagnet.initializers import draw_machine as draw_machine
    from paramagnet.initializers import initialize as initialize
    from paramagnet.initializers import scheme_std as scheme_std
    from paramagnet.learning.centring import Centring as Centring
    from paramagnet.learning.diagnosing import diagnose as diagnose
    from paramagnet.learning.diagnosis import Diagnosis as Diagnosis
    from paramagnet.learning.early_stopping import EarlyStopping as EarlyStopping
    from paramagnet.learning.evaluation import LogZ as LogZ
    from paramagnet.learning.gradients.base import Gradient as Gradient
    from paramagnet.learning.gradients.contrastive import CD as CD
    from paramagnet.learning.gradients.persistent import PCD as PCD
    from paramagnet.learning.gradients.summed import Exact as Exact
    from paramagnet.learning.gradients.tempered import Tempering as Tempering
    from paramagnet.learning.guard import Guard as Guard
    from paramagnet.learning.independent import independent_log_likelihood as independent_log_likelihood
    from paramagnet.learning.likelihood import log_likelihood as log_likelihood
    from paramagnet.learning.loop import DivergenceError as DivergenceError
    from paramagnet.learning.optimizers import SGD as SGD
    from paramagnet.learning.optimizers import Adam as Adam
    from paramagnet.learning.result import TrainResult as TrainResult
    from paramagnet.learning.schedule import Schedule as Schedule
    from paramagnet.learning.state import Checkpoint as Checkpoint
    from paramagnet.learning.state import TrainState as TrainState
    from paramagnet.learning.state import load_checkpoint as load_checkpoint
    from paramagnet.learning.training import train as train
    from paramagnet.learning.training import training_steps as training_steps
    from paramagnet.learning.watch import TrainingWarning as TrainingWarning
    from paramagnet.package_scales import compare_schemes as compare_schemes
    from paramagnet.rbm import RBM as RBM
    from paramagnet.sampling.annealing import estimate_log_partition as estimate_log_partition
    from paramagnet.sampling.chains import sample as sample
    from paramagnet.sweeps.compare import compare_initializations as compare_initializations
    from paramagnet.theory.biases import Biases as Biases
    from paramagnet.theory.scale import beta_max as beta_max
    from paramagnet.theory.scale import weight_std as weight_std
    from paramagnet.units import BIT as BIT
    from paramagnet.units import GAUSSIAN as GAUSSIAN
    from paramagnet.units import SPIN as SPIN
    from paramagnet.units import categorical as categorical
    from paramagnet.units import drelu as drelu
    from paramagnet.units import gaussian as gaussian
    from paramagnet.units import relu as relu

_MODULE_OF = {
    "RBM": "rbm",
    "BIT": "units",
    "SPIN": "units",
    "GAUSSIAN": "units",
    "gaussian": "units",
    "relu": "units",
    "drelu": "units",
    "categorical": "units",
    "initialize": "initializers",
    "draw_machine": "initializers",
    "weight_std": "theory.scale",
    "beta_max": "theory.scale",
    "Biases": "theory.biases",
    "scheme_std": "initializers",
    "compare_schemes": "package_scales",
    "train": "learning.training",
    "training_steps": "learning.training",
    "Exact": "learning.gradients.summed",
    "PCD": "learning.gradients.persistent",
    "CD": "learning.gradients.contrastive",
    "Tempering": "learning.gradients.tempered",
    "Gradient": "learning.gradients.base",
    "Adam": "learning.optimizers",
    "SGD": "learning.optimizers",
    "Schedule": "learning.schedule",
    "Centring": "learning.centring",
    "TrainResult": "learning.result",
    "TrainingWarning": "learning.watch",
    "Guard": "learning.guard",
    "EarlyStopping": "learning.early_stopping",
    "TrainState": "learning.state",
    "Checkpoint": "learning.state",
    "load_checkpoint": "learning.state",
    "DivergenceError": "learning.loop",
    "log_likelihood": "learning.likelihood",
    "independent_log_likelihood": "learning.independent",
    "LogZ": "learning.evaluation",
    "diagnose": "learning.diagnosing",
    "Diagnosis": "learning.diagnosis",
    "Estimate": "estimates",
    "log_partition": "exact.sums",
    "estimate_log_partition": "sampling.annealing",
    "sample": "sampling.chains",
    "sample_exact": "exact.sums",
    "load_dataset": "data.datasets",
    "read_data": "data.files",
    "fit_binarizer": "data.binarize",
    "compare_initializations": "sweeps.compare",
}

# Packages and modules that need no import statement of their own.
_SUBMODULES = ("theory", "exact", "learning", "data", "sweeps", "units", "package_scales", "couplings")

# Names that were here in version 0.1, and where they are now. They go in version 0.3.
_MOVED = {
    "solve_saddle_point": "theory",
    "SaddlePoint": "theory",
    "ConvergenceError": "theory",
    "susceptibility": "theory",
    "layer_correlation": "theory",
    "layer_correlation_slope": "theory",
    "overlap_response": "theory",
    "replica_stability": "theory",
    "find_beta_max": "theory",
    "beta_max_formula": "theory",
    "LayerCorrelationMaximum": "theory",
    "MaximumWarning": "theory",
    "NoMaximumError": "theory",
    "ReplicaSymmetryWarning": "theory",
    "SchemeReport": "package_scales",
    "Moments": "exact",
    "exact_moments": "exact",
    "History": "learning",
    "Trajectory": "learning",
    "log_likelihood_trajectory": "learning",
    "exact_gradient": "learning",
    "Dataset": "data",
    "read_table": "data",
    "Binarizer": "data",
    "ConstantDataWarning": "data",
    "log_likelihood_bounds": "data",
    "DownloadError": "data",
    "InitializationComparison": "sweeps",
}

__all__ = ["__version__", *_MODULE_OF]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that ``import paramagnet`` stays light."""
    if name in _MOVED:  # not kept, so that every place that uses it is warned of
        place = f"paramagnet.{_MOVED[name]}"
        message = f"`paramagnet.{name}` has moved to `{place}.{name}`; the old name goes in version 0.3."
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return getattr(import_module(place), name)
    if name in _SUBMODULES:
        return import_module(f"paramagnet.{name}")
    try:
        module = _MODULE_OF[name]
    except KeyError:
        raise AttributeError(f"module 'paramagnet' has no attribute {name!r}") from None
    value = getattr(import_module(f"paramagnet.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_SUBMODULES})
