"""Specifications: those of the paper say what it says, those of users are checked, and seeds stand alone."""

from __future__ import annotations

import re
from dataclasses import replace
from importlib.resources import files

import numpy as np
import pytest

from paramagnet.reproduction.paper import read_log_likelihoods
from paramagnet.reproduction.paper_specs import find_spec, paper_specs
from paramagnet.reproduction.plan import PLANS, Stage, shorten
from paramagnet.sweeps import seeds
from paramagnet.sweeps.run_points import load_points
from paramagnet.sweeps.spec import OURS
from paramagnet.sweeps.spec_files import parse_spec
from paramagnet.sweeps.store import MOST_BYTES, RunRecord
from small_sweeps import EXACT

TINY = EXACT.replace("gains = ", "hidden_bias = [0.0, -1.0]\ngains = ")


def tiny(name="tiny", **changes):
    return replace(parse_spec(TINY, name), **changes)


def test_paper_specs_have_exactly_the_cells_of_the_paper():
    ours = [
        (
            spec.table,
            run.data.name,
            run.n_hidden,
            run.hidden,
            run.hidden_bias,
            run.gain,
            epoch,
        )
        for spec in map(find_spec, paper_specs())
        if spec.table
        for run in spec.runs(trials=1, part="paper")
        for epoch in run.measurement.epochs
    ]
    theirs = [
        (row.table, row.dataset, row.n_hidden, row.hidden, row.c, row.gain, row.epoch)
        for row in read_log_likelihoods()
    ]
    assert len(theirs) == 345
    assert sorted(ours) == sorted(theirs)


@pytest.mark.parametrize("name", paper_specs())
def test_paper_specs_measure_often_enough_and_fit_into_a_line(name):
    spec = find_spec(name)
    epochs = spec.measurement.all_epochs
    assert epochs[0] == 0
    assert set(spec.measurement.epochs) <= set(epochs)
    assert 15 <= len(epochs) <= 25
    run = max(spec.runs(trials=1), key=lambda run: len(run.scheme))
    length = len(epochs)
    record = RunRecord(
        digest=run.digest,
        sweep=spec.name,
        table=spec.table,
        dataset=run.data.name,
        n_visible=784,
        n_hidden=run.n_hidden,
        visible="spin",
        hidden=run.hidden,
        c=run.hidden_bias,
        scheme=run.scheme,
        gain=0.25,
        sigma=0.0123456,
        trial=100,
        seed=spec.seed,
        epochs=epochs,
        log_likelihood=(-573.8712,) * length,
        held_out=(-573.8712,) * length,
        error=(0.01234,) * length if spec.measurement.log_partition == "mais" else (0.0,) * length,
        seconds=1234.5678,
        version="0.10.0",
        commit="0123abcd+",
        environment="x" * 90,
        finished="2026-01-01T00:00:00Z",
    )
    assert len(record.to_line().encode()) <= MOST_BYTES


def test_paper_specs_name_the_settings_of_section_4():
    facts = {
        "toy_spin": (100, 0.01, None, "exact"),
        "drybean_bit": (150, 0.001, 500, "exact"),
        "ulc_spin": (50, 0.0001, 50, "pcd"),
        "mnist_bit": (30, 0.0001, 100, "pcd"),
    }
    for name, expected in facts.items():
        spec = find_spec(name)
        learning = spec.learning
        assert (spec.trials, learning.learning_rate, learning.batch_size, learning.gradient) == expected
    ulc, mnist = find_spec("ulc_bit").measurement, find_spec("mnist_spin").measurement
    assert ulc.effort(40) == (4000, 2500)
    assert mnist.effort(100) == (4500, 3000)
    assert mnist.effort(1) == (500, 500)


def test_plans_cover_every_specification_and_all_trials():
    for plan in ({"toy", "drybean", "ulc", "mnist", "figures"}, {"all"}):
        stages = [stage for name in plan for stage in PLANS[name]]
        full = {(stage.spec, stage.part) for stage in stages if stage.trials is None}
        assert {spec for spec, _ in full} == set(paper_specs())
        with_rivals = {name for name in paper_specs() if find_spec(name).rivals}
        assert {spec for spec, part in full if part == "rivals"} >= with_rivals


def test_all_leaves_no_cell_empty_before_it_adds_trials_in_order():
    stages = PLANS["all"]
    order = [
        Stage("mnist_bit", "paper", 1),
        Stage("mnist_spin", "paper", 2),
        Stage("mnist_bit", "paper", 2),
        Stage("ulc_spin", "paper", 10),
        Stage("ulc_bit", "paper", 10),
        Stage("drybean_spin", "paper"),
        Stage("drybean_bit", "paper"),
        Stage("mnist_spin", "rivals", 1),
        Stage("mnist_spin", "paper", 3),
        Stage("mnist_bit", "paper", 3),
    ]
    first = stages.index(order[0])
    assert list(stages[first : first + len(order)]) == order
    before = {stage.spec for stage in stages[: first + 1] if stage.part == "paper"}
    assert before == set(paper_specs())
    assert all(stage.part == "paper" for stage in stages if stage.spec == "mnist_spin" and stage.trials == 2)


