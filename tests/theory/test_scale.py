"""beta_max as the first maximum of the layer correlation, its limits, and the words where it is doubtful."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import expit, lambertw

from paramagnet.theory.response import layer_correlation, layer_correlation_slope, replica_stability
from paramagnet.theory.scale import beta_max, find_beta_max, weight_std
from paramagnet.theory.status import MaximumWarning, NoMaximumError, ReplicaSymmetryWarning


def first_maximum(alpha, top, points=500, **machine):
    """The first local maximum of |layer correlation| on a dense grid, and the ratio of its steps."""
    beta = np.geomspace(0.15, top, points)
    value = np.abs(layer_correlation_slope(beta, alpha, **machine))
    inner = (value[1:-1] > value[:-2]) & (value[1:-1] >= value[2:])
    return beta[1 + np.argmax(inner)] if inner.any() else np.nan, beta[1] / beta[0]


# The first maximum ----------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(st.floats(np.log(0.05), np.log(20)), st.floats(-10.0, 3.0))
def test_it_is_the_first_maximum(log_alpha, c):
    alpha = np.exp(log_alpha)
    result = find_beta_max(alpha, c=c)
    first, ratio = first_maximum(alpha, 2.5 * result.beta, c=c)
    assert 1 / ratio <= result.beta / first <= ratio
    assert result.status == ("unstable" if result.stability < 0 else "maximum")
    assert result.curvature < 0


HOSTILE = [
    {"alpha": 1.0, "b": 0.02, "c": -9.0},
    {"alpha": 0.3, "b": -3.5, "c": -1.0},
    {"alpha": 5.0, "b": 3.0, "c": 2.0},
    {"alpha": 2.0, "b": 1.2, "c": -10.0},
    {"alpha": 1.3, "hidden": "spin", "b": 0.3},
    {"alpha": 0.2, "hidden": "spin", "c": -2.5},
    {"alpha": 4.0, "hidden": "spin", "b": -2.0, "c": 1.0},
    {"alpha": 0.7, "visible": "bit", "hidden": "spin", "b": -6.0, "c": 1.5},
    {"alpha": 3.0, "visible": "bit", "hidden": "bit", "b": -1.0, "c": -2.0},
    {"alpha": 1.0, "visible": "bit", "hidden": "bit", "b": 0.4, "c": 0.9},
]


@pytest.mark.parametrize("machine", HOSTILE, ids=lambda machine: " ".join(map(str, machine.values())))
def test_first_maximum_of_other_machines(machine):
    result = find_beta_max(**machine)
    first, ratio = first_maximum(top=1.7 * result.beta, points=200, **machine)
    assert 1 / ratio <= result.beta / first <= ratio


@pytest.mark.parametrize("machine", HOSTILE[:8], ids=lambda machine: " ".join(map(str, machine.values())))
def test_value_curvature_and_stability_at_the_maximum(machine):
    r = find_beta_max(**machine)
    step = 0.02 / np.sqrt(-r.curvature)
    f = np.log(np.abs(layer_correlation_slope(r.beta * np.exp(step * np.arange(-2, 3)), **machine)))
    slope = (8 * (f[3] - f[1]) - (f[4] - f[0])) / (12 * step)
    curvature = (-f[0] + 16 * f[1] - 30 * f[2] + 16 * f[3] - f[4]) / (12 * step**2)
    assert abs(slope) < 1e-5 * np.sqrt(-curvature)
    assert np.isclose(r.curvature, curvature, rtol=1e-3)
    assert np.isclose(r.value, layer_correlation_slope(r.beta, **machine), rtol=1e-8)
    assert np.isclose(r.stability, replica_stability(r.beta, **machine), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("alpha", [0.5, 1.0, 1.5])
def test_two_spin_layers_with_tiny_biases(alpha):
    """Figure 2 of the paper: with b = c = eps the peak goes to the transition as eps goes to zero."""
    distance = []
    for eps in (1e-2, 1e-3, 1e-4):
        machine = {"hidden": "spin", "b": eps, "c": eps}
        beta = beta_max(alpha, **machine)
        around = np.abs(layer_correlation(beta * (1 + np.linspace(-1e-4, 1e-4, 41)), alpha, **machine))
        assert abs(np.argmax(around) - 20) <= 1
        distance.append(abs(beta / beta_max(alpha, hidden="spin") - 1))
    assert distance[0] > 2 * distance[1] > 4 * distance[2]
    assert distance[2] < 1e-3


# Scalars, arrays, symmetries ------------------------------------------------------------------------------


def test_broadcast_equals_scalars():
    alpha, c = np.array([0.1, 1.0, 7.0])[:, None], np.array([-7.0, -4.0, 0.0, 2.0])
    table = beta_max(alpha, c=c)
    assert table.shape == (3, 4)
    for i, j in np.ndindex(3, 4):
        one = beta_max(alpha[i, 0], c=c[j])
        assert isinstance(one, float)
        assert np.isclose(one, table[i, j], rtol=1e-11, atol=0)
    mixed = beta_max(1.5, hidden="spin", b=0.0, c=np.array([0.0, 0.2, 1.0]))
    for value, c in zip(mixed, (0.0, 0.2, 1.0), strict=True):
        assert np.isclose(value, beta_max(1.5, hidden="spin", c=c), rtol=1e-11, atol=0)
    assert beta_max([], c=0.0).shape == (0,)
    assert beta_max(np.float32(0.5)) == beta_max(0.5)


@pytest.mark.parametrize(("alpha", "x"), [(0.3, 0.0), (1.0, -3.5), (8.0, -7.0), (0.05, 1.5)])
def test_layer_exchange(alpha, x):
    exchanged = beta_max(alpha, visible="bit", hidden="spin", b=x, c=0.0)
    assert np.isclose(exchanged, beta_max(1 / alpha, visible="spin", hidden="bit", c=x), rtol=1e-11, atol=0)


@pytest.mark.parametrize(
    ("first", "second", "b", "c"), [("spin", "spin", 0.3, -0.8), ("bit", "bit", -1.0, -2.5)]
)
def test_layer_exchange_with_two_biases(first, second, b, c):
    one = beta_max(0.6, visible=first, hidden=second, b=b, c=c)
    assert np.isclose(one, beta_max(1 / 0.6, visible=second, hidden=first, b=c, c=b), rtol=1e-10, atol=0)


@settings(max_examples=8, deadline=None)
@given(st.floats(0.1, 10.0), st.floats(0.01, 2.0), st.floats(-6.0, 2.0))
def test_sign_of_a_spin_bias_does_not_matter(alpha, b, c):
    results = [find_beta_max(alpha, b=sign * b, c=c).beta for sign in (1, -1)]
    assert np.isclose(*results, rtol=1e-11, atol=0)


def test_a_small_visible_bias_changes_little():
    """chi_vh = b s + O(b**3): the maximum moves with the square of b."""
    shift = [beta_max(1.0, b=b, c=-2.0) / beta_max(1.0, c=-2.0) - 1 for b in (1e-3, 1e-2)]
    assert np.isclose(shift[1] / shift[0], 100, rtol=0.01)
    assert 0 < abs(shift[0]) < 1e-5


# Limits ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [1e-3, 0.25, 1.0, 3.0, 1e3])
def test_closed_form_of_two_spin_layers(alpha):
    r = find_beta_max(alpha, hidden="spin")
    assert np.isclose(r.beta**2, np.sqrt(alpha) + 1 / np.sqrt(alpha), rtol=1e-14)
    assert (r.status, r.stability) == ("transition", 0.0)
    assert np.isclose(weight_std(40, 90, hidden="spin"), (40 * 90) ** -0.25, rtol=1e-14)
    assert np.isclose(weight_std(50, 50, hidden="spin"), np.sqrt(2 / 100), rtol=1e-14)  # Xavier


@pytest.mark.parametrize("c", [2.0, 0.0, -3.0, -10.0])
def test_few_hidden_units(c):
    """alpha -> 0: beta**2 = B with sigmoid(c + B/2) = (2/3)(1 + 1/B)."""
    limit = np.sqrt(brentq(lambda B: expit(c + B / 2) - 2 / 3 * (1 + 1 / B), 2.001, 200, xtol=1e-13))
    if c == 0:
        assert abs(limit - 1.88272) < 5e-6
    far, near = (beta_max(alpha, c=c) / limit - 1 for alpha in (1e-5, 1e-7))
    assert abs(near) < 1e-7
    assert np.isclose(far / near, 100, rtol=0.03)


@pytest.mark.parametrize("c", [2.0, 0.0, -2.0])
def test_many_hidden_units(c):
    """alpha -> inf: beta -> 1.105197906783/sigmoid(c)."""
    far, near = (beta_max(alpha, c=c) / (1.105197906783 / expit(c)) - 1 for alpha in (1e5, 1e7))
    assert abs(near) < 1e-5
    assert np.isclose(far / near, 100, rtol=0.03)


@pytest.mark.parametrize("alpha", [0.01, 0.3, 1.0])
def test_strongly_negative_biases(alpha):
    """c -> -inf: beta**2 ~ 2 (1+alpha) W0(exp(|c| - 1/2)/(2 sqrt(alpha))), approached from above."""
    c = np.array([-4.0, -8.0, -12.0, -20.0, -28.0])
    estimate = np.sqrt(2 * (1 + alpha) * lambertw(np.exp(-c - 0.5) / (2 * np.sqrt(alpha))).real)
    excess = find_beta_max(alpha, c=c).beta / estimate - 1
    assert (excess > 0).all()
    assert (np.diff(excess) < 0).all()
    assert excess[-1] < 0.021


# Where the maximum is doubtful ----------------------------------------------------------------------------


def overlap_is_monotone(alpha, c, centre):
    """Whether beta is a rising function of q_v around a point: if not, the transition is of first order.

    From the saddle-point equation alone, solved for beta at given q_v instead of the other way round.
    """
    z = np.linspace(-12, 12, 1601)
    weights = (z[1] - z[0]) / np.sqrt(2 * np.pi) * np.exp(-0.5 * z * z)

    def log_ratio(beta, q):
        A, B = alpha * beta**2 / (1 + alpha), beta**2 / (1 + alpha)
        mean = expit(c + 0.5 * B[:, None] * (1 - q[:, None]) + np.sqrt(B * q)[:, None] * z)
        q_h = mean**2 @ weights
        return np.log(np.tanh(np.sqrt(A * q_h)[:, None] * z) ** 2 @ weights / q)

    q = np.geomspace(1e-3, 0.7, 160)
    low, high = np.full_like(q, 0.5 * centre), np.full_like(q, 2.0 * centre)
    for _ in range(45):
        middle = 0.5 * (low + high)
        above = log_ratio(middle, q) > 0
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    assert (low > 0.51 * centre).all()
    assert (high < 1.99 * centre).all()
    return bool((np.diff(low) > 0).all())


@pytest.mark.parametrize(
    ("alpha", "c", "first_order"),
    [(3, -25, False), (3, -29, True), (1.15, -28, False), (1, -40, True), (1e3, -20, True)],
)
def test_first_order_transitions(alpha, c, first_order):
    result = find_beta_max(alpha, c=c)
    assert overlap_is_monotone(alpha, c, result.beta) == (not first_order)
    assert result.status == ("jump" if first_order else "unstable")


def test_no_maximum_at_a_first_order_transition():
    words = r"spin-bit machines with `alpha` = 1000, `b` = 0, `c` = -30 .*first-order transition"
    with pytest.raises(NoMaximumError, match=words) as info:
        beta_max(1000, c=-30)
    assert info.value.result.status == "jump"
    assert "nearer to zero" in str(info.value)
    assert isinstance(info.value, ValueError)
    with pytest.raises(NoMaximumError, match="first-order"):
        beta_max([1.0, 1000.0], c=[0.0, -30.0])
    with pytest.raises(NoMaximumError, match="first-order"):
        weight_std(1, 1000, hidden_bias=-30.0)


def test_rival_at_larger_beta():
    with pytest.warns(
        MaximumWarning, match=r"has a higher maximum at beta = 21[56].*first one, at beta = 1\.106"
    ) as record:
        beta = beta_max(1000, c=10)
    assert abs(beta - 1.10607) < 1e-4
    assert record[0].filename == __file__
    result = find_beta_max(1000, c=10)
    assert result.status == "rival"
    low, high = np.abs(layer_correlation_slope(np.array([result.beta, result.rival]), 1000, c=10))
    assert high > low
    with pytest.warns(MaximumWarning, match="higher maximum at beta = 7.8"):
        beta_max(3, c=6)


def test_no_warning_in_the_safe_region():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        beta_max(np.array([0.25, 1.0, 3.0])[:, None], c=np.array([-7.0, -2.0, 0.0, 2.0, 3.0]))


def test_a_maximum_that_slides_away_is_called_flat():
    """At alpha = 1 the maximum moves from 1.6 to 2.9 between c = 3.1 and c = 3.8."""
    with pytest.warns(MaximumWarning, match="flat"):
        beta_max(1, c=3.5)


def test_unstable_replica_symmetry():
    words = r"`alpha` = 1, `b` = 0, `c` = -14 has its maximum at beta = 6\.58.*unstable \(stability -0\.041"
    with pytest.warns(ReplicaSymmetryWarning, match=words) as record:
        beta = beta_max(1, c=-14)
    assert record[0].filename == __file__
    assert abs(beta - 6.58356) < 1e-4
    with pytest.warns(ReplicaSymmetryWarning, match="unstable") as record:
        beta_max(np.array([1.0, 3.0]), c=np.array([0.0, -14.0]))
    assert len(record) == 1
    with pytest.warns(ReplicaSymmetryWarning, match="unstable") as record:
        weight_std(100, 100, hidden_bias=-14.0)
    assert record[0].filename == __file__


def test_finding_never_raises_nor_warns():
    alpha, c = np.array([1e-3, 0.05, 1.0, 30.0, 1e3])[:, None], np.array([-30.0, -15.0, -6.0, 0.0, 4.0, 10.0])
    result = find_beta_max(alpha, c=c)
    known = {"maximum", "transition", "flat", "rival", "unstable", "jump", "none"}
    assert set(result.status.ravel()) <= known
    assert result.status[4, 0] == "jump"
    assert result.status[2, 3] == "maximum"
    for name in ("beta", "value", "curvature", "stability", "rival", "status"):
        assert getattr(result, name).shape == (5, 6)


# What is refused ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", [beta_max, find_beta_max])
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"alpha": 0}, r"^`alpha` must be positive, got 0\.$"),
        ({"alpha": -1.5}, r"^`alpha` must be positive, got -1\.5\.$"),
        ({"alpha": np.nan}, r"^`alpha` must be finite, got nan\.$"),
        ({"alpha": np.inf}, r"^`alpha` must be finite, got inf\.$"),
        ({"alpha": 1j}, r"^`alpha` must be real, got 1j\.$"),
        ({"c": np.nan}, r"^`c` must be finite, got nan\.$"),
        ({"b": "big"}, r"^`b` must be a real number or an array of them, got 'big'\.$"),
        (
            {"hidden": "gauss"},
            r"^`hidden` must be a unit type \(.*\), got 'gauss' \(did you mean 'gaussian'\?\)\.$",
        ),
        ({"visible": 1}, r"^`visible` must be a unit type \('spin', 'bit', 'gaussian', .*\), got 1\.$"),
    ],
)
def test_errors_by_their_words(function, arguments, words):
    with pytest.raises(ValueError, match=words):
        function(**{"alpha": 1.0, **arguments})


@pytest.mark.parametrize(
    ("bad", "shown"), [(0, "0"), (-3, "-3"), (2.5, r"2\.5"), (True, "True"), ("7", "'7'"), (None, "None")]
)
def test_sizes_by_their_words(bad, shown):
    with pytest.raises(ValueError, match=rf"^`n_visible` must be a positive integer, got {shown}\.$"):
        weight_std(bad, 10)
    with pytest.raises(ValueError, match=rf"^`n_hidden` must be a positive integer, got {shown}\.$"):
        weight_std(10, bad)


def test_other_errors_of_weight_std():
    with pytest.raises(ValueError, match=r"^`hidden_bias` must be finite, got nan\.$"):
        weight_std(10, 10, hidden_bias=np.nan)
    with pytest.raises(ValueError, match=r"^`hidden_bias` must be a single number"):
        weight_std(10, 10, hidden_bias=[0.0, 1.0])
    with pytest.raises(ValueError, match=r"^`hidden` must be a unit type"):
        weight_std(10, 10, hidden="elu")
    assert np.isclose(weight_std(np.int64(784), 500), 1.515775 / np.sqrt(1284), rtol=1e-6)


@pytest.mark.parametrize(("n", "m"), [(1, 7), (1, 1000), (30, 7), (30, 1000)])
def test_weight_std_is_beta_max_over_the_root_of_the_size(n, m):
    sigma = weight_std(n, m, hidden_bias=-1.0)
    assert isinstance(sigma, float)
    assert np.isclose(sigma, beta_max(m / n, c=-1.0) / np.sqrt(n + m), rtol=1e-14)


@pytest.mark.parametrize(("alpha", "c"), [(1.0, 1e-12), (0.01, 9.9e-9), (1e-7, 1e-12), (1.0, 9.9e-8)])
def test_tiny_biases_of_two_symmetric_layers(alpha, c):
    """A peak narrower than floats can tell is the transition, not a jump."""
    result = find_beta_max(alpha, hidden="spin", c=c)
    assert result.status == "transition"
    assert result.beta == find_beta_max(alpha, hidden="spin").beta
    near = find_beta_max(1.0, hidden="spin", c=1e-6)
    assert near.status == "maximum"
    assert abs(near.beta / np.sqrt(2.0) - 1.0) < 2e-12
