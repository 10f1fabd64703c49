"""The replica theory of random machines; it depends neither on data nor on the class `RBM`.

The names below are the public ones; each is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from paramagnet._lazy import lazy_exports

if TYPE_CHECKING:
    from paramagnet.theory.biases import Biases as Biases
    from paramagnet.theory.edge import StabilityEdge as StabilityEdge
    from paramagnet.theory.edge import centred_gain as centred_gain
    from paramagnet.theory.edge import stability_edge as stability_edge
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

_MODULE_OF = {
    "beta_max": "scale",
    "weight_std": "scale",
    "find_beta_max": "scale",
    "LayerCorrelationMaximum": "status",
    "beta_max_formula": "formula",
    "stability_edge": "edge",
    "centred_gain": "edge",
    "StabilityEdge": "edge",
    "Biases": "biases",
    "solve_saddle_point": "saddle",
    "SaddlePoint": "saddle",
    "susceptibility": "response",
    "layer_correlation": "response",
    "layer_correlation_slope": "response",
    "overlap_response": "response",
    "replica_stability": "response",
    "ConvergenceError": "saddle",
    "NoMaximumError": "status",
    "MaximumWarning": "status",
    "ReplicaSymmetryWarning": "status",
}

__all__ = [*_MODULE_OF]

__getattr__, __dir__ = lazy_exports(__name__, _MODULE_OF)