def test_plans_can_be_shortened():
    stages = (Stage("toy_spin", "paper"), Stage("toy_spin", "rivals", 2))
    assert shorten(stages, trials=5, quick=False) == (stages[0]._replace(trials=5), stages[1])
    assert shorten(stages, trials=None, quick=True) == (Stage("toy_spin", "paper"),)
    assert shorten(stages, trials=None, quick=False) == stages


# Runs and seeds


def test_runs_come_trial_after_trial_with_rivals_at_the_end():
    runs = list(tiny().runs())
    assert len(runs) == len({run.digest for run in runs}) == 2 * 2 * 2 * 3
    assert [run.trial for run in runs] == [0] * 8 + [1] * 8 + [0] * 4 + [1] * 4
    assert {run.scheme for run in runs[:16]} == {OURS}
    assert {(run.scheme, run.gain) for run in runs[16:]} == {("xavier", 1.0)}
    assert list(tiny().runs(part="paper")) + list(tiny().runs(part="rivals")) == runs


def test_adding_cells_or_trials_changes_no_other_run():
    few = {run.digest: run for run in tiny().runs()}
    more = {
        run.digest: run
        for run in tiny(
            "renamed", n_hidden=(1, 2, 3), hidden_bias=(-1.0, 0.5, 0.0), gains=(4.0, 1.0, 0.5), trials=3
        ).runs()
    }
    assert few.keys() < more.keys()
    for digest, run in few.items():
        for seed in (seeds.weight_seed, seeds.learning_seed, seeds.data_seed, seeds.held_out_seed):
            assert seed(run) == seed(more[digest])
        assert seeds.annealing_seed(run, 3) == seeds.annealing_seed(more[digest], 3)


def test_initial_scales_share_their_seeds_and_nothing_else_does():
    runs = list(tiny().runs())
    by_setting: dict[tuple[object, ...], set[tuple[int, int]]] = {}
    for run in runs:
        key = (run.n_hidden, run.hidden_bias, run.trial)
        by_setting.setdefault(key, set()).add((seeds.weight_seed(run), seeds.learning_seed(run)))
    assert all(len(found) == 1 for found in by_setting.values())
    every = [seed for (pair,) in by_setting.values() for seed in pair]
    assert len(set(every)) == len(every) == 2 * len(by_setting)
    assert seeds.annealing_seed(runs[0], 1) != seeds.annealing_seed(runs[0], 2)


def test_another_seed_of_the_sweep_changes_all():
    one, other = next(tiny().runs()), next(tiny(seed=1).runs())
    assert one.digest != other.digest
    assert seeds.weight_seed(one) != seeds.weight_seed(other)


def test_longer_learning_repeats_the_shorter():
    run = next(tiny().runs())
    longer = replace(run, measurement=replace(run.measurement, epochs=(3, 6, 12)))
    assert longer.digest != run.digest
    assert seeds.learning_seed(longer) == seeds.learning_seed(run)


def test_one_dataset_serves_all_trials_unless_several_are_wanted():
    one = list(tiny().runs(part="paper"))
    assert load_points(one[0])[0] is load_points(one[-1])[0]
    spec = tiny(
        data=replace(tiny().data, datasets=2), trials=4, n_hidden=(2,), hidden_bias=(0.0,), gains=(1.0,)
    )
    runs = list(spec.runs(part="paper"))
    assert [run.dataset for run in runs] == [0, 1, 0, 1]
    points = [load_points(run)[0] for run in runs]
    assert points[0] is points[2]
    assert (points[0] != points[1]).any()
    weights = [seeds.weight_seed(run) for run in runs]
    assert weights[0] == weights[1] != weights[2] == weights[3]


def test_held_out_points_are_others_from_the_same_source():
    points, held_out = load_points(next(tiny().runs()))
    assert points.shape == (40, 20)
    assert held_out is not None
    assert held_out.shape == (20, 20)
    assert not (points[:20] == held_out).all()


