"""Random calls of the theory: all unit pairs, layer sizes, variances and biases that the functions accept.

The calls are the same in every process. Biases are zero, moderate (a normal deviate of 3) or large (up to
100), in one call of fifteen different from unit to unit; variances of Gaussian units lie between 0.01 and
100, alpha between 1e-3 and 1e3, beta between 0.05 and 50.
"""

import numpy as np

AT_BETA = (
    "solve_saddle_point", "susceptibility", "layer_correlation", "overlap_response", "replica_stability",
)  # fmt: skip
NAMES = (*AT_BETA, "beta_max", "find_beta_max", "weight_std")
PAIRS = [(v, h) for v in ("spin", "bit", "gaussian") for h in ("spin", "bit", "gaussian")]


def _round(x):
    """Few digits, so that a call can be copied from a message and repeated."""
    return float(f"{x:.5g}")


def _unit(kind, rng):
    variance = _round(10.0 ** rng.uniform(-2, 2))
    return f"gaussian({variance})" if kind == "gaussian" and rng.random() < 0.8 else kind


def _bias(rng):
    kind = rng.choice(["zero", "moderate", "large"], p=[0.25, 0.4, 0.35])
    if kind == "zero":
        return 0.0
    return _round(3.0 * rng.normal() if kind == "moderate" else rng.uniform(-100, 100))


def _biases(rng):
    """A number, or in one call of fifteen the biases of ten to a hundred units."""
    bias, spread, size = _bias(rng), rng.choice([0.3, 3.0]), int(rng.integers(10, 101))
    units = bias + spread * rng.normal(size=size)
    return [_round(x) for x in units] if rng.random() < 1 / 15 else bias


def make_call(i):
    """The name of the function and the arguments of call ``i``, positional and by name; lists are biases that
    differ from unit to unit.
    """
    rng = np.random.default_rng([17, i])
    name = NAMES[i % len(NAMES)]
    visible, hidden = (_unit(kind, rng) for kind in PAIRS[(i // len(NAMES)) % len(PAIRS)])
    arguments = {"visible": visible, "hidden": hidden}
    if name == "weight_std":
        sizes = [int(10.0 ** rng.uniform(0, 3.5)) for _ in range(2)]
        return name, sizes, arguments | {"hidden_bias": _bias(rng)}
    beta, alpha = _round(10.0 ** rng.uniform(-1.3, 1.7)), _round(10.0 ** rng.uniform(-3, 3))
    arguments |= {"b": _biases(rng), "c": _biases(rng)}
    return name, [beta, alpha] if name in AT_BETA else [alpha], arguments


def run(call):
    """The package's answer to a call."""
    import paramagnet  # not for the oracle, which shares nothing with it

    name, positional, named = call
    for key, value in named.items():
        named = named | {key: paramagnet.Biases(value) if isinstance(value, list) else value}
    return getattr(paramagnet.theory, name)(*positional, **named)
