"""A restricted Boltzmann machine as a scikit-learn estimator: features, likelihoods, samples.

It follows scikit-learn's conventions (pipelines, searches, cloning, data frames) around the same machine, the
same initial scale and the same training as everywhere else in paramagnet.

[Y25] Yasuda, Maeno and Takahashi, Neural Networks 187 (2025), arXiv:2409.07708.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from paramagnet._arrays import shown
from paramagnet._checks import as_count, as_real, as_sample_weight, as_states
from paramagnet._extras import missing_extra
from paramagnet.data.binarize import Binarizer, ConstantDataWarning, fit_binarizer
from paramagnet.estimates import Estimate
from paramagnet.initializers import initialize
from paramagnet.learning.centring import Centring, as_centring
from paramagnet.learning.evaluation import LogZ, as_log_z
from paramagnet.learning.gradients.base import Gradient
from paramagnet.learning.guard import Guard
from paramagnet.learning.optimizers import Adam, Optimizer
from paramagnet.learning.preparing import take_over
from paramagnet.learning.recipe import RECOMMENDED, Recipe, choose_recipe
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

SPARSE_BIAS = -2.5
_DTYPES = (np.float64, np.float32)
_TRAINING, _LOG_PARTITION = 0, 1  # streams of random numbers


class RBMTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Restricted Boltzmann machine, started at the scale that the theory gives for its layers.

    What is None is chosen from the size of the data by ``recipe`` (`paramagnet.learning.recipe`).

    Parameters
    ----------
    n_components : int, default 256
        Number of hidden units.
    recipe : str, default "recommended"
        What to do about all that is None: "recommended", or "paper" for the start and the learning of [Y25].
    hidden : str, default "bit"
        Type of the hidden units, "bit" or "spin", also "relu" or "categorical(q)"; the visible ones are spins
        inside, whatever the data.
    hidden_bias : float, optional
        Initial bias of the hidden units. None is -2.5 for bits and else 0. For bits -2.5 was better than 0 on
        the two larger data sets of [Y25]; negative biases make the features sparse.
    visible_bias : float or str, optional
        Initial bias of the visible units: one number, or "data" for the biases that give the features their
        means.
    gain : float, default 1.0
        Factor on the initial scale.
    learning_rate : float, Schedule, str or callable, optional
        Learning rate of Adam: a number, a `Schedule` or its text (``"linear(0.005)"`` falls over all updates
        of `fit`), or a function of the index of the update; not used where ``optimizer`` is given. None is
        that of the recipe, which falls in `fit` and is constant in `partial_fit`.
    batch_size : int, optional
        Points per update.
    n_iter : int, optional
        How many times to go through the data.
    weight_decay : float, default 0.0
        ``learning_rate * weight_decay * w`` is taken off the weights at every update.
    l1, l1_group : float, default 0.0
        Penalties on the sizes of the weights, see `paramagnet.train`.
    clip : float, optional
        Largest norm of the gradient; None leaves it as it is.
    centred : bool or Centring, optional
        Whether learning is centred, see `paramagnet.train`. With biases from the data the start then is the
        recommended one, too (``scheme="recommended"`` of `paramagnet.initialize`), else that of the paper.
    gradient : Gradient, optional
        `paramagnet.Exact`, `PCD`, `CD` or one of your own; None is exact where a gradient takes no more than
        about 10 ms, else `PCD` with 100 chains and 20 sweeps.
    optimizer : Optimizer, optional
        `paramagnet.Adam`, `SGD` or one of your own; None is Adam with ``learning_rate``.
    guard : bool or Guard, optional
        Whether `fit` checks now and then that training has not failed, see `paramagnet.Guard`; None does so
        where gradients come from chains that persist, and else judges the machine once, at the end.
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
        The standard error that `log_partition_` gives to `score`, 0 where it is exact. The error of a mean
        over few points comes on top; see `score`.
    notes_ : tuple of str
        What went wrong in training, in words, as `paramagnet.TrainResult.notes`; empty if nothing did. A
        machine of 200 updates or more that ends below independent units is a `paramagnet.TrainingWarning`,
        too, unless ``guard`` is False.
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
        recipe: str = RECOMMENDED,
        hidden: str = "bit",
        hidden_bias: float | None = None,
        visible_bias: float | str | None = None,
        gain: float = 1.0,
        learning_rate: LearningRate | None = None,
        batch_size: int | None = None,
        n_iter: int | None = None,
        weight_decay: float = 0.0,
        l1: float = 0.0,
        l1_group: float = 0.0,
        clip: float | None = None,
        centred: bool | Centring | None = None,
        gradient: Gradient | None = None,
        optimizer: Optimizer | None = None,
        guard: bool | Guard | None = None,
        log_z: LogZ | None = None,
        threshold: str | float | None = "auto",
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.recipe = recipe
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
        if self.n_iter is not None:
            as_count(self.n_iter, "n_iter", minimum=0)
        X, weights = _weigh(X, sample_weight)
        rng, states = self._start(X, weights)
        recipe = self._choose(states)
        n_iter = recipe.epochs if self.n_iter is None else self.n_iter
        self._train(recipe, self._machine_for(recipe, states, rng, weights), states, n_iter, rng, weights)
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Go through the points of ``X`` once, from where the last call or `fit` ended.

        The first call learns the thresholds, so its points should be typical. ``sample_weight`` is as in
        `fit`. After the first call there is no guard, and no judgement of the machine: whether it still gets
        better is for `score` to say.
        """
        first = not hasattr(self, "_state")
        X = validate_data(self, X, dtype=_DTYPES, reset=first, ensure_min_samples=2 if first else 1)
        X, weights = _weigh(X, sample_weight)
        start: RBM | TrainState
        if first:
            rng, states = self._start(X, weights)
        else:
            rng, states = self._generator(_TRAINING, self._state.update), self._binarize(X)
        recipe = replace(self._choose(states), schedule="constant")
        start = self._machine_for(recipe, states, rng, weights) if first else self._state
        self._train(recipe, start, states, 1, rng, weights)
        return self

    def _choose(self, states: FloatArray) -> Recipe:
        """The recipe for these points, with the settings that were given."""
        n_points, n_visible = states.shape
        return choose_recipe(
            self.recipe,
            n_points,
            n_visible,
            SPIN,
            as_unit(self.hidden, "hidden"),
            n_hidden=as_count(self.n_components, "n_components"),
            batch_size=None if self.batch_size is None else as_count(self.batch_size, "batch_size"),
            exact=None if self.gradient is None else bool(getattr(self.gradient, "exact", False)),
        )

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

    def _machine_for(
        self, recipe: Recipe, states: FloatArray, rng: np.random.Generator, weights: FloatArray | None
    ) -> RBM:
        hidden_bias = self.hidden_bias
        if hidden_bias is None:
            unit = as_unit(self.hidden, "hidden")
            sparse = unit.width == 1 and unit.values is not None and not unit.symmetric
            hidden_bias = SPARSE_BIAS if sparse else 0.0
        bias = recipe.visible_bias if self.visible_bias is None else self.visible_bias
        centred = as_centring(recipe.centred if self.centred is None else self.centred) is not None
        return initialize(
            states.shape[1],
            recipe.n_hidden,
            hidden=self.hidden,
            visible_bias=bias,
            hidden_bias=hidden_bias,
            scheme="recommended" if centred and isinstance(bias, str) else "layer-correlation",
            gain=self.gain,
            data=states if isinstance(bias, str) else None,
            sample_weight=weights if isinstance(bias, str) else None,
            rng=rng,
        )

    def _train(
        self,
        recipe: Recipe,
        start: RBM | TrainState,
        states: FloatArray,
        epochs: int,
        rng: np.random.Generator,
        weights: FloatArray | None,
    ) -> None:
        rate: LearningRate = f"{recipe.schedule}({recipe.rate})"
        rate = rate if self.learning_rate is None else self.learning_rate
        options: dict[str, Any] = {
            "gradient": recipe.gradient if self.gradient is None else self.gradient,
            "optimizer": Adam(rate) if self.optimizer is None else self.optimizer,
            "batch_size": recipe.batch_size if self.batch_size is None else self.batch_size,
            "sample_weight": weights,
            "weight_decay": self.weight_decay,
            "l1": self.l1,
            "l1_group": self.l1_group,
            "clip": self.clip,
            "centred": recipe.centred if self.centred is None else self.centred,
        }
        guard = self.guard
        if isinstance(start, TrainState):
            start, guard = take_over(start, states, rng=rng, **options), False
        result = train(start, states, epochs=epochs, evaluate=(), rng=rng, guard=guard, **options)
        self._state, self.rbm_, self.notes_ = result.state, result.rbm, result.notes
        self._n_features_out = result.rbm.hidden_bias.size
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
        """The mean log-likelihood of the points, in nats per point, with their weights if they have some.

        It has two errors. The error of ``ln Z`` is `score_error_`; it is the same for all points, and falls
        with more samples and temperatures (``log_z``). The error of the mean over these points is
        ``score_samples(X).std(ddof=1) / sqrt(len(X))``; it is usually the larger one, and falls with more
        points. Report both: ``-18.78 +- 0.18 (597 points) +- 0.01 (ln Z)``. To compare two machines on the
        same points, take the mean and the error of the differences of their `score_samples`.
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
        """The standard error of ``ln Z``, one of the two errors of `score`."""
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
