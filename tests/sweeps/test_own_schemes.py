"""Schemes of a user's own, from outside the package: in Python, on the command line and in specifications."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

import paramagnet as pm
from own_classes import Components, Narrow
from own_units import Trit
from paramagnet import schemes
from paramagnet.cli import app
from paramagnet.initializers import draw_machine
from paramagnet.schemes import SCHEMES
from paramagnet.sweeps.execute import Stop, Stopped, execute, state_file
from paramagnet.sweeps.spec_files import parse_spec
from paramagnet.sweeps.starts import parse_start
from small_sweeps import EXACT, SAMPLED, outcome

POINTS = np.random.default_rng(0).choice([-1.0, 1.0], size=(40, 6))
OWN = ("own_classes:Narrow", "2 own_classes:Narrow(width=0.25)+data", "own_classes:Components")


def run_command(*words, code=0):
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == code, result.output
    return result


def runs_of(text, names=OWN):
    listed = ", ".join(f'"{name}"' for name in names)
    text = text.replace("n_hidden = [2, 3]", "n_hidden = 3").replace('["xavier"]', f"[]\nstarts = [{listed}]")
    return list(parse_spec(text, "mine").runs(trials=1, part="starts"))


# Python


def test_a_scheme_is_a_name_a_place_or_an_object():
    drawn = [
        draw_machine(6, 3, scheme=scheme, gain=2.0, rng=1)
        for scheme in (Narrow(0.25), "own_classes:Narrow(width=0.25)", "own_classes:Narrow( width = 0.25 )")
    ]
    sigma = 2.0 * 0.25 * 18**-0.25
    weights = np.random.default_rng(1).normal(size=(6, 3)) * sigma
    for one in drawn:
        assert one.sigma == sigma
        np.testing.assert_array_equal(one.rbm.weights, weights)
    assert pm.scheme_std("own_classes:Narrow", 6, 3) == pm.scheme_std(Narrow(), 6, 3) == 0.5 * 18**-0.25
    np.testing.assert_array_equal(pm.initialize(6, 3, scheme=Narrow(0.25), gain=2.0, rng=1).weights, weights)


def test_a_scheme_may_need_data():
    drawn = draw_machine(6, 3, scheme=Components(), visible_bias="data", data=POINTS)
    covariance = np.cov(POINTS.T, bias=True)
    largest = np.linalg.eigvalsh(covariance)[:-4:-1]
    np.testing.assert_allclose(drawn.rbm.weights.T @ drawn.rbm.weights, np.diag(largest), atol=1e-12)
    same = draw_machine(6, 3, scheme=Components(), data=POINTS).rbm  # biases from data without a word
    np.testing.assert_array_equal(same.visible_bias, drawn.rbm.visible_bias)
    with pytest.raises(ValueError, match=r'`scheme` = .*Components.* pass `visible_bias="data"` and `data=`'):
        pm.initialize(6, 3, scheme=Components())


@pytest.mark.parametrize("gradient", [pm.Exact(), pm.PCD(20, 2, 5)])
def test_machines_of_own_schemes_train_and_resume_bit_for_bit(gradient, tmp_path):
    start = pm.initialize(6, 3, scheme="own_classes:Narrow", rng=1)
    options = {"gradient": gradient, "optimizer": pm.Adam(0.05), "batch_size": 10, "rng": 2}
    whole = pm.train(start, POINTS, epochs=4, **options)
    pm.train(start, POINTS, epochs=2, **options).state.save(tmp_path / "half.safetensors")
    half = pm.load_checkpoint(tmp_path / "half.safetensors")
    rest = pm.train(half, POINTS, epochs=4, **options)
    np.testing.assert_array_equal(rest.rbm.weights, whole.rbm.weights)


def test_the_sigma_is_that_of_the_weights():
    for name in SCHEMES.names:
        drawn = draw_machine(
            400, 300, hidden="spin", scheme=name, gain=0.5, visible_bias="data",
            data=np.random.default_rng(3).choice([-1.0, 1.0], size=(500, 400)), rng=0,
        )  # fmt: skip
        assert drawn.rbm.weights.std() == pytest.approx(drawn.sigma, rel=0.01), name
    assert draw_machine(784, 500, hidden_bias=-5.0).sigma == pm.weight_std(784, 500, hidden_bias=-5.0)
    assert draw_machine(6, 4, scheme="d-wave").sigma == pytest.approx(2.5 * 24**-0.25)


@pytest.mark.parametrize(
    ("scheme", "message"),
    [
        ("none", "`scheme` must be one of 'layer-correlation', .*'recommended', or 'package.module:Name'"),
        (Narrow, "`scheme` must be one of .*, or an object of a class derived from `paramagnet.schemes.Sch"),
        ("own_classes:RMSprop", "`scheme` must name a class derived from `Scheme`"),
        ("own_classes:Bare", "`scheme` must name a class with the method `draw`"),
        ("own_classes:Narrow(depth=1)", "`depth` is not a setting of Narrow; it has width"),
        ("own_classes:Narrow(width)", "`scheme` must have settings of the form key=value"),
        (
            "own_classes:Narrow(width=1,width=2)",
            "`scheme` must have settings of the form key=value in",
        ),
        ("own_classes:Narrow(width=x)", "`width` must be a number, got 'x'"),
        ("own_classes:Endless", "`scheme` must give a finite standard deviation of at least 0, Endless gave"),
    ],
)
def test_what_is_no_scheme_is_refused(scheme, message):
    with pytest.raises(ValueError, match=message):
        pm.initialize(6, 3, scheme=scheme)


def test_only_scales_have_a_standard_deviation():
    with pytest.raises(ValueError, match=r"`scheme` must be a scheme with a standard deviation .*d-wave"):
        pm.scheme_std("hopfield", 6, 3)


def test_own_schemes_are_judged_beside_the_others():
    usual = pm.compare_schemes(20, 20)
    more = pm.compare_schemes(20, 20, schemes=["own_classes:Narrow", Narrow(2.0), "d-wave"])
    extra = [report for report in more if report not in usual]
    assert [report.name for report in extra] == ["own_classes:Narrow", "Narrow", "d-wave"]
    assert [report.sigma for report in extra] == pytest.approx([0.5 * 20**-0.5, 2 * 20**-0.5, 2.5 * 20**-0.5])
    with pytest.raises(ValueError, match="`schemes` must be a list of schemes, got 'he'"):
        pm.compare_schemes(20, 20, schemes="he")


# The command line


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("spins.npy", POINTS)


def test_the_command_line_trains_resumes_and_samples(folder):
    basic = ("train", "spins.npy", "--hidden-units", 3, "--out", "m.safetensors", "--seed", 1, "--force")
    basic = (*basic, "--recipe", "paper", "--learning-rate", 0.001)  # a falling one depends on the epochs
    own = ("--scheme", "own_classes:Narrow", "--width", 0.25, "--pcd", "--chains", 20, "--steps", 2)
    run_command(*basic, *own, "--epochs", 2)
    trained = pm.RBM.load("m.safetensors").weights
    rng = np.random.default_rng(1)
    start = pm.initialize(6, 3, scheme=Narrow(0.25), rng=rng)
    expected = pm.train(start, POINTS, epochs=2, gradient=pm.PCD(20, 2), optimizer=pm.Adam(), rng=rng).rbm
    np.testing.assert_array_equal(trained, expected.weights)
    run_command(*basic, *own, "--epochs", 1)
    run_command(*basic, *own, "--epochs", 2, "--resume")
    np.testing.assert_array_equal(pm.RBM.load("m.safetensors").weights, trained)
    run_command("sample", "m.safetensors", "--n-samples", 5, "--out", "drawn.npy", "--seed", 0)
    assert np.isin(np.load("drawn.npy"), (-1.0, 1.0)).all()
    run_command(*basic, "--scheme", "own_classes:Narrow(width=0.25)", *own[4:], "--epochs", 2)
    np.testing.assert_array_equal(pm.RBM.load("m.safetensors").weights, trained)


def test_the_command_line_refuses_what_a_scheme_lacks(folder):
    basic = ("train", "spins.npy", "--hidden-units", 3, "--out", "m.safetensors", "--epochs", 1)
    result = run_command(*basic, "--scheme", "own_classes:Narrow", "--n-relax", 3, code=1)
    assert "`--n-relax` is not a setting of Exact and Adam and Narrow" in str(result.exception)
    result = run_command(*basic, "--scheme", "own_classes:Nothing", code=1)
    assert "`--scheme` must name a class of own_classes" in str(result.exception)


def test_own_schemes_in_the_table_of_schemes():
    words = ("schemes", "--visible-units", 20, "--hidden-units", 20, "--json")
    reports = json.loads(run_command(*words, "--scheme", "own_classes:Narrow").output)
    (own,) = (report for report in reports if report["name"] == "own_classes:Narrow")
    assert own["sigma"] == pytest.approx(0.5 * 20**-0.5)


# Specifications


def test_own_starts_are_read():
    assert parse_start(OWN[1]) == ("own_classes:Narrow(width=0.25)+data", 2.0)
    for wrong in ("own_classes:Components+data", "own_classes:Narrow+data-own", "xavier+data-own"):
        with pytest.raises(ValueError, match=r"`starts` must hold names among layer-correlation, .*'package"):
            parse_start(wrong)
    with pytest.raises(ValueError, match=r"`rivals` must be one of 'layer-correlation'.*got 'xavier\+data'"):
        parse_spec(EXACT.replace('["xavier"]', '["xavier+data"]'), "mine")


@pytest.mark.parametrize("text", [EXACT, SAMPLED], ids=["exact", "sampled"])
def test_own_schemes_in_a_specification_resume_bit_for_bit(text, tmp_path, monkeypatch):
    runs = runs_of(text)
    assert [(run.scheme, run.gain) for run in runs] == [
        ("own_classes:Narrow", 1.0),
        ("own_classes:Narrow(width=0.25)+data", 2.0),
        ("own_classes:Components", 1.0),
    ]
    whole = [execute(run) for run in runs]
    assert whole[0].sigma == whole[1].sigma == pytest.approx(0.5 * 60**-0.25)
    assert len({run.digest for run in runs}) == len({record.log_likelihood for record in whole}) == 3
    monkeypatch.setattr("paramagnet.sweeps.execute.LOOK_SECONDS", 0.0)
    for run, record in zip(runs, whole, strict=True):
        assert record.scheme == run.scheme
        looks = iter([False] * 5 + [True])
        monkeypatch.setattr(Stop, "due", lambda self, looks=looks: next(looks, False))
        with pytest.raises(Stopped):
            execute(run, states=str(tmp_path))
        assert state_file(tmp_path, run).exists()
        assert outcome([execute(run, states=str(tmp_path))]) == outcome([record])


def test_own_schemes_may_be_rivals():
    spec = parse_spec(EXACT.replace('["xavier"]', '["d-wave", "own_classes:Narrow"]'), "mine")
    assert [run.scheme for run in spec.runs(trials=1, part="rivals")][:2] == ["d-wave", "own_classes:Narrow"]


def test_records_of_own_schemes_need_no_class(tmp_path):
    """A class is looked up for a run; records of it are read, grouped and named without."""
    from paramagnet.sweeps.groups import group_runs

    record = replace(execute(runs_of(EXACT)[0]), scheme="gone_module:Narrow+data")
    ((start, _),) = next(iter(group_runs([record]).values())).items()
    assert start.label == "gone_module:Narrow + data"


@pytest.mark.parametrize("name", ["layer-correlation", "layer-correlation+data-own", "hinton", "hopfield"])
def test_a_run_solves_for_beta_max_once(name, monkeypatch):
    solved = []
    solve = schemes.find_beta_max
    monkeypatch.setattr(schemes, "find_beta_max", lambda *a, **b: solved.append(a) or solve(*a, **b))
    execute(runs_of(EXACT, (name,))[0])
    assert len(solved) == name.startswith("layer-correlation")


# Units


def test_units_by_their_place(folder):
    drawn = pm.initialize(6, 3, visible="own_units:Trit", scheme="xavier", rng=1)
    assert drawn.visible == Trit()
    spec = EXACT.replace("[machine]", '[machine]\nhidden = "own_units:Trit"').replace(
        "gains = [0.5, 1.0]", "gains = []"
    )
    run = next(iter(parse_spec(spec, "mine").runs()))
    assert run.hidden == "own_units:Trit"
    assert np.isfinite(execute(run).log_likelihood).all()
    for wrong in ("own_units:np", "own_classes:Narrow"):
        with pytest.raises(ValueError, match="`visible` must name a unit or a class of units"):
            pm.initialize(6, 3, visible=wrong)


def test_units_of_files_are_not_imported():
    with pytest.raises(ValueError, match="`visible` must be a unit type"):
        pm.RBM(np.zeros((2, 2)), np.zeros(2), np.zeros(2), "own_units:Trit", "bit")
