"""Training and likelihoods.

The names below are the public ones; each is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from paramagnet._lazy import lazy_exports

if TYPE_CHECKING:
    from paramagnet.learning.centring import Centring as Centring
    from paramagnet.learning.diagnosing import diagnose as diagnose
    from paramagnet.learning.diagnosing import quick_diagnosis as quick_diagnosis
    from paramagnet.learning.diagnosis import Diagnosis as Diagnosis
    from paramagnet.learning.early_stopping import EarlyStopping as EarlyStopping
    from paramagnet.learning.evaluation import LogZ as LogZ
    from paramagnet.learning.gradients.base import Gradient as Gradient
    from paramagnet.learning.gradients.contrastive import CD as CD
    from paramagnet.learning.gradients.persistent import PCD as PCD
    from paramagnet.learning.gradients.summed import Exact as Exact
    from paramagnet.learning.gradients.summed import exact_gradient as exact_gradient
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
    from paramagnet.learning.state import History as History
    from paramagnet.learning.state import TrainState as TrainState
    from paramagnet.learning.state import load_checkpoint as load_checkpoint
    from paramagnet.learning.training import train as train
    from paramagnet.learning.training import training_steps as training_steps
    from paramagnet.learning.trajectory import Trajectory as Trajectory
    from paramagnet.learning.trajectory import log_likelihood_trajectory as log_likelihood_trajectory
    from paramagnet.learning.verdict import Finding as Finding
    from paramagnet.learning.watch import TrainingWarning as TrainingWarning

_MODULE_OF = {
    "train": "training",
    "training_steps": "training",
    "TrainResult": "result",
    "TrainingWarning": "watch",
    "Guard": "guard",
    "EarlyStopping": "early_stopping",
    "independent_log_likelihood": "independent",
    "TrainState": "state",
    "History": "state",
    "Checkpoint": "state",
    "load_checkpoint": "state",
    "DivergenceError": "loop",
    "Exact": "gradients.summed",
    "PCD": "gradients.persistent",
    "CD": "gradients.contrastive",
    "Tempering": "gradients.tempered",
    "Gradient": "gradients.base",
    "exact_gradient": "gradients.summed",
    "Adam": "optimizers",
    "SGD": "optimizers",
    "Schedule": "schedule",
    "Centring": "centring",
    "LogZ": "evaluation",
    "log_likelihood": "likelihood",
    "log_likelihood_trajectory": "trajectory",
    "Trajectory": "trajectory",
    "diagnose": "diagnosing",
    "quick_diagnosis": "diagnosing",
    "Diagnosis": "diagnosis",
    "Finding": "verdict",
}

__all__ = [*_MODULE_OF]

__getattr__, __dir__ = lazy_exports(__name__, _MODULE_OF)
