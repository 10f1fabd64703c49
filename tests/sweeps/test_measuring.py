"""A run of a sweep trains in the loop that `train` has: measurements on the way, kept before long ones."""

from __future__ import annotations

import pytest

import paramagnet as pm
from paramagnet.learning import evaluation
from paramagnet.learning.state import load_checkpoint
from paramagnet.sweeps import execute as run_module
from paramagnet.sweeps.execute import execute, state_file, train_run
from paramagnet.sweeps.run_points import load_points
from paramagnet.sweeps.seeds import annealing_seed
from paramagnet.sweeps.spec_files import parse_spec
from small_sweeps import EXACT, SAMPLED, outcome

EXACT_MAIS = EXACT.replace(
    "curve = 4", 'curve = 4\nlog_partition = "mais"\nn_samples = 60\nn_temperatures = 30\ncurve_samples = 20'
)
SAMPLED_EXACT = SAMPLED.replace('log_partition = "mais"', 'log_partition = "exact"')
TEXTS = {"exact-mais": EXACT_MAIS, "pcd-mais": SAMPLED, "pcd-exact": SAMPLED_EXACT}


def first(text):
    return next(iter(parse_spec(text, "tiny").runs()))


class BrokenError(Exception):
    """What no part of the package knows."""


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("number", [0, 1, 3])
def test_a_run_that_dies_while_it_measures_goes_on_with_the_measurement(name, number, tmp_path, monkeypatch):
    run = first(TEXTS[name])
    whole = execute(run)
    monkeypatch.setattr(run_module, "MEASURE_SECONDS", 0.0)
    method = "log_partition" if name == "pcd-exact" else "estimate_log_partition"
    real, calls = getattr(evaluation, method), []

    def die(rbm, **options):
        calls.append(1)
        if len(calls) == number + 1:
            raise BrokenError
        return real(rbm, **options)

    monkeypatch.setattr(evaluation, method, die)
    with pytest.raises(BrokenError):
        execute(run, states=str(tmp_path))
    kept = load_checkpoint(state_file(tmp_path, run))
    epochs = run.measurement.all_epochs
    assert kept.epoch == epochs[number]  # trained, and not measured
    assert [record.epoch for record in kept.records] == list(epochs[:number])
    assert outcome([execute(run, states=str(tmp_path))]) == outcome([whole])
    assert len(calls) == len(epochs) + 1  # no measurement but the broken one was made twice


@pytest.mark.parametrize("text", [EXACT, *TEXTS.values()])
def test_a_measured_run_ends_in_the_machine_of_an_unmeasured_one(text):
    run = first(text)
    points, held_out = load_points(run)
    state, record, last = train_run(run), execute(run), run.measurement.epochs[-1]
    assert (state.epoch, state.records) == (last, ())
    log_z = run.measurement.log_z(last)(state.rbm, annealing_seed(run, last), n_threads=1)
    for data, values in ((points, record.log_likelihood), (held_out, record.held_out)):
        expected = pm.log_likelihood(state.rbm, data, log_partition=log_z)
        assert values[-1] == pytest.approx(expected.value, rel=1e-12)
    assert record.error[-1] == log_z.error
