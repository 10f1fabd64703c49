"""Schemes for initial weights. Each is a class, which `SCHEMES` knows by its name.

A scheme of fixed or computed scale derives from `Scale` and has one method, the standard deviation of the
weights for given layers. A scheme that does more than scaling normal draws (patterns from data, say) derives
from `Scheme` and makes the machine. To add one, write the class here and give it a name at the end of this
file; a class outside the package is named by its import path, ``"package.module:Name"``.

[Y25] Yasuda, Maeno and Takahashi, Neural Networks 187 (2025), arXiv:2409.07708.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from paramagnet._arrays import shown
from paramagnet._registry import Registry
from paramagnet.rbm import RBM
from paramagnet.theory.biases import Biases
from paramagnet.theory.edge import centred_start
from paramagnet.theory.ensemble import LARGEST_BIAS, as_bias, as_layer_bias
from paramagnet.theory.layers.dispatch import theory_of
from paramagnet.theory.scale import find_beta_max
from paramagnet.theory.status import judge
from paramagnet.units import FloatArray, Unit

_N_ROUNDS = 10  # rounds of Lloyd's method for groups of points


@dataclass(frozen=True)
class LayerPair:
    """The two layers for which weights are to be drawn.

    ``visible_bias`` is the bias for which the scale is computed: a number, or a distribution of biases.
    """

    n_visible: int
    n_hidden: int
    visible: Unit
    hidden: Unit
    visible_bias: float | Biases = 0.0
    hidden_bias: float = 0.0

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the weights; categorical units have a row, or column, per state."""
        return self.n_visible * self.visible.width, self.n_hidden * self.hidden.width

    def keep_gauge(self, weights: FloatArray) -> None:
        """Take the means over the states of categorical units off new ``weights``, in place. They are
        dropped: added to the biases of the other layer they would be a random bias of every unit.
        """
        if self.visible.zero_sum:
            self.visible.project(weights)
        if self.hidden.zero_sum:
            self.hidden.project(weights.T)


@dataclass(frozen=True, eq=False)
class Drawn:
    """An initial machine, and ``sigma``, the standard deviation of its weights, gain included.

    For schemes that draw no weights, ``sigma`` is the standard deviation of the weights they made.
    """

    rbm: RBM
    sigma: float


class Scheme(ABC):
    """A way to make an initial machine.

    ``needs_data`` says that `draw` needs points; visible biases then come from the data as well.
    ``package`` is set if the scheme is the default of another package, which `compare_schemes` lists among
    the packages. ``settled`` says that the name will always mean the same start; specifications of sweeps
    take no other, because their records are kept.
    """

    needs_data: ClassVar[bool] = False
    settled: ClassVar[bool] = True
    package: ClassVar[bool] = False

    @abstractmethod
    def draw(
        self,
        layers: LayerPair,
        visible_bias: FloatArray,
        points: FloatArray | None,
        gain: float,
        rng: np.random.Generator,
    ) -> Drawn:
        """The machine with these visible biases, its weights multiplied by ``gain``.

        ``points`` are values of the visible units, ``(n_points, n_visible)``; None unless `needs_data`.
        """


class Scale(Scheme):
    """A scheme that draws the weights from ``N(0, (gain sigma)**2)``.

    ``reads_biases`` says that `std` depends on the visible biases.
    """

    reads_biases: ClassVar[bool] = False

    @abstractmethod
    def std(self, layers: LayerPair) -> float:
        """The standard deviation sigma of the weights at gain 1."""

    def scaled(self, sigma: float, layers: LayerPair, gain: float) -> float:
        """The factor by which normal draws are multiplied."""
        return gain * sigma

    def draw(
        self,
        layers: LayerPair,
        visible_bias: FloatArray,
        points: FloatArray | None,
        gain: float,
        rng: np.random.Generator,
    ) -> Drawn:
        """The machine whose weights are scaled normal draws."""
        n, m, c = layers.n_visible, layers.n_hidden, layers.hidden_bias
        sigma = float(self.std(layers))
        if not (np.isfinite(sigma) and sigma >= 0.0):
            raise ValueError(
                f"`scheme` must give a finite standard deviation of at least 0, {type(self).__name__} gave "
                f"{sigma!r} for {n} x {m} units."
            )
        weights = rng.normal(0.0, 1.0, size=layers.shape) * self.scaled(sigma, layers, gain)
        layers.keep_gauge(weights)
        rbm = RBM(weights, visible_bias, np.full(weights.shape[1], c), layers.visible, layers.hidden)
        return Drawn(rbm, gain * sigma)


