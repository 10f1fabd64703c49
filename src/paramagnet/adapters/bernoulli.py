"""scikit-learn's ``BernoulliRBM``: conversion in both directions, and the initial scale of the theory.

Its units are bits in both layers. Ours become bits by an exact change of variables (`RBM.to_bits`): the
distribution stays the same, only the names of its states change. From spin visible units the weights double
and the hidden biases fall by ``sum_i w_ij``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from paramagnet._arrays import shown
from paramagnet._checks import as_count
from paramagnet._extras import missing_extra
from paramagnet.initializers import initialize
from paramagnet.rbm import RBM, as_rbm


def from_sklearn(estimator: Any) -> RBM:
    """The machine of a fitted ``BernoulliRBM``; bits in both layers.

    Parameters
    ----------
    estimator : sklearn.neural_network.BernoulliRBM
        A fitted ``BernoulliRBM``.

    Returns
    -------
    RBM
        The machine.
    """
    names = ("components_", "intercept_visible_", "intercept_hidden_")
    missing = [name for name in names if not hasattr(estimator, name)]
    if missing:
        raise ValueError(
            f"`estimator` must be a fitted BernoulliRBM, got {shown(estimator)} without {', '.join(missing)}."
        )
    components, visible_bias, hidden_bias = (getattr(estimator, name) for name in names)
    return RBM(np.asarray(components).T, visible_bias, hidden_bias, "bit", "bit")


def to_sklearn(rbm: RBM, *, feature_names: Sequence[str] | None = None, **options: Any) -> Any:
    """A ``BernoulliRBM`` with the distribution of ``rbm``, as if it had been fitted.

    ``options`` are those of its constructor. ``partial_fit`` goes on from it, ``fit`` starts anew.
    ``feature_names`` are the columns of the data frames that it is to see, if any.

    Parameters
    ----------
    rbm : RBM
        The machine.
    feature_names : sequence of str, optional
        Columns of the data frames that the estimator is to see, if any.
    options : object
        Options of the constructor of ``BernoulliRBM``.

    Returns
    -------
    sklearn.neural_network.BernoulliRBM
        A fitted ``BernoulliRBM``.
    """
    try:
        from sklearn.neural_network import BernoulliRBM
    except ModuleNotFoundError as error:
        raise missing_extra("`to_sklearn`", "scikit-learn", "sklearn") from error
    as_rbm(rbm, "rbm")
    if options.setdefault("n_components", rbm.n_hidden) != rbm.n_hidden:
        raise ValueError(
            f"`n_components` must be {rbm.n_hidden}, the hidden units of `rbm`, "
            f"got {options['n_components']!r}."
        )
    return _set_fitted(BernoulliRBM(**options), rbm, feature_names)


def warm_start_bernoulli_rbm(
    estimator: Any,
    n_features: int,
    *,
    hidden_bias: float = 0.0,
    visible_bias: float | npt.ArrayLike = 0.0,
    gain: float = 1.0,
    feature_names: Sequence[str] | None = None,
    rng: np.random.Generator | int | None = None,
) -> Any:
    """Give scikit-learn's ``BernoulliRBM`` initial weights of the right scale, and return it.

    The weights and biases are those of `initialize` for spin visible and bit hidden units, converted to bits.
    All attributes that ``fit`` sets are set. Train it by ``partial_fit``, with ``batch_size`` points per
    call: ``fit`` would start again from weights of standard deviation 0.01.

    Parameters
    ----------
    estimator : sklearn.neural_network.BernoulliRBM
        A ``BernoulliRBM`` that was not fitted.
    n_features : int
        Number of features, which are the visible units.
    hidden_bias : float, default 0.0
        Initial bias of the hidden bits.
    visible_bias : float or array_like, default 0.0
        Initial bias of the visible spins, one number or one per unit.
    gain : float, default 1.0
        Factor on the scale; 0.25 is the paper's beta_max/4.
    feature_names : sequence of str, optional
        Columns of the data frames that the estimator is to see, if any.
    rng : int or numpy.random.Generator, optional
        Seed or generator of the random numbers; None takes a new seed from the operating system.

    Returns
    -------
    sklearn.neural_network.BernoulliRBM
        ``estimator`` itself.
    """
    for name in ("n_components", "batch_size", "partial_fit"):
        if not hasattr(estimator, name):
            raise ValueError(f"`estimator` must be a BernoulliRBM, got {shown(estimator)} without `{name}`.")
    rbm = initialize(
        as_count(n_features, "n_features"),
        as_count(estimator.n_components, "n_components"),
        visible="spin",
        hidden="bit",
        visible_bias=visible_bias,
        hidden_bias=hidden_bias,
        gain=gain,
        rng=rng,
    )
    return _set_fitted(estimator, rbm, feature_names)


def _set_fitted(estimator: Any, rbm: RBM, feature_names: Sequence[str] | None) -> Any:
    """Put the parameters of ``rbm`` into a ``BernoulliRBM``, with all else that ``fit`` sets."""
    from sklearn.utils import check_random_state

    bits = rbm.to_bits()
    estimator.components_ = np.array(bits.weights.T, order="F")  # a copy: it trains in place
    estimator.intercept_visible_ = bits.visible_bias.copy()
    estimator.intercept_hidden_ = bits.hidden_bias.copy()
    estimator.h_samples_ = np.zeros((as_count(estimator.batch_size, "batch_size"), bits.n_hidden))
    estimator.random_state_ = check_random_state(estimator.random_state)
    estimator.n_features_in_ = bits.n_visible
    estimator._n_features_out = bits.n_hidden
    if hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_
    if feature_names is not None:
        estimator.feature_names_in_ = _as_names(feature_names, bits.n_visible)
    return estimator


def _as_names(feature_names: Any, n_visible: int) -> npt.NDArray[Any]:
    columns = isinstance(feature_names, np.ndarray) or hasattr(feature_names, "to_numpy")  # of pandas
    names = np.asarray(feature_names).tolist() if columns else feature_names
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"`feature_names` must be a sequence of names, got {shown(feature_names)}.")
    if len(names) != n_visible:
        raise ValueError(
            f"`feature_names` must be {n_visible} names, one per visible unit, got {len(names)}."
        )
    return np.array(names, dtype=object)