# Errors


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("batch_size", "batchsize", r"tiny.toml: `\[learning\] batchsize` is not a known key; known are "),
        ("trials = 2", "trial = 2", "`trial` is not a known key; known are table, trials"),
        ("trials = 2", "", "`trials` is missing"),
        ("trials = 2", "trials = 0", "`trials` must be a positive integer, got 0"),
        ("n_hidden = [2, 3]", "", r"`\[machine\] n_hidden` is missing"),
        ("n_hidden = [2, 3]", "n_hidden = []", "`n_hidden` must hold at least one number"),
        ('rivals = ["xavier"]', 'rivals = ["xaver"]', "`rivals` must be one of .*'xavier'.*, got 'xaver'"),
        ("learning_rate = 0.1", "learning_rate = -1", "`learning_rate` must be positive, got -1"),
        ("learning_rate = 0.1", "learning_rate = 1\nmomentum = 0.5", "`momentum` is for the optimizer sgd"),
        ("epochs = [3, 6]", "epochs = []", "`epochs` must name at least one epoch"),
        (
            "epochs = [3, 6]",
            'epochs = [3]\nlog_partition = "ais"',
            "`log_partition` must be 'exact' or 'mais', got 'ais'",
        ),
        (
            '"toy"\nn_points = 40\nheld_out = "fresh"',
            '"toys"',
            r"`\[data\] name` must be one of toy, .*, or the path of a file",
        ),
        ('name = "toy"', 'name = "drybean"', '`held_out` can be "fresh" for data that are drawn'),
        ("[data]", "[daten]", "`daten` is not a known key"),
        ("trials = 2", "trials = ", "tiny.toml is not valid TOML"),
    ],
)
def test_errors_name_the_key_and_the_rule(old, new, message):
    assert old in TINY
    with pytest.raises(ValueError, match=message):
        parse_spec(TINY.replace(old, new), "tiny")


def test_unknown_specifications_are_refused():
    with pytest.raises(
        ValueError, match=r"such as drybean_bit, .* got 'toy_spins' \(did you mean 'toy_spin'"
    ):
        find_spec("toy_spins")
    with pytest.raises(FileNotFoundError, match=r"does not exist: nowhere\.toml"):
        find_spec("nowhere.toml")


def test_a_file_of_ones_own_counts_by_its_content(tmp_path):
    text = (
        TINY.replace('"toy"', '"data.csv"')
        .replace('"fresh"', '"rest"')
        .replace("n_points = 40", "n_points = 3")
    )
    digests = []
    for folder, rows in (
        ("a", "0,1\n1,1\n1,0\n0,0\n"),
        ("b", "0,1\n1,1\n1,0\n0,0\n"),
        ("c", "0,1\n1,1\n1,0\n"),
    ):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "data.csv").write_text(rows)
        (tmp_path / folder / "mine.toml").write_text(text)
        spec = find_spec(tmp_path / folder / "mine.toml")
        digests.append(next(spec.runs()).digest)
    assert spec.name == "mine"
    assert digests[0] == digests[1] != digests[2]
    points, held_out = load_points(next(find_spec(tmp_path / "a" / "mine.toml").runs()))
    assert points.shape == (3, 2)
    assert held_out is not None
    assert held_out.shape == (1, 2)
    assert load_points(next(spec.runs()))[1] is None


def test_a_file_that_changed_under_a_sweep_is_refused(tmp_path):
    text = TINY.replace('"toy"', '"data.csv"').replace('"fresh"', '"rest"').replace("n_points = 40", "")
    (tmp_path / "data.csv").write_text("0,1\n1,1\n1,0\n0,0\n")
    run = next(parse_spec(text, "mine", tmp_path).runs())
    (tmp_path / "data.csv").write_text("0,1\n1,1\n1,0\n1,1\n")
    with pytest.raises(ValueError, match=r"data\.csv is not the file that the sweep was started with"):
        load_points(run)
    (tmp_path / "data.csv").unlink()
    with pytest.raises(FileNotFoundError, match="All workers must see it under the same path"):
        load_points(run)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"toy"', '"digits"\nheld_out = "digits"', "`held_out` must not be what is learned"),
        ("gains = [1.0]", "starts = [5]", "`starts` must be a text, got 5"),
        ("gains = [1.0]", "gains = [true]", "`gains` must be a real number, got True"),
        ("0.1", "true", "`learning_rate` must be a real number, got True"),
        ('"toy"', '"toy"\nbinarize = [1]', "`binarize` must be a single number"),
        ('"toy"', '"toy"\nbinarize = 1979-05-27', "`binarize` must be a real number"),
    ],
)
def test_values_that_a_specification_cannot_have(old, new, message):
    text = 'trials = 1\n[data]\nname = "toy"\n[machine]\nn_hidden = 2\ngains = [1.0]\n'
    text += "[learning]\nlearning_rate = 0.1\n[measurement]\nepochs = 2\n"
    parse_spec(text, "mine")
    with pytest.raises(ValueError, match=message):
        parse_spec(text.replace(old, new), "mine")