class LayerCorrelation(Scale):
    """The paper's scale: ``beta_max/sqrt(n + m)``, the maximum of the layer correlation, [Y25] section 2."""

    reads_biases: ClassVar[bool] = True

    def std(self, layers: LayerPair) -> float:
        """``beta_max/sqrt(n + m)``, by solving for ``beta_max``."""
        n, m = layers.n_visible, layers.n_hidden
        b, c = layers.visible_bias, as_bias(layers.hidden_bias, "hidden_bias")
        if not isinstance(b, Biases):
            b = as_layer_bias(b, layers.visible, "visible_bias")
        elif b.largest > LARGEST_BIAS:
            raise ValueError(
                f'`visible_bias` must stay below {LARGEST_BIAS:g} for `scale_from="biases"`, got '
                f"{b.largest:g}. Standardize the data, or leave `scale_from` out."
            )
        maximum = find_beta_max(m / n, visible=layers.visible, hidden=layers.hidden, b=b, c=c)
        judge(maximum)
        return float(maximum.beta / np.sqrt(n + m))


class Centred(Scheme):
    """The paper's weights, and biases that take the means of both layers off them: the start that fits
    centred learning (`paramagnet.train` with ``centred=True``).
    """

    needs_data: ClassVar[bool] = True

    def draw(
        self,
        layers: LayerPair,
        visible_bias: FloatArray,
        points: FloatArray | None,
        gain: float,
        rng: np.random.Generator,
    ) -> Drawn:
        """The weights of `LayerCorrelation` between centred units:

            E(v, h) = -sum_ij (v_i - mu_i) w_ij (h_j - lam) - sum_i b_i v_i - c sum_j h_j

        with ``mu`` and ``lam`` the means of the units in the biases alone, ``b`` those of the data. Beside
        labels and ReLU units, where the weights change these means most, `theory.edge.centred_start` gives
        ``lam`` and a further term of ``b`` that keeps the frequencies of the labels.
        """
        drawn = LayerCorrelation().draw(layers, visible_bias, None, gain, rng)
        weights, c = drawn.rbm.weights, layers.hidden_bias
        visible, hidden, width = layers.visible, layers.hidden, layers.hidden.width
        mu, lam = visible.mean(visible_bias), float(hidden.mean(np.full(width, c))[0])
        added: FloatArray | float = 0.0
        if visible.width > 1 or theory_of(hidden, "hidden").condenses:
            lam, added = centred_start(drawn.sigma, visible, hidden, visible_bias, c, layers.n_hidden)
        biases = visible_bias + added - lam * weights.sum(axis=1), c - mu @ weights
        return Drawn(RBM(weights, *biases, layers.visible, layers.hidden), drawn.sigma)


class Recommended(Centred):
    """The start of the recipe ``"recommended"``: `Centred` with 0.7071 of the paper's weights.

    What is recommended may change with what is known; `Centred` with a gain is the same for ever.
    """

    settled: ClassVar[bool] = False
    gain: ClassVar[float] = 0.7071

    def draw(
        self,
        layers: LayerPair,
        visible_bias: FloatArray,
        points: FloatArray | None,
        gain: float,
        rng: np.random.Generator,
    ) -> Drawn:
        """The machine of `Centred` at ``gain`` times 0.7071."""
        return super().draw(layers, visible_bias, points, gain * self.gain, rng)


class FixedScale(Scale):
    """A scheme whose sigma is a function of the two sizes."""

    @abstractmethod
    def scale(self, n_visible: int, n_hidden: int) -> float:
        """The standard deviation of the weights at gain 1."""

    def std(self, layers: LayerPair) -> float:
        """The standard deviation from the sizes alone; the unit types have no effect."""
        return float(self.scale(layers.n_visible, layers.n_hidden))


class Xavier(FixedScale):
    """Glorot and Bengio's scale of feed-forward networks, with the visible layer as the input."""

    def scale(self, n_visible: int, n_hidden: int) -> float:
        """``sqrt(2/(n + m))``."""
        return float(np.sqrt(2.0 / (n_visible + n_hidden)))


class He(FixedScale):
    """He's scale of networks with rectified units."""

    def scale(self, n_visible: int, n_hidden: int) -> float:
        """``sqrt(2/n)``."""
        return float(np.sqrt(2.0 / n_visible))


class LeCun(FixedScale):
    """LeCun's scale of feed-forward networks."""

    def scale(self, n_visible: int, n_hidden: int) -> float:
        """``sqrt(1/n)``."""
        return float(np.sqrt(1.0 / n_visible))


class Hinton(FixedScale):
    """Hinton's rule of thumb for restricted Boltzmann machines."""

    def scale(self, n_visible: int, n_hidden: int) -> float:
        """0.01 for all sizes."""
        return 0.01


class DWave(FixedScale):
    """The default of D-Wave's PyTorch plugin 0.4, whose units are spins; the number is used without change
    for other units.
    """

    package: ClassVar[bool] = True

    def scale(self, n_visible: int, n_hidden: int) -> float:
        """``2.5 (n m)**(-1/4)``."""
        return float(2.5 * (n_visible * n_hidden) ** -0.25)

    def scaled(self, sigma: float, layers: LayerPair, gain: float) -> float:
        """``gain sigma``, in the order of operations that rounded the weights of existing records."""
        lecun = float(np.sqrt(1.0 / layers.n_visible))
        return gain * sigma / lecun * lecun


