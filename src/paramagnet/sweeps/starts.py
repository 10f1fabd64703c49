"""The starts of a sweep: names for initial machines, from the weights alone to those that look at the data.

A start is named like its scheme of weights, with what is done about the visible biases behind it:

    layer-correlation            zero biases, the paper's
    layer-correlation+data       each bias from the mean of its feature, weights at the scale of zero bias
    layer-correlation+data-own   the same biases, weights at beta_max of these biases
    hinton+data                  (or any other scheme) the same biases, weights of the scheme
    d-wave                       zero biases, the default scale of D-Wave's package
    hopfield                     groups of points as patterns, see `initialize`
    centred                      layer-correlation between centred units, see `initialize`
    package.module:Name+data     a class of the user's; settings stand in brackets: Name(width=0.5)+data

A number before the name is a gain: "0.5 layer-correlation+data". All starts of a trial scale the same normal
draws, except hopfield, which draws points.
"""

from __future__ import annotations

from typing import Any

from paramagnet.initializers import draw_machine
from paramagnet.schemes import SCHEMES, Drawn, Scale, Scheme, as_scheme
from paramagnet.units import FloatArray

OURS = "layer-correlation"
DATA, OWN = "+data", "+data-own"


def _ways(scheme: type[Scheme]) -> tuple[str, ...]:
    """What may stand behind the name of a scheme."""
    if scheme.needs_data:
        return ("",)
    return ("", DATA, OWN) if issubclass(scheme, Scale) and scheme.reads_biases else ("", DATA)


_SETTLED = [name for name in SCHEMES.names if SCHEMES.find(name, "starts").settled]
_WAYS = {name: _ways(SCHEMES.find(name, "starts")) for name in _SETTLED}
STARTS = tuple(name + way for way in ("", DATA, OWN) for name, ways in _WAYS.items() if way in ways)


def parse_start(text: str) -> tuple[str, float]:
    """The name and the gain of a start as a specification writes it."""
    before, _, name = text.rpartition(" ")
    try:
        gain = float(before) if before else 1.0
    except ValueError:
        gain = 0.0
    scheme, way = _split(name)
    own = ":" in scheme
    known = way in _ways(type(as_scheme(scheme, "starts"))) if own else name in STARTS
    if not known or not 0.0 < gain < float("inf"):
        raise ValueError(
            f"`starts` must hold names among {', '.join(STARTS)}, or 'package.module:Name' for a class of "
            f'yours, a gain before them if need be ("0.5 {OURS}{DATA}"), got {text!r}.'
        )
    return name, gain


def start_machine(
    name: str, points: FloatArray, n_hidden: int, *, gain: float, rng: int, **machine: Any
) -> Drawn:
    """The initial machine of that start with its sigma; ``machine`` is ``visible``, ``hidden`` and
    ``hidden_bias``.
    """
    text, way = _split(name)
    scheme = as_scheme(text, "starts")
    options = {**machine, "scheme": scheme, "gain": gain, "rng": rng}
    if way or scheme.needs_data:
        options |= {
            "visible_bias": "data",
            "data": points,
            "scale_from": "biases" if way == OWN else "zero",
        }
    return draw_machine(points.shape[1], n_hidden, **options)


def _split(name: str) -> tuple[str, str]:
    """The scheme of a start, and what stands behind it."""
    way = next((way for way in (OWN, DATA) if name.endswith(way)), "")
    return name.removesuffix(way), way
