"""Initial machines: the paper's weights, and the scales that people use otherwise.

Weights are drawn from N(0, sigma**2) with the scheme's ``sigma`` times ``gain``; [Y25] section 2 draws
them with ``sigma = beta_max/sqrt(n + m)`` (scheme ``"layer-correlation"``). The other schemes are those
of feed-forward networks, read with the visible layer as the input, and Hinton's rule of thumb.
`compare_schemes` says what the theory thinks of each of them, and of the defaults of other packages.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from paramagnet._arrays import require_memory, shown
from paramagnet._checks import as_choice, as_count, as_generator, as_positive, as_real, as_reals
from paramagnet.rbm import RBM
from paramagnet.theory.biases import Biases
from paramagnet.theory.ensemble import LARGEST_BIAS, as_bias
from paramagnet.theory.scale import find_beta_max
from paramagnet.theory.status import judge
from paramagnet.units import FloatArray, Unit, as_unit

_FIXED_SCALES: dict[str, Callable[[int, int], float]] = {
    "xavier": lambda n, m: np.sqrt(2.0 / (n + m)),
    "he": lambda n, m: np.sqrt(2.0 / n),
    "lecun": lambda n, m: np.sqrt(1.0 / n),
    "hinton": lambda n, m: 0.01,
}
SCHEMES = ("layer-correlation", *_FIXED_SCALES)
_HOPFIELD = "hopfield"
_N_ROUNDS = 10  # of moving the centres of groups of points


def scheme_std(
    scheme: str,
    n_visible: int,
    n_hidden: int,
    *,
    visible: str | Unit = "spin",
    hidden: str | Unit = "bit",
    visible_bias: float | Biases = 0.0,
    hidden_bias: float = 0.0,
) -> float:
    """The standard deviation of the weights that a scheme gives for these layers; ``visible_bias`` may be
    `Biases`.
    """
    n, m = as_count(n_visible, "n_visible"), as_count(n_hidden, "n_hidden")
    as_choice(scheme, "scheme", SCHEMES)
    units = as_unit(visible, "visible"), as_unit(hidden, "hidden")
    b = visible_bias if isinstance(visible_bias, Biases) else as_real(visible_bias, "visible_bias")
    c = as_real(hidden_bias, "hidden_bias")
    if scheme in _FIXED_SCALES:
        return float(_FIXED_SCALES[scheme](n, m))
    b, c = b if isinstance(b, Biases) else as_bias(b, "visible_bias"), as_bias(c, "hidden_bias")
    maximum = find_beta_max(m / n, visible=units[0], hidden=units[1], b=b, c=c)
    judge(maximum, stacklevel=4)
    return float(maximum.beta / np.sqrt(n + m))


def initialize(
    n_visible: int,
    n_hidden: int,
    *,
    visible: str | Unit = "spin",
    hidden: str | Unit = "bit",
    visible_bias: float | str | npt.ArrayLike = 0.0,
    hidden_bias: float = 0.0,
    scheme: str = "layer-correlation",
    gain: float = 1.0,
    data: npt.ArrayLike | None = None,
    scale_from: str = "zero",
    rng: np.random.Generator | int | None = None,
) -> RBM:
    """A machine ready to learn: weights from N(0, (gain sigma)**2) with the scheme's sigma, biases as given.

    ``gain = 0.25`` is the paper's beta_max/4. With one number as ``visible_bias`` the scale is the
    theory's for that bias. A bias that differs from unit to unit, an array or ``visible_bias="data"``,
    leaves the scale at that of zero visible bias, as in the paper, unless ``scale_from="biases"`` asks for
    that of the biases' own distribution (`Biases`). ``"data"`` sets each unit's bias so that the machine
    without weights has the mean of that column of ``data``, smoothed for units of two values.

    ``scheme="hopfield"`` draws no weights: with ``visible_bias="data"`` every hidden unit is given the mean
    of a group of points as its pattern. The idea is that of [L21] Leonelli, Agliari, Albanese and Barra,
    Neural Networks 143 (2021) 314, for known patterns and Gaussian hidden units.
    """
    as_choice(scale_from, "scale_from", ("zero", "biases"))
    as_choice(scheme, "scheme", (*SCHEMES, _HOPFIELD))
    n, m = as_count(n_visible, "n_visible"), as_count(n_hidden, "n_hidden")
    require_memory(16 * n * m, "n_visible` or `n_hidden", (n, m))
    visible, hidden = as_unit(visible, "visible"), as_unit(hidden, "hidden")
    factor = float(as_positive(as_real(gain, "gain"), "gain", zero=True))
    generator = as_generator(rng)
    c = as_real(hidden_bias, "hidden_bias")
    if isinstance(visible_bias, str):
        biases = _biases_from_data(visible_bias, data, visible, n)
    else:
        if data is not None:
            raise ValueError(
                '`data` is used with `visible_bias="data"` only; pass that, or leave `data` out; got '
                f"`visible_bias` = {shown(visible_bias)}."
            )
        biases = as_reals(visible_bias, "visible_bias")
        if biases.shape not in ((), (n,)):
            raise ValueError(
                f"`visible_bias` must be one number or one for each of the {n} visible units, "
                f"got shape {biases.shape}."
            )
    if scheme == _HOPFIELD:
        if not isinstance(visible_bias, str):
            raise ValueError(
                '`scheme="hopfield"` makes its patterns of data: pass `visible_bias="data"` and `data=`, got '
                f"`visible_bias` = {shown(visible_bias)}."
            )
        points = visible.as_states(data, "data", n)
        return _hopfield_machine(points, m, biases, c, visible, hidden, factor, generator)
    bias: float | Biases = float(biases) if biases.ndim == 0 else 0.0
    if scale_from == "biases" and biases.ndim:
        bias = Biases(biases)
        if bias.largest > LARGEST_BIAS:
            raise ValueError(
                f'`visible_bias` must stay below {LARGEST_BIAS:g} for `scale_from="biases"`, got '
                f"{bias.largest:g}. Standardize the data, or leave `scale_from` out."
            )
    sigma = scheme_std(scheme, n, m, visible=visible, hidden=hidden, visible_bias=bias, hidden_bias=c)
    weights = generator.normal(0.0, 1.0, size=(n, m)) * (factor * sigma)
    return RBM(weights, np.broadcast_to(biases, (n,)), np.full(m, c), visible, hidden)


def _biases_from_data(rule: str, data: npt.ArrayLike | None, unit: Unit, n_visible: int) -> FloatArray:
    """Biases that give a unit on its own the mean of its column of the data."""
    if rule != "data":
        raise ValueError(f'`visible_bias` must be a number, an array or "data", got {shown(rule)}.')
    if data is None:
        raise ValueError(
            '`visible_bias="data"` needs the data: pass `data=`, an array (n_points, n_visible); `data` is '
            "None."
        )
    states = unit.as_states(data, "data", n_visible)
    return unit.bias_from(states, "data")


def _hopfield_machine(
    points: FloatArray,
    n_hidden: int,
    visible_bias: FloatArray,
    c: float,
    visible: Unit,
    hidden: Unit,
    gain: float,
    rng: np.random.Generator,
) -> RBM:
    """Patterns ``xi`` in the data as weights, both layers centred:

        E(v, h) = -sum_ij (v_i - v0_i) w_ij (h_j - h0) - sum_i b_i v_i - c sum_j h_j,
        w_ij = (xi_ij - v0_i)/sqrt(n)

    with ``v0`` and ``h0`` the means of the units in the biases alone. A network with the patterns ``xi`` has
    these weights at its own critical temperature, [L21]. What is ours: groups of points in place of known
    patterns, the centres, and hidden units with two values (a bit is half a spin: its weights are doubled).
    """
    if any(unit.values is None or len(unit.values) != 2 for unit in (visible, hidden)):
        raise ValueError(
            f'`scheme="hopfield"` is for units of two values, got {visible} and {hidden}; draw the weights.'
        )
    v0, h0 = visible.mean(visible_bias), float(hidden.mean(np.asarray(c)))
    patterns = _group_means(points, n_hidden, rng) - v0
    weights = gain * patterns.T / (visible.spread**2 * hidden.spread * np.sqrt(points.shape[1]))
    return RBM(weights, visible_bias - weights.sum(axis=1) * h0, c - v0 @ weights, visible, hidden)


def _group_means(points: FloatArray, n_groups: int, rng: np.random.Generator) -> FloatArray:
    """The means of groups of points: Lloyd's rounds from points drawn at random, different ones as far as
    there are; a group that loses all its points keeps its place.
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
