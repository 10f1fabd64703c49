"""mAIS, AIS and reverse AIS on machines trained on the toy data and on Dry Bean, against the exact ln Z."""

import functools
import math
import os

import numpy as np
import pytest

from paramagnet.data.datasets import load_dataset
from paramagnet.exact.sums import log_partition
from paramagnet.initializers import initialize
from paramagnet.learning.optimizers import Adam
from paramagnet.learning.training import train
from paramagnet.sampling.annealing import estimate_log_partition

METHODS = ("mais", "ais", "reverse-ais")
MACHINES = [
    ("toy", 20, "bit", 0.0),
    ("toy", 20, "bit", -5.0),
    ("toy", 12, "spin", 0.0),
    ("drybean", 16, "bit", 0.0),
    ("drybean", 16, "spin", 0.0),
]


def name_of(machine):
    return "{}-{}-{}{:+g}".format(*machine)


machines = pytest.mark.parametrize("machine", MACHINES, ids=name_of)
some_machines = pytest.mark.parametrize("machine", MACHINES[1:4], ids=name_of)
methods = pytest.mark.parametrize("method", METHODS)


@functools.cache
def trained(machine):
    name, n_hidden, hidden, bias = machine
    if name == "drybean" and "PARAMAGNET_DATA" not in os.environ:
        pytest.skip("PARAMAGNET_DATA is not set")
    data = load_dataset(name).data
    start = initialize(data.shape[1], n_hidden, hidden=hidden, hidden_bias=bias, rng=0)
    options = {"epochs": 200, "optimizer": Adam(0.01), "evaluate": [0, 200]}
    result = train(start, data, **options)
    assert result.history.log_likelihood[-1] > result.history.log_likelihood[0] + 4.0
    return result.rbm, log_partition(result.rbm)


@functools.cache
def estimates(machine, method, n_seeds, n_samples, n_temperatures):
    rbm, _ = trained(machine)
    options = {"method": method, "n_samples": n_samples, "n_temperatures": n_temperatures}
    return [estimate_log_partition(rbm, rng=seed, **options) for seed in range(n_seeds)]


def check_unbiased(machine, method, *size):
    """The mean of ``Z``, for reverse AIS of ``1 / Z``, over the exact one, is 1 within four errors."""
    runs, (_, exact) = estimates(machine, method, *size), trained(machine)
    sign = -1.0 if method == "reverse-ais" else 1.0
    ratios = np.exp(sign * (np.array([run.value for run in runs]) - exact))
    assert abs(ratios.mean() - 1.0) < 4.0 * ratios.std(ddof=1) / math.sqrt(len(runs))


def check_sandwich(machine, *size):
    """mAIS and AIS below the truth on average, reverse AIS above, within four errors."""
    _, exact = trained(machine)
    for method in METHODS:
        values = np.array([run.value for run in estimates(machine, method, *size)]) - exact
        side = 1.0 if method == "reverse-ais" else -1.0
        assert side * values.mean() > -4.0 * values.std(ddof=1) / math.sqrt(values.size)


@methods
@some_machines
def test_z_is_unbiased(machine, method):
    check_unbiased(machine, method, 20, 500, 50)


@some_machines
def test_forward_and_reverse_enclose_the_truth(machine):
    check_sandwich(machine, 20, 500, 50)


@some_machines
def test_forward_and_reverse_enclose_the_truth_with_one_sample(machine):
    """The bias of a logarithm is large here, and to the side it must be on."""
    _, exact = trained(machine)
    rbm = trained(machine)[0]
    for method in METHODS:
        runs = [
            estimate_log_partition(rbm, method=method, n_samples=2, n_temperatures=10, rng=seed).value
            for seed in range(150)
        ]
        bias, error = np.mean(runs) - exact, np.std(runs) / math.sqrt(len(runs))
        assert bias > 3.0 * error if method == "reverse-ais" else bias < -3.0 * error


@some_machines
def test_marginal_errors_are_below_joint_ones(machine):
    """With the same matrix products."""
    marginal, joint = (
        np.mean([run.error for run in estimates(machine, method, 20, 500, 50)]) for method in ("mais", "ais")
    )
    assert marginal < 0.9 * joint


@pytest.mark.slow
@methods
@machines
def test_intervals_cover_the_truth_in_200_seeds(machine, method):
    size = (200, 1000, 200)
    runs, (_, exact) = estimates(machine, method, *size), trained(machine)
    assert all(run.trusted for run in runs)
    assert 0.90 <= np.mean([abs(run.value - exact) < 1.96 * run.error for run in runs]) <= 0.99
    check_unbiased(machine, method, *size)


@pytest.mark.slow
@machines
def test_forward_and_reverse_enclose_the_truth_in_200_seeds(machine):
    check_sandwich(machine, 200, 1000, 200)
