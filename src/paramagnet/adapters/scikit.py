"""A restricted Boltzmann machine as a scikit-learn estimator: features, likelihoods, samples.

It follows scikit-learn's conventions (pipelines, searches, cloning, data frames) around the same machine, the
same initial scale and the same training as everywhere else in paramagnet.

[Y25] Yasuda, Maeno and Takahashi, Neural Networks 187 (2025), arXiv:2409.07708.
"""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from paramagnet._arrays import shown
from paramagnet._checks import as_count, as_real, as_sample_weight, as_states
from paramagnet.adapters._extras import missing_extra
from paramagnet.data.binarize import Binarizer, ConstantDataWarning, fit_binarizer
from paramagnet.estimates import Estimate
from paramagnet.initializers import initialize
from paramagnet.layout import Layout
from paramagnet.learning.centring import Centring, as_centring
from paramagnet.learning.evaluation import LogZ, as_log_z
from paramagnet.learning.gradients.base import Gradient
from paramagnet.learning.gradients.default import default_gradient
from paramagnet.learning.gradients.persistent import PCD
from paramagnet.learning.guard import Guard
from paramagnet.learning.optimizers import Adam, Optimizer
from paramagnet.learning.preparing import take_over
from paramagnet.learning.schedule import LearningRate
from paramagnet.learning.state import TrainState
from paramagnet.learning.training import train
from paramagnet.rbm import RBM
from paramagnet.sampling.chains import sample
from paramagnet.units import BIT, SPIN, BinaryUnit, FloatArray, as_binary, as_unit

try:
    from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
    from sklearn.utils import check_random_state
    from sklearn.utils.validation import check_is_fitted, validate_data
except ModuleNotFoundError as error:
    raise missing_extra("paramagnet.adapters.scikit", "scikit-learn", "sklearn") from error

SECONDS_EXACT_GRADIENT = 0.01  # an exact gradient that takes no longer is the default
# Few chains with many sweeps give better gradients than many chains with few sweeps.
CHAINS = PCD(n_chains=100, n_steps=50, n_relax=200)
SPARSE_BIAS = -2.5
_DTYPES = (np.float64, np.float32)
_TRAINING, _LOG_PARTITION = 0, 1  # streams of random numbers


class RBMTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Restricted Boltzmann machine, started at the scale that the theory gives for its layers.

    Parameters
    ----------
    n_components : int, default 256
        Number of hidden units.
    hidden : str, default "bit"
        Type of the hidden units, "bit" or "spin"; the visible ones are spins inside, whatever the data.
    hidden_bias : float, optional
        Initial bias of the hidden units. None is 0 for spins and -2.5 for bits, which was better than 0 on
        the two larger data sets of [Y25]; negative biases make the features sparse.
    visible_bias : float or str, default "data"
        Initial bias of the visible units: one number, or "data" for the biases that give the features their
        means.
    gain : float, default 1.0
        Factor on the initial scale.
    learning_rate : float, Schedule, str or callable, default 0.005
        Learning rate of Adam: a number, a `Schedule` or its text (``"linear(0.005)"`` falls over all updates
        of `fit`), or a function of the index of the update; not used where ``optimizer`` is given.
    batch_size : int, default 100
        Points per update.
    n_iter : int, default 50
        How many times to go through the data.
    weight_decay : float, default 0.0
        ``learning_rate * weight_decay * w`` is taken off the weights at every update.
    l1, l1_group : float, default 0.0
        Penalties on the sizes of the weights, see `paramagnet.train`.
    clip : float, optional
        Largest norm of the gradient; None leaves it as it is.
    centred : bool or Centring, default False
        Whether learning is centred, see `paramagnet.train`. With ``visible_bias="data"`` the start then is
        the centred one, too (``scheme="centred"`` of `paramagnet.initialize`).
    gradient : Gradient, optional
        `paramagnet.Exact`, `PCD`, `CD` or one of your own; None is exact where a gradient takes no more than
        about 10 ms, else ``PCD(n_chains=100, n_steps=50, n_relax=200)``.
    optimizer : Optimizer, optional
        `paramagnet.Adam`, `SGD` or one of your own; None is Adam with ``learning_rate``.
    guard : bool or Guard, optional
        Whether `fit` checks now and then that training has not failed, see `paramagnet.Guard`; None does so
        where gradients come from chains that persist.
    log_z : LogZ, optional
        How ``ln Z`` is found for likelihoods, a `paramagnet.LogZ`; None is exact where that takes no more
        than a second, else mAIS.
    threshold : str, float or None, default "auto"
        How numbers become two values. "auto" leaves 0/1 and -1/+1 data as they are and binarizes all others
        at the threshold of Otsu that `fit` learns for each feature; "median" takes medians; a number is the
        threshold of all features; None raises on anything but 0/1 and -1/+1.
    random_state : int or numpy.random.RandomState, optional
        None, an integer or a ``RandomState``, as everywhere in scikit-learn.

    Attributes
    ----------
    rbm_ : RBM
        The trained `paramagnet.RBM`.
    binarizer_ : Binarizer
        The `paramagnet.data.Binarizer` that data go through.
    log_partition_ : Estimate
        ``ln Z`` of `rbm_`, an `Estimate`, by ``log_z``; computed once per fit, when first needed.
    score_error_ : float
        The standard error that `log_partition_` gives to `score`, 0 where it is exact.
    n_features_in_ : int
        Number of features seen by `fit`.
    feature_names_in_ : ndarray
        Names of the features seen by `fit`, if they were strings.

    Notes
    -----
    `transform` gives ``E[h | v]``. `score` is a log-likelihood, in nats per point of the binarized data.
    """

    def __init__(
        self,
        n_components: int = 256,
        *,
        hidden: str = "bit",
        hidden_bias: float | None = None,
        visible_bias: float | str = "data",
        gain: float = 1.0,
        learning_rate: LearningRate = 0.005,
        batch_size: int = 100,
        n_iter: int = 50,
        weight_decay: float = 0.0,
        l1: float = 0.0,
        l1_group: float = 0.0,
        clip: float | None = None,
        centred: bool | Centring = False,
        gradient: Gradient | None = None,
        optimizer: Optimizer | None = None,
        guard: bool | Guard | None = None,
        log_z: LogZ | None = None,
        threshold: str | float | None = "auto",
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.hidden = hidden
        self.hidden_bias = hidden_bias
        self.visible_bias = visible_bias
        self.gain = gain
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.n_iter = n_iter
        self.weight_decay = weight_decay
        self.l1 = l1
        self.l1_group = l1_group
        self.clip = clip
        self.centred = centred
        self.gradient = gradient
        self.optimizer = optimizer
        self.guard = guard
        self.log_z = log_z
        self.threshold = threshold
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    # Learning

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn thresholds, if the data are not binary, and train a new machine; ``y`` is not used.

        ``sample_weight`` are weights of the points, zero or positive; whole numbers count points so many
        times. Points of weight zero are left out.
        """
        X = validate_data(self, X, dtype=_DTYPES, ensure_min_samples=2)
        n_iter = as_count(self.n_iter, "n_iter", minimum=0)
        X, weights = _weigh(X, sample_weight)
        rng, states = self._start(X, weights)
        self._train(self._machine_for(states, rng, weights), states, n_iter, rng, weights)
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Go through the points of ``X`` once, from where the last call or `fit` ended.

        The first call learns the thresholds, so its points should be typical. ``sample_weight`` is as in
        `fit`.
        """
        first = not hasattr(self, "_state")
        X = validate_data(self, X, dtype=_DTYPES, reset=first, ensure_min_samples=2 if first else 1)
        X, weights = _weigh(X, sample_weight)
        if first:
            rng, states = self._start(X, weights)
            self._train(self._machine_for(states, rng, weights), states, 1, rng, weights)
            return self
        rng = self._generator(_TRAINING, self._state.update)
        self._train(self._state, self._binarize(X), 1, rng, weights)
        return self

    def _start(
        self, X: npt.NDArray[Any], weights: FloatArray | None
    ) -> tuple[np.random.Generator, FloatArray]:
        """The generator of a fit, and the points in the values of the visible units."""
        self._entropy = _draw_entropy(self.random_state)
        self.binarizer_ = _fit_binarizer(X, self.threshold, weights)
        self._strict = self.threshold is None
        return self._generator(_TRAINING, 0), self._binarize(X)

    def _generator(self, purpose: int, update: int) -> np.random.Generator:
        """Random numbers of a fit, for a purpose, after so many updates."""
        return np.random.default_rng([*self._entropy, purpose, update])

    def _machine_for(self, states: FloatArray, rng: np.random.Generator, weights: FloatArray | None) -> RBM:
        hidden_bias = self.hidden_bias
        if hidden_bias is None:
            hidden_bias = 0.0 if as_unit(self.hidden, "hidden").symmetric else SPARSE_BIAS
        centred = as_centring(self.centred) is not None and isinstance(self.visible_bias, str)
        return initialize(
            states.shape[1],
            as_count(self.n_components, "n_components"),
            hidden=self.hidden,
            visible_bias=self.visible_bias,
            hidden_bias=hidden_bias,
            scheme="centred" if centred else "layer-correlation",
            gain=self.gain,
            data=states if isinstance(self.visible_bias, str) else None,
            sample_weight=weights if isinstance(self.visible_bias, str) else None,
            rng=rng,
        )

    def _train(
        self,
        start: RBM | TrainState,
        states: FloatArray,
        epochs: int,
        rng: np.random.Generator,
        weights: FloatArray | None,
    ) -> None:
        layout = start.layout if isinstance(start, TrainState) else Layout.of(start)
        sizes = (layout.n_visible, layout.n_hidden, layout.visible, layout.hidden)
        gradient = self.gradient
        if gradient is None:
            gradient = default_gradient(*sizes, seconds=SECONDS_EXACT_GRADIENT, sampled=CHAINS)
        options: dict[str, Any] = {
            "gradient": gradient,
            "optimizer": Adam(self.learning_rate) if self.optimizer is None else self.optimizer,
            "batch_size": self.batch_size,
            "sample_weight": weights,
            "weight_decay": self.weight_decay,
            "l1": self.l1,
            "l1_group": self.l1_group,
            "clip": self.clip,
            "centred": self.centred,
        }
        guard = self.guard
        if isinstance(start, TrainState):
            start, guard = take_over(start, states, rng=rng, **options), False
        result = train(start, states, epochs=epochs, evaluate=(), rng=rng, guard=guard, **options)
        self._state, self.rbm_ = result.state, result.rbm
        self._n_features_out = result.rbm.n_hidden
        self._means: FloatArray = np.average(states, axis=0, weights=weights)
        self._log_partition: Estimate | None = None

    # Features, likelihoods and samples

    def _binarize(self, X: npt.NDArray[Any]) -> FloatArray:
        if self._strict:
            unit = _alphabet(self.binarizer_)
            X = as_states(X, "X", str(unit), unit.levels, X.shape[1])
        return self.binarizer_.apply(X)

    def _states(self, X: Any) -> tuple[FloatArray, npt.DTypeLike]:
        check_is_fitted(self, "rbm_")
        X = validate_data(self, X, dtype=_DTYPES, reset=False)
        return self._binarize(X), X.dtype

    def transform(self, X: Any) -> Any:
        """The means of the hidden units given each point, ``(n_points, n_components)``."""
        states, dtype = self._states(X)
        return self.rbm_.hidden_features(states).astype(dtype, copy=False)

    def score_samples(self, X: Any) -> FloatArray:
        """The log-likelihood of each point, in nats."""
        states, _ = self._states(X)
        log_likelihoods: FloatArray = -self.rbm_.free_energy(states) - self.log_partition_.value
        return log_likelihoods

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The mean log-likelihood of the points, in nats per point, with their weights if they have some; its
        error is `score_error_`.
        """
        values = self.score_samples(X)
        if sample_weight is not None:
            sample_weight = as_sample_weight(sample_weight, "sample_weight", len(values))
            sample_weight = sample_weight / sample_weight.max()
        return float(np.average(values, weights=sample_weight))

    @property
    def log_partition_(self) -> Estimate:
        """``ln Z`` of the machine; see the class."""
        check_is_fitted(self, "rbm_")
        if self._log_partition is None:
            policy = LogZ() if self.log_z is None else as_log_z(self.log_z)
            rng = self._generator(_LOG_PARTITION, self._state.update)
            self._log_partition = policy(self.rbm_, rng, means=self._means)
            if not self._log_partition.trusted:
                warnings.warn(f"ln Z is uncertain: {self._log_partition}.", RuntimeWarning, stacklevel=3)
        return self._log_partition

    @property
    def score_error_(self) -> float:
        """The standard error of `score`; see the class."""
        return self.log_partition_.error

    def sample(
        self, n_samples: int = 1, *, n_steps: int = 1000, random_state: Any = None
    ) -> npt.NDArray[np.float64]:
        """Points from the machine, the ends of chains of ``n_steps`` Gibbs sweeps.

        They are spins (-1, +1) if the data of `fit` were, else bits (0, 1).
        """
        check_is_fitted(self, "rbm_")
        rng = np.random.default_rng(_draw_entropy(random_state))
        states = sample(self.rbm_, n_samples, n_steps=n_steps, rng=rng)
        unit = _alphabet(self.binarizer_)
        return np.where(states == as_binary(self.rbm_.visible, "visible").high, unit.high, unit.low)