class Hopfield(Scheme):
    """Weights from patterns, which are the means of groups of points; no weights are drawn.

    The idea is that of [L21] Leonelli, Agliari, Albanese and Barra, Neural Networks 143 (2021) 314, for known
    patterns and Gaussian hidden units. Three things are our additions: groups of points in place of known
    patterns, the centres, and hidden units with two values (a bit is half a spin, so its weights are
    doubled).
    """

    needs_data: ClassVar[bool] = True

    def draw(
        self,
        layers: LayerPair,
        visible_bias: FloatArray,
        points: FloatArray | None,
        gain: float,
        rng: np.random.Generator,
    ) -> Drawn:
        """The machine whose weights are patterns ``xi`` in the data, with both layers centred:

            E(v, h) = -sum_ij (v_i - v0_i) w_ij (h_j - h0) - sum_i b_i v_i - c sum_j h_j,
            w_ij = (xi_ij - v0_i)/sqrt(n)

        with ``v0`` and ``h0`` the means of the units in the biases alone. A network with the patterns ``xi``
        has these weights at its own critical temperature, [L21].
        """
        assert points is not None
        visible, hidden, c = layers.visible, layers.hidden, layers.hidden_bias
        if any(unit.values is None or len(unit.values) != 2 or unit.width > 1 for unit in (visible, hidden)):
            raise ValueError(
                f'`scheme="hopfield"` is for units of two values, got {visible} and {hidden}; draw the '
                "weights."
            )
        v0, h0 = visible.mean(visible_bias), float(hidden.mean(np.asarray(c)))
        patterns = _group_means(points, layers.n_hidden, rng) - v0
        norm = visible.spread**2 * hidden.spread * np.sqrt(points.shape[1])
        weights = gain * patterns.T / norm
        sigma = float(np.ascontiguousarray(patterns.T / norm).std())
        rbm = RBM(weights, visible_bias - weights.sum(axis=1) * h0, c - v0 @ weights, visible, hidden)
        return Drawn(rbm, gain * sigma)


def _group_means(points: FloatArray, n_groups: int, rng: np.random.Generator) -> FloatArray:
    """The means of groups of points, by rounds of Lloyd's method that start from points drawn at random.

    The starting points differ as long as there are enough different points; a group that loses all its points
    keeps its centre.
    """
    different = np.unique(points, axis=0)
    order = rng.permutation(len(different))
    centres = different[np.resize(order, n_groups)]
    for _ in range(_N_ROUNDS):
        distances = (centres**2).sum(axis=1) - 2.0 * (points @ centres.T)
        nearest = distances.argmin(axis=1)
        sizes = np.bincount(nearest, minlength=n_groups)
        sums = np.zeros_like(centres)
        np.add.at(sums, nearest, points)
        filled = sizes > 0
        centres[filled] = sums[filled] / sizes[filled, None]
    return centres


SCHEMES: Registry[Scheme] = Registry({}, base=f"{__name__}:Scheme")
SCHEMES.add("layer-correlation", LayerCorrelation)
SCHEMES.add("xavier", Xavier)
SCHEMES.add("he", He)
SCHEMES.add("lecun", LeCun)
SCHEMES.add("hinton", Hinton)
SCHEMES.add("d-wave", DWave)
SCHEMES.add("hopfield", Hopfield)
SCHEMES.add("centred", Centred)
SCHEMES.add("recommended", Recommended)


def as_scheme(scheme: str | Scheme, argument: str) -> Scheme:
    """The scheme called ``scheme``, or the object itself.

    A text is a name or ``"package.module:Name"``, with settings in brackets if needed:
    ``"own:Narrow(width=0.5)"``.
    """
    if isinstance(scheme, Scheme):
        return scheme
    if not isinstance(scheme, str):
        raise ValueError(
            f"`{argument}` must be one of {', '.join(map(repr, SCHEMES.names))}, 'package.module:Name' for a "
            f"class of yours, or an object of a class derived from `paramagnet.schemes.Scheme`, got "
            f"{shown(scheme)}."
        )
    return SCHEMES.parse(scheme, argument)


def as_scale(scheme: str | Scheme, argument: str) -> Scale:
    """The scheme of `as_scheme`; raises ValueError if it does not scale normal draws (`Scale`)."""
    found = as_scheme(scheme, argument)
    if not isinstance(found, Scale):
        scales = (name for name in SCHEMES.names if issubclass(SCHEMES.find(name, argument), Scale))
        raise ValueError(
            f"`{argument}` must be a scheme with a standard deviation ({', '.join(scales)}, or a class "
            f"derived from `paramagnet.schemes.Scale`), got {shown(scheme)}."
        )
    return found
