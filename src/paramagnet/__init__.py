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
    from paramagnet.estimates import Estimate as Estimate
    from paramagnet.exact.sums import Moments as Moments
    from paramagnet.exact.sums import exact_moments as exact_moments
    from paramagnet.exact.sums import log_partition as log_partition
    from paramagnet.exact.sums import sample_exact as sample_exact
    from paramagnet.initializers import initialize as initialize
    from paramagnet.initializers import scheme_std as scheme_std
    from paramagnet.learning.evaluation import LogZ as LogZ
    from paramagnet.learning.gradients.base import Gradient as Gradient
    from paramagnet.learning.gradients.contrastive import CD as CD
    from paramagnet.learning.gradients.persistent import PCD as PCD
    from paramagnet.learning.gradients.summed import Exact as Exact
    from paramagnet.learning.gradients.summed import exact_gradient as exact_gradient
    from paramagnet.learning.likelihood import log_likelihood as log_likelihood
    from paramagnet.learning.loop import DivergenceError as DivergenceError
    from paramagnet.learning.optimizers import SGD as SGD
    from paramagnet.learning.optimizers import Adam as Adam
    from paramagnet.learning.schedule import Schedule as Schedule
    from paramagnet.learning.state import Checkpoint as Checkpoint
    from paramagnet.learning.state import History as History
    from paramagnet.learning.state import TrainState as TrainState
    from paramagnet.learning.state import load_checkpoint as load_checkpoint
    from paramagnet.learning.training import TrainResult as TrainResult
    from paramagnet.learning.training import train as train
    from paramagnet.learning.training import training_steps as training_steps
    from paramagnet.learning.trajectory import Trajectory as Trajectory
    from paramagnet.learning.trajectory import log_likelihood_trajectory as log_likelihood_trajectory
    from paramagnet.package_scales import SchemeReport as SchemeReport
    from paramagnet.package_scales import compare_schemes as compare_schemes
    from paramagnet.rbm import RBM as RBM
    from paramagnet.sampling.annealing import estimate_log_partition as estimate_log_partition
    from paramagnet.sampling.chains import sample as sample
    from paramagnet.sweeps.compare import InitializationComparison as InitializationComparison
    from paramagnet.sweeps.compare import compare_initializations as compare_initializations
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
    from paramagnet.theory.status import LayerCorrelationMaximum as LayerCorrelationMaximum
    from paramagnet.theory.status import MaximumWarning as MaximumWarning
    from paramagnet.theory.status import NoMaximumError as NoMaximumError
    from paramagnet.theory.status import ReplicaSymmetryWarning as ReplicaSymmetryWarning
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
    "compare_schemes": "package_scales",
    "scheme_std": "initializers",
    "SchemeReport": "package_scales",
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
    "LayerCorrelationMaximum": "theory.status",
    "MaximumWarning": "theory.status",
    "NoMaximumError": "theory.status",
    "ReplicaSymmetryWarning": "theory.status",
    "Moments": "exact.sums",
    "exact_moments": "exact.sums",
    "log_partition": "exact.sums",
    "sample_exact": "exact.sums",
    "estimate_log_partition": "sampling.annealing",
    "Estimate": "estimates",
    "log_likelihood": "learning.likelihood",
    "LogZ": "learning.evaluation",
    "sample": "sampling.chains",
    "Exact": "learning.gradients.summed",
    "PCD": "learning.gradients.persistent",
    "CD": "learning.gradients.contrastive",
    "Gradient": "learning.gradients.base",
    "Adam": "learning.optimizers",
    "SGD": "learning.optimizers",
    "Schedule": "learning.schedule",
    "train": "learning.training",
    "TrainResult": "learning.training",
    "Checkpoint": "learning.state",
    "History": "learning.state",
    "TrainState": "learning.state",
    "load_checkpoint": "learning.state",
    "DivergenceError": "learning.loop",
    "training_steps": "learning.training",
    "Trajectory": "learning.trajectory",
    "log_likelihood_trajectory": "learning.trajectory",
    "exact_gradient": "learning.gradients.summed",
    "read_data": "data.files",
    "Dataset": "data.datasets",
    "load_dataset": "data.datasets",
    "read_table": "data.files",
    "Binarizer": "data.binarize",
    "fit_binarizer": "data.binarize",
    "ConstantDataWarning": "data.binarize",
    "log_likelihood_bounds": "data.summary",
    "DownloadError": "data.download",
    "compare_initializations": "sweeps.compare",
    "InitializationComparison": "sweeps.compare",
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
