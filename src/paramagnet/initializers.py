"""Initial machines, with the paper's weights or with other common scales (`schemes`).

Weights are drawn from N(0, sigma**2) with the scheme's ``sigma`` times ``gain``; [Y25] section 2 draws
them with ``sigma = beta_max/sqrt(n + m)`` (scheme ``"layer-correlation"``). The other schemes are those
of feed-forward networks, with the visible layer as the input, and Hinton's rule of thumb.
`compare_schemes` compares each of them, and the defaults of other packages, with the theory.

[Y25] Yasuda, Maeno and Takahashi, Neural Networks 187 (2025), arXiv:2409.07708.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from paramagnet._arrays import require_memory, shown
from paramagnet._checks import (
    as_choice,
    as_count,
    as_generator,
    as_positive,
    as_real,
    as_reals,
    as_sample_weight,
)
from paramagnet.rbm import RBM
from paramagnet.schemes import Drawn, LayerPair, Scheme, as_scale, as_scheme
from paramagnet.theory.biases import Biases
from paramagnet.units import FloatArray, Unit, find_unit

_MOST_REPETITIONS = 1 << 20  # larger whole numbers are weights, not counts of points


def scheme_std(
    scheme: str | Scheme,
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

    Parameters
    ----------
    scheme : str or Scheme
        Name of the scheme.
    n_visible, n_hidden : int
        Numbers of units.
    visible, hidden : str or Unit, optional
        Types of the units: ``"spin"``, ``"bit"``, ``"gaussian"`` or a unit object.
    visible_bias : float or Biases, default 0.0
        Bias of all visible units, or a distribution of biases.
    hidden_bias : float, default 0.0
        Bias of all hidden units.

    Returns
    -------
    float
        Standard deviation of the initial weights.
    """
    n, m = as_count(n_visible, "n_visible"), as_count(n_hidden, "n_hidden")
    scale = as_scale(scheme, "scheme")
    units = find_unit(visible, "visible"), find_unit(hidden, "hidden")
    b = visible_bias if isinstance(visible_bias, Biases) else as_real(visible_bias, "visible_bias")
    return scale.std(LayerPair(n, m, *units, b, as_real(hidden_bias, "hidden_bias")))


def initialize(
    n_visible: int,
    n_hidden: int,
    *,
    visible: str | Unit = "spin",
    hidden: str | Unit = "bit",
    visible_bias: float | str | npt.ArrayLike | None = None,
    hidden_bias: float = 0.0,
    scheme: str | Scheme = "layer-correlation",
    gain: float = 1.0,
    data: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
    scale_from: str = "zero",
    rng: np.random.Generator | int | None = None,
) -> RBM:
    """An initial machine: weights from N(0, (gain sigma)**2) with the scheme's sigma, and the given biases.

    ``gain = 0.25`` is the paper's beta_max/4. With one number as ``visible_bias`` the scale is the
    theory's for that bias. With biases that differ from unit to unit (an array or ``visible_bias="data"``)
    the scale is that of zero visible bias, as in the paper, unless ``scale_from="biases"`` selects that of
    the distribution of the biases (`Biases`). ``"data"`` sets each unit's bias so that the machine
    without weights has the mean of that column of ``data``, smoothed for units of two values.

    ``scheme`` is a name (layer-correlation, xavier, he, lecun, hinton, d-wave, hopfield, centred,
    recommended), an object of a class derived from `paramagnet.schemes.Scheme`, or the import path of such a
    class as ``"package.module:Name"``. The last three of these names need ``data``, and set the visible
    biases from it. ``"hopfield"`` draws no weights: every hidden unit is given the mean of a group of points
    as its pattern (`paramagnet.schemes.Hopfield`). ``"centred"`` is the start for centred learning: weights
    of layer-correlation whose mean effect the biases of both layers take back
    (`paramagnet.schemes.Centred`). ``"recommended"`` is the start that `paramagnet train` uses, at present
    the centred one with 0.7071 of these weights.

    `draw_machine` takes the same arguments and returns the sigma that was used as well.

    Parameters
    ----------
    n_visible, n_hidden : int
        Numbers of units.
    visible, hidden : str or Unit, optional
        Types of the units: ``"spin"``, ``"bit"``, ``"gaussian"``, ``"categorical(q)"`` or a unit object.
    visible_bias : float, str or array_like, optional
        One number, one per unit (and state of categorical units), or ``"data"`` for the biases that give
        each unit the mean of its column of ``data``. None is ``"data"`` with schemes that need data, else 0.
    hidden_bias : float, default 0.0
        Bias of all hidden units.
    scheme : str or Scheme, default "layer-correlation"
        Name of the scheme that gives the scale of the weights.
    gain : float, default 1.0
        Factor on the scale; 0.25 is the paper's beta_max/4.
    data : array_like, optional
        Points for biases from data, and for schemes that use data.
    sample_weight : array_like, optional
        Weights of these points, zero or positive, for biases from data. Whole numbers count points so many
        times; others are scaled to the mean one. Points of weight zero are left out.
    scale_from : str, default "zero"
        ``"zero"`` takes the scale of a machine without visible biases, ``"biases"`` that of the biases' own
        distribution.
    rng : int or numpy.random.Generator, optional
        Seed or generator of the random numbers; None takes a new seed from the operating system.

    Returns
    -------
    RBM
        The machine.
    """
    return draw_machine(
        n_visible,
        n_hidden,
        visible=visible,
        hidden=hidden,
        visible_bias=visible_bias,
        hidden_bias=hidden_bias,
        scheme=scheme,
        gain=gain,
        data=data,
        sample_weight=sample_weight,
        scale_from=scale_from,
        rng=rng,
    ).rbm