def test_files_of_one_s_own_are_not_taken_for_the_paper_s(tmp_path):
    source = files("paramagnet.reproduction") / "specs" / "toy_spin.toml"
    text = source.read_text(encoding="utf-8")
    (tmp_path / "toy_spin.toml").write_text(text)
    with pytest.raises(ValueError, match="must not have the name of a specification of the paper's"):
        find_spec(tmp_path / "toy_spin.toml")
    (tmp_path / "mine.toml").write_text(text)
    with pytest.raises(ValueError, match=r"mine\.toml: `table` is for the paper's own specifications"):
        find_spec(tmp_path / "mine.toml")
    without = re.sub("(?m)^table.*$", "", text)
    (tmp_path / "mine.toml").write_text(without, encoding="utf-8-sig")
    assert [run.digest for run in find_spec(tmp_path / "mine.toml").runs(trials=1)] == [
        run.digest for run in find_spec("toy_spin").runs(trials=1)
    ]
    (tmp_path / "mine.toml").write_bytes(without.encode("utf-16"))
    with pytest.raises(ValueError, match=r"mine\.toml must be text in UTF-8"):
        find_spec(tmp_path / "mine.toml")
    (tmp_path / "folder.toml").mkdir()
    with pytest.raises(IsADirectoryError, match="must be a file"):
        find_spec(tmp_path / "folder.toml")


def test_learned_points_are_not_held_out(tmp_path):
    np.savetxt(tmp_path / "a.csv", np.random.default_rng(0).integers(0, 2, (9, 3)), delimiter=",")
    (tmp_path / "b.csv").write_bytes((tmp_path / "a.csv").read_bytes())
    text = 'trials = 1\n[data]\nname = "a.csv"\nheld_out = "b.csv"\n[machine]\nn_hidden = 2\n'
    text += "[learning]\nlearning_rate = 0.1\n[measurement]\nepochs = 2\n"
    (tmp_path / "mine.toml").write_text(text)
    with pytest.raises(ValueError, match=r"`held_out` must not be what is learned, got 'b\.csv'"):
        find_spec(tmp_path / "mine.toml")


def test_settings_are_those_that_the_runs_of_a_specification_share():
    spec = find_spec("toy_spin")
    assert {run.settings for run in spec.runs(trials=2)} == {spec.settings}
    faster = replace(spec, learning=replace(spec.learning, learning_rate=0.1))
    assert faster.settings != spec.settings
    assert find_spec("toy_bit_c0").settings == spec.settings  # the units are not part of them


def test_minus_zero_is_zero():
    text = 'trials = 1\n[data]\nname = "toy"\n[machine]\nn_hidden = 2\nhidden_bias = [0.0]\n'
    text += "[learning]\nlearning_rate = 0.1\n[measurement]\nepochs = 2\n"
    (plus,), (minus,) = (parse_spec(t, "a").runs() for t in (text, text.replace("[0.0]", "[-0.0]")))
    assert plus.digest == minus.digest


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            "trials = 2",
            "trials = 1000000000",
            "`trials` must make at most .* 83333 trials of 12 cells",
        ),
        ("trials = 2", f"trials = {10**40}", r"`trials` must make at most 1000000 runs"),
        ("n_points = 40", "n_points = 10000000000", "`n_points` must be a pos.* and at most 1000000000"),
        ("[2, 3]", f"[2, {2**62}]", "`n_hidden` must be a pos.* and at most 1000000, got 46116"),
        ("batch_size = 10", f"batch_size = {2**62}", "`batch_size` must be a positive integer and at most"),
        ("batch_size = 10", f"n_steps = {2**62}", "`n_steps` must be a pos.* and at most 1000000000"),
        ("batch_size = 10", "n_chains = 100000000", "`n_chains` must be a pos.* and at most 10000000"),
        ("batch_size = 10", f"n_relax = {2**62}", "`n_relax` must be an integer of at least 0 and at most"),
        ("[3, 6]", f"[3, {2**62}]", "`epochs` must be a pos.* and at most 1000000000"),
        ("curve = 4", "curve = 1000000000", "`curve` must be an integer of at least 0 and at most 1000"),
        ("curve = 4", "n_samples = 1000000000", "`n_samples` must be a pos.* and at most 10000000"),
        (
            "curve = 4",
            "n_temperatures = 1000000000",
            "`n_temperatures` must be a pos.* and at most",
        ),
        ("held_out_points = 20", f"datasets = {2**62}", "`datasets` must be a positive integer and at most"),
    ],
)
def test_numbers_that_would_never_end_are_refused_at_once(old, new, words):
    assert TINY.count(old) == 1
    with pytest.raises(ValueError, match=words):
        parse_spec(TINY.replace(old, new), "tiny")


def test_seeds_may_be_large_numbers():
    assert tiny(seed=2**70).seed == 2**70
