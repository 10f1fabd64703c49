"""Sweeps: what is missing is run, once; whatever happens on the way, the records are the same."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from paramagnet import log_likelihood
from paramagnet.cli import app
from paramagnet.initializers import initialize
from paramagnet.learning.optimizers import Adam
from paramagnet.learning.training import train
from paramagnet.sweeps import execute as run_module
from paramagnet.sweeps.execute import DamagedStateWarning, Stop, Stopped, execute, state_file
from paramagnet.sweeps.executors import LocalProcesses
from paramagnet.sweeps.run_points import load_points
from paramagnet.sweeps.seeds import learning_seed, weight_seed
from paramagnet.sweeps.spec_files import parse_spec
from paramagnet.sweeps.store import Store
from small_sweeps import EXACT, SAMPLED, SPECS, outcome, sweep, whole


def test_a_run_is_what_the_public_functions_give():
    run = next(parse_spec(EXACT, "tiny").runs())
    record = execute(run, sweep="tiny")
    points, held_out = load_points(run)
    start = initialize(20, 2, gain=0.5, rng=weight_seed(run))
    result = train(start, points, epochs=6, optimizer=Adam(0.1), batch_size=10, rng=learning_seed(run))
    assert record.epochs == (0, 1, 2, 3, 6)
    assert record.log_likelihood[-1] == float(log_likelihood(result.rbm, points))
    assert record.held_out[-1] == float(log_likelihood(result.rbm, held_out))
    assert record.error == (0.0,) * 5
    assert record.sigma == pytest.approx(np.std(start.weights), rel=0.5)
    assert record.environment.startswith("Python 3")


def test_estimates_agree_with_exact_values_within_their_errors():
    run = next(parse_spec(SAMPLED, "tiny").runs())
    estimated = execute(run)
    exact = execute(replace(run, measurement=replace(run.measurement, log_partition="exact")))
    assert exact.error == (0.0,) * 5
    for value, error, truth in zip(
        estimated.log_likelihood, estimated.error, exact.log_likelihood, strict=True
    ):
        assert error > 0.0
        assert abs(value - truth) < 4.0 * error
    assert [error < 0.1 for error in estimated.error][3:] == [True, True]


def test_initial_scales_share_their_normal_draws():
    half, full, rival = (
        execute(run)
        for run in parse_spec(EXACT, "tiny").runs(trials=1)
        if run.n_hidden == 2 and run.trial == 0
    )
    assert full.sigma == 2.0 * half.sigma
    assert rival.sigma == pytest.approx(np.sqrt(2.0 / 22.0))


@pytest.mark.parametrize("name", list(SPECS))
def test_what_is_done_is_not_done_again(name, tmp_path):
    spec, path = parse_spec(SPECS[name], name), tmp_path / "a.jsonl"
    short = replace(spec, trials=1)
    assert sweep(short, path).new == 6
    seen = []
    result = sweep(spec, path, callback=seen.append)
    assert (result.done, result.total, result.new) == (12, 12, 6)
    assert (seen[0].done, seen[-1].done) == (6, 12)
    assert outcome(Store(path).records()) == whole(name)
    assert sweep(spec, path).new == 0


@pytest.mark.parametrize("name", list(SPECS))
def test_runs_go_on_from_where_they_were_stopped(name, tmp_path, monkeypatch):
    monkeypatch.setattr(run_module, "LOOK_SECONDS", 0.0)
    spec = parse_spec(SPECS[name], name)
    run = list(spec.runs())[-1]
    stop_file = tmp_path / "stop"
    steps, stops = 0, 0

    class AfterSomeSteps(Stop):
        def due(self):
            nonlocal steps
            steps += 1
            return steps % 6 == 0

    while True:
        try:
            record = execute(run, sweep=name, states=str(tmp_path), stop=AfterSomeSteps(file=str(stop_file)))
            break
        except Stopped:
            stops += 1
            assert state_file(tmp_path, run).exists() or steps % 6 == 0
    assert stops > 3
    assert outcome([record])[0] in whole(name)


def test_a_damaged_state_is_thrown_away_with_a_warning(tmp_path):
    run = next(parse_spec(EXACT, "exact").runs())
    state_file(tmp_path, run).write_bytes(b"rubbish")
    with pytest.warns(DamagedStateWarning, match=rf"A run starts anew: .*{run.digest}"):
        record = execute(run, sweep="exact", states=str(tmp_path))
    assert outcome([record])[0] in whole("exact")
    assert not state_file(tmp_path, run).exists()


def test_a_deadline_ends_a_sweep(tmp_path):
    result = sweep(parse_spec(EXACT, "exact"), tmp_path / "a.jsonl", deadline=time.time() - 1.0)
    assert (result.done, result.finished) == (0, False)


def test_runs_that_diverge_are_reported_and_the_rest_is_done(tmp_path):
    spec = parse_spec(EXACT.replace("learning_rate = 0.1", "learning_rate = 1e13"), "wild")
    result = sweep(spec, tmp_path / "a.jsonl")
    assert (result.done, len(result.failures)) == (0, 12)
    assert all("Training diverged" in message for message in result.failures.values())


def test_processes_give_the_same_records(tmp_path):
    pytest.importorskip("loky", reason="loky is not installed")
    executor = LocalProcesses(2)
    try:
        for name, text in SPECS.items():
            sweep(parse_spec(text, name), tmp_path / f"{name}.jsonl", executor)
            assert outcome(Store(tmp_path / f"{name}.jsonl").records()) == whole(name)
    finally:
        executor.shutdown()


def test_a_worker_that_is_killed_loses_nothing(tmp_path):
    pytest.importorskip("loky", reason="loky is not installed")
    spec = parse_spec(EXACT.replace("trials = 2", "trials = 6"), "exact")
    path, executor = tmp_path / "a.jsonl", LocalProcesses(2)
    killed = []

    def kill(progress):
        if progress.new >= 4 * (len(killed) + 1) and len(killed) < 2:
            victim = next(iter(executor._pool._processes))
            os.kill(victim, signal.SIGKILL)
            killed.append(victim)

    try:
        result = sweep(spec, path, executor, callback=kill)
    finally:
        executor.shutdown()
    assert len(killed) == 2
    assert result.finished
    records = Store(path).records()
    assert len({record.digest for record in records}) == len(records) == 36
    assert sweep(spec, tmp_path / "b.jsonl").finished
    assert outcome(records) == outcome(Store(tmp_path / "b.jsonl").records())


# The command line


def test_reproduce_runs_a_specification(tmp_path):
    (tmp_path / "exact.toml").write_text(EXACT)
    command = ["reproduce", str(tmp_path / "exact.toml"), "--jobs", "1", "--out", str(tmp_path / "out")]
    result = CliRunner().invoke(app, [*command, "--trials", "1"], catch_exceptions=False)
    assert result.exit_code == 0
    assert "exact: 6 of 6 runs, 6 new in " in result.output
    result = CliRunner().invoke(app, command, catch_exceptions=False)
    assert "exact: 12 of 12 runs, 6 new in " in result.output
    records = Store(tmp_path / "out" / "exact.jsonl").records()
    assert outcome(records) == whole("exact")
    assert {record.sweep for record in records} == {"exact"}


def test_reproduce_quick_takes_two_trials(tmp_path):
    (tmp_path / "exact.toml").write_text(EXACT.replace("trials = 2", "trials = 5"))
    command = ["reproduce", str(tmp_path / "exact.toml"), "--jobs", "1", "--out", str(tmp_path), "--quick"]
    assert "exact: 12 of 12 runs" in CliRunner().invoke(app, command, catch_exceptions=False).output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["toys"],
            "`WHAT` must be one of toy, drybean, ulc, mnist, figures, all, a "
            "specification .*, or the path of a .toml file, got 'toys' .did you mean 'toy'",
        ),
        (["toy", "--trials", "0"], "`--trials` must be a positive integer, got 0"),
        (["toy", "--jobs", "0"], "`--jobs` must be a positive integer, got 0"),
        (["toy", "--minutes", "-1"], "`--minutes` must be positive, got -1"),
    ],
)
def test_reproduce_says_what_is_wrong(arguments, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        CliRunner().invoke(app, ["reproduce", *arguments, "--out", str(tmp_path)], catch_exceptions=False)


def test_starts_that_are_named_twice_run_once(tmp_path):
    text = EXACT.replace("gains = [0.5, 1.0]", 'gains = [1.0, 1.0]\nstarts = ["layer-correlation", "xavier"]')
    result = sweep(parse_spec(text, "twice"), tmp_path / "twice.jsonl")
    assert (result.done, result.total, result.new) == (8, 8, 8)
    assert result.finished


def test_a_record_that_would_be_too_long_is_refused_before_the_run(tmp_path):
    spec = parse_spec(EXACT.replace("curve = 4", "curve = 90").replace("[3, 6]", "[3, 200]"), "s" * 60)
    with pytest.raises(ValueError, match=r"must not exceed 1000 bytes .* or give .* shorter names"):
        sweep(spec, tmp_path / "long.jsonl")


def test_a_cell_without_a_scale_fails_alone(tmp_path):
    text = EXACT.replace("gains = [0.5, 1.0]", "gains = [1.0]\nhidden_bias = [0.0, -300.0]")
    (tmp_path / "some.toml").write_text(text.replace('rivals = ["xavier"]', ""))
    command = ["reproduce", str(tmp_path / "some.toml"), "--jobs", "1", "--out", str(tmp_path / "out")]
    result = CliRunner().invoke(app, command, catch_exceptions=False)
    assert result.exit_code == 1
    assert "some: 4 of 8 runs, 4 new" in result.output
    assert "c = -300, gain 1, trial 0: " in result.output
    assert (tmp_path / "out" / "report.html").is_file()


def test_a_broken_store_beside_a_sweep_is_named(tmp_path):
    (tmp_path / "exact.toml").write_text(EXACT)
    (tmp_path / "other.jsonl").write_text("garbage\n{}\n")
    command = ["reproduce", str(tmp_path / "exact.toml"), "--jobs", "1", "--out", str(tmp_path)]
    with pytest.raises(ValueError, match=r"other\.jsonl, line 1, is no record"):
        CliRunner().invoke(app, command, catch_exceptions=False)
    assert len(Store(tmp_path / "exact.jsonl").records()) == 12


def test_a_record_is_on_the_disk_before_the_next_run_begins(tmp_path, monkeypatch):
    seen = []

    def count(run, **context):
        seen.append(len(Store(tmp_path / "a.jsonl").records()))
        return execute(run, **context)

    monkeypatch.setattr("paramagnet.sweeps.sweep.execute", count)
    monkeypatch.setattr("paramagnet.sweeps.sweep.CHUNK_SECONDS", 0.0)
    sweep(parse_spec(EXACT, "a"), tmp_path / "a.jsonl")
    assert seen == list(range(12))
