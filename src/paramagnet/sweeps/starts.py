"""The starts of a sweep: names for initial machines, from the weights alone to those that look at the data.

A start is named like its scheme of weights, with what is done about the visible biases behind it:

    layer-correlation            zero biases, the paper's
    layer-correlation+data       each bias from the mean of its feature, weights at the scale of zero bias
    layer-correlation+data-own   the same biases, weights at beta_max of these biases
    hinton+data                  (or any other scheme) the same biases, weights of the scheme
    d-wave                       zero biases, the default scale of D-Wave's package
    hopfield                     groups of points as patterns, see `initialize`

A number before the name is a gain: "0.5 layer-correlation+data". All starts of a trial scale the same normal
draws, except hopfield, which draws points.
"""

from __future__ import annotations

from typing import Any

from paramagnet.initializers import SCHEMES, initialize, scheme_std
from paramagnet.package_scales import PACKAGE_DEFAULTS
from paramagnet.rbm import RBM
from paramagnet.theory.biases import Biases
from paramagnet.units import FloatArray

OURS = "layer-correlation"
DATA, OWN = "+data", "+data-own"
D_WAVE, HOPFIELD = "d-wave", "hopfield"
STARTS = (*SCHEMES, *(scheme + DATA for scheme in SCHEMES), OURS + OWN, D_WAVE, HOPFIELD)


def parse_start(text: str) -> tuple[str, float]:
    """The name and the gain of a start as a specification writes it."""
    before, _, name = text.rpartition(" ")
    try:
        gain = float(before) if before else 1.0
    except ValueError:
        gain = 0.0
    if name not in STARTS or not 0.0 < gain < float("inf"):
        raise ValueError(
            f"`starts` must hold names among {', '.join(STARTS)}, a gain before them if need be "
            f'("0.5 {OURS}{DATA}"), got {text!r}.'
        )
    return name, gain


def start_machine(
    name: str, points: FloatArray, n_hidden: int, *, gain: float, rng: int, **machine: Any
) -> RBM:
    """The initial machine of that start; ``machine`` is ``visible``, ``hidden`` and ``hidden_bias``."""
    n = points.shape[1]
    options = {**machine, "gain": gain, "rng": rng}
    if name == HOPFIELD:
        return initialize(n, n_hidden, scheme=HOPFIELD, visible_bias="data", data=points, **options)
    if name == D_WAVE:  # one scheme serves as the unit of another scale
        options["gain"] = gain * _d_wave_std(n, n_hidden) / scheme_std("lecun", n, n_hidden)
        return initialize(n, n_hidden, scheme="lecun", **options)
    scheme, data, own = name.partition(DATA)
    if not data:
        return initialize(n, n_hidden, scheme=scheme, **options)
    scale_from = "biases" if own else "zero"
    return initialize(
        n, n_hidden, scheme=scheme, visible_bias="data", data=points, scale_from=scale_from, **options
    )


def start_std(name: str, points: FloatArray, n_hidden: int, *, rng: int, **machine: Any) -> float:
    """The standard deviation of the weights with a gain of 1; that of the drawn ones for hopfield."""
    n = points.shape[1]
    if name == HOPFIELD:
        return float(start_machine(name, points, n_hidden, gain=1.0, rng=rng, **machine).weights.std())
    if name == D_WAVE:
        return _d_wave_std(n, n_hidden)
    scheme, _, own = name.partition(DATA)
    if not own:
        return scheme_std(scheme, n, n_hidden, **machine)
    rbm = initialize(n, n_hidden, scheme="hinton", visible_bias="data", data=points, **machine)
    return scheme_std(scheme, n, n_hidden, visible_bias=Biases(rbm.visible_bias), **machine)


def _d_wave_std(n_visible: int, n_hidden: int) -> float:
    """D-Wave's number as it stands, with bit hidden units too; theirs are spins."""
    (default,) = (package for package in PACKAGE_DEFAULTS if package.name.startswith("D-Wave"))
    return float(default.scale(n_visible, n_hidden))
