"""Bits in both layers, where the criterion is doubtful: what docs/beyond.md says of it."""

import itertools

import numpy as np
import pytest

import paramagnet as pm

BITS = {"visible": "bit", "hidden": "bit"}


def simulate(n, beta, b, c, draws, seed):
    """Means over the weights of E[v], E[h] and their squares: machines of bits, each summed as one of
    spins.
    """
    rng = np.random.default_rng(seed)
    states = np.array(list(itertools.product((-1.0, 1.0), repeat=n)))
    found = []
    for _ in range(draws):
        w = rng.normal(size=(n, n)) * beta / np.sqrt(2 * n)
        spin_w, spin_b, spin_c = w / 4, b / 2 + w.sum(axis=1) / 4, c / 2 + w.sum(axis=0) / 4
        fields = states @ spin_w + spin_c
        log_p = states @ spin_b + np.logaddexp(fields, -fields).sum(axis=1)
        p = np.exp(log_p - log_p.max())
        p /= p.sum()
        v, h = 0.5 + 0.5 * (p @ states), 0.5 + 0.5 * (p @ np.tanh(fields))
        found.append((v.mean(), h.mean(), np.mean(v * v), np.mean(h * h)))
    found = np.array(found)
    return found.mean(axis=0), found.std(axis=0) / np.sqrt(draws)


@pytest.mark.parametrize(("beta", "b", "c"), [(1.5, 0.0, -1.0), (2.5, -0.5, -2.0)])
def test_theory_against_the_mapped_spins(beta, b, c):
    (small, small_error), (large, large_error) = (
        simulate(n, beta, b, c, k, n) for n, k in ((5, 3000), (10, 800))
    )
    limit, error = 2 * large - small, np.hypot(2 * large_error, small_error)
    p = pm.theory.solve_saddle_point(beta, 1.0, b=b, c=c, **BITS)
    theory = np.array([p.magnetization_v, p.magnetization_h, p.q_v, p.q_h])
    assert np.all(np.abs(limit - theory) < 3.5 * error + 0.01 * theory), (limit, theory, error)


def test_the_correlation_changes_sign_and_its_maximum_jumps():
    beta = np.linspace(0.4, 8.0, 39)
    chi = pm.theory.layer_correlation(beta, 1.0, c=-2.0, **BITS)
    assert chi.max() == pytest.approx(0.0104, abs=2e-4)
    assert beta[chi.argmax()] == pytest.approx(2.6)
    assert 4.4 < beta[np.flatnonzero(chi < 0)[0]] < 5.0
    for c, first, rival in (
        (0.0, 4.486, None),
        (-0.5, 1.355, 5.296),
        (-1.0, 1.840, 6.285),
        (-1.25, 2.034, None),
    ):
        result = pm.theory.find_beta_max(1.0, c=c, **BITS)
        assert result.beta == pytest.approx(first, abs=1e-3)
        if rival is None:
            assert result.status == "maximum"
        else:
            assert result.rival == pytest.approx(rival, abs=0.02)
    with pytest.warns(pm.theory.MaximumWarning, match="has a higher maximum"):
        pm.beta_max(1.0, c=-1.0, **BITS)


def test_it_is_another_maximum_than_that_of_spins():
    """Weights of bits are twice those of spins for the same machine, but beta_max is not: the sum of
    covariances knows which value of a bit is called 1.
    """
    bits, spins = pm.theory.find_beta_max(1.0, c=-2.0, **BITS), pm.theory.find_beta_max(1.0, c=-2.0)
    assert abs(bits.beta - 2 * spins.beta) > 1.0


def test_the_recommended_start_is_a_machine_of_spins():
    spins = pm.initialize(12, 8, hidden_bias=-2.0, rng=0)
    bits = spins.to_bits("visible")
    np.testing.assert_allclose(bits.weights, 2 * spins.weights, rtol=1e-15)
    np.testing.assert_allclose(bits.hidden_bias, -2.0 - spins.weights.sum(axis=0), rtol=1e-14)
    states = np.random.default_rng(1).choice([-1.0, 1.0], size=(5, 12))
    ours, theirs = pm.log_likelihood(bits, (states + 1) / 2).value, pm.log_likelihood(spins, states).value
    assert ours == pytest.approx(theirs, rel=1e-12)
