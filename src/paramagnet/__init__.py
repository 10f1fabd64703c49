"""paramagnet: the right initial weights for a restricted Boltzmann machine, and exact, fast learning.

>>> import paramagnet as pm
>>> round(pm.weight_std(784, 500), 6)
0.042301
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from paramagnet._version import __version__ as __version__

if TYPE_CHECKING:
    from paramagnet.data.binarize import Binarizer as Binarizer
    from paramagnet.data.binarize import ConstantDataWarning as ConstantDataWarning
    from paramagnet.data.binarize import fit_binarizer as fit_binarizer
    from paramagnet.data.datasets import Dataset as Dataset
    from paramagnet.data.datasets import load_dataset as load_dataset
    from paramagnet.data.download import DownloadError as DownloadError
    from paramagnet.data.files import read_data as read_data
    from paramagnet.data.files import read_table as read_table
    from paramagnet.data.summary import log_likelihood_bounds as log_likelihood_bounds
    from paramagnet.experiments.compare import InitializationComparison as InitializationComparison
    from paramagnet.experiments.compare import compare_initializations as compare_initializations
    from paramagnet.initializers import SchemeReport as SchemeReport
    from paramagnet.initializers import compare_schemes as compare_schemes
    from paramagnet.initializers import initialize as initialize
    from paramagnet.initializers import scheme_std as scheme_std
    from paramagnet.learning.annealing import estimate_log_partition as estimate_log_partition
    from paramagnet.learning.checkpoint import Checkpoint as Checkpoint
    from paramagnet.learning.checkpoint import History as History
    from paramagnet.learning.checkpoint import TrainState as TrainState
    from paramagnet.learning.checkpoint import load_checkpoint as load_checkpoint
    from paramagnet.learning.exact import Moments as Moments
    from paramagnet.learning.exact import exact_moments as exact_moments
    from paramagnet.learning.exact import log_partition as log_partition
    from paramagnet.learning.exact import sample_exact as sample_exact
    from paramagnet.learning.gibbs import sample as sample
    from paramagnet.learning.gradient import CD as CD
    from paramagnet.learning.gradient import PCD as PCD
    from paramagnet.learning.gradient import Exact as Exact
    from paramagnet.learning.gradient import exact_gradient as exact_gradient
    from paramagnet.learning.likelihood import Estimate as Estimate
    from paramagnet.learning.likelihood import log_likelihood as log_likelihood
    from paramagnet.learning.optimizer import SGD as SGD
    from paramagnet.learning.optimizer import Adam as Adam
    from paramagnet.learning.run import DivergenceError as DivergenceError
    from paramagnet.learning.schedule import Schedule as Schedule
    from paramagnet.learning.training import TrainResult as TrainResult
    from paramagnet.learning.training import train as train
    from paramagnet.learning.training import training_steps as training_steps
    from paramagnet.learning.trajectory import Trajectory as Trajectory
    from paramagnet.learning.trajectory import log_likelihood_trajectory as log_likelihood_trajectory
    from paramagnet.rbm import RBM as RBM
    from paramagnet.theory.biases import Biases as Biases
    from paramagnet.theory.formula import beta_max_formula as beta_max_formula
    from paramagnet.theory.response import layer_correlation as layer_correlation
    from paramagnet.theory.response import layer_correlation_slope as layer_correlation_slope
    from paramagnet.theory.response import overlap_response as overlap_response
    from paramagnet.theory.response import replica_stability as replica_stability
    from paramagnet.theory.response import susceptibility as susceptibility
    from paramagnet.theory.saddle import ConvergenceError as ConvergenceError
    from paramagnet.theory.saddle import SaddlePoint as SaddlePoint
    from paramagnet.theory.saddle import solve_saddle_point as solve_saddle_point
    from paramagnet.theory.scale import beta_max as beta_max
    from paramagnet.theory.scale import find_beta_max as find_beta_max
    from paramagnet.theory.scale import weight_std as weight_std
    from paramagnet.theory.verdict import LayerCorrelationMaximum as LayerCorrelationMaximum
    from paramagnet.theory.verdict import MaximumWarning as MaximumWarning
    from paramagnet.theory.verdict import NoMaximumError as NoMaximumError
    from paramagnet.theory.verdict import ReplicaSymmetryWarning as ReplicaSymmetryWarning
    from paramagnet.units import BIT as BIT
    from paramagnet.units import GAUSSIAN as GAUSSIAN
    from paramagnet.units import SPIN as SPIN
    from paramagnet.units import gaussian as gaussian

_MODULE_OF = {
    "BIT": "units",
    "SPIN": "units",
    "GAUSSIAN": "units",
    "gaussian": "units",
    "Biases": "theory.biases",
    "RBM": "rbm",
    "initialize": "initializers",
    "compare_schemes": "initializers",
    "scheme_std": "initializers",
    "SchemeReport": "initializers",
    "solve_saddle_point": "theory.saddle",
    "SaddlePoint": "theory.saddle",
    "ConvergenceError": "theory.saddle",
    "susceptibility": "theory.response",
    "layer_correlation": "theory.response",
    "layer_correlation_slope": "theory.response",
    "overlap_response": "theory.response",
    "replica_stability": "theory.response",
    "beta_max": "theory.scale",
    "find_beta_max": "theory.scale",
    "beta_max_formula": "theory.formula",
    "weight_std": "theory.scale",
    "LayerCorrelationMaximum": "theory.verdict",
    "MaximumWarning": "theory.verdict",
    "NoMaximumError": "theory.verdict",
    "ReplicaSymmetryWarning": "theory.verdict",
    "Moments": "learning.exact",
    "exact_moments": "learning.exact",
    "log_partition": "learning.exact",
    "sample_exact": "learning.exact",
    "estimate_log_partition": "learning.annealing",
    "Estimate": "learning.likelihood",
    "log_likelihood": "learning.likelihood",
    "sample": "learning.gibbs",
    "Exact": "learning.gradient",
    "PCD": "learning.gradient",
    "CD": "learning.gradient",
    "Adam": "learning.optimizer",
    "SGD": "learning.optimizer",
    "Schedule": "learning.schedule",
    "train": "learning.training",
    "TrainResult": "learning.training",
    "Checkpoint": "learning.checkpoint",
    "History": "learning.checkpoint",
    "TrainState": "learning.checkpoint",
    "load_checkpoint": "learning.checkpoint",
    "DivergenceError": "learning.run",
    "training_steps": "learning.training",
    "Trajectory": "learning.trajectory",
    "log_likelihood_trajectory": "learning.trajectory",
    "exact_gradient": "learning.gradient",
    "read_data": "data.files",
    "Dataset": "data.datasets",
    "load_dataset": "data.datasets",
    "read_table": "data.files",
    "Binarizer": "data.binarize",
    "fit_binarizer": "data.binarize",
    "ConstantDataWarning": "data.binarize",
    "log_likelihood_bounds": "data.summary",
    "DownloadError": "data.download",
    "compare_initializations": "experiments.compare",
    "InitializationComparison": "experiments.compare",
}

__all__ = ["__version__", *_MODULE_OF]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that ``import paramagnet`` stays light."""
    try:
        module = _MODULE_OF[name]
    except KeyError:
        raise AttributeError(f"module 'paramagnet' has no attribute {name!r}") from None
    value = getattr(import_module(f"paramagnet.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