def draw_machine(
    n_visible: int,
    n_hidden: int,
    *,
    visible: str | Unit = "spin",
    hidden: str | Unit = "bit",
    visible_bias: float | str | npt.ArrayLike | None = None,
    hidden_bias: float = 0.0,
    scheme: str | Scheme = "layer-correlation",
    gain: float = 1.0,
    data: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
    scale_from: str = "zero",
    rng: np.random.Generator | int | None = None,
) -> Drawn:
    """The machine of `initialize` as ``rbm``, and as ``sigma`` the standard deviation with which its weights
    were drawn, gain included; the theory is solved only once for both.

    Parameters
    ----------
    n_visible, n_hidden : int
        Numbers of units.
    visible, hidden : str or Unit, optional
        Types of the units: ``"spin"``, ``"bit"``, ``"gaussian"``, ``"categorical(q)"`` or a unit object.
    visible_bias : float, str or array_like, optional
        One number, one per unit (and state of categorical units), or ``"data"`` for the biases that give
        each unit the mean of its column of ``data``. None is ``"data"`` with schemes that need data, else 0.
    hidden_bias : float, default 0.0
        Bias of all hidden units.
    scheme : str or Scheme, default "layer-correlation"
        Name of the scheme that gives the scale of the weights.
    gain : float, default 1.0
        Factor on the scale; 0.25 is the paper's beta_max/4.
    data : array_like, optional
        Points whose means, and for some schemes more, are used.
    sample_weight : array_like, optional
        Weights of these points, as in `initialize`.
    scale_from : str, default "zero"
        ``"zero"`` takes the scale of a machine without visible biases, ``"biases"`` that of the biases' own
        distribution.
    rng : int or numpy.random.Generator, optional
        Seed or generator of the random numbers; None takes a new seed from the operating system.

    Returns
    -------
    Drawn
        The machine, and the standard deviation of its weights.
    """
    as_choice(scale_from, "scale_from", ("zero", "biases"))
    chosen = as_scheme(scheme, "scheme")
    n, m = as_count(n_visible, "n_visible"), as_count(n_hidden, "n_hidden")
    visible, hidden = find_unit(visible, "visible"), find_unit(hidden, "hidden")
    n_rows = n * visible.width
    require_memory(16 * n_rows * m * hidden.width, "n_visible` or `n_hidden", (n, m))
    factor = float(as_positive(as_real(gain, "gain"), "gain", zero=True))
    generator = as_generator(rng)
    c = as_real(hidden_bias, "hidden_bias")
    points: FloatArray | None = None
    if visible_bias is None:
        visible_bias = "data" if chosen.needs_data and data is not None else 0.0
    if isinstance(visible_bias, str):
        points, counts = _weigh(_as_points(visible_bias, data, visible, n), sample_weight)
        biases = visible.bias_from(points, "data", *(() if counts is None else (counts,)))
    else:
        biases = _as_biases(visible_bias, data, n, visible.width)
        if sample_weight is not None:
            raise ValueError(
                '`sample_weight` is used with `visible_bias="data"` only; pass that, or leave '
                f"`sample_weight` out; got `visible_bias` = {shown(visible_bias)}."
            )
        if chosen.needs_data:
            raise ValueError(
                f"`scheme` = {shown(scheme)} makes its weights from data: pass "
                f'`visible_bias="data"` and `data=`, got `visible_bias` = {shown(visible_bias)}.'
            )
    # One number for all states of a label changes no probability.
    bias: float | Biases = float(biases) if biases.ndim == 0 and visible.width == 1 else 0.0
    if scale_from == "biases" and biases.ndim:
        bias = Biases(biases if visible.width == 1 else biases.reshape(-1, visible.width))
    layers = LayerPair(n, m, visible, hidden, bias, c)
    given = points if chosen.needs_data else None
    return chosen.draw(layers, np.broadcast_to(biases, (n_rows,)), given, factor, generator)


def _as_points(rule: str, data: npt.ArrayLike | None, unit: Unit, n_visible: int) -> FloatArray:
    """The points from which biases are computed, checked."""
    if rule != "data":
        raise ValueError(f'`visible_bias` must be a number, an array or "data", got {shown(rule)}.')
    if data is None:
        raise ValueError(
            '`visible_bias="data"` needs the data: pass `data=`, an array (n_points, n_visible); `data` is '
            "None."
        )
    return unit.as_states(data, "data", n_visible)


def _weigh(points: FloatArray, weights: npt.ArrayLike | None) -> tuple[FloatArray, FloatArray | None]:
    """The points of positive weight, and how often each of them counts; None where all count once."""
    if weights is None:
        return points, None
    found = as_sample_weight(weights, "sample_weight", len(points))
    kept = found > 0.0
    found = found[kept]
    if found.max() > _MOST_REPETITIONS or (found != np.rint(found)).any():
        found = found / found.max()
        found = found / found.mean()
    return points[kept], found


def _as_biases(visible_bias: npt.ArrayLike, data: npt.ArrayLike | None, n: int, width: int) -> FloatArray:
    """The visible biases as one number, or one number for each visible unit (and state), checked."""
    if data is not None:
        raise ValueError(
            '`data` is used with `visible_bias="data"` only; pass that, or leave `data` out; got '
            f"`visible_bias` = {shown(visible_bias)}."
        )
    biases = as_reals(visible_bias, "visible_bias")
    if width > 1 and biases.shape == (n, width):
        biases = biases.ravel()
    if biases.shape not in ((), (n * width,)):
        states = f"{width} states of the " if width > 1 else ""
        raise ValueError(
            f"`visible_bias` must be one number or one for each of the {states}{n} visible units, got shape "
            f"{biases.shape}."
        )
    return biases
