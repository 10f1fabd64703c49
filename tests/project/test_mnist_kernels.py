"""MNIST by two kinds of kernels: planted differences move the words, records by other kernels are refused.

[Y25] Yasuda, Maeno and Takahashi, Neural Networks 187 (2025), arXiv:2409.07708.
"""

from __future__ import annotations

import importlib
from dataclasses import replace
from pathlib import Path

import pytest

from paramagnet.reproduction.paper_specs import find_spec
from paramagnet.sweeps.store import Store

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def mnist_kernels():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "benchmarks")
        yield importlib.import_module("mnist_kernels")


def planted(*shifts):
    """Pairs whose portable run is ahead by these values after 40 epochs, and level after 20."""
    model = Store(ROOT / "results" / "mnist_spin.jsonl").records()[0]
    pairs = []
    for trial, shift in enumerate(shifts):
        last = -142.0 - trial
        int16 = replace(model, trial=trial, epochs=(0, 20, 40), log_likelihood=(-540.0, -157.0, last))
        portable = replace(int16, log_likelihood=(-540.0, -157.0, last + shift))
        pairs.append((int16, portable))
    return pairs


def test_a_planted_difference_is_suspected_and_equal_kernels_are_not(mnist_kernels):
    level = mnist_kernels.describe_kernels(planted(0.6, -0.5, 0.3, -0.4))
    assert "ahead by +0.00 +- 0.00 and +0.00 +- 0.27 nats in the mean" in level
    assert "no difference between the kernels" in level
    assert (
        "differ by as much in 100 % of such experiments, and by more than two standard errors in 14 %"
        in level
    )
    ahead = mnist_kernels.describe_kernels(planted(1.6, 0.5, 1.3, 0.6))
    assert "and +1.00 +- 0.27 nats in the mean" in ahead
    assert "the kernels are suspected, the portable ones being ahead" in ahead
    assert "differ by as much in 3 % of such experiments" in ahead
    behind = mnist_kernels.describe_kernels(planted(-1.6, -0.5, -1.3, -0.6))
    assert "the kernels are suspected, the int16 ones being ahead" in behind


def test_two_pairs_decide_nothing(mnist_kernels):
    assert "needs 3" in mnist_kernels.describe_kernels(planted(3.0, 3.0))


def test_the_sweep_is_table_8_with_a_seed_of_its_own():
    plan, table = find_spec(ROOT / "benchmarks" / "mnist_kernels.toml"), find_spec("mnist_spin")
    assert plan.learning == table.learning
    assert (plan.visible, plan.hidden, plan.n_hidden, plan.gains) == ("spin", "spin", (500,), (1.0,))
    assert plan.seed != table.seed


def test_records_are_paired_by_trial_and_name_their_kernels(mnist_kernels, tmp_path):
    pairs = mnist_kernels.read_pairs()
    assert all(int16.digest == portable.digest for int16, portable in pairs)
    assert len(pairs) == 4
    assert sum(mnist_kernels.differences(pairs, 40)) < 0.0  # int16 is ahead, as the page says
    paper = -140.14  # [Y25] Table 8, beta_max after 40 epochs; both kinds are below it, as the page says
    assert max(record.log_likelihood[-1] for pair in pairs for record in pair) < paper
    for wrong in mnist_kernels.KERNELS:
        source = mnist_kernels.DATA / "mnist_kernels_int16.jsonl"
        (tmp_path / f"mnist_kernels_{wrong}.jsonl").write_bytes(source.read_bytes())
    with pytest.raises(ValueError, match=r"of portable was run by .*int16 kernels"):
        mnist_kernels.read_pairs(tmp_path)