def _weigh(X: npt.NDArray[Any], weights: Any) -> tuple[npt.NDArray[Any], FloatArray | None]:
    """The points of positive weight, and their weights."""
    if weights is None:
        return X, None
    checked = as_sample_weight(weights, "sample_weight", len(X))
    return X[checked > 0.0], checked[checked > 0.0]


def _draw_entropy(random_state: Any) -> list[int]:
    """Seeds from what scikit-learn takes for a ``random_state``."""
    words: list[int] = check_random_state(random_state).randint(2**32, size=4, dtype=np.uint32).tolist()
    return words


def _alphabet(binarizer: Binarizer) -> BinaryUnit:
    """The values of the points that users see: spins if the data of `fit` were spins, else bits."""
    if binarizer.method != "binary":
        return BIT
    assert binarizer.thresholds is not None
    return SPIN if binarizer.thresholds[0] == 0.0 else BIT


def _fit_binarizer(
    X: npt.NDArray[Any], threshold: str | float | None, weights: FloatArray | None
) -> Binarizer:
    method: str | float = "otsu"
    if isinstance(threshold, str):
        method = "otsu" if threshold == "auto" else threshold
        if method not in ("otsu", "median"):
            raise ValueError(
                f"`threshold` must be 'auto', 'median', a number or None, got {shown(threshold)}."
            )
    elif threshold is not None:
        method = as_real(threshold, "threshold")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConstantDataWarning)  # a constant feature stays constant
        binarizer = fit_binarizer(X, method, sample_weight=weights)
    if threshold is None and binarizer.method != "binary":
        found = np.setdiff1d(X, (-1.0, 0.0, 1.0))
        example = f"{found[0]:g}" if found.size else "-1, 0 and 1"
        raise ValueError(
            f"`X` must hold 0 and 1, or -1 and 1, where `threshold` is None; found {example}. "
            "Pass `threshold='auto'` to binarize."
        )
    return binarizer
